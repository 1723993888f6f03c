//! Owns what lands with a verdict, and what a verdict does to attempt, version, result and failure.

use leasehold_core::{
    ErrorKind, EventView, JobId, LostReason, Ordering, Result, Settlement, State, StoreExt, Topic,
    Verdict,
};

use super::group;
use crate::lab::{
    Lab, assert_lost, assert_refused, bug, event, events_with, job, json, json_of, key, lasting,
    passing, retry, seconds,
};

group!("landing": follow_on_conflict_refuses_the_whole_settlement,
    known_follow_on_is_no_second_job, unknown_ordering_job_leaves_nothing,
    oversized_result_becomes_a_failure, lasting_failure_is_dead_at_once, bug_raises_an_alert,
    release_raises_the_version, snooze_keeps_the_version, retry_waits_its_delay,
    retry_without_a_delay_keeps_its_place, bad_item_fails_only_itself,
    twice_in_one_batch_is_a_repeat, result_and_checkpoint_are_kept, dead_letter_tells_what_failed,
    plain_failure_is_no_dead_letter, own_events_are_numbered);

fn done(claim: &leasehold_core::Claim) -> Settlement {
    Settlement::new(claim.fence, Verdict::Succeed { result: Some(json(9)) })
}

/// A follow-on job whose key another request holds refuses the settlement and leaves nothing of it.
///
/// Proves: IDM-1, TX-1
async fn follow_on_conflict_refuses_the_whole_settlement(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let holder = lab.add(job(2).key(key("report-7"))).await?;
    let before = lab.dump().await?;
    let settlement = done(&claim).event(event(3)).job(job(4)).job(job(5).key(key("report-7")));
    let error = lab.settle_one(settlement.checkpoint(json(6))).await.expect_err("a conflict");
    assert_eq!((error.kind(), error.existing_job()), (ErrorKind::Conflict, Some(holder)));
    lab.assert_unchanged(&before).await?;
    lab.succeed(claim.fence).await?;
    Ok(())
}

/// A follow-on job that exists already does not become a second job.
///
/// Proves: GLO-2, IDM-1
async fn known_follow_on_is_no_second_job(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let known = job(2).key(key("report-7"));
    lab.add(known.clone()).await?;
    let settlement = done(&claim).job(known).job(job(2).key(key("report-7")));
    lab.settle_one(settlement).await?;
    assert_eq!(lab.dump().await?.rows("jobs").len(), 2);
    Ok(())
}

/// An event ordered by a job that does not exist refuses the settlement and leaves nothing of it.
///
/// Proves: TX-1, TX-3
async fn unknown_ordering_job_leaves_nothing(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let before = lab.dump().await?;
    let lost = event(3).ordering(Ordering::Job(JobId::new()));
    let answer = lab.settle_one(done(&claim).event(event(2)).event(lost).job(job(4))).await;
    assert_refused(answer, ErrorKind::NotFound);
    lab.assert_unchanged(&before).await
}

/// A result over the limit ends the job as a failure: a job can always settle.
///
/// Proves: PAR-3
async fn oversized_result_becomes_a_failure(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let verdict = Verdict::Succeed { result: Some(json_of((1 << 20) + 1)) };
    let settlement = Settlement::new(claim.fence, verdict);
    let settled = lab.settle_one(settlement.clone()).await?;
    assert_eq!(settled.place.state(), State::DeadLetter);
    let row = lab.row(claim.job.id).await?;
    let failure = row.failure.expect("a failure");
    assert!(failure.as_str().contains("RESULT_INVALID"), "{failure:?}");
    assert_eq!(row.result, None);
    assert!(lab.settle_one(settlement).await?.repeated);
    Ok(())
}

/// A failure that will fail again is not tried again.
///
/// Proves: RT-1, RT-5
async fn lasting_failure_is_dead_at_once(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let verdict = Verdict::Retry { failure: lasting(), delay: Some(seconds(5)) };
    let settled = lab.end(claim.fence, verdict).await?;
    assert_eq!(settled.place.state(), State::DeadLetter);
    assert_eq!(lab.row(claim.job.id).await?.attempts, 1);
    Ok(())
}

async fn alerts(lab: &Lab) -> Result<Vec<EventView>> {
    let topic = Topic::new("leasehold.alerts")?;
    lab.events(events_with(|filter| filter.topic = Some(topic))).await
}

/// A bug calls a person: one alert event, which names the job and the failure.
///
/// Proves: RT-1
async fn bug_raises_an_alert(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.end(claim.fence, Verdict::Fail { failure: lasting() }).await?;
    assert!(alerts(lab).await?.is_empty());
    let claim = lab.claimed().await?;
    lab.end(claim.fence, Verdict::DeadLetter { failure: bug() }).await?;
    let found = alerts(lab).await?;
    assert_eq!(found.len(), 1);
    let text = found[0].payload.as_str();
    assert!(
        text.contains(&claim.job.id.to_string()) && text.contains("INVARIANT_BROKEN"),
        "{text}"
    );
    Ok(())
}

/// A release gives the attempt back and raises the version.
///
/// Proves: WQ-8, WQ-19, WQ-20
async fn release_raises_the_version(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.end(claim.fence, Verdict::Release { delay: None }).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.attempts, row.executions, row.claim_version.get()), (0, 0, 2));
    assert_eq!((row.worker, row.lease_expires_at), (None, None));
    assert_eq!(lab.take_one().await?.fence.version().get(), 3);
    Ok(())
}

/// A snooze keeps the version: only the next claim raises it.
///
/// Proves: WQ-8, WQ-10
async fn snooze_keeps_the_version(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.end(claim.fence, Verdict::Snooze { delay: seconds(5) }).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.state, row.claim_version), (State::Waiting, claim.fence.version()));
    assert!(lab.take(1).await?.is_empty());
    lab.advance(5);
    assert_eq!(lab.take_one().await?.fence.version(), claim.fence.version().next());
    Ok(())
}

/// A retry waits exactly as long as it was told.
///
/// Proves: RT-2, WQ-10
async fn retry_waits_its_delay(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(3);
    lab.end(claim.fence, retry(7)).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.run_at, row.attempts), (lab.clock().now().plus(seconds(7)), 1));
    lab.advance(6);
    assert!(lab.take(1).await?.is_empty());
    lab.advance(1);
    assert_eq!(lab.take_one().await?.job.attempt, 2);
    Ok(())
}

/// A retry without a delay keeps its place before later jobs.
///
/// Proves: WQ-3, WQ-10
async fn retry_without_a_delay_keeps_its_place(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(2);
    lab.add(job(2)).await?;
    lab.end(claim.fence, Verdict::Retry { failure: passing(), delay: None }).await?;
    assert_eq!(lab.take_one().await?.job.id, claim.job.id);
    Ok(())
}

/// One refused settlement leaves the others of its batch alone.
///
/// Proves: ERR-1, WQ-10
async fn bad_item_fails_only_itself(lab: &Lab) -> Result<()> {
    let stale = lab.claimed().await?;
    lab.end(stale.fence, retry(60)).await?;
    for number in 2..=3 {
        lab.add(job(number)).await?;
    }
    let held = lab.take(2).await?;
    let late = done(&stale).event(event(4)).job(job(5));
    let batch = vec![done(&held[0]).event(event(6)), late, done(&held[1]).job(job(7))];
    let mut answers = lab.settle(batch).await?.into_iter();
    assert!(answers.next().is_some_and(|answer| answer.is_ok()));
    assert_lost(answers.next().expect("an answer"), LostReason::Settled);
    assert!(answers.next().is_some_and(|answer| answer.is_ok()));
    let dump = lab.dump().await?;
    assert_eq!((dump.rows("jobs").len(), dump.rows("events").len()), (4, 1));
    Ok(())
}

/// The same settlement twice in one batch is one settlement and its repeat.
///
/// Proves: GLO-2, WQ-10
async fn twice_in_one_batch_is_a_repeat(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let once = done(&claim).event(event(1)).job(job(2));
    let other = Settlement::new(claim.fence, retry(3));
    let mut answers = lab.settle(vec![once.clone(), once, other]).await?.into_iter();
    let mut next = || answers.next().expect("an answer");
    assert_eq!((next()?.repeated, next()?.repeated), (false, true));
    assert_lost(next(), LostReason::Settled);
    let dump = lab.dump().await?;
    assert_eq!((dump.rows("jobs").len(), dump.rows("events").len()), (2, 1));
    Ok(())
}

/// Result and checkpoint are kept byte for byte.
///
/// Proves: PAR-3
async fn result_and_checkpoint_are_kept(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let result = leasehold_core::Json::parse("{ \"b\":1e2 , \"a\": \"\\u0000\" }")?;
    let verdict = Verdict::Succeed { result: Some(result.clone()) };
    lab.settle_one(Settlement::new(claim.fence, verdict).checkpoint(json(5))).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.result, row.checkpoint, row.failure), (Some(result), Some(json(5)), None));
    Ok(())
}

/// A dead letter tells what failed, where, how often, and when first and last.
///
/// Proves: DL-1
async fn dead_letter_tells_what_failed(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let first = lab.clock().now();
    lab.end(claim.fence, retry(0)).await?;
    lab.advance(11);
    let last = lab.take_one().await?;
    lab.end(last.fence, Verdict::DeadLetter { failure: lasting() }).await?;
    let [letter] = &lab.letters().await?[..] else { panic!("one letter") };
    assert_eq!((letter.job, letter.claim_version), (claim.job.id, last.fence.version()));
    assert_eq!((letter.error_class.as_str(), letter.stage.as_str()), ("SCHEMA_INVALID", "running"));
    assert_eq!((letter.attempts, &letter.kind), (2, &claim.job.kind));
    assert_eq!((letter.first_failure_at, letter.last_failure_at), (first, lab.clock().now()));
    Ok(())
}

/// A job that fails for good in `standard` is failed, without a dead letter.
///
/// Proves: WQ-10
async fn plain_failure_is_no_dead_letter(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let settled = lab.end(claim.fence, Verdict::Fail { failure: lasting() }).await?;
    assert_eq!(settled.place.state(), State::Failed);
    assert!(lab.letters().await?.is_empty());
    Ok(())
}

/// Events without an ordering belong to their job and are numbered by it, over its executions.
///
/// Proves: TX-3
async fn own_events_are_numbered(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let again = Settlement::new(claim.fence, retry(0)).event(event(1)).event(event(2));
    lab.settle_one(again).await?;
    let next = lab.take_one().await?;
    lab.settle_one(done(&next).event(event(3))).await?;
    let ordering = Ordering::Job(claim.job.id);
    let mut found = lab.events(events_with(|filter| filter.ordering = Some(ordering))).await?;
    found.sort_by_key(|event| event.sequence);
    let found: Vec<_> = found.into_iter().map(|it| (it.sequence, it.payload)).collect();
    assert_eq!(found, [(Some(1), json(1)), (Some(2), json(2)), (Some(3), json(3))]);
    Ok(())
}
