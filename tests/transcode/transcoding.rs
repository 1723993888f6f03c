//! The transcode service end to end: files come from S3 and go there with keys that expire, every step is
//! told by a signed webhook, and a killed worker loses nothing. Worker processes are this program again.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use leasehold::credentials::Credentials;
use leasehold::vault::{KeyRing, Vault};
use leasehold::webhook::{Key, Scheme, Signer, Verifier};
use leasehold::{
    CancellationToken, JobId, JobKind, JobView, Json, Lifecycle, Maintenance, NewJob, QueueName,
    Scope, State, Store, StoreExt,
};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::asking::{issue, posted, send};
use crate::bucket::{BUCKET, Bucket};
use crate::engine::Engine;
use crate::server::{Act, Seen, Server};
use crate::service::{Settings, work};
use crate::{Told, stories};

stories![
    expired_keys_are_refreshed_on_the_way_in_and_out,
    what_cannot_be_done_is_told_with_its_error,
    keys_that_stay_refused_end_the_job,
    signed_urls_work_and_are_refreshed_too,
    requesters_ask_and_give_credentials_over_http,
    local_files_stay_below_their_folder,
];

const CHILD: &str = "LEASEHOLD_TRANSCODE_CHILD";
const SECRET: &str = "an-example-of-32-bytes-or-longer";
const KEYS: &str = "2026-11:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
const REQUESTER: &str = "studio-7";
const PATIENCE: Duration = Duration::from_secs(120);

/// What the service reads from its environment; called before any thread is there.
pub(crate) fn settings_of(folder: PathBuf) -> Settings {
    Settings {
        local: Some(folder.clone()),
        scratch: folder.join("scratch"),
        allow_private: true,
        secret: Some(SECRET.to_owned()),
        keys: Some(KEYS.to_owned()),
    }
}

/// The child: works until it is killed.
pub(crate) fn play_role() -> Option<ExitCode> {
    let task = std::env::var(CHILD).ok()?;
    let (folder, url) = task.split_once('|').expect("a task is folder, URL");
    let settings = settings_of(PathBuf::from(folder));
    crate::runtime().block_on(async {
        let store = leasehold::connect(url).await.expect("a store");
        work(store, &settings, CancellationToken::new())
            .await
            .expect("it works until it is killed");
    });
    Some(ExitCode::SUCCESS)
}

/// A second of two tones.
fn samples() -> Vec<i32> {
    let sample = |n: u32| {
        let at = f64::from(n / 2) / 8_000.0;
        let tone = if n.is_multiple_of(2) { 440.0 } else { 554.37 };
        let value = (at * tone * std::f64::consts::TAU).sin() * 12_000.0;
        #[allow(clippy::cast_possible_truncation, reason = "within 16 bits")]
        let value = value as i32;
        value
    };
    (0..16_000).map(sample).collect()
}

fn wav(to: &std::path::Path) {
    let spec = hound::WavSpec {
        channels: 2,
        sample_rate: 8_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = hound::WavWriter::create(to, spec).expect("a file");
    for sample in samples() {
        file.write_sample(sample).expect("written");
    }
    file.finalize().expect("written");
}

/// The very samples, read by another decoder.
fn assert_flac(file: &std::path::Path) {
    let mut read = claxon::FlacReader::open(file).expect("a FLAC file");
    assert_eq!((read.streaminfo().channels, read.streaminfo().sample_rate), (2, 8_000));
    let found: Vec<i32> = read.samples().map(|sample| sample.expect("a sample")).collect();
    assert!(found == samples(), "the samples differ");
}

/// The requester's side: gives what it is told to give, and keeps each event once.
#[derive(Clone)]
struct Requester {
    gives: Arc<Mutex<Vec<Act>>>,
    asked: Arc<Mutex<u32>>,
    events: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Requester {
    /// Answers refreshes one after the other; the last answer again and again.
    fn giving(gives: Vec<Act>) -> Self {
        let gives = Arc::new(Mutex::new(gives));
        Self { gives, asked: Arc::default(), events: Arc::default() }
    }

    async fn serve(&self) -> Server {
        let this = self.clone();
        Server::start(move |seen| this.answer(seen)).await
    }

    fn answer(&self, seen: &Seen) -> Act {
        let key = Key::new(SECRET.as_bytes().to_vec()).expect("a key");
        let verifier = Verifier::new(Scheme::euterpe(), key);
        let verified = verifier.verify(&seen.headers, &seen.body).expect("well signed");
        if seen.path == "/refresh" {
            *self.asked.lock().expect("no panic under this lock") += 1;
            let mut gives = self.gives.lock().expect("no panic under this lock");
            return if gives.len() > 1 { gives.remove(0) } else { gives[0].clone() };
        }
        let event = serde_json::from_slice(&seen.body).expect("JSON");
        let mut events = self.events.lock().expect("no panic under this lock");
        if !events.iter().any(|(id, _)| id == verified.event_id()) {
            events.push((verified.event_id().to_owned(), event));
        }
        Act::status(204)
    }

    fn asked(&self) -> u32 {
        *self.asked.lock().expect("no panic under this lock")
    }

    /// What was told of a job, in its order.
    fn told(&self, job: JobId) -> Vec<Value> {
        let events = self.events.lock().expect("no panic under this lock");
        let of = |event: &Value| event["job_id"] == job.to_string();
        let mut told: Vec<Value> =
            events.iter().map(|(_, event)| event.clone()).filter(of).collect();
        told.sort_by_key(|event| event["seq"].as_i64());
        told
    }
}

fn credentials(key: &str, secret: &str) -> Act {
    let given = json!({ "credentials": { "access_key_id": key, "secret_access_key": secret } });
    Act::Answer(200, "", given.to_string())
}

fn in_bucket(bucket: &Bucket, key: &str) -> Value {
    json!({ "at": "s3", "endpoint": bucket.endpoint, "region": "us-east-1", "bucket": BUCKET, "key": key })
}

fn payload(server: &Server, source: &Value, output: &Value) -> Value {
    let base = format!("http://{}", server.address);
    json!({
        "source": source,
        "output": output,
        "refresh_url": format!("{base}/refresh"),
        "status_webhook_url": format!("{base}/events"),
    })
}

fn order(server: &Server, source: &Value, output: &Value) -> Result<NewJob, Failed> {
    let payload = payload(server, source, output);
    Ok(NewJob::new(JobKind::new("transcode")?, Json::of(&payload)?)
        .queue(QueueName::new("transcode")?)
        .lifecycle(Lifecycle::transcode().name().clone())
        .scope(Scope::new(REQUESTER)?)
        .key(JobId::new().to_string().parse()?))
}

/// Works until a job is over and everything of it is told; how it ended.
async fn finish(
    store: &Arc<dyn Store>,
    folder: &std::path::Path,
    job: JobId,
    requester: &Requester,
) -> Result<JobView, Failed> {
    let shutdown = CancellationToken::new();
    let settings = settings_of(folder.to_owned());
    let working = work(store.clone(), &settings, shutdown.clone());
    let over = async {
        let _ends_the_work = shutdown.clone().drop_guard();
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let view = store.job(job).await?.ok_or("the job is gone")?;
            let last = requester.told(job).last().map(|event| event["to"].clone());
            if view.finished_at.is_some() && last.is_some_and(|to| to == view.status) {
                return Ok::<_, Failed>(view);
            }
        }
    };
    let over = tokio::time::timeout(PATIENCE, over);
    let (worked, over) = tokio::join!(working, over);
    worked.map_err(|error| error.to_string())?;
    over?
}

fn keys(store: &Arc<dyn Store>) -> Result<Credentials, Failed> {
    let ring = KeyRing::new(leasehold::vault::KekId::new("2026-11")?, [7; 32])?;
    let signer = Signer::new(Scheme::euterpe(), Key::new(SECRET.as_bytes().to_vec())?);
    let vault = Vault::new(store.clone(), Arc::new(ring));
    Ok(Credentials::builder(store.clone(), vault, signer).build()?)
}

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

/// Two worker processes, of which one is killed with a job in hand.
///
/// Proves: WQ-11, GLO-2, TX-4, WH-5
pub(crate) fn two_worker_processes_transcode_and_tell_all_of_it_though_one_is_killed(
    engine: &Engine,
) -> Result<(), Failed> {
    crate::runtime().block_on(async {
        let store = engine.open().await?;
        let bucket = Bucket::open().await;
        wav(&bucket.file("in.wav"));
        bucket.admit("key", "secret", u32::MAX);
        let requester = Requester::giving(vec![credentials("key", "secret")]);
        let server = requester.serve().await;
        let mut ids = Vec::new();
        for n in 0..6 {
            let to = in_bucket(&bucket, &format!("out {n}.flac"));
            let job = order(&server, &in_bucket(&bucket, "in.wav"), &to)?;
            ids.push(store.enqueue_one(job).await?.job());
        }
        let start = || {
            let task = format!("{}|{}", bucket.folder().display(), engine.url());
            let program = std::env::current_exe()?;
            let mut command = Command::new(program);
            command.env(CHILD, task).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let (mut killed, mut other) = (start()?, start()?);
        let until = |least: usize| {
            let (requester, ids) = (requester.clone(), ids.clone());
            async move {
                let mut look = tokio::time::interval(Duration::from_millis(5));
                loop {
                    look.tick().await;
                    let told = ids.iter().filter(|id| {
                        requester.told(**id).last().is_some_and(|event| event["to"] == "succeeded")
                    });
                    let begun = ids.iter().filter(|id| !requester.told(**id).is_empty()).count();
                    if told.count() >= least && begun > 0 {
                        return;
                    }
                }
            }
        };
        // As soon as anything is told of, a job is in hand or just over.
        tokio::time::timeout(PATIENCE, until(0)).await?;
        killed.kill()?;
        killed.wait()?;
        let stop = CancellationToken::new();
        let upkeep = Maintenance::new(store.clone()).every(Duration::from_millis(200));
        let all = async {
            let _ends_the_upkeep = stop.clone().drop_guard();
            tokio::time::timeout(PATIENCE, until(ids.len())).await
        };
        let ((), all) = tokio::join!(upkeep.run(&stop), all);
        all?;
        other.kill()?;
        other.wait()?;
        for (n, id) in ids.iter().enumerate() {
            let view = store.job(*id).await?.ok_or("gone")?;
            assert_eq!(view.state, State::Succeeded);
            assert_flac(&bucket.file(&format!("out {n}.flac")));
            let seqs: Vec<i64> =
                requester.told(*id).iter().filter_map(|event| event["seq"].as_i64()).collect();
            let whole: Vec<i64> = (1..=i64::try_from(seqs.len())?).collect();
            assert_eq!(seqs, whole, "every transition is told, once");
        }
        Ok(())
    })
}
