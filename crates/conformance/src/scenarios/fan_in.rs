//! Owns what waiting for other jobs promises: rows, batches and small graphs, declared at the enqueue.

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{
    ErrorKind, HintKind, JobId, Lifecycle, NewJob, OnFailure, Result, Settlement, State, StoreExt,
    Verdict,
};

use super::group;
use super::savepoints::hears;
use crate::lab::{Lab, actor, assert_refused, job, job_of, key, queue, request, seconds};

group!("fan_in": chain_runs_in_its_order, callback_waits_for_the_whole_batch, diamond_joins_again,
    circle_is_refused_by_name, unknown_parent_refuses_the_whole_call,
    refused_parent_refuses_its_child, child_keeps_its_delay_and_its_priority,
    last_parents_end_wakes_the_waiting, blocked_job_can_be_cancelled, follow_on_jobs_wait_too,
    follow_on_waits_for_one_settled_beside_it, bounds_are_named,
    lifecycle_without_cancel_waits_by_run_only);

/// Enqueues a call's jobs, all of them new.
pub(super) async fn add_all(lab: &Lab, jobs: Vec<NewJob>) -> Result<Vec<JobId>> {
    let mut ids = Vec::new();
    for answer in lab.enqueue(jobs).await? {
        let answer = answer?;
        assert!(answer.is_new(), "{answer:?}");
        ids.push(answer.job());
    }
    Ok(ids)
}

/// Claims whatever is due, and ends it well; the jobs, in their order.
pub(super) async fn run_due(lab: &Lab) -> Result<Vec<JobId>> {
    let claims = lab.take(99).await?;
    for claim in &claims {
        lab.succeed(claim.fence).await?;
    }
    Ok(claims.into_iter().map(|claim| claim.job.id).collect())
}

/// A job's state, and whether others keep it from being claimed.
pub(super) async fn stands(lab: &Lab, id: JobId) -> Result<(State, bool)> {
    let row = lab.row(id).await?;
    Ok((row.state, row.blocked))
}

pub(super) const BLOCKED: (State, bool) = (State::Waiting, true);
pub(super) const FREE: (State, bool) = (State::Waiting, false);

/// Of a row each job is claimable once the one before it has succeeded, whatever their order in the
/// call and whatever their priorities.
///
/// Proves: FAN-1, FAN-2
async fn chain_runs_in_its_order(lab: &Lab) -> Result<()> {
    let row = (0..4).map(|number| job(number).priority(i16::try_from(number).expect("small")));
    let mut row = NewJob::chain(row, OnFailure::Cancel);
    let ids: Vec<JobId> = row.iter().map(|job| job.id).collect();
    row.reverse();
    add_all(lab, row).await?;
    for id in &ids {
        assert_eq!(run_due(lab).await?, [*id]);
    }
    assert!(run_due(lab).await?.is_empty());
    Ok(())
}

/// The callback of a batch runs once, after all of its members, in whatever order they end.
///
/// Proves: FAN-1, FAN-2
async fn callback_waits_for_the_whole_batch(lab: &Lab) -> Result<()> {
    let batch = NewJob::batch((0..5).map(job), job(9), OnFailure::Cancel);
    let ids = add_all(lab, batch).await?;
    let claims = lab.take(99).await?;
    assert_eq!(claims.len(), 5);
    for claim in claims.iter().rev() {
        assert_eq!(stands(lab, ids[5]).await?, BLOCKED);
        assert!(lab.take(9).await?.is_empty());
        lab.succeed(claim.fence).await?;
    }
    assert_eq!(stands(lab, ids[5]).await?, FREE);
    assert_eq!(run_due(lab).await?, [ids[5]]);
    Ok(())
}

/// Two ways that part at one job meet again at another: it runs once, after both.
///
/// Proves: FAN-1, FAN-2
async fn diamond_joins_again(lab: &Lab) -> Result<()> {
    let top = job(1);
    let sides = [2, 3].map(|number| job(number).after(top.id, OnFailure::Cancel));
    let foot = job(4).after(sides[0].id, OnFailure::Cancel).after(sides[1].id, OnFailure::Cancel);
    let [left, right] = sides;
    let ids = add_all(lab, vec![foot, right, top, left]).await?;
    assert_eq!(run_due(lab).await?, [ids[2]]);
    let both = lab.take(9).await?;
    assert_eq!(both.len(), 2);
    let settle = |claim: &leasehold_core::Claim| {
        Settlement::new(claim.fence, Verdict::Succeed { result: None })
    };
    // Both in one call.
    for answer in lab.settle(both.iter().map(settle).collect()).await? {
        answer?;
    }
    assert_eq!(run_due(lab).await?, [ids[0]]);
    Ok(())
}

/// Jobs that wait for each other are refused, named, with their whole call; others are not named.
///
/// Proves: FAN-1
async fn circle_is_refused_by_name(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let (a, b, c) = (job(1), job(2), job(3));
    let (on, own) = (a.id, job(5));
    let ids = [a.id, b.id, c.id];
    let a = a.after(c.id, OnFailure::Run);
    let c = c.after(b.id, OnFailure::Wait);
    let b = b.after(on, OnFailure::Cancel);
    let behind = job(4).after(on, OnFailure::Cancel);
    let outside = behind.id;
    let error = lab.enqueue(vec![behind, a, b, c]).await.expect_err("a circle");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(ids.iter().all(|id| text.contains(&id.to_string())), "{text}");
    assert!(!text.contains(&outside.to_string()), "{text}");
    let itself = own.id;
    assert_refused(lab.enqueue(vec![own.after(itself, OnFailure::Run)]).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// A job that nobody has heard of is named, and nothing of the call is kept.
///
/// Proves: FAN-1
async fn unknown_parent_refuses_the_whole_call(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let unknown = JobId::new();
    let jobs = vec![job(1), job(2).after(unknown, OnFailure::Run), job(3)];
    let error = lab.enqueue(jobs).await.expect_err("an unknown parent");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&unknown.to_string()), "{error}");
    lab.assert_unchanged(&before).await
}

/// A job whose parent is refused for its key is refused too, and so on down; the others are kept.
///
/// Proves: FAN-1
async fn refused_parent_refuses_its_child(lab: &Lab) -> Result<()> {
    lab.add(job(1).key(key("order-5"))).await?;
    let row = [job(2).key(key("order-5")), job(3), job(4)];
    let mut call = NewJob::chain(row, OnFailure::Run);
    call.push(job(5));
    let answers = lab.enqueue(call).await?;
    let kinds: Vec<Option<ErrorKind>> =
        answers.iter().map(|answer| answer.as_ref().err().map(|error| error.kind())).collect();
    let conflict = Some(ErrorKind::Conflict);
    assert_eq!(kinds, [conflict, conflict, conflict, None]);
    assert_eq!(lab.dump().await?.rows("jobs").len(), 2);
    Ok(())
}

/// A freed job is due at once, or when its own delay is over, and takes its place by priority.
///
/// Proves: FAN-2
async fn child_keeps_its_delay_and_its_priority(lab: &Lab) -> Result<()> {
    let parent = job(1).priority(9);
    let soon = job(2).after(parent.id, OnFailure::Cancel).priority(5);
    let late = job(3).after(parent.id, OnFailure::Cancel).delay(seconds(60));
    let ids = add_all(lab, vec![parent, soon, late, job(4).priority(7)]).await?;
    let claim = lab.take_one().await?;
    assert_eq!(claim.job.id, ids[0]);
    lab.advance(10);
    lab.succeed(claim.fence).await?;
    let now = lab.clock().now();
    assert_eq!(lab.row(ids[1]).await?.run_at, now, "not before its parent's end");
    assert_eq!(run_due(lab).await?, [ids[3], ids[1]]);
    assert_eq!(stands(lab, ids[2]).await?, FREE);
    lab.advance(50);
    assert_eq!(run_due(lab).await?, [ids[2]]);
    Ok(())
}

/// Those who wait for jobs hear of the end that frees one.
///
/// Proves: FAN-2
async fn last_parents_end_wakes_the_waiting(lab: &Lab) -> Result<()> {
    add_all(lab, NewJob::batch([job(1), job(2)], job(3), OnFailure::Cancel)).await?;
    let claims = lab.take(9).await?;
    lab.succeed(claims[0].fence).await?;
    let mut jobs = lab.hints().listen(HintKind::Jobs);
    lab.succeed(claims[1].fence).await?;
    assert!(hears(&mut jobs, seconds(20)).await, "nobody is told");
    Ok(())
}

/// A job that waits for others is called off as any waiting one; its parents' ends change nothing.
///
/// Proves: FAN-3, QUE-2
async fn blocked_job_can_be_cancelled(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::chain((0..3).map(job), OnFailure::Run)).await?;
    lab.cancel(ids[1]).await?;
    assert_eq!(stands(lab, ids[1]).await?, (State::Cancelled, false));
    // Its own child runs, as it asked for, and may run before the first of the row.
    assert_eq!(stands(lab, ids[2]).await?, FREE);
    assert_eq!(run_due(lab).await?, [ids[0], ids[2]]);
    assert_eq!(stands(lab, ids[1]).await?.0, State::Cancelled);
    assert_refused(
        lab.control(leasehold_core::Control::Retry { job: ids[1], actor: actor() }).await,
        ErrorKind::IllegalTransition,
    );
    Ok(())
}

/// Jobs that land with a settlement may wait for each other and for the job that is settled.
///
/// Proves: FAN-1, TX-1
async fn follow_on_jobs_wait_too(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let first = job(2).after(claim.job.id, OnFailure::Cancel);
    let second = job(3).after(first.id, OnFailure::Cancel);
    let ids = [first.id, second.id];
    let done = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    lab.settle_one(done.job(second).job(first)).await?;
    assert_eq!(run_due(lab).await?, [ids[0]]);
    assert_eq!(run_due(lab).await?, [ids[1]]);

    let claim = lab.claimed().await?;
    let before = lab.dump().await?;
    let done = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    let lost = job(4).after(JobId::new(), OnFailure::Run);
    assert_refused(lab.settle_one(done.clone().job(lost)).await, ErrorKind::NotFound);
    let circle = job(5);
    let id = circle.id;
    let circle = circle.after(id, OnFailure::Run);
    assert_refused(lab.settle_one(done.job(circle)).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// A follow-on job may wait for one that the same call settles after it.
///
/// Proves: FAN-1, FAN-2
async fn follow_on_waits_for_one_settled_beside_it(lab: &Lab) -> Result<()> {
    add_all(lab, vec![job(1), job(2)]).await?;
    let claims = lab.take(9).await?;
    let child = job(3).after(claims[1].job.id, OnFailure::Cancel);
    let unlucky =
        job(4).after(claims[1].job.id, OnFailure::Run).after(claims[0].job.id, OnFailure::Cancel);
    let ids = [child.id, unlucky.id];
    let end = |at: usize, verdict| Settlement::new(claims[at].fence, verdict);
    let first = end(0, Verdict::Fail { failure: crate::lab::lasting() }).job(child).job(unlucky);
    for answer in lab.settle(vec![first, end(1, Verdict::Succeed { result: None })]).await? {
        answer?;
    }
    assert_eq!(stands(lab, ids[0]).await?, FREE);
    assert_eq!(stands(lab, ids[1]).await?.0, State::Cancelled);
    Ok(())
}

/// More waits than are allowed are refused with the limit's name.
///
/// Proves: FAN-1
async fn bounds_are_named(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let waits = |job: NewJob, parents: usize| {
        (0..parents).fold(job, |job, _| {
            let mut job = job;
            job.after.extend([leasehold_core::After {
                parent: JobId::new(),
                on_failure: OnFailure::Run,
            }]);
            job
        })
    };
    let error = lab.enqueue_one(waits(job(1), 10_001)).await.expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("10000"), "{error}");
    let call = (0..6).map(|number| waits(job(number), 10_000)).collect();
    let error = lab.enqueue(call).await.expect_err("too many in a call");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("50000"), "{error}");
    lab.assert_unchanged(&before).await
}

/// Where a waiting job cannot be cancelled, none may wait in a way that could come to that.
///
/// Proves: FAN-3
async fn lifecycle_without_cancel_waits_by_run_only(lab: &Lab) -> Result<()> {
    let parent = lab.add(job(1)).await?;
    let before = lab.dump().await?;
    let child = || job_of(&Lifecycle::work_queue());
    for policy in [OnFailure::Cancel, OnFailure::Wait] {
        assert_refused(lab.enqueue_one(child().after(parent, policy)).await, ErrorKind::Invalid);
    }
    lab.assert_unchanged(&before).await?;
    let child = lab.add(child().after(parent, OnFailure::Run)).await?;
    lab.cancel(parent).await?;
    assert_eq!(run_due(lab).await?, [child]);

    // The caller's own transaction is told the same, and can go on.
    let refused = job_of(&Lifecycle::work_queue()).after(child, OnFailure::Cancel);
    let script = vec![Step::Enqueue(vec![refused]), Step::Enqueue(vec![job(2).queue(queue("b"))])];
    let replies = lab.play(script, Ending::Commit).await?;
    assert!(
        matches!(&replies[0], Reply::Enqueue(Err(error)) if error.kind() == ErrorKind::Invalid)
    );
    assert!(matches!(&replies[1], Reply::Enqueue(Ok(answers)) if answers[0].is_ok()));
    let other = request(leasehold_core::WorkerId::new());
    assert!(lab.claim(other).await?.is_empty());
    Ok(())
}
