//! Owns what idempotency keys and ids of jobs promise: one job a request, for as long as the key.

use leasehold_core::{ErrorKind, NewJob, PruneRequest, Result, Scope, State, StoreExt, Verdict};

use super::group;
use crate::lab::{Lab, assert_refused, job, key, passing, seconds};

group!("keys": expired_key_is_free, key_before_its_end_is_not_free,
    key_outlives_its_pruned_job, scopes_are_separate, same_key_twice_in_a_batch_is_one_job,
    same_key_other_request_in_a_batch_conflicts, same_id_other_request_conflicts,
    ended_job_still_holds_its_key, scope_without_a_key_is_refused, pruned_id_is_not_enqueued_again);

fn keyed(number: i64) -> NewJob {
    job(number).key(key("invoice-8"))
}

/// A key whose time is over is free, for another request too.
///
/// Proves: IDM-6
async fn expired_key_is_free(lab: &Lab) -> Result<()> {
    lab.add(keyed(1).key_ttl(seconds(60))).await?;
    lab.advance(60);
    let next = lab.enqueue_one(keyed(2).key_ttl(seconds(90))).await?;
    assert!(next.is_new());
    let again = lab.enqueue_one(keyed(2)).await?;
    assert_eq!((again.is_new(), again.job()), (false, next.job()));
    Ok(())
}

/// A key with a time holds until the very end of it, whatever is pruned.
///
/// Proves: IDM-6
async fn key_before_its_end_is_not_free(lab: &Lab) -> Result<()> {
    let first = lab.add(keyed(1).key_ttl(seconds(60))).await?;
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    lab.advance(59);
    let pruned = lab.prune(PruneRequest::new().older_than(seconds(1))).await?;
    assert_eq!((pruned.jobs, pruned.keys), (1, 0));
    let error = lab.enqueue_one(keyed(2)).await.expect_err("a conflict");
    assert_eq!((error.kind(), error.existing_job()), (ErrorKind::Conflict, Some(first)));
    Ok(())
}

/// A key without an end answers with its job after the job is pruned, without a state.
///
/// Proves: IDM-1, IDM-6
async fn key_outlives_its_pruned_job(lab: &Lab) -> Result<()> {
    let first = lab.add(keyed(1)).await?;
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    lab.advance(400 * 24 * 3600);
    lab.prune(PruneRequest::new()).await?;
    let before = lab.dump().await?;
    let again = lab.enqueue_one(keyed(1)).await?;
    assert_eq!((again.is_new(), again.job(), again.state()), (false, first, None));
    lab.assert_unchanged(&before).await
}

/// The same key under another scope is another key.
///
/// Proves: IDM-1
async fn scopes_are_separate(lab: &Lab) -> Result<()> {
    let scope = |name: &str| Scope::new(name).expect("a scope");
    let global = lab.enqueue_one(keyed(1)).await?;
    let first = lab.enqueue_one(keyed(1).scope(scope("tenant-1"))).await?;
    let second = lab.enqueue_one(keyed(2).scope(scope("tenant-2"))).await?;
    assert!(global.is_new() && first.is_new() && second.is_new());
    let again = lab.enqueue_one(keyed(2).scope(scope("tenant-2"))).await?;
    assert_eq!((again.is_new(), again.job()), (false, second.job()));
    Ok(())
}

/// One key twice in a batch is one job.
///
/// Proves: IDM-1
async fn same_key_twice_in_a_batch_is_one_job(lab: &Lab) -> Result<()> {
    let mut answers = lab.enqueue(vec![keyed(1), keyed(1), job(3)]).await?.into_iter();
    let (first, second) = (answers.next().expect("one")?, answers.next().expect("two")?);
    assert_eq!((first.is_new(), second.is_new()), (true, false));
    assert_eq!((second.job(), second.state()), (first.job(), Some(State::Waiting)));
    assert_eq!(lab.take(9).await?.len(), 2);
    Ok(())
}

/// One key for two requests in a batch is the second one's conflict.
///
/// Proves: IDM-1
async fn same_key_other_request_in_a_batch_conflicts(lab: &Lab) -> Result<()> {
    let first = keyed(1);
    let answers = lab.enqueue(vec![first.clone(), keyed(2), job(3)]).await?;
    let error = answers[1].as_ref().expect_err("a conflict");
    assert_eq!((error.kind(), error.existing_job()), (ErrorKind::Conflict, Some(first.id)));
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert_eq!(lab.take(9).await?.len(), 2);
    Ok(())
}

/// An id sent again with another request is a conflict and writes nothing.
///
/// Proves: IDM-5
async fn same_id_other_request_conflicts(lab: &Lab) -> Result<()> {
    let first = lab.add(job(1)).await?;
    let before = lab.dump().await?;
    let error = lab.enqueue_one(job(2).id(first)).await.expect_err("a conflict");
    assert_eq!((error.kind(), error.existing_job()), (ErrorKind::Conflict, Some(first)));
    lab.assert_unchanged(&before).await
}

/// A cancelled or dead-lettered job still answers for its key.
///
/// Proves: IDM-1
async fn ended_job_still_holds_its_key(lab: &Lab) -> Result<()> {
    let cancelled = lab.add(keyed(1)).await?;
    lab.cancel(cancelled).await?;
    let again = lab.enqueue_one(keyed(1)).await?;
    assert_eq!((again.job(), again.state()), (cancelled, Some(State::Cancelled)));
    let dead = lab.add(job(2).key(key("invoice-9"))).await?;
    let claim = lab.take_one().await?;
    lab.end(claim.fence, Verdict::DeadLetter { failure: passing() }).await?;
    let again = lab.enqueue_one(job(2).key(key("invoice-9"))).await?;
    assert_eq!((again.job(), again.state()), (dead, Some(State::DeadLetter)));
    Ok(())
}

/// A scope or an end of a key without a key is refused.
///
/// Proves: GLO-4
async fn scope_without_a_key_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let scope = Scope::new("tenant-1")?;
    assert_refused(lab.enqueue(vec![job(1).scope(scope)]).await, ErrorKind::Invalid);
    assert_refused(lab.enqueue(vec![job(1).key_ttl(seconds(9))]).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// The id of a pruned job answers with how it ended while its tombstone stands.
///
/// Proves: GLO-2, QUE-4
async fn pruned_id_is_not_enqueued_again(lab: &Lab) -> Result<()> {
    let new = job(1);
    lab.add(new.clone()).await?;
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    lab.advance(9);
    lab.prune(PruneRequest::new().older_than(seconds(9))).await?;
    let again = lab.enqueue_one(new.clone()).await?;
    assert_eq!((again.is_new(), again.state()), (false, Some(State::Succeeded)));
    assert_refused(lab.enqueue_one(job(2).id(new.id)).await, ErrorKind::Conflict);
    Ok(())
}
