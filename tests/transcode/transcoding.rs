//! The transcode service end to end: files come from S3 and go there with keys that expire, and every step is
//! told by a signed webhook.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Request;
use leasehold::{Actor, Control, Controlled, JobId, Replay, State, Store, StoreExt};
use serde_json::{Value, json};

use crate::asking::{issue, posted, send};
use crate::bucket::Bucket;
use crate::requester::{
    REQUESTER, Requester, assert_flac, credentials, finish, in_bucket, keys, order, payload,
    settings_of, wav,
};
use crate::server::{Act, Server};
use crate::{Told, stories};

stories![
    expired_keys_are_refreshed_on_the_way_in_and_out,
    what_cannot_be_done_is_told_with_its_error,
    keys_that_stay_refused_end_the_job,
    signed_urls_work_and_are_refreshed_too,
    requesters_ask_and_give_credentials_over_http,
    local_files_stay_below_their_folder,
    a_replayed_job_goes_on_with_the_credentials_of_the_old_one,
];

/// The first key is refused at once, the second runs out between reading and writing.
///
/// Proves: CR-1, CR-2, RT-3, WQ-1, TX-7, WH-3, WH-6
async fn expired_keys_are_refreshed_on_the_way_in_and_out(store: Arc<dyn Store>) -> Told {
    let bucket = Bucket::open().await;
    wav(&bucket.file("in.wav"));
    bucket.admit("second", "secret two", 1);
    bucket.admit("third", "secret three", 100);
    let gives = vec![credentials("second", "secret two"), credentials("third", "secret three")];
    let requester = Requester::giving(gives);
    let server = requester.serve().await;
    let (from, to) = (in_bucket(&bucket, "in.wav"), in_bucket(&bucket, "out/made.flac"));
    let job = order(&server, &from, &to)?;
    let first = br#"{"access_key_id":"first","secret_access_key":"expired"}"#;
    keys(&store)?.write(job.id, REQUESTER, first, Default::default()).await?;
    let id = store.enqueue_one(job).await?.job();
    let ended = finish(&store, bucket.folder(), id, &requester).await?;
    assert_eq!(ended.state, State::Succeeded, "{:?}", ended.failure);
    assert_eq!((requester.asked(), ended.executions), (2, 1), "refreshed within one attempt");
    assert_flac(&bucket.file("out/made.flac"));
    let told = requester.told(id);
    let steps: Vec<&str> = told.iter().filter_map(|event| event["to"].as_str()).collect();
    assert_eq!(steps, ["claimed", "fetching", "processing", "uploading", "succeeded"]);
    let (last, before) = told.split_last().expect("events");
    assert_eq!(last["result"]["outputs"][0]["format"], "flac");
    let size = std::fs::metadata(bucket.file("out/made.flac"))?.len();
    assert_eq!(last["result"]["outputs"][0]["bytes"], size);
    assert!(last.get("error").is_none());
    for event in before {
        assert!(event.get("result").is_none() && event.get("error").is_none(), "{event}");
        assert!(event["at"].is_string() && event["seq"].is_i64(), "{event}");
    }
    Ok(())
}

/// Proves: WH-3, WQ-16, RT-1
async fn what_cannot_be_done_is_told_with_its_error(store: Arc<dyn Store>) -> Told {
    let bucket = Bucket::open().await;
    std::fs::write(bucket.file("in.wav"), "no WAV file")?;
    bucket.admit("key", "secret", 100);
    let requester = Requester::giving(vec![credentials("key", "secret")]);
    let server = requester.serve().await;
    for (source, code) in [("in.wav", "PAYLOAD_INVALID"), ("none.wav", "NOT_FOUND")] {
        let job = order(&server, &in_bucket(&bucket, source), &in_bucket(&bucket, "out.flac"))?;
        let id = store.enqueue_one(job).await?.job();
        let ended = finish(&store, bucket.folder(), id, &requester).await?;
        assert_eq!(ended.state, State::DeadLetter);
        let told = requester.told(id);
        let last_two: Vec<&Value> = told.iter().rev().take(2).collect();
        assert_eq!(
            (&last_two[1]["to"], &last_two[0]["to"]),
            (&json!("failed"), &json!("dead_letter"))
        );
        for event in last_two {
            let error = &event["error"];
            assert_eq!(
                (&error["code"], &error["retryable"]),
                (&json!(code), &json!(false)),
                "{event}"
            );
            assert!(error["class"].is_string() && error["message"].is_string());
            assert!(event.get("result").is_none());
        }
    }
    assert!(!bucket.file("out.flac").exists());
    Ok(())
}

/// Proves: CR-1, CR-2, RT-3
async fn keys_that_stay_refused_end_the_job(store: Arc<dyn Store>) -> Told {
    let bucket = Bucket::open().await;
    let requester = Requester::giving(vec![credentials("never", "good")]);
    let server = requester.serve().await;
    let job = order(&server, &in_bucket(&bucket, "in.wav"), &in_bucket(&bucket, "out.flac"))?;
    let id = store.enqueue_one(job).await?.job();
    let ended = finish(&store, bucket.folder(), id, &requester).await?;
    assert_eq!(ended.state, State::DeadLetter);
    assert_eq!(requester.told(id).last().expect("events")["error"]["code"], "AUTH_DENIED");
    Ok(())
}

/// Proves: CR-2
async fn signed_urls_work_and_are_refreshed_too(store: Arc<dyn Store>) -> Told {
    let folder = Bucket::open().await; // only for its folder
    wav(&folder.file("in.wav"));
    let bytes = std::fs::read(folder.file("in.wav"))?;
    let put: Arc<Mutex<Vec<u8>>> = Arc::default();
    let (kept, source) = (put.clone(), folder.file("in.wav"));
    let storage = Server::start(move |seen| match (seen.method.as_str(), seen.path.as_str()) {
        ("GET", "/in.wav?signature=good") => Act::File(source.clone()),
        ("PUT", "/out.flac?signature=good") => {
            *kept.lock().expect("no panic under this lock") = seen.body.clone();
            Act::status(200)
        }
        _ => Act::status(403),
    });
    let storage = storage.await;
    let urls = |signature: &str| {
        let url = |name: &str| format!("http://{}/{name}?signature={signature}", storage.address);
        let urls = json!({ "in": url("in.wav"), "out": url("out.flac") });
        Act::Answer(200, "", json!({ "credentials": { "urls": urls } }).to_string())
    };
    let requester = Requester::giving(vec![urls("expired"), urls("good")]);
    let server = requester.serve().await;
    let signed = |name: &str| json!({ "at": "signed", "name": name });
    let id = store.enqueue_one(order(&server, &signed("in"), &signed("out"))?).await?.job();
    let ended = finish(&store, folder.folder(), id, &requester).await?;
    assert_eq!(ended.state, State::Succeeded, "{:?}", ended.failure);
    assert_eq!(requester.asked(), 2);
    let made = folder.file("made.flac");
    std::fs::write(&made, &*put.lock().expect("no panic under this lock"))?;
    assert_flac(&made);
    assert!(bytes.len() > 30_000);
    Ok(())
}

fn put(job: JobId, api_key: &str, body: &str) -> Request<Body> {
    let request = Request::put(format!("/transcode/credentials?job_id={job}"))
        .header("authorization", format!("Bearer {api_key}"))
        .header("content-type", "application/json");
    request.body(Body::from(body.to_owned())).expect("a request")
}

/// All of it over HTTP: asked for, given credentials by a call, and told of.
///
/// Proves: CR-2, HTTP-1, HTTP-2
async fn requesters_ask_and_give_credentials_over_http(store: Arc<dyn Store>) -> Told {
    let bucket = Bucket::open().await;
    wav(&bucket.file("in.wav"));
    bucket.admit("key", "secret", 100);
    let requester = Requester::giving(vec![Act::status(404)]);
    let server = requester.serve().await;
    let router = crate::service::api(store.clone(), &settings_of(bucket.folder().to_owned()))
        .map_err(|error| error.to_string())?;
    let (key, other) = (issue(&store, REQUESTER).await?, issue(&store, "another").await?);
    let order = payload(&server, &in_bucket(&bucket, "in.wav"), &in_bucket(&bucket, "out.flac"));
    send(&router, posted("/transcode", &key, "1", "{\"source\":7}")).await.assert_problem(422);
    for member in ["refresh_url", "status_webhook_url"] {
        let mut lame = order.clone();
        lame[member] = json!("ftp://example.org/events");
        let refused = send(&router, posted("/transcode", &key, "1", &lame.to_string())).await;
        refused.assert_problem(422);
    }
    let asked = send(&router, posted("/transcode", &key, "1", &order.to_string())).await;
    assert_eq!(asked.status.as_u16(), 202, "{}", asked.body);
    let id: JobId = asked.body["job_id"].as_str().unwrap_or_default().parse()?;
    let secret = r#"{"access_key_id":"key","secret_access_key":"secret"}"#;
    send(&router, put(id, &other, secret)).await.assert_problem(404);
    send(&router, put(id, "none", secret)).await.assert_problem(401);
    send(&router, put(id, &key, "no JSON")).await.assert_problem(400);
    for version in [1, 2] {
        let given = send(&router, put(id, &key, secret)).await;
        assert_eq!(
            (given.status.as_u16(), &given.body["credential_version"]),
            (200, &json!(version))
        );
    }
    let ended = finish(&store, bucket.folder(), id, &requester).await?;
    assert_eq!((ended.state, requester.asked()), (State::Succeeded, 0), "{:?}", ended.failure);
    assert_flac(&bucket.file("out.flac"));
    send(&router, put(id, &key, secret)).await.assert_problem(409);
    // The secret is nowhere in the job.
    assert!(!format!("{ended:?}").contains("secret_access_key"));
    Ok(())
}

/// Proves: DSK-1
async fn local_files_stay_below_their_folder(store: Arc<dyn Store>) -> Told {
    let folder = Bucket::open().await; // only for its folder
    wav(&folder.folder().join("in.wav"));
    let requester = Requester::giving(vec![Act::status(404)]);
    let server = requester.serve().await;
    let local = |path: &str| json!({ "at": "local", "path": path });
    for (source, state) in [
        ("in.wav", State::Succeeded),
        ("../in.wav", State::DeadLetter),
        ("/etc/hostname", State::DeadLetter),
    ] {
        let job = order(&server, &local(source), &local("out.flac"))?;
        let id = store.enqueue_one(job).await?.job();
        let ended = finish(&store, folder.folder(), id, &requester).await?;
        assert_eq!(ended.state, state, "{source}: {:?}", ended.failure);
    }
    assert_flac(&folder.folder().join("out.flac"));
    // Nothing is left of the temporary files.
    let left = std::fs::read_dir(folder.folder().join("scratch"))?.flatten();
    assert_eq!(left.filter(|entry| entry.path().is_dir()).count(), 0);
    Ok(())
}

/// The source comes late; the replay is a new job, and nobody is asked again.
///
/// Proves: DL-5, CR-2, ENC-2
async fn a_replayed_job_goes_on_with_the_credentials_of_the_old_one(store: Arc<dyn Store>) -> Told {
    let bucket = Bucket::open().await;
    bucket.admit("key", "secret", 100);
    let requester = Requester::giving(vec![credentials("key", "secret"), Act::status(500)]);
    let server = requester.serve().await;
    let job = order(&server, &in_bucket(&bucket, "in.wav"), &in_bucket(&bucket, "out.flac"))?;
    let mut id = store.enqueue_one(job).await?.job();
    let ended = finish(&store, bucket.folder(), id, &requester).await?;
    assert_eq!((ended.state, requester.asked()), (State::DeadLetter, 1));
    // Twice over: the second replay finds what the first has sealed for itself.
    for source_is_there in [false, true] {
        if source_is_there {
            wav(&bucket.file("in.wav"));
        }
        let replay = Replay::new(id, Actor::new("test")?).note("it is there now").safe_to_repeat();
        let replayed = store.control(Control::Replay(Box::new(replay))).await?;
        let Controlled::Replayed { job, .. } = replayed else {
            return Err(format!("{replayed:?}").into());
        };
        assert_ne!(job, id);
        id = job;
        let ended = finish(&store, bucket.folder(), id, &requester).await?;
        assert_eq!((ended.state == State::Succeeded, requester.asked()), (source_is_there, 1));
        let keys = keys(&store)?;
        assert_eq!(keys.current(id, REQUESTER).await?.map(|now| now.version), Some(1));
        assert!(keys.current(id, "another").await.is_err());
    }
    assert_flac(&bucket.file("out.flac"));
    Ok(())
}
