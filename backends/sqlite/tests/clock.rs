//! The store's own clock while the machine's wall clock is stepped by an hour, over a restart too.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

mod place;

use std::time::{Duration, Instant};

use leasehold_core::{
    Actor, AuditFilter, ClaimRequest, Control, Controlled, JobKind, Json, LeaseLength, NewJob,
    Paging, QueueName, ReclaimRequest, Records, Store, StoreExt, WorkerId,
};
use leasehold_sqlite::{SqliteStore, open, step_wall};
use place::Place;

const HOUR_US: i64 = 3_600_000_000;

async fn lease_for_two_seconds(store: &SqliteStore) {
    let job = NewJob::new(JobKind::new("wait").expect("a kind"), Json::null());
    let _new = store.enqueue_one(job).await.expect("a job");
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let lease = LeaseLength::from_millis(2_000).expect("a lease");
    assert_eq!(store.claim(request.lease(lease)).await.expect("a claim").len(), 1);
}

/// How long after `begun` the lease is taken back.
async fn taken_back_after(store: &SqliteStore, begun: Instant) -> Duration {
    let end = begun + Duration::from_secs(60);
    while Instant::now() < end {
        let back = store.reclaim(ReclaimRequest::jobs()).await.expect("a reclaim");
        if back.total() == 1 {
            return begun.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Duration::MAX
}

fn is_two_seconds(after: Duration) -> bool {
    // The clock may be slewed by a tenth; a busy machine looks late, but not by an hour.
    (Duration::from_millis(1_750)..Duration::from_secs(50)).contains(&after)
}

/// A clock that is set while a lease runs could cut it short: that waits, and says that nothing was done.
///
/// Proves: GLO-6, WQ-6
#[tokio::test(flavor = "multi_thread")]
async fn the_clock_is_set_by_hand_only_while_no_lease_runs() {
    let place = Place::new("clock-by-hand");
    let store = open(&place.url()).await.expect("a store");
    let reset = || Control::ResetClock { actor: Actor::new("operator-7").expect("an actor") };
    let job = NewJob::new(JobKind::new("wait").expect("a kind"), Json::null());
    let _new = store.enqueue_one(job).await.expect("a job");
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let claim = store.claim(request).await.expect("a claim").remove(0);
    assert_eq!(store.control(reset()).await.expect("an answer"), Controlled::Unchanged);
    store.succeed(claim.fence).await.expect("settled");
    assert_eq!(store.control(reset()).await.expect("an answer"), Controlled::Done);
    let entries = store.audit(AuditFilter::new(), Paging::first(9)).await.expect("entries").items;
    assert_eq!(entries.len(), 1, "only what was done is entered: {entries:?}");
}

/// Proves: GLO-6
#[tokio::test(flavor = "multi_thread")]
async fn an_hours_step_of_the_wall_leaves_a_lease_its_two_seconds() {
    for step in [HOUR_US, -HOUR_US] {
        let place = Place::new(&format!("clock-{step}"));
        let store = open(&place.url()).await.expect("a store");
        lease_for_two_seconds(&store).await;
        let begun = Instant::now();
        step_wall(step);
        let after = taken_back_after(&store, begun).await;
        assert!(is_two_seconds(after), "stepped by {step} us, taken back after {after:?}");

        let before = store.stats().await.expect("figures").now;
        lease_for_two_seconds(&store).await;
        let begun = Instant::now();
        drop(store);
        step_wall(step);
        let store = open(&place.url()).await.expect("the store again");
        let after = taken_back_after(&store, begun).await;
        assert!(is_two_seconds(after), "restarted, stepped by {step} us, after {after:?}");
        assert!(store.stats().await.expect("figures").now > before);
    }
}
