//! A shop tells its warehouse of an order by a signed webhook; the warehouse verifies it and takes it
//! once, with the job that it asks for. Both ends in one process, on stores of their own. Runs in CI.
//!
//! ```sh
//! cargo run --example webhooks --features webhook,http
//! ```
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use leasehold::webhook::{
    Accepted, Endpoints, Key, Receiver, Refused, Scheme, Signed, Signer, Targets, Verifier,
    WebhookSink, attempts,
};
use leasehold::{
    Actor, JobFilter, JobKind, Json, NewEvent, NewJob, Paging, Relay, Store, StoreExt, Topic,
};

/// The warehouse's route: what it answers 2xx is in its store.
async fn ordered(signed: Signed) -> Result<StatusCode, Refused> {
    let payload = Json::parse_bytes(signed.body()).map_err(Refused::Store)?;
    let job = NewJob::new(JobKind::new("pack").map_err(Refused::Store)?, payload);
    match signed.accept([job]).await? {
        Accepted::New(_) => Ok(StatusCode::CREATED),
        Accepted::Again => Ok(StatusCode::OK), // a retry of what is here already
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Both sides know the secret; in a service it comes from the environment or a mounted file.
    let key = Key::new(rand::random::<[u8; 32]>())?;

    let warehouse: Arc<dyn Store> = Arc::new(leasehold::sqlite::open(":memory:").await?);
    let verifier = Verifier::new(Scheme::euterpe(), key.clone());
    let router = Router::new()
        .route("/ordered", post(ordered))
        .with_state(Receiver::new(verifier, warehouse.clone()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/ordered", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });

    let shop: Arc<dyn Store> = Arc::new(leasehold::sqlite::open(":memory:").await?);
    Endpoints::of(shop.clone()).set("ordered", url, Actor::new("example")?).await?;
    // A public https address needs none of this; one on this machine has to be allowed by word.
    let targets = Targets::public().allow_http().allow("127.0.0.1".parse()?);
    let signer = Signer::new(Scheme::euterpe(), key);
    let sink = WebhookSink::builder(shop.clone(), signer).way_out(targets).build()?;

    let order = NewEvent::new(Topic::new("ordered")?, Json::parse(r#"{"item":"a lamp"}"#)?);
    let told = shop.publish_one(order).await?.event;
    Relay::new(shop.clone(), sink).run_until_idle().await?;

    let jobs = warehouse.jobs(JobFilter::new(), Paging::first(9)).await?.items;
    let [job] = jobs.as_slice() else { return Err("one job, no more".into()) };
    for attempt in attempts(shop.records(), told).await? {
        let (number, status, took) = (attempt.attempt, attempt.status, attempt.latency_ms);
        println!("attempt {number}: {status:?} after {took} ms; the warehouse will {}", job.kind);
    }
    Ok(())
}
