//! Owns what settle promises: one settlement per claim, and nothing written by a stale fence.

use leasehold_core::{
    Actor, Claim, Control, Fence, LostReason, ReclaimRequest, Result, Settlement, State, StoreExt,
    Verdict, WorkerId,
};

use super::group;
use crate::lab::{Lab, assert_lost, event, job, json, passing};

group!("settle": success_ends_the_job, repeat_writes_nothing, other_verdict_is_refused,
    expired_fence_changes_nothing, taken_over_fence_changes_nothing,
    claim_again_by_the_same_worker_changes_nothing, raised_epoch_changes_nothing,
    spent_budget_ends_in_the_dead_letters, snooze_costs_no_attempt,
    events_and_jobs_land_with_the_verdict, claims_of_many_end_in_one_call,
    jobs_of_one_claim_end_each_by_its_own_version);

/// Success ends the job.
///
/// Proves: WQ-10
async fn success_ends_the_job(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let settled = lab.succeed(claim.fence).await?;
    assert_eq!((settled.place.state(), settled.repeated), (State::Succeeded, false));
    assert_eq!(lab.row(claim.job.id).await?.state, State::Succeeded);
    let claim = lab.claimed().await?;
    let last = Settlement::new(claim.fence, Verdict::Succeed { result: None }).checkpoint(json(3));
    lab.settle_one(last).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.state, row.checkpoint), (State::Succeeded, Some(json(3))));
    Ok(())
}

/// A repeat of the same verdict by the same claim is answered and writes nothing.
///
/// Proves: GLO-2, WQ-10
async fn repeat_writes_nothing(lab: &Lab) -> Result<()> {
    for verdict in verdicts() {
        let claim = lab.claimed().await?;
        let settlement = Settlement::new(claim.fence, verdict);
        lab.settle_one(settlement.clone()).await?;
        let before = lab.dump().await?;
        assert!(lab.settle_one(settlement).await?.repeated);
        lab.assert_unchanged(&before).await?;
        lab.advance(3600);
        while let Some(claim) = lab.take(1).await?.pop() {
            lab.succeed(claim.fence).await?;
        }
    }
    Ok(())
}

/// One call ends the jobs of many claims, each by its own fence, and answers in their order.
///
/// Proves: WQ-10
async fn claims_of_many_end_in_one_call(lab: &Lab) -> Result<()> {
    lab.enqueue((0..9).map(job).collect()).await?;
    let mut claims = Vec::new();
    for _ in 0..9 {
        claims.append(&mut lab.take(1).await?);
    }
    let done = |claim: &Claim| Settlement::new(claim.fence, Verdict::Succeed { result: None });
    assert_eq!(claims.len(), 9);
    let mut settlements: Vec<Settlement> = claims.iter().map(done).collect();
    settlements.swap(2, 7);
    for answer in lab.settle(settlements.clone()).await? {
        assert!(!answer?.repeated);
    }
    for claim in &claims {
        assert_eq!(lab.row(claim.job.id).await?.state, State::Succeeded);
    }
    for answer in lab.settle(settlements).await? {
        assert!(answer?.repeated);
    }
    Ok(())
}

/// Of the jobs of one claim one may have been claimed before: its fence has a higher version, and both hold.
///
/// Proves: WQ-8, WQ-10
async fn jobs_of_one_claim_end_each_by_its_own_version(lab: &Lab) -> Result<()> {
    let first = lab.claimed().await?;
    lab.end(first.fence, crate::lab::retry(0)).await?;
    lab.add(job(2)).await?;
    let claims = lab.take(9).await?;
    assert_eq!(claims.len(), 2);
    assert_eq!(claims[0].fence.claim(), claims[1].fence.claim());
    assert_ne!(claims[0].fence.version(), claims[1].fence.version());
    let done = |claim: &Claim| Settlement::new(claim.fence, Verdict::Succeed { result: None });
    for answer in lab.settle(claims.iter().map(done).collect()).await? {
        assert_eq!(answer?.place.state(), State::Succeeded);
    }
    Ok(())
}

/// Another verdict after the settlement is refused and writes nothing.
///
/// Proves: WQ-10
async fn other_verdict_is_refused(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.succeed(claim.fence).await?;
    let before = lab.dump().await?;
    let other = Settlement::new(claim.fence, Verdict::Fail { failure: passing() });
    assert_lost(lab.settle_one(other).await, LostReason::Settled);
    lab.assert_unchanged(&before).await
}

/// Every verb under an expired lease is refused and writes nothing.
///
/// Proves: GLO-3, WQ-6
async fn expired_fence_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    refuses_all(lab, claim.fence, LostReason::Expired).await
}

/// Every verb after another worker took the job over is refused and writes nothing.
///
/// Proves: GLO-3, WQ-10
async fn taken_over_fence_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    take_back(lab).await?;
    let _newer = lab.take_one().await?;
    refuses_all(lab, claim.fence, LostReason::TakenOver).await
}

/// A newer claim by the same worker does not revive its older fence.
///
/// Proves: GLO-3, WQ-15
async fn claim_again_by_the_same_worker_changes_nothing(lab: &Lab) -> Result<()> {
    let worker = WorkerId::new();
    lab.add(job(1)).await?;
    let claim = lab.take_by(worker).await?;
    take_back(lab).await?;
    let _newer = lab.take_by(worker).await?;
    refuses_all(lab, claim.fence, LostReason::TakenOver).await
}

/// Every verb of a claim from before the epoch was raised is refused and writes nothing.
///
/// Proves: WQ-12, WQ-15
async fn raised_epoch_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.control(Control::BumpEpoch { actor: Actor::new("operator")? }).await?;
    refuses_all(lab, claim.fence, LostReason::EpochRaised).await
}

/// The last attempt's retry ends in the dead letters.
///
/// Proves: WQ-10, WQ-14
async fn spent_budget_ends_in_the_dead_letters(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1).max_attempts(2)).await?;
    for state in [State::Waiting, State::DeadLetter] {
        let claim = lab.take_one().await?;
        let verdict = Verdict::Retry { failure: passing(), delay: None };
        let settled = lab.settle_one(Settlement::new(claim.fence, verdict)).await?;
        assert_eq!(settled.place.state(), state);
    }
    assert_eq!(lab.row(id).await?.attempts, 2);
    Ok(())
}

/// A snooze gives the attempt back.
///
/// Proves: WQ-19
async fn snooze_costs_no_attempt(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let verdict = Verdict::Snooze { delay: std::time::Duration::from_secs(5) };
    lab.settle_one(Settlement::new(claim.fence, verdict)).await?;
    assert_eq!(lab.row(claim.job.id).await?.attempts, 0);
    Ok(())
}

/// The events and follow-on jobs of a settlement are there once it is.
///
/// Proves: TX-1
async fn events_and_jobs_land_with_the_verdict(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let next = job(2);
    let settlement = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    lab.settle_one(settlement.event(event(3)).job(next.clone())).await?;
    assert_eq!(lab.row(next.id).await?.state, State::Waiting);
    assert_eq!(lab.take_events(9).await?.len(), 1);
    Ok(())
}

fn verdicts() -> [Verdict; 8] {
    let delay = std::time::Duration::from_secs(7);
    [
        Verdict::Succeed { result: None },
        Verdict::Retry { failure: passing(), delay: Some(delay) },
        Verdict::Rest { failure: passing() },
        Verdict::Snooze { delay },
        Verdict::Release { delay: Some(delay) },
        Verdict::Fail { failure: passing() },
        Verdict::DeadLetter { failure: passing() },
        Verdict::Cancel { reason: None },
    ]
}

async fn take_back(lab: &Lab) -> Result<()> {
    lab.advance(30);
    assert_eq!(lab.reclaim(ReclaimRequest::jobs()).await?.jobs.len(), 1);
    Ok(())
}

async fn refuses_all(lab: &Lab, fence: Fence, reason: LostReason) -> Result<()> {
    let before = lab.dump().await?;
    for verdict in verdicts() {
        let settlement = Settlement::new(fence, verdict).event(event(4)).job(job(5));
        assert_lost(lab.settle_one(settlement).await, reason);
    }
    let report = leasehold_core::Progress::new(fence, 1).event(event(6));
    assert_lost(lab.progress_one(report).await, reason);
    assert_eq!(lab.renew_one(fence).await?, leasehold_core::Renewal::Lost(reason));
    lab.assert_unchanged(&before).await
}
