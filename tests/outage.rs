//! PostgreSQL stopped in immediate mode, and its sessions ended in the middle, under load: what was
//! acknowledged is there once and runs to its end; what was left open is settled by asking again.
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
use server::Server;

/// How a fault is made, once.
type Fault = fn(&Server) -> Result<(), Failed>;

fn main() -> ExitCode {
    let faults: [(&str, Fault, u32); 2] = [
        ("immediate_stops", Server::restart_at_once, 3),
        ("ended_sessions", Server::end_sessions, 20),
    ];
    let server = Server::from_env();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let trials = faults.into_iter().map(|(name, fault, times)| {
        let given = server.clone();
        let trial = Trial::test(format!("postgres::{name}_lose_nothing"), move || {
            let server = given.ok_or("no throwaway server to crash: see scripts/test")?;
            tokio::runtime::Runtime::new()?.block_on(lose_nothing(&server, fault, times))
        });
        trial.with_ignored_flag(server.is_none() && !required)
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
async fn lose_nothing(server: &Server, fault: Fault, times: u32) -> Result<(), Failed> {
    let url = server.fresh_schema();
    let store = leasehold::connect(&url).await?;
    let told = Arc::new(Told::default());
    let callers: Vec<_> =
        (0..4).map(|_| tokio::spawn(call(Arc::clone(&store), Arc::clone(&told)))).collect();
    let stop = CancellationToken::new();
    let workers: Vec<_> = (0..2).map(|_| tokio::spawn(work(url.clone(), stop.clone()))).collect();

    for _ in 0..times {
        tokio::time::sleep(Duration::from_millis(2_000 / u64::from(times))).await;
        let server = server.clone();
        tokio::task::spawn_blocking(move || fault(&server)).await??;
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
