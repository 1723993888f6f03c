//! Owns replays by a new job, where a lifecycle lists no way back from the dead letters: what the new job
//! takes over, who answers for the key, and how a chain of them goes on.

use leasehold_core::{
    Control, Controlled, ErrorKind, EventVerdict, Found, JobId, LetterFilter, LetterState,
    Lifecycle, NewJob, Paging, Place, Progress, Query, Result, ResumeAt, StageName, State,
    StoreExt, Verb, Verdict,
};

use super::group;
use super::replays::asked;
use crate::lab::{Lab, assert_refused, job, job_in, job_of, json, key, lasting, seconds};

group!("replays_anew": new_job_takes_the_place, key_answers_with_the_new_job,
    lapsed_key_is_not_taken_back, failed_stage_is_gone_on_from, checkpoint_goes_along, start_forgets_the_checkpoint,
    repeat_makes_no_second_job, taken_id_is_refused, end_of_the_new_job_closes_the_letter,
    transcode_closes_after_its_events, chain_goes_on_from_its_newest, log_goes_with_the_queue);

/// A failed job of `work_queue`, which is its dead letter.
async fn failed(lab: &Lab, new: NewJob) -> Result<JobId> {
    let id = lab.add(new.lifecycle(Lifecycle::work_queue().name().clone())).await?;
    fail(lab).await?;
    Ok(id)
}

async fn fail(lab: &Lab) -> Result<()> {
    let claim = lab.take_one().await?;
    lab.end(claim.fence, Verdict::Fail { failure: lasting() }).await.map(|_| ())
}

/// The new job has the old one's place and payload, names it, and begins its own count of claims; the
/// old one stays as it ended.
///
/// Proves: DL-5, WQ-17
async fn new_job_takes_the_place(lab: &Lab) -> Result<()> {
    let old = failed(lab, job_in("tenant 7", 9).priority(3).max_attempts(2)).await?;
    let before = lab.row(old).await?;
    let request = asked(old);
    let new = lab.replay(request.clone()).await?;
    assert_eq!(new, request.new_job);
    let row = lab.row(new).await?;
    assert_eq!((row.replay_of, row.state, row.attempts), (Some(old), State::Waiting, 0));
    assert_eq!((row.payload.clone(), row.max_attempts, row.priority), (json(9), 2, 3));
    assert_eq!(
        (&row.kind, &row.queue, &row.partition),
        (&before.kind, &before.queue, &before.partition)
    );
    assert_eq!(row.claim_version.get(), 0);
    assert_eq!(lab.row(old).await?, before);
    let letter = lab.letter(old).await?;
    assert_eq!((letter.state, letter.replay_job), (LetterState::Replaying, Some(new)));
    assert_eq!(lab.take_one().await?.job.id, new);
    Ok(())
}

/// From the replay on the key answers with the new job, and another request under it is a conflict.
///
/// Proves: DL-5, IDM-1
async fn key_answers_with_the_new_job(lab: &Lab) -> Result<()> {
    let work_queue = Lifecycle::work_queue().name().clone();
    let keyed = |number| job(number).key(key("order 7")).lifecycle(work_queue.clone());
    let old = failed(lab, keyed(1)).await?;
    let new = lab.replay(asked(old)).await?;
    let again = lab.enqueue_one(keyed(1)).await?;
    assert_eq!((again.job(), again.is_new(), again.state()), (new, false, Some(State::Waiting)));
    let other = lab.enqueue_one(keyed(2)).await.expect_err("another request");
    assert_eq!((other.kind(), other.existing_job()), (ErrorKind::Conflict, Some(new)));
    Ok(())
}

/// A key that has lapsed and is another job's by now stays with that one.
///
/// Proves: DL-5, IDM-6
async fn lapsed_key_is_not_taken_back(lab: &Lab) -> Result<()> {
    let old = failed(lab, job(1).key(key("order 7")).key_ttl(seconds(10))).await?;
    lab.advance(11);
    let other = lab.add(job(2).key(key("order 7"))).await?;
    lab.replay(asked(old)).await?;
    let again = lab.enqueue_one(job(2).key(key("order 7"))).await?;
    assert_eq!((again.job(), again.is_new()), (other, false));
    Ok(())
}

/// A dead transcode with a checkpoint from its second stage.
async fn dead_transcode(lab: &Lab) -> Result<JobId> {
    let id = lab.add(job_of(&Lifecycle::transcode())).await?;
    let claim = lab.take_one().await?;
    let report = Progress::new(claim.fence, 1).advance(StageName::new("fetching")?);
    lab.progress_one(report.checkpoint(json(41))).await?;
    lab.end(claim.fence, Verdict::DeadLetter { failure: lasting() }).await?;
    Ok(id)
}

/// Where retries begin at the first stage so does the replay, with the checkpoint at its first claim.
///
/// Proves: DL-3, DL-5, RT-7
async fn checkpoint_goes_along(lab: &Lab) -> Result<()> {
    let old = dead_transcode(lab).await?;
    let new = lab.replay(asked(old)).await?;
    let claim = lab.take_one().await?;
    assert_eq!((claim.job.id, claim.job.stage.as_str()), (new, "claimed"));
    assert_eq!((claim.job.checkpoint, claim.job.executions), (Some(json(41)), 1));
    Ok(())
}

/// Where retries go on at the failed stage so does the new job, unless it is asked for from the start.
///
/// Proves: DL-3, DL-5, RT-7
async fn failed_stage_is_gone_on_from(lab: &Lab) -> Result<()> {
    let stages = vec![StageName::new("load")?, StageName::new("write")?];
    let staged = Lifecycle::builder(leasehold_core::LifecycleName::new("staged")?, stages)
        .resume_at(ResumeAt::FailedStage)
        .edge(Place::Leased(1), Verb::Succeed, Place::Succeeded)
        .from_leased(Verb::DeadLetter, State::DeadLetter)
        .from_leased(Verb::Exhaust, State::DeadLetter)
        .build()?;
    lab.control(Control::Register(Box::new(staged.clone()))).await?;
    for (from_start, stage) in [(false, "write"), (true, "load")] {
        let old = lab.add(job_of(&staged)).await?;
        let claim = lab.take_one().await?;
        let report = Progress::new(claim.fence, 1).advance(StageName::new("write")?);
        lab.progress_one(report).await?;
        lab.end(claim.fence, Verdict::DeadLetter { failure: lasting() }).await?;
        let request = if from_start { asked(old).from_start() } else { asked(old) };
        let new = lab.replay(request).await?;
        let claim = lab.take_one().await?;
        assert_eq!((claim.job.id, claim.job.stage.as_str()), (new, stage));
        lab.end(claim.fence, Verdict::DeadLetter { failure: lasting() }).await?;
    }
    Ok(())
}

/// A replay from the start leaves the checkpoint with the old job.
///
/// Proves: DL-3, DL-5
async fn start_forgets_the_checkpoint(lab: &Lab) -> Result<()> {
    let old = dead_transcode(lab).await?;
    lab.replay(asked(old).from_start()).await?;
    assert_eq!(lab.take_one().await?.job.checkpoint, None);
    assert_eq!(lab.row(old).await?.checkpoint, Some(json(41)));
    Ok(())
}

/// A request sent again, or another one for the same letter, is told of the job there is.
///
/// Proves: DL-5, GLO-2
async fn repeat_makes_no_second_job(lab: &Lab) -> Result<()> {
    let old = failed(lab, job(1)).await?;
    let request = asked(old);
    let new = lab.replay(request.clone()).await?;
    let before = lab.dump().await?;
    for again in [request, asked(old)] {
        let expected = Controlled::Replayed { job: new, repeated: true };
        assert_eq!(lab.ask(again).await?, expected);
    }
    lab.assert_unchanged(&before).await
}

/// An id that another job has is a conflict, and nothing begins.
///
/// Proves: DL-5
async fn taken_id_is_refused(lab: &Lab) -> Result<()> {
    let old = failed(lab, job(1)).await?;
    let other = lab.add(job(2)).await?;
    let before = lab.dump().await?;
    for id in [old, other] {
        assert_refused(lab.ask(asked(old).new_job(id)).await, ErrorKind::Conflict);
    }
    lab.assert_unchanged(&before).await
}

/// The new job's success closes the old job's letter in the same write.
///
/// Proves: DL-3, DL-5
async fn end_of_the_new_job_closes_the_letter(lab: &Lab) -> Result<()> {
    let old = failed(lab, job(1)).await?;
    lab.replay(asked(old)).await?;
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    assert_eq!(lab.letter(old).await?.state, LetterState::Resolved);
    Ok(())
}

/// A transcode's replay makes an event a transition; the letter closes when all have gone out.
///
/// Proves: DL-3, DL-5
async fn transcode_closes_after_its_events(lab: &Lab) -> Result<()> {
    let old = dead_transcode(lab).await?;
    lab.replay(asked(old)).await?;
    let claim = lab.take_one().await?;
    for (step, stage) in (1..).zip(["fetching", "processing", "uploading"]) {
        lab.progress_one(Progress::new(claim.fence, step).advance(StageName::new(stage)?)).await?;
    }
    lab.succeed(claim.fence).await?;
    let mut sent = 0;
    while let Some(delivery) = lab.take_events(1).await?.pop() {
        assert_eq!(lab.letter(old).await?.state, LetterState::Replaying);
        lab.end_event(delivery.fence, EventVerdict::Delivered).await?;
        sent += 1;
        if lab.letter(old).await?.state == LetterState::Resolved {
            break;
        }
    }
    assert!(sent >= 5, "the replay's own transitions went out: {sent}");
    assert_eq!(lab.letter(old).await?.state, LetterState::Resolved);
    Ok(())
}

/// A replay that fails has a letter of its own, escalated in the old one's place; its replay goes on
/// from there, with the key, and the first job's letter starts nothing any more.
///
/// Proves: DL-4, DL-5, IDM-1
async fn chain_goes_on_from_its_newest(lab: &Lab) -> Result<()> {
    let work_queue = Lifecycle::work_queue().name().clone();
    let keyed = || job(1).key(key("order 7"));
    let first = failed(lab, keyed()).await?;
    let second = lab.replay(asked(first)).await?;
    fail(lab).await?;
    assert_eq!(lab.letter(first).await?.state, LetterState::Superseded);
    assert_eq!(lab.letter(second).await?.state, LetterState::Escalated);
    let expected = Controlled::Replayed { job: second, repeated: true };
    assert_eq!(lab.ask(asked(first)).await?, expected);
    let third = lab.replay(asked(second)).await?;
    assert_eq!(lab.row(third).await?.replay_of, Some(second));
    assert_eq!(lab.enqueue_one(keyed().lifecycle(work_queue)).await?.job(), third);
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    let filter = LetterFilter::new().state(LetterState::Resolved);
    let closed = lab.find(Query::Letters(filter, Paging::first(9))).await?.items;
    assert!(matches!(&closed[..], [Found::DeadLetter(letter)] if letter.job == second));
    Ok(())
}

/// The new job keeps a log of transitions where the old one did.
///
/// Proves: DL-5, GLO-1
async fn log_goes_with_the_queue(lab: &Lab) -> Result<()> {
    let old = dead_transcode(lab).await?;
    let new = lab.replay(asked(old)).await?;
    let _held = lab.take_one().await?;
    let log = lab.find(Query::Transitions(new, Paging::first(9))).await?;
    assert_eq!(log.items.len(), 1);
    Ok(())
}
