//! Owns what a cancel promises: at once where nobody works, by way of the holder elsewhere.

use leasehold_core::{
    Controlled, ErrorKind, JobId, Lifecycle, LostReason, ReclaimRequest, Renewal, Result, State,
    StoreExt, Verdict,
};

use super::group;
use crate::lab::{Lab, assert_lost, assert_refused, job, job_of, passing, retry, seconds};

group!("cancel": waiting_job_is_cancelled_at_once, leased_job_is_flagged_and_its_holder_told,
    success_before_it_wins, lapsed_lease_of_a_flagged_job_ends_cancelled,
    claim_never_takes_a_flagged_job_over, flagged_job_is_not_given_back,
    second_cancel_changes_nothing, ended_job_cannot_be_cancelled, unknown_job_is_not_found,
    lifecycles_without_it_refuse, cancel_is_kept_in_the_audit, holder_can_end_by_cancel);

/// A waiting job is cancelled at once and never claimed.
///
/// Proves: QUE-2
async fn waiting_job_is_cancelled_at_once(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1)).await?;
    lab.advance(3);
    assert_eq!(lab.cancel(id).await?, Controlled::Cancelled);
    let row = lab.row(id).await?;
    assert_eq!((row.state, row.finished_at), (State::Cancelled, Some(lab.clock().now())));
    assert!(lab.take(9).await?.is_empty());
    Ok(())
}

/// A leased job goes on, flagged; its holder hears of it with its next renewal.
///
/// Proves: QUE-2
async fn leased_job_is_flagged_and_its_holder_told(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    assert_eq!(lab.cancel(claim.job.id).await?, Controlled::CancelRequested);
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.state, row.cancel_requested), (State::Leased, true));
    let answer = lab.renew_one(claim.fence).await?;
    assert!(matches!(answer, Renewal::Renewed { cancel_requested: true, .. }), "{answer:?}");
    Ok(())
}

/// A success by the holder counts, flagged or not.
///
/// Proves: QUE-2
async fn success_before_it_wins(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.cancel(claim.job.id).await?;
    assert_eq!(lab.succeed(claim.fence).await?.place.state(), State::Succeeded);
    Ok(())
}

/// A flagged job whose lease runs out is cancelled, not given back.
///
/// Proves: QUE-2
async fn lapsed_lease_of_a_flagged_job_ends_cancelled(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.cancel(claim.job.id).await?;
    lab.advance(30);
    let back = lab.reclaim(ReclaimRequest::jobs()).await?;
    let states: Vec<(JobId, State)> = back.jobs.iter().map(|(id, to)| (*id, to.state())).collect();
    assert_eq!(states, [(claim.job.id, State::Cancelled)]);
    assert_lost(lab.succeed(claim.fence).await, LostReason::Cancelled);
    Ok(())
}

/// A claim that comes upon a flagged job's lapsed lease cancels it in passing.
///
/// Proves: QUE-2, WQ-7
async fn claim_never_takes_a_flagged_job_over(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.cancel(claim.job.id).await?;
    lab.advance(30);
    assert!(lab.take(9).await?.is_empty());
    assert_eq!(lab.row(claim.job.id).await?.state, State::Cancelled);
    Ok(())
}

/// Retry, snooze and release of a flagged job end it cancelled.
///
/// Proves: QUE-2
async fn flagged_job_is_not_given_back(lab: &Lab) -> Result<()> {
    let release = Verdict::Release { delay: None };
    for verdict in [retry(5), Verdict::Snooze { delay: seconds(5) }, release] {
        let claim = lab.claimed().await?;
        lab.cancel(claim.job.id).await?;
        let settled = lab.end(claim.fence, verdict).await?;
        assert_eq!(settled.place.state(), State::Cancelled);
    }
    Ok(())
}

/// A second cancel changes nothing, waiting or leased.
///
/// Proves: GLO-2, QUE-2
async fn second_cancel_changes_nothing(lab: &Lab) -> Result<()> {
    let leased = lab.claimed().await?.job.id;
    let waiting = lab.add(job(2)).await?;
    for id in [leased, waiting] {
        lab.cancel(id).await?;
        lab.advance(1);
        let before = lab.dump().await?;
        assert_eq!(lab.cancel(id).await?, Controlled::Unchanged);
        lab.assert_unchanged(&before).await?;
    }
    Ok(())
}

/// A job that has ended otherwise cannot be cancelled.
///
/// Proves: GLO-1, WQ-2
async fn ended_job_cannot_be_cancelled(lab: &Lab) -> Result<()> {
    let failure = passing();
    let verdicts = [
        Verdict::Succeed { result: None },
        Verdict::Fail { failure: failure.clone() },
        Verdict::DeadLetter { failure },
    ];
    for verdict in verdicts {
        let claim = lab.claimed().await?;
        lab.end(claim.fence, verdict).await?;
        let before = lab.dump().await?;
        assert_refused(lab.cancel(claim.job.id).await, ErrorKind::IllegalTransition);
        lab.assert_unchanged(&before).await?;
    }
    Ok(())
}

/// A job that does not exist is not found.
///
/// Proves: ERR-1
async fn unknown_job_is_not_found(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    assert_refused(lab.cancel(JobId::new()).await, ErrorKind::NotFound);
    assert_refused(lab.reopen(JobId::new()).await, ErrorKind::NotFound);
    lab.assert_unchanged(&before).await
}

/// Lifecycles that list no cancel refuse it, waiting or leased.
///
/// Proves: WQ-2
async fn lifecycles_without_it_refuse(lab: &Lab) -> Result<()> {
    for lifecycle in [Lifecycle::work_queue(), Lifecycle::transcode(), Lifecycle::review()] {
        let id = lab.add(job_of(&lifecycle)).await?;
        let before = lab.dump().await?;
        assert_refused(lab.cancel(id).await, ErrorKind::IllegalTransition);
        lab.assert_unchanged(&before).await?;
        let claim = lab.take_one().await?;
        let before = lab.dump().await?;
        assert_refused(lab.cancel(id).await, ErrorKind::IllegalTransition);
        let verdict = Verdict::Cancel { reason: None };
        assert_refused(lab.end(claim.fence, verdict).await, ErrorKind::IllegalTransition);
        lab.assert_unchanged(&before).await?;
    }
    Ok(())
}

/// Who cancelled what, and why, is kept.
///
/// Proves: GLO-1
async fn cancel_is_kept_in_the_audit(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1)).await?;
    lab.cancel(id).await?;
    let dump = lab.dump().await?;
    let [row] = dump.rows("audit") else { panic!("one entry: {dump:?}") };
    for part in ["\"cancel\"", "operator-7", "the customer left", &id.to_string()] {
        assert!(row.contains(part), "{part} in {row}");
    }
    Ok(())
}

/// The holder's own cancel ends the job and keeps the reason.
///
/// Proves: QUE-2, WQ-10
async fn holder_can_end_by_cancel(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.cancel(claim.job.id).await?;
    let reason = Some("stopped at page 7".to_owned());
    let settled = lab.end(claim.fence, Verdict::Cancel { reason }).await?;
    assert_eq!(settled.place.state(), State::Cancelled);
    let failure = lab.row(claim.job.id).await?.failure.expect("the reason");
    assert!(failure.as_str().contains("stopped at page 7"), "{failure:?}");
    Ok(())
}
