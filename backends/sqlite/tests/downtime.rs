//! A file that nobody had open for a while, with the leases of dead workers in it: its clock has gone on.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

mod place;

use std::time::Duration;

use leasehold_core::{
    ClaimRequest, JobKind, Json, NewJob, QueueName, Stats, Store, StoreExt, WorkerId,
};
use leasehold_sqlite::rusqlite::Connection;
use leasehold_sqlite::{SqliteStore, open, pass, step_wall};
use place::Place;
use tokio::sync::Mutex;

const HOUR: u64 = 3_600;
const HOUR_US: i64 = 3_600_000_000;

/// The clocks are those of the whole process.
static CLOCKS: Mutex<()> = Mutex::const_new(());

fn job() -> NewJob {
    NewJob::new(JobKind::new("wait").expect("a kind"), Json::null())
}

/// Leaves a lease of the usual length to nobody.
async fn leave_a_lease(url: &str) -> Stats {
    let store = open(url).await.expect("a store");
    let _new = store.enqueue_one(job()).await.expect("a job");
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    assert_eq!(store.claim(request).await.expect("a claim").len(), 1);
    let stats = store.stats().await.expect("figures");
    store.close().await;
    stats
}

fn expired(stats: &Stats) -> u64 {
    stats.queues.iter().map(|queue| queue.expired).sum()
}

async fn figures(store: &SqliteStore) -> Stats {
    store.stats().await.expect("figures")
}

/// After a day and more the lease has run out, its job is taken over, and the clock is the machine's.
///
/// Proves: GLO-6
#[tokio::test(flavor = "multi_thread")]
async fn time_goes_on_while_nobody_has_the_file_open() {
    let _mine = CLOCKS.lock().await;
    let place = Place::new("downtime");
    let before = leave_a_lease(&place.url()).await;
    pass(Duration::from_secs(26 * HOUR));

    let looking = open(&format!("sqlite:{}?mode=ro", place.url())).await.expect("a look");
    let seen = figures(&looking).await;
    assert_eq!(expired(&seen), 1, "who only looks sees it too");
    assert!(seen.now.since(before.now) >= Duration::from_secs(25 * HOUR));
    assert!(seen.warnings.iter().all(|it| !it.contains("clock")), "{:?}", seen.warnings);
    looking.close().await;

    let store = open(&place.url()).await.expect("the store again");
    assert_eq!(expired(&figures(&store).await), 1);
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    assert_eq!(store.claim(request).await.expect("a claim").len(), 1, "it is taken over at once");
}

/// A step of the wall is no time that has passed, whoever opens the file.
///
/// Proves: GLO-6
#[tokio::test(flavor = "multi_thread")]
async fn a_step_while_nobody_has_the_file_open_ends_no_lease() {
    let _mine = CLOCKS.lock().await;
    for step in [HOUR_US, -HOUR_US] {
        let place = Place::new(&format!("downtime-{step}"));
        let before = leave_a_lease(&place.url()).await;
        step_wall(step);
        let store = open(&place.url()).await.expect("the store again");
        let seen = figures(&store).await;
        assert_eq!(expired(&seen), 0, "stepped by {step} us");
        assert!(
            seen.now.since(before.now) < Duration::from_secs(60),
            "{} {}",
            before.now,
            seen.now
        );
        step_wall(-step);
    }
}

/// After another start of the machine nobody is left who could hold a lease: the clock is the wall's at once.
///
/// Proves: GLO-6
#[tokio::test(flavor = "multi_thread")]
async fn another_start_of_the_machine_begins_at_the_wall() {
    let _mine = CLOCKS.lock().await;
    let place = Place::new("downtime-boot");
    let before = leave_a_lease(&place.url()).await;
    let conn = Connection::open(place.url()).expect("the file");
    conn.execute("update leasehold_clock set boot = 'another' where boot is not null", [])
        .expect("an update");
    drop(conn);
    step_wall(HOUR_US);
    let store = open(&place.url()).await.expect("the store again");
    let seen = figures(&store).await;
    assert_eq!(expired(&seen), 1);
    assert!(seen.now.since(before.now) >= Duration::from_secs(HOUR - 60));
    step_wall(-HOUR_US);
}
