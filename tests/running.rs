//! Whole workers and relays on every store: what their handlers and sinks see, and what is stored
//! afterwards. PostgreSQL is found as in `tests/processes.rs`.
#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

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

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Engine;
use leasehold::{JobId, JobKind, JobView, Json, NewJob, Store, StoreExt, Worker, WorkerBuilder};
use libtest_mimic::{Arguments, Failed, Trial};

type Told = Result<(), Failed>;
/// What a trial runs on a fresh store.
type Story = fn(Arc<dyn Store>) -> Pin<Box<dyn Future<Output = Told>>>;

/// Names each story and boxes it.
macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const STORIES: &[(&str, crate::Story)] =
            &[$((stringify!($name), |store| Box::pin($name(store)))),+];
    };
}
pub(crate) use stories;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let groups =
        [handlers::STORIES, leases::STORIES, relays::STORIES, shutdown::STORIES, stages::STORIES];
    let mut trials = Vec::new();
    for (name, story) in groups.concat() {
        let play = move || {
            let store: Arc<dyn Store> = Arc::new(leasehold::memory::MemoryStore::new());
            runtime().block_on(story(store))
        };
        trials.push(Trial::test(format!("memory::{name}"), play));
    }
    for engine in Engine::all() {
        let absent = engine.is_absent() && !engine::required();
        if engine.name() == "postgres" {
            let own = engine.clone();
            let play = move || own.fresh(own_rows::handlers_settle_inside_their_own_transactions);
            let trial = Trial::test(format!("postgres::{}", own_rows::NAME), play);
            trials.push(trial.with_ignored_flag(absent));
        }
        for (name, story) in groups.concat() {
            let (engine, name) = (engine.clone(), format!("{}::{name}", engine.name()));
            let play =
                move |at: &Engine| runtime().block_on(async { story(at.open().await?).await });
            let trial = Trial::test(name, move || engine.fresh(play));
            trials.push(trial.with_ignored_flag(absent));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
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

/// Waits until a job is as wished; 20 s at most.
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
        if begun.elapsed() > Duration::from_secs(20) {
            return Err(format!("after 20 s the job is {:?}", job.status).into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
