//! PostgreSQL stopped in immediate mode, its sessions ended in the middle, and the pooler before it killed,
//! all under load: what was acknowledged is there once and runs to its end; what was left open is settled
//! by asking again.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by expecting and reports"
)]

#[path = "outage/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use leasehold::{CancellationToken, Context, Handled, Worker};
use leasehold_core::{
    ErrorKind, EventFilter, JobFilter, JobId, JobKind, Json, LeaseLength, NewEvent, NewJob, Paging,
    Query, Result, State, Store, StoreExt, Topic,
};
use libtest_mimic::{Arguments, Failed, Trial};
use server::{Address, Pooler, Server};

/// How a fault is made, once.
type Fault = Arc<dyn Fn() -> Result<(), Failed> + Send + Sync>;

/// A fault that recurs: where the store is, and how often it is hurt.
struct Hurt {
    address: Address,
    fault: Fault,
    times: u32,
}

fn of_server(fault: fn(&Server) -> Result<(), Failed>, times: u32) -> Option<Hurt> {
    let server = Server::from_env()?;
    Some(Hurt { address: server.address.clone(), fault: Arc::new(move || fault(&server)), times })
}

/// Only where `scripts/pooler` has started one; the server cannot be hurt through it.
fn of_pooler(times: u32) -> Option<Hurt> {
    let pooler = Pooler::from_env()?;
    let address = pooler.address.clone();
    Some(Hurt { address, fault: Arc::new(move || pooler.restart()), times })
}

fn main() -> ExitCode {
    let behind_pooler = Pooler::from_env().is_some();
    let faults = [
        ("immediate_stops", of_server(Server::restart_at_once, 3), !behind_pooler),
        ("ended_sessions", of_server(Server::end_sessions, 20), !behind_pooler),
        ("killed_poolers", of_pooler(5), behind_pooler),
    ];
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let trials = faults.into_iter().map(|(name, hurt, expected)| {
        let absent = hurt.is_none();
        let trial = Trial::test(format!("postgres::{name}_lose_nothing"), move || {
            let hurt = hurt.ok_or("nothing to crash: see scripts/test and scripts/pooler")?;
            tokio::runtime::Runtime::new()?.block_on(lose_nothing(hurt))
        });
        trial.with_ignored_flag(absent && !(required && expected))
    });
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// What the callers were told.
#[derive(Default)]
struct Told {
    over: AtomicBool,
    acknowledged: std::sync::Mutex<BTreeSet<JobId>>,
    unknown: AtomicUsize,
}

/// Proves: GLO-2, WQ-11, TX-1, ERR-1
async fn lose_nothing(hurt: Hurt) -> Result<(), Failed> {
    let Hurt { address, fault, times } = hurt;
    let url = address.fresh_schema();
    let store = leasehold::connect(&url).await?;
    let told = Arc::new(Told::default());
    let callers: Vec<_> =
        (0..4).map(|_| tokio::spawn(call(Arc::clone(&store), Arc::clone(&told)))).collect();
    let stop = CancellationToken::new();
    let workers: Vec<_> = (0..2).map(|_| tokio::spawn(work(url.clone(), stop.clone()))).collect();

    for _ in 0..times {
        tokio::time::sleep(Duration::from_millis(2_000 / u64::from(times))).await;
        let fault = Arc::clone(&fault);
        tokio::task::spawn_blocking(move || fault()).await??;
    }
    told.over.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await??;
    }
    let acknowledged = told.acknowledged.lock().expect("a set").clone();
    until_all_succeeded(&store, acknowledged.len()).await?;
    stop.cancel();
    for worker in workers {
        worker.await??;
    }

    let stored = every_job(&*store).await?;
    assert_eq!(stored, acknowledged, "each acknowledged job is there once, and no other");
    assert_eq!(every_event(&*store).await?, acknowledged.len(), "one event a job");
    println!(
        "  {} jobs, {} outcomes unknown at first",
        acknowledged.len(),
        told.unknown.load(Ordering::SeqCst)
    );
    Ok(())
}

/// Enqueues until told to stop; asks again with the same job as long as the answer is not final.
async fn call(store: Arc<dyn Store>, told: Arc<Told>) -> Result<()> {
    let kind = JobKind::new("count")?;
    while !told.over.load(Ordering::SeqCst) {
        let job = NewJob::new(kind.clone(), Json::null()).max_attempts(1_000);
        loop {
            match store.enqueue_one(job.clone()).await {
                Ok(_) => break,
                Err(error) if error.is_retryable() => {
                    if error.kind() == ErrorKind::OutcomeUnknown {
                        told.unknown.fetch_add(1, Ordering::SeqCst);
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => return Err(error),
            }
        }
        told.acknowledged.lock().expect("a set").insert(job.id);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

async fn work(url: String, stop: CancellationToken) -> Result<()> {
    let topic = Topic::new("counted")?;
    let handler = move |_context: Context, (): ()| {
        let event = NewEvent::new(topic.clone(), Json::null());
        async move { Ok(Handled::done().event(event)) }
    };
    let worker = Worker::builder(leasehold::connect(&url).await?)
        .handler(JobKind::new("count")?, handler)
        .slots(8)
        .lease(LeaseLength::from_millis(2_000)?)
        .upkeep(Some(Duration::from_millis(500)))
        .build();
    worker.run(stop).await
}

async fn until_all_succeeded(store: &Arc<dyn Store>, jobs: usize) -> Result<(), Failed> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let stats = store.stats().await?;
        let done: u64 = stats.queues.iter().map(|queue| queue.succeeded).sum();
        if usize::try_from(done)? == jobs {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("{done} of {jobs} jobs succeeded: {stats:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn every_job(store: &dyn Store) -> Result<BTreeSet<JobId>> {
    let (mut found, mut paging) = (BTreeSet::new(), Paging::first(1_000));
    loop {
        let page = store.jobs(JobFilter::new().state(State::Succeeded), paging).await?;
        found.extend(page.items.iter().map(|job| job.id));
        match page.next {
            Some(next) => paging = Paging::first(1_000).after(next),
            None => return Ok(found),
        }
    }
}

async fn every_event(store: &dyn Store) -> Result<usize> {
    let (mut found, mut paging) = (0, Paging::first(1_000));
    loop {
        let page = store.find(Query::Events(EventFilter::new(), paging)).await?;
        found += page.items.len();
        match page.next {
            Some(next) => paging = Paging::first(1_000).after(next),
            None => return Ok(found),
        }
    }
}
