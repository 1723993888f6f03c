//! What requesters ask for and are told.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures_util::future::join_all;
use leasehold::http::{Api, ApiKeys, Offer};
use leasehold::{
    Actor, ClaimRequest, Failure, FailureCode, JobFilter, JobKind, Json, LifecycleName, Paging,
    PruneRequest, QueueName, Rate, Scope, Settlement, Store, StoreExt, Verdict, WorkerId,
};
use serde_json::Value;
use tower_service::Service;

use crate::{Told, stories};

stories![
    a_job_is_enqueued_once_whatever_is_sent_again,
    equal_requests_at_once_are_one_job,
    another_request_under_a_key_is_a_conflict,
    a_key_counts_as_new_after_its_time,
    keys_are_hashed_and_two_count_at_once,
    a_key_for_other_kinds_is_forbidden,
    the_status_tells_of_every_state,
    anothers_job_is_unknown,
    a_pruned_job_is_gone,
    too_many_requests_are_told_when_to_come_again,
    the_document_describes_every_route,
    health_tells_whether_the_store_answers,
];

pub(crate) fn kind(name: &str) -> JobKind {
    JobKind::new(name).expect("a kind")
}

pub(crate) fn actor() -> Actor {
    Actor::new("test").expect("an actor")
}

pub(crate) async fn issue(store: &Arc<dyn Store>, requester: &str) -> leasehold::Result<String> {
    let keys = ApiKeys::of(store.clone());
    Ok(keys.issue(&Scope::new(requester)?, None, actor()).await?.expose())
}

pub(crate) fn api(store: &Arc<dyn Store>) -> Api {
    let lifecycle = LifecycleName::new("transcode").expect("a name");
    let transcode = Offer::new("transcode", kind("transcode")).expect("an offer");
    let transcode =
        transcode.lifecycle(lifecycle).check(|payload| match payload.as_str().contains("source") {
            true => Ok(()),
            false => Err("source is missing".to_owned()),
        });
    let index = Offer::new("index", kind("index")).expect("an offer");
    Api::new(store.clone()).offer(transcode).offer(index)
}

/// An answer: status, headers by name, and the body as JSON.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    fn text(&self, member: &str) -> &str {
        self.body[member].as_str().unwrap_or_default()
    }

    /// Fails unless it is a problem of this status.
    pub(crate) fn assert_problem(&self, status: u16) {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["status"], status);
        for member in ["type", "title", "detail"] {
            assert!(!self.text(member).is_empty(), "{member}: {}", self.body);
        }
    }
}

type Heard = Pin<Box<dyn Future<Output = Answer>>>;

pub(crate) fn send(router: &Router, request: Request<Body>) -> Heard {
    let mut router = router.clone();
    Box::pin(async move {
        let answer = router.call(request).await.expect("an answer");
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Answer { status, headers, body }
    })
}

pub(crate) fn posted(path: &str, api_key: &str, key: &str, body: &str) -> Request<Body> {
    let request = Request::post(path)
        .header("authorization", format!("Bearer {api_key}"))
        .header("idempotency-key", key)
        .header("content-type", "application/json");
    request.body(Body::from(body.to_owned())).expect("a request")
}

fn asked(path: &str, api_key: &str) -> Request<Body> {
    let request = Request::get(path).header("authorization", format!("Bearer {api_key}"));
    request.body(Body::empty()).expect("a request")
}

pub(crate) async fn jobs(store: &Arc<dyn Store>) -> leasehold::Result<usize> {
    Ok(store.jobs(JobFilter::default(), Paging::first(100)).await?.items.len())
}

const BODY: &str = r#"{"source":"s3://films/7"}"#;

/// Proves: HTTP-1, IDM-2
async fn a_job_is_enqueued_once_whatever_is_sent_again(store: Arc<dyn Store>) -> Told {
    let (router, key) = (api(&store).router(), issue(&store, "acme").await?);
    let first = send(&router, posted("/transcode", &key, "order-7", BODY)).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.body);
    let place = format!("/transcode/status?job_id={}", first.text("job_id"));
    assert_eq!(first.headers["location"], place.as_str());
    // Other blanks are the same request.
    for same in [BODY, "{ \"source\" : \"s3://films/7\" }"] {
        let again = send(&router, posted("/transcode", &key, "order-7", same)).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
    }
    let job = store.jobs(JobFilter::default(), Paging::first(9)).await?.items.remove(0);
    assert_eq!((job.scope.as_str(), job.lifecycle.as_str()), ("acme", "transcode"));
    // The same key of another requester is another request.
    let other = issue(&store, "other").await?;
    let second = send(&router, posted("/transcode", &other, "order-7", BODY)).await;
    assert_ne!(second.body, first.body);
    assert_eq!(jobs(&store).await?, 2);
    Ok(())
}

/// Proves: HTTP-1, IDM-1
async fn equal_requests_at_once_are_one_job(store: Arc<dyn Store>) -> Told {
    let (router, key) = (api(&store).router(), issue(&store, "acme").await?);
    let sends = (0..12).map(|_| send(&router, posted("/transcode", &key, "order-7", BODY)));
    let answers = join_all(sends).await;
    for answer in &answers {
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.body);
        assert_eq!(answer.body, answers[0].body);
    }
    assert_eq!(jobs(&store).await?, 1);
    Ok(())
}

/// Proves: HTTP-1, IDM-2
async fn another_request_under_a_key_is_a_conflict(store: Arc<dyn Store>) -> Told {
    let (router, key) = (api(&store).router(), issue(&store, "acme").await?);
    send(&router, posted("/transcode", &key, "order-7", BODY)).await;
    let other = r#"{"source":"s3://films/8"}"#;
    send(&router, posted("/transcode", &key, "order-7", other)).await.assert_problem(409);
    send(&router, posted("/index", &key, "order-7", BODY)).await.assert_problem(409);
    assert_eq!(jobs(&store).await?, 1);
    Ok(())
}

/// Proves: IDM-2, HTTP-1
async fn a_key_counts_as_new_after_its_time(store: Arc<dyn Store>) -> Told {
    let router = api(&store).key_ttl(std::time::Duration::from_millis(1)).router();
    let key = issue(&store, "acme").await?;
    let first = send(&router, posted("/index", &key, "order-7", BODY)).await;
    let begun = std::time::Instant::now();
    let second = loop {
        let answer = send(&router, posted("/index", &key, "order-7", r#"{"source":"8"}"#)).await;
        if answer.status == StatusCode::ACCEPTED {
            break answer;
        }
        answer.assert_problem(409);
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the key never lapses");
    };
    assert_ne!(first.text("job_id"), second.text("job_id"));
    assert_eq!(jobs(&store).await?, 2);
    Ok(())
}

/// Proves: HTTP-1, SEC-2
async fn keys_are_hashed_and_two_count_at_once(store: Arc<dyn Store>) -> Told {
    let (router, keys) = (api(&store).router(), ApiKeys::of(store.clone()));
    let requester = Scope::new("acme")?;
    let old = keys.issue(&requester, None, actor()).await?;
    let new = keys.issue(&requester, None, actor()).await?;
    let shown = old.expose();
    let secret = shown.rsplit('_').next().expect("a secret").to_owned();
    assert!(!format!("{old:?}").contains(&secret), "{old:?}");
    let list = leasehold::ListDocuments::new(leasehold::Namespace::new("http.api_keys")?);
    let kept = store.records().list(list).await?.items;
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|document| !document.body.as_str().contains(&secret)));
    for key in [&old, &new] {
        let answer = send(&router, posted("/transcode", &key.expose(), &key.id, BODY)).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED);
    }
    assert!(keys.revoke(&old.id, actor()).await?);
    let wrong = [
        old.expose(),
        format!("{}0", new.expose()),
        new.expose().replace("lhk_", "xxx_"),
        format!("lhk_{}_{secret}", new.id),
        new.id.clone(),
        String::new(),
        "é".repeat(40),
    ];
    for key in wrong {
        let answer = send(&router, posted("/transcode", &key, "order-7", BODY)).await;
        answer.assert_problem(401);
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    let bare = Request::post("/transcode").body(Body::from(BODY))?;
    send(&router, bare).await.assert_problem(401);
    assert_eq!(jobs(&store).await?, 2);
    Ok(())
}

/// Proves: HTTP-1
async fn a_key_for_other_kinds_is_forbidden(store: Arc<dyn Store>) -> Told {
    let (router, keys) = (api(&store).router(), ApiKeys::of(store.clone()));
    let key = keys.issue(&Scope::new("acme")?, Some(&[kind("index")]), actor()).await?.expose();
    send(&router, posted("/transcode", &key, "order-7", BODY)).await.assert_problem(403);
    let status = "/transcode/status?job_id=01890000-0000-7000-8000-000000000000";
    send(&router, asked(status, &key)).await.assert_problem(403);
    let answer = send(&router, posted("/index", &key, "order-7", BODY)).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    Ok(())
}

/// Proves: HTTP-2, WH-6
async fn the_status_tells_of_every_state(store: Arc<dyn Store>) -> Told {
    let (router, key) = (api(&store).router(), issue(&store, "acme").await?);
    let made = send(&router, posted("/index", &key, "order-7", BODY)).await;
    let path = format!("/index/status?job_id={}", made.text("job_id"));
    let told = async || send(&router, asked(&path, &key)).await;
    let waiting = told().await;
    assert_eq!((waiting.status, waiting.text("status")), (StatusCode::OK, "waiting"));
    assert!(waiting.body["stage"].is_null() && waiting.body["error"].is_null());

    let request = || ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let claim = store.claim(request()).await?.remove(0);
    assert_eq!(told().await.text("status"), "leased");
    let result = Some(Json::parse("{\"outputs\":[1.50]}")?);
    store.settle_one(Settlement::new(claim.fence, Verdict::Succeed { result })).await?;
    let done = told().await;
    assert_eq!(
        (done.text("status"), &done.body["result"]["outputs"][0]),
        ("succeeded", &1.5.into())
    );

    let made = send(&router, posted("/index", &key, "order-8", BODY)).await;
    let claim = store.claim(request()).await?.remove(0);
    let why = "no such file; password=hunter2-hunter2";
    let failure = Failure::new(FailureCode::NotFound, why);
    store.settle_one(Settlement::new(claim.fence, Verdict::DeadLetter { failure })).await?;
    let path = format!("/index/status?job_id={}", made.text("job_id"));
    let dead = send(&router, asked(&path, &key)).await;
    assert_eq!((dead.status, dead.text("status")), (StatusCode::OK, "dead_letter"));
    let error = &dead.body["error"];
    assert_eq!((&error["code"], &error["class"]), (&"NOT_FOUND".into(), &"not_found".into()));
    assert_eq!(error["retryable"], false);
    assert_eq!(error["message"], "no such file; password=[redacted:secret]");
    Ok(())
}

/// Proves: HTTP-2
async fn anothers_job_is_unknown(store: Arc<dyn Store>) -> Told {
    let (router, key) = (api(&store).router(), issue(&store, "acme").await?);
    let other = issue(&store, "other").await?;
    let made = send(&router, posted("/index", &key, "order-7", BODY)).await;
    let path = format!("/index/status?job_id={}", made.text("job_id"));
    send(&router, asked(&path, &other)).await.assert_problem(404);
    // Under another kind's path it is unknown too.
    let path = path.replace("/index", "/transcode");
    send(&router, asked(&path, &key)).await.assert_problem(404);
    let never = "/index/status?job_id=01890000-0000-7000-8000-000000000000";
    send(&router, asked(never, &key)).await.assert_problem(404);
    for odd in ["", "?job_id=", "?job_id=7", "?job_id=%00", "?other=1"] {
        send(&router, asked(&format!("/index/status{odd}"), &key)).await.assert_problem(400);
    }
    Ok(())
}

/// Proves: HTTP-2, QUE-4
async fn a_pruned_job_is_gone(store: Arc<dyn Store>) -> Told {
    let (router, key) = (api(&store).router(), issue(&store, "acme").await?);
    let other = issue(&store, "other").await?;
    let made = send(&router, posted("/index", &key, "order-7", BODY)).await;
    let claim = store
        .claim(ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]))
        .await?
        .remove(0);
    store.succeed(claim.fence).await?;
    let at_once = PruneRequest::new().older_than(std::time::Duration::ZERO);
    assert_eq!(store.prune(at_once).await?.jobs, 1);
    let path = format!("/index/status?job_id={}", made.text("job_id"));
    send(&router, asked(&path, &key)).await.assert_problem(410);
    send(&router, asked(&path, &other)).await.assert_problem(404);
    let again = send(&router, posted("/index", &key, "order-7", BODY)).await;
    assert_eq!((again.status, &again.body), (StatusCode::ACCEPTED, &made.body));
    Ok(())
}

/// Proves: HTTP-1, REC-1
async fn too_many_requests_are_told_when_to_come_again(store: Arc<dyn Store>) -> Told {
    let router = api(&store).rate(Rate::per_hour(1), 3).router();
    let (key, other) = (issue(&store, "acme").await?, issue(&store, "other").await?);
    for n in 0..3 {
        let answer = send(&router, posted("/index", &key, &format!("order-{n}"), BODY)).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED);
    }
    let refused = send(&router, posted("/index", &key, "order-9", BODY)).await;
    refused.assert_problem(429);
    let wait: u64 = refused.headers["retry-after"].to_str()?.parse()?;
    assert!((3_000..=3_601).contains(&wait), "{wait}");
    let answer = send(&router, posted("/index", &other, "order-9", BODY)).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    Ok(())
}

/// Proves: HTTP-1, HTTP-2
async fn the_document_describes_every_route(store: Arc<dyn Store>) -> Told {
    let router = api(&store).router();
    let answer = send(&router, Request::get("/openapi.json").body(Body::empty())?).await;
    assert_eq!(answer.body["openapi"], "3.1.0");
    let paths = answer.body["paths"].as_object().ok_or("no paths")?;
    let names: Vec<_> = paths.keys().map(String::as_str).collect();
    let wanted = [
        "/health/live",
        "/health/ready",
        "/index",
        "/index/status",
        "/transcode",
        "/transcode/status",
    ];
    assert_eq!(names, wanted);
    let responses = answer.body["paths"]["/transcode"]["post"]["responses"].as_object();
    let listed: Vec<_> = responses.ok_or("no responses")?.keys().map(String::as_str).collect();
    let all = ["202", "400", "401", "403", "408", "409", "413", "415", "422", "429", "503"];
    assert_eq!(listed, all);
    Ok(())
}

/// Proves: HTTP-1
async fn health_tells_whether_the_store_answers(store: Arc<dyn Store>) -> Told {
    let router = api(&store).router();
    for path in ["/health/live", "/health/ready"] {
        let answer = send(&router, Request::get(path).body(Body::empty())?).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    Ok(())
}
