//! Owns what claim, renew and reclaim promise: order, limits, leases.

use leasehold_core::{
    ClaimRequest, Control, LostReason, QueueName, QueueSettings, ReclaimRequest, Renewal, Result,
    State, StoreExt, WorkerId,
};

use super::group;
use crate::lab::{Lab, job, queue, request};

group!("claim": larger_priority_comes_first, limit_is_never_exceeded, paused_queue_gives_nothing,
    queue_limit_bounds_the_leased, lost_reply_is_given_again, renewal_extends_the_lease,
    expired_claim_is_not_renewed, reclaim_returns_only_expired_jobs,
    leases_of_other_queues_leave_room, repeat_is_the_same_workers_only);

/// Larger priority is claimed first, then the earlier job.
///
/// Proves: WQ-3
async fn larger_priority_comes_first(lab: &Lab) -> Result<()> {
    let low = lab.add(job(1).priority(-5)).await?;
    let high = lab.add(job(2).priority(9)).await?;
    let normal = lab.add(job(3)).await?;
    let order: Vec<_> = lab.take(3).await?.iter().map(|claim| claim.job.id).collect();
    assert_eq!(order, [high, normal, low]);
    Ok(())
}

/// A claim never takes more than its limit.
///
/// Proves: WQ-3
async fn limit_is_never_exceeded(lab: &Lab) -> Result<()> {
    for answer in lab.enqueue((0..5).map(job).collect()).await? {
        assert!(answer?.is_new());
    }
    assert_eq!(lab.take(2).await?.len(), 2);
    assert_eq!(lab.take(9).await?.len(), 3);
    Ok(())
}

/// A paused queue gives nothing until it is resumed.
///
/// Proves: QUE-1
async fn paused_queue_gives_nothing(lab: &Lab) -> Result<()> {
    lab.add(job(1)).await?;
    lab.control(Control::Pause(QueueName::default_queue())).await?;
    assert!(lab.take(1).await?.is_empty());
    lab.control(Control::Resume(QueueName::default_queue())).await?;
    assert_eq!(lab.take(1).await?.len(), 1);
    Ok(())
}

/// No more jobs of a queue are leased at once than its limit.
///
/// Proves: WQ-9
async fn queue_limit_bounds_the_leased(lab: &Lab) -> Result<()> {
    let settings = QueueSettings::new().limit(Some(2));
    lab.control(Control::SetQueue(QueueName::default_queue(), settings)).await?;
    for answer in lab.enqueue((0..4).map(job).collect()).await? {
        assert!(answer?.is_new());
    }
    let held = lab.take(4).await?;
    assert_eq!(held.len(), 2);
    assert!(lab.take(4).await?.is_empty());
    lab.succeed(held[0].fence).await?;
    assert_eq!(lab.take(4).await?.len(), 1);
    Ok(())
}

/// A repeated request gets what the lost reply had, under the same fence.
///
/// Proves: GLO-2
async fn lost_reply_is_given_again(lab: &Lab) -> Result<()> {
    lab.add(job(1)).await?;
    let asked = request(WorkerId::new());
    let first = lab.claim(asked.clone()).await?;
    let again = lab.claim(asked.repeat()).await?;
    assert_eq!((first.len(), again.len()), (1, 1));
    assert_eq!(first[0].fence, again[0].fence);
    Ok(())
}

/// A renewal makes the lease run from the store's now.
///
/// Proves: WQ-5
async fn renewal_extends_the_lease(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(20);
    let answer = lab.renew_one(claim.fence).await?;
    assert!(matches!(answer, Renewal::Renewed { cancel_requested: false, .. }), "{answer:?}");
    lab.advance(20);
    assert_eq!(lab.succeed(claim.fence).await?.place.state(), State::Succeeded);
    Ok(())
}

/// A renewal at the very end of the lease comes too late and writes nothing.
///
/// Proves: WQ-5, WQ-6
async fn expired_claim_is_not_renewed(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    let before = lab.dump().await?;
    assert_eq!(lab.renew_one(claim.fence).await?, Renewal::Lost(LostReason::Expired));
    lab.assert_unchanged(&before).await
}

/// Reclaim takes back an expired lease and leaves a live one alone.
///
/// Proves: WQ-7
async fn reclaim_returns_only_expired_jobs(lab: &Lab) -> Result<()> {
    let old = lab.claimed().await?;
    lab.advance(20);
    let live = lab.claimed().await?;
    lab.advance(10);
    let back = lab.reclaim(ReclaimRequest::jobs()).await?;
    assert_eq!(back.jobs.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [old.job.id]);
    assert_eq!(lab.row(live.job.id).await?.state, State::Leased);
    Ok(())
}

/// A queue's limit counts its own leases, not those of other queues.
///
/// Proves: WQ-9
async fn leases_of_other_queues_leave_room(lab: &Lab) -> Result<()> {
    let settings = QueueSettings::new().limit(Some(1));
    lab.control(Control::SetQueue(QueueName::default_queue(), settings)).await?;
    for number in 0..3 {
        lab.add(job(number).queue(queue("other"))).await?;
    }
    let other = ClaimRequest::new(WorkerId::new(), [queue("other")]).limit(3);
    assert_eq!(lab.claim(other).await?.len(), 3);
    lab.add(job(4)).await?;
    assert_eq!(lab.take(9).await?.len(), 1);
    Ok(())
}

/// What a claim has taken is given again to the worker that sent it, and to no other.
///
/// Proves: GLO-2, GLO-3
async fn repeat_is_the_same_workers_only(lab: &Lab) -> Result<()> {
    lab.add(job(1)).await?;
    let asked = request(WorkerId::new());
    let first = lab.claim(asked.clone()).await?;
    let mut theirs = request(WorkerId::new());
    theirs.claim = asked.claim;
    assert_eq!((first.len(), lab.claim(theirs.repeat()).await?.len()), (1, 0));
    assert_eq!(lab.claim(asked.repeat()).await?.len(), 1);
    Ok(())
}
