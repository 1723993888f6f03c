//! Owns what two sessions do to jobs that wait for others: ends and enqueues at once, and transactions
//! whose snapshot is older than what they would have to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_core::{
    JobId, NewJob, OnFailure, PruneRequest, Settlement, State, Store, StoreExt, Verdict,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, IsolationLevel, Transaction};

use crate::place::{Place, job, request, soon, take, until_blocked};

async fn add(store: &PostgresStore, jobs: Vec<NewJob>) -> Vec<JobId> {
    let answers = store.enqueue(jobs).await.expect("enqueued");
    answers.into_iter().map(|answer| answer.expect("new").job()).collect()
}

fn done(claim: &leasehold_core::Claim) -> Settlement {
    Settlement::new(claim.fence, Verdict::Succeed { result: None })
}

/// A transaction that looks at things as they are now, to its end.
async fn old_snapshot<'a>(session: &'a mut Client, place: &Place) -> Transaction<'a> {
    let tx = session.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let tx = tx.start().await.expect("begun");
    let text = format!("select count(*) from \"{}\".waits", place.schema);
    tx.query_one(&text, &[]).await.expect("a snapshot");
    tx
}

/// A settlement under an older snapshot than a wait for its job begins anew: the wait is not missed.
///
/// Proves: FAN-2, PAR-2
pub(crate) async fn older_snapshot_misses_no_new_wait(place: Place) {
    let store = place.store().await;
    add(&store, vec![job(1)]).await;
    let claim = take(&store, 1).await.remove(0);
    let mut other = place.session().await;
    let tx = old_snapshot(&mut other, &place).await;
    let child = add(&store, vec![job(2).after(claim.job.id, OnFailure::Cancel)]).await[0];
    let error = store.join(&tx).settle(&[done(&claim)]).await.expect_err("a newer wait");
    assert!(error.is_transaction_restart(), "{error}");
    tx.rollback().await.expect("rolled back");
    store.settle_one(done(&claim)).await.expect("settled");
    assert_eq!(take(&store, 1).await[0].job.id, child);
}

/// Of two parents that end, the one under an older snapshot begins anew: its child is freed in the end.
///
/// Proves: FAN-2, PAR-2
pub(crate) async fn older_snapshot_misses_no_other_end(place: Place) {
    let store = place.store().await;
    let ids = add(&store, NewJob::batch([job(1), job(2)], job(3), OnFailure::Cancel)).await;
    let claims = take(&store, 2).await;
    let mut other = place.session().await;
    let tx = old_snapshot(&mut other, &place).await;
    store.settle_one(done(&claims[0])).await.expect("settled");
    let error = store.join(&tx).settle(&[done(&claims[1])]).await.expect_err("a newer end");
    assert!(error.is_transaction_restart(), "{error}");
    tx.rollback().await.expect("rolled back");
    store.settle_one(done(&claims[1])).await.expect("settled");
    assert_eq!(take(&store, 1).await[0].job.id, ids[2]);
}

/// A settlement waits for an open transaction that adds a wait for its job, and then sees it; so does an
/// enqueue for one that ends its parent.
///
/// Proves: FAN-1, FAN-2
pub(crate) async fn open_transactions_are_waited_for(place: Place) {
    let store = place.store().await;
    add(&store, vec![job(1)]).await;
    let claim = take(&store, 1).await.remove(0);
    let (mut other, watcher) = (place.session().await, place.session().await);
    let waits = |number| job(number).after(claim.job.id, OnFailure::Cancel);

    let tx = other.transaction().await.expect("begun");
    let child = store.join(&tx).enqueue(&[waits(2)]).await.expect("asked");
    let child = child[0].as_ref().expect("new").job();
    let (settling, settlement) = (store.clone(), done(&claim));
    let settling = tokio::spawn(async move { settling.settle_one(settlement).await });
    until_blocked(&watcher, &place.schema, 1).await;
    tx.rollback().await.expect("rolled back");
    settling.await.expect("no panic").expect("settled");
    assert!(store.job(child).await.expect("read").is_none());

    let other_parent = add(&store, vec![job(3)]).await[0];
    let claim = take(&store, 1).await.remove(0);
    let tx = other.transaction().await.expect("begun");
    store.join(&tx).settle_one(&done(&claim)).await.expect("settled");
    let late = job(4).after(other_parent, OnFailure::Cancel);
    let (enqueuing, late_id) = (store.clone(), late.id);
    let enqueuing = tokio::spawn(async move { enqueuing.enqueue_one(late).await });
    until_blocked(&watcher, &place.schema, 1).await;
    tx.commit().await.expect("committed");
    assert_eq!(enqueuing.await.expect("no panic").expect("new").state(), Some(State::Waiting));
    assert_eq!(take(&store, 1).await[0].job.id, late_id);
}

/// Many workers end the members of many batches at once, some of a batch in one call: each callback is
/// claimed once, after all of its own.
///
/// Proves: FAN-2, GLO-2, WQ-3
pub(crate) async fn callbacks_of_many_batches_run_once(place: Place) {
    const BATCHES: usize = 40;
    let store = place.store().await;
    let mut callbacks = Vec::new();
    for batch in 0..BATCHES {
        let members = (0..6).map(job);
        let ids = add(&store, NewJob::batch(members, job(batch), OnFailure::Run)).await;
        callbacks.extend(ids.last().copied());
    }
    let ended = Arc::new(AtomicUsize::new(0));
    let mut workers = Vec::new();
    for _ in 0..6 {
        let (store, ended) = (store.clone(), ended.clone());
        workers.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            while ended.load(Ordering::SeqCst) < BATCHES * 7 {
                let claims = store.claim(request(5)).await.expect("claimed");
                if claims.is_empty() {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                let settled =
                    store.settle(claims.iter().map(done).collect()).await.expect("settled");
                assert!(settled.iter().all(Result::is_ok), "{settled:?}");
                ended.fetch_add(claims.len(), Ordering::SeqCst);
                mine.extend(claims.into_iter().map(|claim| claim.job.id));
            }
            mine
        }));
    }
    let mut all = Vec::new();
    for worker in workers {
        all.extend(soon("the end of all batches", worker).await.expect("no panic"));
    }
    assert_eq!(all.len(), BATCHES * 7, "each once");
    assert!(callbacks.iter().all(|id| all.contains(id)));
    for callback in callbacks {
        let row = store.job(callback).await.expect("read").expect("kept");
        assert_eq!((row.state, row.executions), (State::Succeeded, 1));
    }
}

/// A prune passes over an ended job that somebody is about to wait for, and over one that is waited for.
///
/// Proves: FAN-3, QUE-4
pub(crate) async fn prune_passes_over_what_is_waited_for(place: Place) {
    let store = place.store().await;
    let parent = add(&store, vec![job(1)]).await[0];
    let claim = take(&store, 1).await.remove(0);
    let failure = leasehold_core::Failure::new(leasehold_core::FailureCode::SchemaInvalid, "no");
    let failed = Settlement::new(claim.fence, Verdict::Fail { failure });
    store.settle_one(failed).await.expect("settled");
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    let child = job(2).after(parent, OnFailure::Wait);
    store.join(&tx).enqueue(&[child]).await.expect("asked")[0].as_ref().expect("new");
    let all = || PruneRequest::new().older_than(std::time::Duration::ZERO);
    assert_eq!(store.prune(all()).await.expect("pruned").jobs, 0);
    tx.commit().await.expect("committed");
    assert_eq!(store.prune(all()).await.expect("pruned").jobs, 0);
}
