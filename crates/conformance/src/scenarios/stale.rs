//! Owns what a stale fence can do: nothing. Every kind of stale, every verb, alone and inside a
//! caller's transaction.

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{
    Actor, Control, Fence, LostReason, Progress, PruneRequest, ReclaimRequest, Renewal, Result,
    Settlement, StoreExt, Verdict,
};

use super::group;
use crate::lab::{Lab, actor, assert_lost, event, job, json, passing, retry, seconds};

group!("stale": gone_job_has_no_owner, pruned_job_refuses_other_verdicts,
    newer_claim_of_a_pruned_job_stands, expired_in_a_transaction_changes_nothing,
    reclaimed_in_a_transaction_changes_nothing, taken_over_in_a_transaction_changes_nothing,
    settled_in_a_transaction_changes_nothing, cancelled_in_a_transaction_changes_nothing,
    raised_epoch_in_a_transaction_changes_nothing, gone_in_a_transaction_changes_nothing,
    released_fence_is_settled, forged_fence_is_refused, success_of_another_claim_is_refused,
    success_of_another_version_is_refused, success_of_another_worker_is_refused,
    success_past_the_lease_is_refused, success_under_a_raised_epoch_is_refused);

fn verdicts() -> [Verdict; 7] {
    let failure = passing();
    [
        Verdict::Succeed { result: Some(json(11)) },
        retry(12),
        Verdict::Snooze { delay: seconds(13) },
        Verdict::Release { delay: Some(seconds(14)) },
        Verdict::Fail { failure: failure.clone() },
        Verdict::DeadLetter { failure },
        Verdict::Cancel { reason: Some("late".to_owned()) },
    ]
}

fn settlement(fence: Fence, verdict: Verdict) -> Settlement {
    let settlement = Settlement::new(fence, verdict).checkpoint(json(15));
    settlement.event(event(16)).job(job(17))
}

fn report(fence: Fence) -> Progress {
    Progress::new(fence, 1).checkpoint(json(18)).event(event(19))
}

/// Plays every verb in one caller's transaction; each is refused and nothing is left of any.
async fn refused_in_a_transaction(lab: &Lab, fence: Fence, reason: LostReason) -> Result<()> {
    let before = lab.dump().await?;
    let settles = verdicts().map(|verdict| Step::Settle(vec![settlement(fence, verdict)]));
    let mut script = vec![Step::Progress(vec![report(fence)])];
    script.extend(settles);
    for reply in lab.play(script, Ending::Commit).await? {
        match reply {
            Reply::Progress(answers) => assert_lost(answers?.remove(0), reason),
            Reply::Settle(answers) => assert_lost(answers?.remove(0), reason),
            other => panic!("an answer of another verb: {other:?}"),
        }
    }
    assert_eq!(lab.renew_one(fence).await?, Renewal::Lost(reason));
    lab.assert_unchanged(&before).await
}

/// A job without a row or a tombstone answers every verb as gone.
///
/// Proves: GLO-3, QUE-4
async fn gone_job_has_no_owner(lab: &Lab) -> Result<()> {
    let fence = gone(lab).await?;
    let before = lab.dump().await?;
    for verdict in verdicts() {
        assert_lost(lab.settle_one(settlement(fence, verdict)).await, LostReason::Gone);
    }
    assert_lost(lab.progress_one(report(fence)).await, LostReason::Gone);
    assert_eq!(lab.renew_one(fence).await?, Renewal::Lost(LostReason::Gone));
    lab.assert_unchanged(&before).await
}

async fn gone(lab: &Lab) -> Result<Fence> {
    let claim = lab.claimed().await?;
    lab.succeed(claim.fence).await?;
    for days in [2, 8] {
        lab.advance(days * 24 * 3600);
        lab.prune(PruneRequest::new()).await?;
    }
    assert!(lab.dump().await?.rows("tombstones").is_empty());
    Ok(claim.fence)
}

/// A pruned job remembers how its last claim ended, and refuses that claim any other end.
///
/// Proves: QUE-4, WQ-10
async fn pruned_job_refuses_other_verdicts(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.succeed(claim.fence).await?;
    lab.advance(9);
    lab.prune(PruneRequest::new().older_than(seconds(9))).await?;
    let before = lab.dump().await?;
    let late = settlement(claim.fence, Verdict::Fail { failure: passing() });
    assert_lost(lab.settle_one(late).await, LostReason::Settled);
    assert_eq!(lab.renew_one(claim.fence).await?, Renewal::Lost(LostReason::Settled));
    lab.assert_unchanged(&before).await
}

/// A pruned job that a newer claim ended is taken over for the older one.
///
/// Proves: QUE-4, WQ-15
async fn newer_claim_of_a_pruned_job_stands(lab: &Lab) -> Result<()> {
    let old = lab.claimed().await?;
    lab.advance(30);
    let new = lab.take_one().await?;
    lab.succeed(new.fence).await?;
    lab.advance(9);
    lab.prune(PruneRequest::new().older_than(seconds(9))).await?;
    assert_lost(lab.succeed(old.fence).await, LostReason::TakenOver);
    assert!(lab.succeed(new.fence).await?.repeated);
    Ok(())
}

/// A lapsed lease counts for nothing in a caller's transaction.
///
/// Proves: GLO-3, TX-2, WQ-6
async fn expired_in_a_transaction_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    refused_in_a_transaction(lab, claim.fence, LostReason::Expired).await
}

/// A reclaimed job's old fence counts for nothing in a caller's transaction.
///
/// Proves: GLO-3, TX-2, WQ-7
async fn reclaimed_in_a_transaction_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    lab.reclaim(ReclaimRequest::jobs()).await?;
    refused_in_a_transaction(lab, claim.fence, LostReason::Reclaimed).await
}

/// A fence that another claim took over counts for nothing in a caller's transaction.
///
/// Proves: GLO-3, TX-2, WQ-15
async fn taken_over_in_a_transaction_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    let _newer = lab.take_one().await?;
    refused_in_a_transaction(lab, claim.fence, LostReason::TakenOver).await
}

/// After a settlement every other verdict counts for nothing in a caller's transaction.
///
/// Proves: GLO-2, TX-2, WQ-10
async fn settled_in_a_transaction_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.succeed(claim.fence).await?;
    let before = lab.dump().await?;
    let steps = verdicts().map(|verdict| Step::Settle(vec![settlement(claim.fence, verdict)]));
    let mut replies = lab.play(steps.to_vec(), Ending::Commit).await?.into_iter();
    let Some(Reply::Settle(repeat)) = replies.next() else { panic!("an answer") };
    assert!(repeat?.remove(0)?.repeated);
    for reply in replies {
        let Reply::Settle(answers) = reply else { panic!("an answer") };
        assert_lost(answers?.remove(0), LostReason::Settled);
    }
    lab.assert_unchanged(&before).await
}

/// A job cancelled at its lapsed lease is told so in a caller's transaction.
///
/// Proves: QUE-2, TX-2
async fn cancelled_in_a_transaction_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.cancel(claim.job.id).await?;
    lab.advance(30);
    lab.reclaim(ReclaimRequest::jobs()).await?;
    refused_in_a_transaction(lab, claim.fence, LostReason::Cancelled).await
}

/// A claim from before the epoch was raised counts for nothing in a caller's transaction.
///
/// Proves: TX-2, WQ-12, WQ-15
async fn raised_epoch_in_a_transaction_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let by: Actor = actor();
    lab.control(Control::BumpEpoch { actor: by }).await?;
    refused_in_a_transaction(lab, claim.fence, LostReason::EpochRaised).await
}

/// A job that is gone has no owner in a caller's transaction.
///
/// Proves: GLO-3, TX-2
async fn gone_in_a_transaction_changes_nothing(lab: &Lab) -> Result<()> {
    let fence = gone(lab).await?;
    refused_in_a_transaction(lab, fence, LostReason::Gone).await
}

/// A released claim has ended: it can neither be renewed nor report.
///
/// Proves: WQ-5, WQ-20
async fn released_fence_is_settled(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.end(claim.fence, Verdict::Release { delay: None }).await?;
    let before = lab.dump().await?;
    assert_lost(lab.progress_one(report(claim.fence)).await, LostReason::Settled);
    assert_lost(lab.succeed(claim.fence).await, LostReason::Settled);
    assert_eq!(lab.renew_one(claim.fence).await?, Renewal::Lost(LostReason::Settled));
    lab.assert_unchanged(&before).await
}

/// A fence that differs from the claim in any one part is refused.
///
/// Proves: GLO-3, WQ-15
async fn forged_fence_is_refused(lab: &Lab) -> Result<()> {
    use leasehold_core::{ClaimId, JobId, WorkerId};
    let claim = lab.claimed().await?;
    let it = claim.fence;
    let before = lab.dump().await?;
    let forged = [
        Fence::from_parts(JobId::new(), it.version(), it.claim(), it.worker(), it.epoch()),
        Fence::from_parts(it.job(), it.version().next(), it.claim(), it.worker(), it.epoch()),
        Fence::from_parts(it.job(), it.version(), ClaimId::new(), it.worker(), it.epoch()),
        Fence::from_parts(it.job(), it.version(), it.claim(), WorkerId::new(), it.epoch()),
    ];
    for fence in forged {
        let answer = lab.settle_one(settlement(fence, retry(5))).await;
        assert!(answer.expect_err("a lost fence").is_fence_lost());
        assert!(lab.progress_one(report(fence)).await.is_err_and(|error| error.is_fence_lost()));
        assert!(matches!(lab.renew_one(fence).await?, Renewal::Lost(_)));
    }
    lab.assert_unchanged(&before).await
}

/// A success that says nothing else, which stores end by a way of its own, is refused for a forged fence.
async fn success_is_refused(lab: &Lab, forge: impl FnOnce(Fence) -> Fence) -> Result<()> {
    let claim = lab.claimed().await?;
    let before = lab.dump().await?;
    let answer = lab.succeed(forge(claim.fence)).await;
    assert!(answer.expect_err("a lost fence").is_fence_lost());
    lab.assert_unchanged(&before).await
}

/// A bare success needs the claim's id.
///
/// Proves: GLO-3, WQ-15
async fn success_of_another_claim_is_refused(lab: &Lab) -> Result<()> {
    let other = leasehold_core::ClaimId::new();
    let forge =
        |it: Fence| Fence::from_parts(it.job(), it.version(), other, it.worker(), it.epoch());
    success_is_refused(lab, forge).await
}

/// A bare success needs the claim's version.
///
/// Proves: GLO-3, WQ-15
async fn success_of_another_version_is_refused(lab: &Lab) -> Result<()> {
    let forge = |it: Fence| {
        Fence::from_parts(it.job(), it.version().next(), it.claim(), it.worker(), it.epoch())
    };
    success_is_refused(lab, forge).await
}

/// A bare success needs the claim's worker.
///
/// Proves: GLO-3, WQ-15
async fn success_of_another_worker_is_refused(lab: &Lab) -> Result<()> {
    let other = leasehold_core::WorkerId::new();
    let forge =
        |it: Fence| Fence::from_parts(it.job(), it.version(), it.claim(), other, it.epoch());
    success_is_refused(lab, forge).await
}

/// A bare success needs a lease that runs.
///
/// Proves: WQ-6, WQ-15
async fn success_past_the_lease_is_refused(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    let before = lab.dump().await?;
    assert_lost(lab.succeed(claim.fence).await, LostReason::Expired);
    lab.assert_unchanged(&before).await
}

/// A bare success needs the epoch of its claim.
///
/// Proves: WQ-12, WQ-15
async fn success_under_a_raised_epoch_is_refused(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.control(Control::BumpEpoch { actor: actor() }).await?;
    let before = lab.dump().await?;
    assert_lost(lab.succeed(claim.fence).await, LostReason::EpochRaised);
    lab.assert_unchanged(&before).await
}
