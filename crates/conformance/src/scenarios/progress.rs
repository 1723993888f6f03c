//! Owns what progress promises: numbered steps, checkpoints and stages under the lease.

use leasehold_core::{
    ErrorKind, Json, Lifecycle, Ordering, Progress, Result, StageName, State, StoreExt, Verdict,
};

use super::group;
use crate::lab::{
    Lab, assert_refused, event, events_with, job, job_of, json, json_of, passing, retry,
};

group!("progress": steps_rise_by_one, repeated_step_writes_nothing,
    checkpoint_is_seen_by_the_next_execution, steps_begin_anew_with_each_claim,
    lease_stays_as_it_is, stage_budget_begins_anew, retry_resumes_at_the_failed_stage,
    transcode_begins_again_at_its_first_stage, events_are_published_with_the_step,
    oversized_checkpoint_is_refused, refused_report_fails_only_itself);

fn stage(name: &str) -> StageName {
    StageName::new(name).expect("a stage")
}

/// A step that is nought or leaves a gap is refused and writes nothing.
///
/// Proves: QUE-5
async fn steps_rise_by_one(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    for (done, wrong) in [(1, 2), (2, 0), (3, 9)] {
        let before = lab.dump().await?;
        let report = Progress::new(claim.fence, wrong).checkpoint(json(7)).event(event(8));
        assert_refused(lab.progress_one(report).await, ErrorKind::Invalid);
        lab.assert_unchanged(&before).await?;
        lab.progress_one(Progress::new(claim.fence, done)).await?;
    }
    Ok(())
}

/// A step that was stored before is answered and writes nothing.
///
/// Proves: GLO-2, QUE-5
async fn repeated_step_writes_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let report = Progress::new(claim.fence, 1).checkpoint(json(1)).event(event(2));
    lab.progress_one(report.clone()).await?;
    lab.progress_one(Progress::new(claim.fence, 2).checkpoint(json(3))).await?;
    lab.advance(5);
    let before = lab.dump().await?;
    lab.progress_one(report).await?;
    lab.assert_unchanged(&before).await
}

/// The last checkpoint is there for the next execution, byte for byte.
///
/// Proves: PAR-3, QUE-5
async fn checkpoint_is_seen_by_the_next_execution(lab: &Lab) -> Result<()> {
    let kept = Json::parse("{ \"at\" :1.50, \"\\u0000\":\"\u{e9}\" }")?;
    let claim = lab.claimed().await?;
    assert_eq!(claim.job.checkpoint, None);
    lab.progress_one(Progress::new(claim.fence, 1).checkpoint(json(1))).await?;
    lab.progress_one(Progress::new(claim.fence, 2).checkpoint(kept.clone())).await?;
    lab.progress_one(Progress::new(claim.fence, 3)).await?;
    lab.end(claim.fence, retry(0)).await?;
    assert_eq!(lab.take_one().await?.job.checkpoint, Some(kept));
    Ok(())
}

/// The first step of a newer claim is step one.
///
/// Proves: QUE-5
async fn steps_begin_anew_with_each_claim(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.progress_one(Progress::new(claim.fence, 1).checkpoint(json(1))).await?;
    lab.end(claim.fence, retry(0)).await?;
    let next = lab.take_one().await?;
    lab.progress_one(Progress::new(next.fence, 1).checkpoint(json(2))).await?;
    assert_eq!(lab.row(claim.job.id).await?.checkpoint, Some(json(2)));
    Ok(())
}

/// A report does not renew the lease.
///
/// Proves: QUE-5, WQ-6
async fn lease_stays_as_it_is(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(20);
    lab.progress_one(Progress::new(claim.fence, 1)).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.state, row.lease_expires_at), (State::Leased, Some(claim.lease_expires_at)));
    Ok(())
}

/// Where budgets are per stage, a stage begins with its first attempt.
///
/// Proves: RT-4, WQ-14
async fn stage_budget_begins_anew(lab: &Lab) -> Result<()> {
    let id = lab.add(job_of(&Lifecycle::review()).max_attempts(3)).await?;
    let first = lab.take_one().await?;
    lab.end(first.fence, retry(0)).await?;
    let second = lab.take_one().await?;
    assert_eq!((second.job.attempt, second.job.executions), (2, 2));
    lab.progress_one(Progress::new(second.fence, 1).advance(stage("llm"))).await?;
    let row = lab.row(id).await?;
    assert_eq!((row.stage, row.attempts, row.executions), (stage("llm"), 1, 2));
    Ok(())
}

/// Where budgets are per stage, a retry resumes at the stage that failed, with its checkpoint.
///
/// Proves: RT-7
async fn retry_resumes_at_the_failed_stage(lab: &Lab) -> Result<()> {
    let id = lab.add(job_of(&Lifecycle::review())).await?;
    let claim = lab.take_one().await?;
    let report = Progress::new(claim.fence, 1).advance(stage("llm")).checkpoint(json(4));
    lab.progress_one(report).await?;
    lab.end(claim.fence, retry(0)).await?;
    assert_eq!(lab.row(id).await?.status, "retryable_failed");
    let next = lab.take_one().await?;
    assert_eq!((next.job.stage.as_str(), next.job.attempt), ("llm", 2));
    assert_eq!(next.job.checkpoint, Some(json(4)));
    Ok(())
}

/// A transcode that is tried again begins at its first stage.
///
/// Proves: RT-7
async fn transcode_begins_again_at_its_first_stage(lab: &Lab) -> Result<()> {
    let id = lab.add(job_of(&Lifecycle::transcode())).await?;
    let claim = lab.take_one().await?;
    for (step, name) in [(1, "fetching"), (2, "processing")] {
        lab.progress_one(Progress::new(claim.fence, step).advance(stage(name))).await?;
        assert_eq!(lab.row(id).await?.status, name);
    }
    lab.end(claim.fence, retry(0)).await?;
    let next = lab.take_one().await?;
    assert_eq!((next.job.stage.as_str(), next.job.attempt), ("claimed", 2));
    Ok(())
}

/// The events of a report are there once it is, numbered by their job.
///
/// Proves: TX-1, TX-3
async fn events_are_published_with_the_step(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let report = Progress::new(claim.fence, 1).event(event(1)).event(event(2));
    lab.progress_one(report).await?;
    lab.end(claim.fence, Verdict::Fail { failure: passing() }).await?;
    let ordering = Ordering::Job(claim.job.id);
    let filter = events_with(|filter| filter.ordering = Some(ordering));
    let numbers = |event: leasehold_core::EventView| (event.payload, event.sequence);
    let mut found: Vec<_> = lab.events(filter).await?.into_iter().map(numbers).collect();
    found.sort_by_key(|(_, number)| *number);
    assert_eq!(found, [(json(1), Some(1)), (json(2), Some(2))]);
    Ok(())
}

/// A checkpoint over the limit is refused and writes nothing.
///
/// Proves: PAR-4
async fn oversized_checkpoint_is_refused(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let before = lab.dump().await?;
    let report = Progress::new(claim.fence, 1).checkpoint(json_of((1 << 20) + 1)).event(event(2));
    assert_refused(lab.progress_one(report).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// One refused report leaves the others of its batch alone.
///
/// Proves: ERR-1
async fn refused_report_fails_only_itself(lab: &Lab) -> Result<()> {
    for number in 1..=3 {
        lab.add(job(number)).await?;
    }
    let held = lab.take(3).await?;
    let step = |at: usize, step| Progress::new(held[at].fence, step).checkpoint(json(5));
    let answers = lab.progress(vec![step(0, 1), step(1, 4), step(2, 1)]).await?;
    assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
    assert_eq!(lab.row(held[1].job.id).await?.checkpoint, None);
    assert_eq!(lab.row(held[2].job.id).await?.checkpoint, Some(json(5)));
    Ok(())
}
