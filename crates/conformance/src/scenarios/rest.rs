//! Owns jobs that rest: nobody claims them until somebody wakes them, and a wake that comes while the
//! job is still in hand is not lost.

use leasehold_core::{
    Control, Controlled, ErrorKind, JobId, Lifecycle, LostReason, OnFailure, Result, State, Verdict,
};

use super::group;
use crate::lab::{Lab, actor, assert_lost, assert_refused, job, job_of, lasting};

group!("rest": resting_job_is_claimed_by_nobody, woken_job_is_due, rest_costs_no_attempt,
    wake_during_the_lease_outlives_the_rest, repeated_rest_is_recognised, only_what_waits_is_woken,
    wake_of_a_delayed_job_makes_it_due);

const YEARS: u64 = 50 * 365 * 24 * 3600;

fn rest() -> Verdict {
    Verdict::Rest { failure: lasting() }
}

async fn wake(lab: &Lab, job: JobId) -> Result<Controlled> {
    lab.control(Control::Wake { job, actor: actor() }).await
}

/// Proves: DEL-7
async fn resting_job_is_claimed_by_nobody(lab: &Lab) -> Result<()> {
    let id = lab.add(job_of(&Lifecycle::review())).await?;
    let claim = lab.take_one().await?;
    assert_eq!(lab.end(claim.fence, rest()).await?.place.state(), State::Waiting);
    lab.advance(YEARS);
    assert!(lab.take(9).await?.is_empty());
    let row = lab.row(id).await?;
    assert_eq!((row.state, row.status.as_str()), (State::Waiting, "retryable_failed"));
    assert!(row.failure.is_some(), "it tells what somebody has to mend");
    Ok(())
}

/// Proves: DEL-7
async fn woken_job_is_due(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.end(claim.fence, rest()).await?;
    lab.advance(1);
    assert_eq!(wake(lab, claim.job.id).await?, Controlled::Done);
    assert_eq!(wake(lab, claim.job.id).await?, Controlled::Unchanged);
    assert_eq!(lab.take_one().await?.job.id, claim.job.id);
    Ok(())
}

/// A failure that no other attempt mends and the last attempt of a budget make no difference.
///
/// Proves: DEL-7, WQ-19
async fn rest_costs_no_attempt(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1).max_attempts(1)).await?;
    for _ in 0..3 {
        let claim = lab.take_one().await?;
        lab.end(claim.fence, rest()).await?;
        let row = lab.row(id).await?;
        assert_eq!((row.state, row.attempts), (State::Waiting, 0));
        wake(lab, id).await?;
    }
    Ok(())
}

/// Proves: DEL-7
async fn wake_during_the_lease_outlives_the_rest(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    assert_eq!(wake(lab, claim.job.id).await?, Controlled::Done);
    assert_eq!(wake(lab, claim.job.id).await?, Controlled::Unchanged);
    lab.end(claim.fence, rest()).await?;
    lab.advance(1);
    let again = lab.take_one().await?;
    assert_eq!(again.job.id, claim.job.id);
    // That wake is used up.
    lab.end(again.fence, rest()).await?;
    lab.advance(YEARS);
    assert!(lab.take(9).await?.is_empty());
    Ok(())
}

/// Proves: DEL-7, WQ-10
async fn repeated_rest_is_recognised(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    assert!(!lab.end(claim.fence, rest()).await?.repeated);
    let before = lab.dump().await?;
    assert!(lab.end(claim.fence, rest()).await?.repeated);
    let other = Verdict::Succeed { result: None };
    assert_lost(lab.end(claim.fence, other).await, LostReason::Settled);
    lab.assert_unchanged(&before).await
}

/// Proves: DEL-7, WQ-2
async fn only_what_waits_is_woken(lab: &Lab) -> Result<()> {
    let parent = lab.add(job(1)).await?;
    let child = lab.add(job(2).after(parent, OnFailure::Cancel)).await?;
    let claim = lab.take_one().await?;
    assert_refused(wake(lab, child).await, ErrorKind::IllegalTransition);
    lab.end(claim.fence, Verdict::Succeed { result: None }).await?;
    let before = lab.dump().await?;
    assert_refused(wake(lab, parent).await, ErrorKind::IllegalTransition);
    assert_refused(wake(lab, JobId::new()).await, ErrorKind::NotFound);
    lab.assert_unchanged(&before).await
}

/// Proves: DEL-7
async fn wake_of_a_delayed_job_makes_it_due(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1).delay(std::time::Duration::from_secs(3600))).await?;
    assert!(lab.take(9).await?.is_empty());
    assert_eq!(wake(lab, id).await?, Controlled::Done);
    assert_eq!(lab.take_one().await?.job.id, id);
    Ok(())
}
