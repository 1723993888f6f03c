//! Whole workers and relays on every store: what their handlers and sinks see, and what is stored
//! afterwards. PostgreSQL is found as in `tests/processes.rs`.
#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

#[path = "running/crush.rs"]
mod crush;
#[path = "processes/engine.rs"]
mod engine;
#[path = "running/handlers.rs"]
mod handlers;
#[path = "running/leases.rs"]
mod leases;
#[path = "running/own_rows.rs"]
mod own_rows;
#[path = "running/relays.rs"]
mod relays;
#[path = "running/shutdown.rs"]
mod shutdown;
#[path = "running/stages.rs"]
mod stages;
#[path = "processes/stories.rs"]
mod stories;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Engine;
use leasehold::{JobId, JobKind, JobView, Json, NewJob, Store, StoreExt, Worker, WorkerBuilder};
use libtest_mimic::{Arguments, Failed, Trial};
use stories::{Told, runtime, stories, trials};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let groups = [
        crush::STORIES,
        handlers::STORIES,
        leases::STORIES,
        relays::STORIES,
        shutdown::STORIES,
        stages::STORIES,
    ];
    let mut all = trials(&groups.concat());
    for engine in Engine::all().into_iter().filter(|engine| engine.name() == "postgres") {
        let absent = engine.is_absent() && !engine::required();
        let play = move || engine.fresh(own_rows::handlers_settle_inside_their_own_transactions);
        let trial = Trial::test(format!("postgres::{}", own_rows::NAME), play);
        all.push(trial.with_ignored_flag(absent));
    }
    libtest_mimic::run(&arguments, all).exit_code()
}

fn kind(name: &str) -> JobKind {
    JobKind::new(name).expect("a kind")
}

/// A job whose payload is a number.
fn job(name: &str, number: u32) -> NewJob {
    NewJob::new(kind(name), Json::of(&number).expect("a number"))
}

/// A worker with no upkeep, one-second leases and no waits between attempts.
fn worker(store: &Arc<dyn Store>) -> WorkerBuilder {
    let at_once = leasehold::RetryPolicy::new(Duration::ZERO, Duration::ZERO).expect("a policy");
    Worker::builder(store.clone()).lease(leasehold::LeaseLength::MIN).retry(at_once).upkeep(None)
}

async fn add(store: &Arc<dyn Store>, job: NewJob) -> leasehold::Result<JobId> {
    Ok(store.enqueue_one(job).await?.job())
}

async fn view(store: &Arc<dyn Store>, id: JobId) -> Result<JobView, Failed> {
    store.job(id).await?.ok_or_else(|| "the job is gone".into())
}

/// The stored failure's text, or nothing.
fn failure(job: &JobView) -> &str {
    job.failure.as_ref().map_or("", Json::as_str)
}

/// Waits until a job is as wished; a minute at most.
async fn until(
    store: &Arc<dyn Store>,
    id: JobId,
    wished: impl Fn(&JobView) -> bool,
) -> Result<JobView, Failed> {
    let begun = Instant::now();
    loop {
        let job = view(store, id).await?;
        if wished(&job) {
            return Ok(job);
        }
        if begun.elapsed() > Duration::from_secs(60) {
            return Err(format!("after a minute the job is {:?}", job.status).into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
