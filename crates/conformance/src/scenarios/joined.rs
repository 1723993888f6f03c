//! Owns what verbs inside a caller's transaction promise: one fate for all of it.

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{LostReason, Result, Settlement, State, StoreExt, Verdict};

use super::group;
use crate::lab::{Lab, assert_lost, event, job};

group!("joined": commit_keeps_everything, rollback_leaves_nothing, dropped_transaction_leaves_nothing,
    savepoint_takes_back_only_what_follows_it, lost_fence_leaves_the_transaction_usable,
    rolled_back_publish_leaves_no_gap);

fn own() -> Step {
    Step::OwnRow("order 7".to_owned())
}

/// What a caller commits is there, its own row included.
///
/// Proves: TX-2
async fn commit_keeps_everything(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let (next, note) = (job(2), event(3));
    let done = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    let script = vec![
        own(),
        Step::Enqueue(vec![next.clone()]),
        Step::Publish(vec![note]),
        Step::Settle(vec![done]),
    ];
    lab.play(script, Ending::Commit).await?;
    assert_eq!(lab.row(claim.job.id).await?.state, State::Succeeded);
    assert_eq!(lab.row(next.id).await?.state, State::Waiting);
    assert_eq!(lab.take_events(9).await?.len(), 1);
    assert_eq!(lab.dump().await?.rows("lab_rows").len(), 1);
    Ok(())
}

/// What a caller rolls back was never there.
///
/// Proves: TX-2
async fn rollback_leaves_nothing(lab: &Lab) -> Result<()> {
    leaves_nothing(lab, Ending::RollBack).await
}

/// A transaction dropped without a word was never there.
///
/// Proves: TX-2
async fn dropped_transaction_leaves_nothing(lab: &Lab) -> Result<()> {
    leaves_nothing(lab, Ending::Drop).await
}

async fn leaves_nothing(lab: &Lab, ending: Ending) -> Result<()> {
    let claim = lab.claimed().await?;
    let done = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    let before = lab.dump().await?;
    let script = vec![
        own(),
        Step::Enqueue(vec![job(2)]),
        Step::Publish(vec![event(3)]),
        Step::Settle(vec![done]),
    ];
    lab.play(script, ending).await?;
    lab.assert_unchanged(&before).await?;
    lab.succeed(claim.fence).await?;
    Ok(())
}

/// A rollback to a savepoint takes back what came after it and nothing else.
///
/// Proves: TX-2
async fn savepoint_takes_back_only_what_follows_it(lab: &Lab) -> Result<()> {
    let (kept, dropped) = (job(2), job(3));
    let script = vec![
        Step::Enqueue(vec![kept.clone()]),
        Step::Savepoint,
        Step::Enqueue(vec![dropped.clone()]),
        Step::RollbackToSavepoint,
        own(),
    ];
    lab.play(script, Ending::Commit).await?;
    assert!(lab.job(kept.id).await?.is_some());
    assert!(lab.job(dropped.id).await?.is_none());
    assert_eq!(lab.dump().await?.rows("lab_rows").len(), 1);
    Ok(())
}

/// A lost fence is an answer: the caller's transaction goes on and commits.
///
/// Proves: GLO-3, TX-2
async fn lost_fence_leaves_the_transaction_usable(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    let next = job(2);
    let late = Settlement::new(claim.fence, Verdict::Succeed { result: None }).job(job(4));
    let script = vec![Step::Settle(vec![late]), own(), Step::Enqueue(vec![next.clone()])];
    let mut replies = lab.play(script, Ending::Commit).await?;
    match replies.remove(0) {
        Reply::Settle(Ok(mut answers)) => assert_lost(answers.remove(0), LostReason::Expired),
        other => panic!("a settle answers as one: {other:?}"),
    }
    assert!(lab.job(next.id).await?.is_some());
    let dump = lab.dump().await?;
    assert_eq!((dump.rows("jobs").len(), dump.rows("lab_rows").len()), (2, 1));
    Ok(())
}

/// A publish that is rolled back leaves no hole in its key's sequence.
///
/// Proves: TX-2, TX-3
async fn rolled_back_publish_leaves_no_gap(lab: &Lab) -> Result<()> {
    let key = super::outbox::ordering();
    let first = lab.publish_one(event(1).ordering(key.clone())).await?;
    let lost = vec![Step::Publish(vec![event(2).ordering(key.clone())])];
    lab.play(lost, Ending::RollBack).await?;
    let next = lab.publish_one(event(3).ordering(key)).await?;
    assert_eq!(next.sequence, first.sequence.map(|number| number + 1));
    Ok(())
}
