//! Periodic jobs on every store of this repository: many nodes, killed ones too, make each tick into one
//! job. Owns these stories; each engine's line runs the same ones.
//!
//! PostgreSQL is found by `LEASEHOLD_TEST_POSTGRES_URL`. Without it its stories are shown as ignored, and
//! are a failure when `LEASEHOLD_REQUIRE_ENGINES` is set.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test fails"
)]

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::periodic::{Missed, Periodic, Schedule};
use leasehold::{
    CancellationToken, Context, Handled, JobFilter, JobKind, JobView, Json, Paging, PutDocument,
    RecordId, Records, Store, StoreExt, Timestamp, Worker,
};
use leasehold_core::lab::LabStore;
use leasehold_core::memory::MemoryStore;
use leasehold_postgres::PostgresStore;
use leasehold_sqlite::SqliteStore;
use libtest_mimic::{Arguments, Trial};
use rand::RngExt;

const NODES: usize = 8;
const TICKS: usize = 100;
const MINUTE: Duration = Duration::from_secs(60);

type Lab = Arc<dyn LabStore>;
type Story = fn(Lab) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// 20 s into a minute.
fn start() -> Timestamp {
    Timestamp::saturating(1_700_000_000_000_000)
}

fn minutely() -> Schedule {
    let kind = JobKind::new("report").expect("a kind");
    let payload = Json::parse("{\"b\": 1, \"a\": 2.50}").expect("JSON");
    Schedule::new("report", "* * * * *", "Europe/Paris", kind, payload)
        .expect("a schedule")
        .missed(Missed::All)
}

fn node(lab: &Lab) -> Periodic {
    let store: Arc<dyn Store> = Arc::clone(lab) as Arc<dyn Store>;
    Periodic::new(store)
}

async fn jobs(lab: &Lab) -> Vec<JobView> {
    lab.jobs(JobFilter::default(), Paging::first(1_000)).await.expect("a page").items
}

fn advance(lab: &Lab, by: Duration) {
    lab.clock().expect("a manual clock").advance(by);
}

/// Fails unless the jobs are one for each tick.
async fn assert_one_each(lab: &Lab, ticks: usize) {
    let jobs = jobs(lab).await;
    let made: BTreeSet<i64> =
        jobs.iter().map(|job| job.subject.as_ref().expect("a tick").version).collect();
    let first = start().as_micros() / 1_000_000 + 40;
    let expected: BTreeSet<i64> = (0..ticks).map(|at| first + 60 * at as i64).collect();
    assert_eq!((jobs.len(), made), (ticks, expected));
}

/// Proves: QUE-3
async fn eight_nodes_make_a_hundred_ticks_into_a_hundred_jobs(lab: Lab) {
    node(&lab).set(&minutely()).await.expect("set");
    let mut made = 0;
    for _ in 0..TICKS {
        advance(&lab, MINUTE);
        let nodes: Vec<_> = (0..NODES)
            .map(|_| {
                let node = node(&lab);
                tokio::spawn(async move { node.run_once().await.expect("a round").jobs })
            })
            .collect();
        for node in nodes {
            made += node.await.expect("no panic");
        }
    }
    assert_eq!(made, TICKS, "each job has one maker");
    assert_one_each(&lab, TICKS).await;
}

/// A node that is killed is dropped in the middle of whatever it does; now and then all of them are.
///
/// Proves: QUE-3, WQ-11
async fn killed_nodes_lose_and_double_no_tick(lab: Lab) {
    node(&lab).set(&minutely()).await.expect("set");
    for tick in 0..TICKS {
        advance(&lab, MINUTE);
        let mut nodes = Vec::new();
        for number in 0..NODES {
            let node = node(&lab);
            let task = tokio::spawn(async move { node.run_once().await.map(|_| ()) });
            if number > 1 || tick % 7 == 0 {
                let pause = Duration::from_micros(rand::rng().random_range(0..2_500));
                let abort = task.abort_handle();
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    abort.abort();
                });
            }
            nodes.push(task);
        }
        for node in nodes {
            match node.await {
                Ok(round) => round.expect("a round"),
                Err(ended) => assert!(ended.is_cancelled(), "{ended}"),
            }
        }
    }
    node(&lab).run_once().await.expect("the last round");
    assert_one_each(&lab, TICKS).await;
}

/// Proves: QUE-3
async fn schedules_are_kept_changed_and_removed(lab: Lab) {
    let node = node(&lab);
    node.set(&minutely()).await.expect("set");
    let before = lab.dump().await.expect("a dump");
    node.set(&minutely()).await.expect("set again");
    assert_eq!(before.difference(&lab.dump().await.expect("a dump")), "");
    advance(&lab, 3 * MINUTE);
    assert_eq!(node.run_once().await.expect("a round").jobs, 3);
    assert_eq!(jobs(&lab).await[0].payload, minutely().payload);
    // What a changed schedule has seen stays seen.
    let mut hourly = minutely();
    hourly.cron = "0 * * * *".to_owned();
    node.set(&hourly).await.expect("changed");
    assert_eq!(node.run_once().await.expect("a round").jobs, 0);
    let planned = node.list().await.expect("a list");
    assert_eq!((planned.len(), &planned[0].schedule), (1, &hourly));
    assert_eq!(planned[0].last, Some(start().plus(Duration::from_secs(160))));
    assert!(planned[0].next > planned[0].last);
    assert!(node.remove("report").await.expect("removed"));
    advance(&lab, 120 * MINUTE);
    assert_eq!(node.run_once().await.expect("a round").jobs, 0);
}

/// Proves: QUE-3
async fn missed_ticks_run_by_their_policy(lab: Lab) {
    let node = node(&lab);
    for (name, missed) in [("skip", Missed::Skip), ("once", Missed::Once), ("all", Missed::All)] {
        let mut schedule = minutely().missed(missed);
        schedule.name = name.parse().expect("a name");
        node.set(&schedule).await.expect("set");
    }
    // Nobody is up for ten ticks; the last of them is 40 s ago, and so in time.
    advance(&lab, 10 * MINUTE + Duration::from_secs(20));
    node.run_once().await.expect("a round");
    let mut counts = [0; 3];
    for job in jobs(&lab).await {
        let at = ["skip", "once", "all"]
            .iter()
            .position(|name| job.subject.as_ref().is_some_and(|it| it.name == *name));
        counts[at.expect("one of them")] += 1;
    }
    assert_eq!(counts, [1, 2, 10]);
    assert_eq!(node.run_once().await.expect("a round").jobs, 0);
}

/// Proves: QUE-3
async fn unreadable_schedule_hinders_no_other(lab: Lab) {
    let id = RecordId::new("leasehold.periodic", "a broken one").expect("a name");
    let nonsense = PutDocument::new(id, Json::parse("{\"cron\": 7}").expect("JSON"));
    Records::put(&*lab, nonsense).await.expect("put");
    let node = node(&lab);
    node.set(&minutely()).await.expect("set");
    advance(&lab, MINUTE);
    assert_eq!(node.run_once().await.expect("a round").jobs, 1);
    assert_eq!(node.list().await.expect("a list").len(), 1);
}

/// The store's clock is manual here, so the tick is there before the worker starts.
///
/// Proves: QUE-3
async fn worker_runs_what_its_upkeep_makes(lab: Lab) {
    node(&lab).set(&minutely()).await.expect("set");
    advance(&lab, 2 * MINUTE);
    let runs = Arc::new(AtomicUsize::new(0));
    let (counted, shutdown) = (Arc::clone(&runs), CancellationToken::new());
    let store: Arc<dyn Store> = Arc::clone(&lab) as Arc<dyn Store>;
    let worker = Worker::builder(store)
        .handler(
            JobKind::new("report").expect("a kind"),
            move |_: Context, _: serde_json::Value| {
                let counted = Arc::clone(&counted);
                async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    Ok(Handled::done())
                }
            },
        )
        .build();
    let token = shutdown.clone();
    let running = tokio::spawn(async move { worker.run(token).await });
    let done = async {
        while runs.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), done).await.expect("two runs");
    shutdown.cancel();
    running.await.expect("no panic").expect("a good end");
    assert_one_each(&lab, 2).await;
}

macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        [$((stringify!($name), (|lab| Box::pin($name(lab))) as Story)),+]
    };
}

async fn store(engine: &str, story: &str) -> Lab {
    match engine {
        "memory" => Arc::new(MemoryStore::lab(start())),
        "sqlite" => Arc::new(SqliteStore::lab(":memory:", start()).await.expect("a store")),
        _ => {
            let url = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").expect("a server's URL");
            let schema = format!("{}_{}", &story[..24], std::process::id());
            Arc::new(PostgresStore::lab(&url, &schema, Some(start())).await.expect("a store"))
        }
    }
}

fn main() {
    let here = std::env::var_os("LEASEHOLD_TEST_POSTGRES_URL").is_some()
        || std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let stories = stories![
        eight_nodes_make_a_hundred_ticks_into_a_hundred_jobs,
        killed_nodes_lose_and_double_no_tick,
        schedules_are_kept_changed_and_removed,
        missed_ticks_run_by_their_policy,
        unreadable_schedule_hinders_no_other,
        worker_runs_what_its_upkeep_makes,
    ];
    let mut trials = Vec::new();
    for engine in ["memory", "sqlite", "postgres"] {
        for (name, story) in stories {
            let trial = Trial::test(format!("{engine}::{name}"), move || {
                let runtime = tokio::runtime::Runtime::new()?;
                runtime.block_on(async { story(store(engine, name).await).await });
                Ok(())
            });
            trials.push(trial.with_ignored_flag(engine == "postgres" && !here));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
