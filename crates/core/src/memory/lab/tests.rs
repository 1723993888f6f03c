//! The store on a clock set by hand: lapsed leases, pruning, and scripts in a caller's transaction.

use std::time::Duration;

use crate::lab::{Ending, LabStore, Reply, Step, TABLES};
use crate::memory::MemoryStore;
use crate::memory::tests::{actor, add, assert_orders_follow_rows, failure, job, queue, take};
use crate::{
    Control, Controlled, ErrorKind, Fence, IdempotencyKey, Lifecycle, LostReason, NewJob,
    PruneRequest, QueueSettings, ReclaimRequest, Settlement, State, Store, StoreExt, Timestamp,
    Verdict,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn store() -> MemoryStore {
    MemoryStore::lab(Timestamp::saturating(1_700_000_000_000_000))
}

fn advance(store: &MemoryStore, by: Duration) {
    store.clock().unwrap().advance(by);
}

async fn dead(store: &MemoryStore, job: NewJob) -> Fence {
    add(store, job).await;
    let fence = take(store, 1).await[0].fence;
    let verdict = Verdict::DeadLetter { failure: failure() };
    store.settle_one(Settlement::new(fence, verdict)).await.unwrap();
    fence
}

/// Proves: WQ-6, WQ-7, WQ-8
#[tokio::test]
async fn lapsed_lease_is_taken_over_and_raised_once() {
    let store = store();
    add(&store, job()).await;
    let old = take(&store, 1).await[0].fence;
    assert!(take(&store, 1).await.is_empty());

    advance(&store, Duration::from_secs(30));
    let new = take(&store, 1).await[0].fence;
    assert_eq!((new.job(), new.version()), (old.job(), old.version().next()));
    assert_orders_follow_rows(&store);
    let lost = store.succeed(old).await.unwrap_err();
    assert_eq!(lost.lost_reason(), Some(LostReason::TakenOver));
    store.succeed(new).await.unwrap();
}

/// Proves: WQ-9
#[tokio::test]
async fn queue_with_a_limit_counts_no_lapsed_lease() {
    let store = store();
    store.enqueue(vec![job(), job()]).await.unwrap();
    let one = QueueSettings::new().limit(Some(1));
    store.control(Control::SetQueue(queue("default"), one)).await.unwrap();
    let first = take(&store, 5).await;
    assert_eq!((first.len(), take(&store, 5).await.len()), (1, 0));
    advance(&store, Duration::from_secs(30));
    assert_eq!(take(&store, 5).await.len(), 1);
    assert_orders_follow_rows(&store);
}

/// Proves: WQ-7
#[tokio::test]
async fn reclaim_is_bounded_and_ends_with_nothing_left() {
    let store = store();
    store.enqueue((0..3).map(|_| job()).collect()).await.unwrap();
    take(&store, 3).await;
    advance(&store, Duration::from_secs(30));
    let mut counts = Vec::new();
    for _ in 0..3 {
        let request = ReclaimRequest::jobs().limit(2);
        counts.push(store.reclaim(request).await.unwrap().total());
        assert_orders_follow_rows(&store);
    }
    assert_eq!(counts, [2, 1, 0]);
}

/// Proves: QUE-4, IDM-6
#[tokio::test]
async fn pruned_job_leaves_its_key_and_a_tombstone() {
    let store = store();
    let key = IdempotencyKey::new("order-7").unwrap();
    let new = job().key(key.clone());
    let fence = dead(&store, new.clone()).await;
    let live = add(&store, job()).await;

    advance(&store, 29 * DAY);
    assert_eq!(store.prune(PruneRequest::new()).await.unwrap().total(), 0);
    advance(&store, DAY);
    assert_eq!(store.prune(PruneRequest::new()).await.unwrap().jobs, 1);
    assert_orders_follow_rows(&store);
    let dump = store.dump().await.unwrap();
    let left = ["jobs", "requests", "outcomes", "dead_letters", "keys", "tombstones"];
    let left = left.map(|table| dump.rows(table).len());
    assert_eq!(left, [1, 1, 0, 0, 1, 1]);
    assert_eq!(store.job(live).await.unwrap().unwrap().state, State::Waiting);

    let again = store.enqueue_one(job().key(key)).await.unwrap();
    assert_eq!((again.job(), again.is_new(), again.state()), (fence.job(), false, None));
    let verdict = Verdict::DeadLetter { failure: failure() };
    let settled = store.settle_one(Settlement::new(fence, verdict)).await.unwrap();
    assert!(settled.repeated, "the tombstone knows its last claim");

    advance(&store, 7 * DAY);
    assert_eq!(store.prune(PruneRequest::new()).await.unwrap().tombstones, 1);
    let gone = store.succeed(fence).await.unwrap_err();
    assert_eq!(gone.lost_reason(), Some(LostReason::Gone));
}

/// Proves: QUE-4
#[tokio::test]
async fn oldest_jobs_are_pruned_first() {
    let store = store();
    let mut ended = Vec::new();
    for _ in 0..3 {
        ended.push(dead(&store, job()).await.job());
        advance(&store, Duration::from_secs(1));
    }
    let request = PruneRequest::new().limit(1).older_than(Duration::ZERO);
    for id in &ended {
        assert!(store.job(*id).await.unwrap().is_some());
        assert_eq!(store.prune(request.clone()).await.unwrap().jobs, 1);
        assert!(store.job(*id).await.unwrap().is_none());
    }
}

/// Proves: TX-2
#[tokio::test]
async fn rolled_back_script_leaves_nothing() {
    let store = store();
    add(&store, job()).await;
    let fence = take(&store, 1).await[0].fence;
    let before = store.dump().await.unwrap();
    let script = || {
        let done = Settlement::new(fence, Verdict::Succeed { result: None }).job(job());
        vec![Step::OwnRow("mine".to_owned()), Step::Enqueue(vec![job()]), Step::Settle(vec![done])]
    };
    for ending in [Ending::RollBack, Ending::Drop] {
        let replies = store.play(script(), ending).await.unwrap();
        assert!(matches!(&replies[2], Reply::Settle(Ok(all)) if all[0].is_ok()));
        assert_eq!(store.dump().await.unwrap().difference(&before), "");
        assert_orders_follow_rows(&store);
    }
    store.play(script(), Ending::Commit).await.unwrap();
    let after = store.dump().await.unwrap();
    assert_eq!((after.rows("jobs").len(), after.rows("lab_rows").len()), (3, 1));
    assert_orders_follow_rows(&store);
}

/// Proves: TX-2
#[tokio::test]
async fn savepoints_stack() {
    let store = store();
    let own = |text: &str| Step::OwnRow(text.to_owned());
    let script = vec![
        own("kept"),
        Step::Savepoint,
        own("lost"),
        Step::Savepoint,
        own("lost too"),
        Step::ReleaseSavepoint,
        Step::RollbackToSavepoint,
        own("kept too"),
    ];
    store.play(script, Ending::Commit).await.unwrap();
    let rows = store.dump().await.unwrap().rows("lab_rows").to_vec();
    assert_eq!(rows, [r#"text="kept too""#, r#"text="kept""#]);

    let before = store.dump().await.unwrap();
    let none = store.play(vec![own("mine"), Step::ReleaseSavepoint], Ending::Commit).await;
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(store.dump().await.unwrap().difference(&before), "");
}

/// Proves: WQ-12
#[tokio::test]
async fn raised_epoch_ends_every_claim() {
    let store = store();
    add(&store, job()).await;
    let fence = take(&store, 1).await[0].fence;
    let raised = store.control(Control::BumpEpoch { actor: actor() }).await.unwrap();
    assert!(matches!(raised, Controlled::Epoch(epoch) if epoch > fence.epoch()));
    let lost = store.succeed(fence).await.unwrap_err();
    assert_eq!(lost.lost_reason(), Some(LostReason::EpochRaised));
    assert_eq!(store.dump().await.unwrap().rows("audit").len(), 1);
}

/// Proves: WQ-1
#[tokio::test]
async fn registered_definition_is_not_replaced() {
    let store = store();
    let before = store.dump().await.unwrap();
    let same = Control::Register(Box::new(Lifecycle::standard()));
    assert_eq!(store.control(same).await.unwrap(), Controlled::Unchanged);
    let text =
        Lifecycle::standard().to_json().unwrap().replace(r#""attempts":5"#, r#""attempts":6"#);
    let other = Lifecycle::from_json(&text).unwrap();
    assert_ne!(other, Lifecycle::standard());
    let refused = store.control(Control::Register(Box::new(other))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(store.dump().await.unwrap().difference(&before), "");
}

#[tokio::test]
async fn dump_names_only_tables_that_engines_have() {
    let store = store();
    dead(&store, job().key(IdempotencyKey::new("order-7").unwrap())).await;
    let text = format!("{:?}", store.dump().await.unwrap());
    let tables = text.lines().filter(|line| !line.starts_with(' '));
    let unknown: Vec<&str> =
        tables.map(|line| line.trim_end_matches(':')).filter(|it| !TABLES.contains(it)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
