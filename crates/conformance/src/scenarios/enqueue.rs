//! Owns what enqueue promises: ids, keys, limits, and all or nothing for invalid input.

use std::time::Duration;

use leasehold_core::{ErrorKind, JobKind, Result, State, StoreExt};

use super::group;
use crate::lab::{Lab, job, json, key};

group!("enqueue": new_job_waits, same_id_is_the_same_job, same_key_same_request_is_the_same_job,
    same_key_other_request_conflicts, invalid_item_leaves_nothing, jobs_of_many_sorts_go_in_one_call, nothing_is_asked_of_an_empty_call, delay_puts_the_first_claim_off);

/// A new job waits, due at once, with nothing spent.
///
/// Proves: WQ-3
async fn new_job_waits(lab: &Lab) -> Result<()> {
    let answer = lab.enqueue_one(job(1)).await?;
    assert!(answer.is_new());
    let row = lab.row(answer.job()).await?;
    assert_eq!((row.state, row.attempts, row.executions), (State::Waiting, 0, 0));
    assert_eq!(row.run_at, lab.clock().now());
    Ok(())
}

/// The same value sent twice is one job.
///
/// Proves: GLO-2, IDM-5
async fn same_id_is_the_same_job(lab: &Lab) -> Result<()> {
    let new = job(1);
    let first = lab.enqueue_one(new.clone()).await?;
    let before = lab.dump().await?;
    let second = lab.enqueue_one(new).await?;
    assert!(!second.is_new());
    assert_eq!(second.job(), first.job());
    lab.assert_unchanged(&before).await
}

/// The same key with the same request answers with the job that has it.
///
/// Proves: IDM-1
async fn same_key_same_request_is_the_same_job(lab: &Lab) -> Result<()> {
    let first = lab.enqueue_one(job(1).key(key("invoice-7"))).await?;
    let before = lab.dump().await?;
    let second = lab.enqueue_one(job(1).key(key("invoice-7"))).await?;
    assert!(!second.is_new());
    assert_eq!(second.job(), first.job());
    lab.assert_unchanged(&before).await
}

/// The same key with another request is that item's conflict; the others are enqueued.
///
/// Proves: IDM-1
async fn same_key_other_request_conflicts(lab: &Lab) -> Result<()> {
    let first = lab.add(job(1).key(key("invoice-7"))).await?;
    let other = job(3);
    let answers = lab.enqueue(vec![job(2).key(key("invoice-7")), other.clone()]).await?;
    let error = answers[0].as_ref().expect_err("a conflict");
    assert_eq!((error.kind(), error.existing_job()), (ErrorKind::Conflict, Some(first)));
    assert_eq!(lab.row(other.id).await?.payload, json(3));
    Ok(())
}

/// One invalid item refuses the batch whole.
///
/// Proves: ERR-1
async fn invalid_item_leaves_nothing(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let error = lab.enqueue(vec![job(1), job(2).max_attempts(0)]).await.expect_err("invalid");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// A call may hold more sorts of jobs than a store writes in one statement each.
///
/// Proves: WQ-1
async fn jobs_of_many_sorts_go_in_one_call(lab: &Lab) -> Result<()> {
    let of = |number: i16| {
        let mut new = job(1).priority(number);
        new.kind = JobKind::new(format!("kind-{}", number % 3)).expect("a kind");
        new
    };
    let new: Vec<_> = (0..24).map(of).collect();
    let ids: Vec<_> = new.iter().rev().map(|job| job.id).collect();
    for answer in lab.enqueue(new).await? {
        assert!(answer?.is_new());
    }
    let order: Vec<_> = lab.take(30).await?.iter().map(|claim| claim.job.id).collect();
    assert_eq!(order, ids);
    Ok(())
}

/// A call without a job is answered and stores nothing.
///
/// Proves: WQ-1
async fn nothing_is_asked_of_an_empty_call(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    assert_eq!(lab.enqueue(Vec::new()).await?.len(), 0);
    lab.assert_unchanged(&before).await
}

/// A delayed job is not claimed before its time, and is claimed at it.
///
/// Proves: WQ-3
async fn delay_puts_the_first_claim_off(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1).delay(Duration::from_secs(10))).await?;
    lab.advance(9);
    assert!(lab.take(1).await?.is_empty());
    lab.advance(1);
    assert_eq!(lab.take_one().await?.job.id, id);
    Ok(())
}
