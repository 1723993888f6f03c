//! Owns what versioned reruns promise: a subject's version runs well once, and versions only rise.

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{
    Control, ErrorKind, JobId, NewJob, PruneRequest, Result, Settlement, State, StoreExt, Verdict,
};

use super::group;
use crate::lab::{Lab, actor, assert_refused, job, json, key, lasting, seconds};

group!("reruns": succeeded_version_answers_with_its_result, higher_version_is_a_new_job,
    lower_version_conflicts, version_under_way_is_not_run_twice, failed_version_is_run_again,
    plain_enqueue_asks_for_no_rerun, pruned_run_still_counts, mark_outlasts_every_prune,
    idempotency_key_comes_first, versions_of_one_batch_see_each_other,
    rerun_without_a_subject_is_refused, follow_on_rerun_obeys_too,
    rolled_back_rerun_leaves_no_mark, repeat_of_a_rerun_is_recognised);

fn run(version: i64) -> NewJob {
    job(version).subject("change-7", version).rerun()
}

async fn succeed(lab: &Lab, result: i64) -> Result<JobId> {
    let claim = lab.take_one().await?;
    lab.end(claim.fence, Verdict::Succeed { result: Some(json(result)) }).await?;
    Ok(claim.job.id)
}

/// A version that has succeeded is not run again: its job and its result are the answer.
///
/// Proves: IDM-4
async fn succeeded_version_answers_with_its_result(lab: &Lab) -> Result<()> {
    let first = lab.add(run(3)).await?;
    succeed(lab, 30).await?;
    let before = lab.dump().await?;
    let again = lab.enqueue_one(run(3)).await?;
    assert_eq!(
        (again.is_new(), again.job(), again.state()),
        (false, first, Some(State::Succeeded))
    );
    assert_eq!(again.result(), Some(&json(30)));
    lab.assert_unchanged(&before).await
}

/// A strictly higher version is a new job, and so has dedupe keys of its own.
///
/// Proves: IDM-4
async fn higher_version_is_a_new_job(lab: &Lab) -> Result<()> {
    let first = lab.add(run(3)).await?;
    succeed(lab, 30).await?;
    let next = lab.enqueue_one(run(4)).await?;
    assert!(next.is_new() && next.job() != first && next.result().is_none());
    assert_eq!(succeed(lab, 40).await?, next.job());
    Ok(())
}

/// A lower version is a conflict that carries the newest job, however either stands.
///
/// Proves: IDM-4
async fn lower_version_conflicts(lab: &Lab) -> Result<()> {
    lab.add(run(3)).await?;
    succeed(lab, 30).await?;
    let newest = lab.add(run(5)).await?;
    let before = lab.dump().await?;
    for lower in [3, 4, 0] {
        let error = lab.enqueue_one(run(lower)).await.expect_err("a conflict");
        assert_eq!((error.kind(), error.existing_job()), (ErrorKind::Conflict, Some(newest)));
    }
    lab.assert_unchanged(&before).await?;
    let other = lab.enqueue_one(job(1).subject("change-8", 1).rerun()).await?;
    assert!(other.is_new());
    Ok(())
}

/// A version that waits or runs is answered with its job.
///
/// Proves: IDM-4
async fn version_under_way_is_not_run_twice(lab: &Lab) -> Result<()> {
    let first = lab.add(run(3)).await?;
    for state in [State::Waiting, State::Leased] {
        let again = lab.enqueue_one(run(3)).await?;
        assert_eq!((again.is_new(), again.job(), again.state()), (false, first, Some(state)));
        lab.take(1).await?;
    }
    Ok(())
}

/// A version whose job did not succeed is run again on request; afterwards the success counts.
///
/// Proves: IDM-4
async fn failed_version_is_run_again(lab: &Lab) -> Result<()> {
    let first = lab.add(run(3)).await?;
    let claim = lab.take_one().await?;
    lab.end(claim.fence, Verdict::Fail { failure: lasting() }).await?;
    let second = lab.enqueue_one(run(3)).await?;
    assert!(second.is_new() && second.job() != first);
    lab.cancel(second.job()).await?;
    let third = lab.enqueue_one(run(3)).await?;
    assert!(third.is_new());
    succeed(lab, 30).await?;
    let again = lab.enqueue_one(run(3)).await?;
    assert_eq!((again.job(), again.result()), (third.job(), Some(&json(30))));
    Ok(())
}

/// Without the explicit request a subject hinders nothing, but its versions count for reruns.
///
/// Proves: IDM-4
async fn plain_enqueue_asks_for_no_rerun(lab: &Lab) -> Result<()> {
    let plain = |version| job(version).subject("change-7", version);
    lab.add(plain(4)).await?;
    lab.add(plain(4)).await?;
    let lower = lab.enqueue_one(plain(2)).await?;
    assert!(lower.is_new());
    assert_refused(lab.enqueue_one(run(3)).await, ErrorKind::Conflict);
    assert!(!lab.enqueue_one(run(4)).await?.is_new());
    Ok(())
}

/// A pruned run answers for its version, without its result.
///
/// Proves: IDM-4, QUE-4
async fn pruned_run_still_counts(lab: &Lab) -> Result<()> {
    let first = lab.add(job(3).subject("change-7", 3)).await?;
    succeed(lab, 30).await?;
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new().older_than(seconds(1))).await?.jobs, 1);
    let again = lab.enqueue_one(run(3)).await?;
    assert_eq!(
        (again.is_new(), again.job(), again.state()),
        (false, first, Some(State::Succeeded))
    );
    assert_eq!(again.result(), None);
    assert_refused(lab.enqueue_one(run(2)).await, ErrorKind::Conflict);
    Ok(())
}

/// When even the tombstone is gone, the version of the latest rerun is still known.
///
/// Proves: IDM-4
async fn mark_outlasts_every_prune(lab: &Lab) -> Result<()> {
    let first = lab.add(run(3)).await?;
    succeed(lab, 30).await?;
    lab.advance(1);
    lab.prune(PruneRequest::new().older_than(seconds(1))).await?;
    lab.advance(7 * 24 * 3600);
    assert_eq!(lab.prune(PruneRequest::new()).await?.tombstones, 1);
    let again = lab.enqueue_one(run(3)).await?;
    assert_eq!((again.is_new(), again.job(), again.state()), (false, first, None));
    assert_refused(lab.enqueue_one(run(2)).await, ErrorKind::Conflict);
    assert!(lab.enqueue_one(run(4)).await?.is_new());
    Ok(())
}

/// A key that is taken is the answer, whatever the version.
///
/// Proves: IDM-1, IDM-4
async fn idempotency_key_comes_first(lab: &Lab) -> Result<()> {
    let keyed = |version: i64| job(1).subject("change-7", version).rerun().key(key("order-5"));
    let first = lab.add(keyed(3)).await?;
    succeed(lab, 30).await?;
    let again = lab.enqueue_one(keyed(4)).await?;
    assert_eq!((again.is_new(), again.job()), (false, first));
    Ok(())
}

/// Within one call a version sees those before it.
///
/// Proves: IDM-4
async fn versions_of_one_batch_see_each_other(lab: &Lab) -> Result<()> {
    let answers = lab.enqueue(vec![run(3), run(3), run(5), run(4)]).await?;
    let short = |at: usize| answers[at].as_ref().map(|it| it.is_new()).map_err(|e| e.kind());
    assert_eq!([short(0), short(1), short(2)], [Ok(true), Ok(false), Ok(true)]);
    assert_eq!(short(3), Err(ErrorKind::Conflict));
    assert_eq!(lab.dump().await?.rows("jobs").len(), 2);
    assert!(lab.enqueue_one(run(6)).await?.is_new());
    Ok(())
}

/// A rerun of nothing in particular is refused.
///
/// Proves: IDM-4
async fn rerun_without_a_subject_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    assert_refused(lab.enqueue_one(job(1).rerun()).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// A settlement's follow-on job obeys the same rule, and its conflict refuses the settlement.
///
/// Proves: IDM-4, TX-1
async fn follow_on_rerun_obeys_too(lab: &Lab) -> Result<()> {
    lab.add(run(5)).await?;
    let claim = lab.take_one().await?;
    let done =
        |version| Settlement::new(claim.fence, Verdict::Succeed { result: None }).job(run(version));
    let before = lab.dump().await?;
    assert_refused(lab.settle_one(done(4)).await, ErrorKind::Conflict);
    lab.assert_unchanged(&before).await?;
    lab.settle_one(done(6)).await?;
    assert_eq!(lab.take_one().await?.job.payload, json(6));
    Ok(())
}

/// A rerun that is rolled back leaves the version as it was.
///
/// Proves: IDM-4, TX-2
async fn rolled_back_rerun_leaves_no_mark(lab: &Lab) -> Result<()> {
    lab.add(run(3)).await?;
    let before = lab.dump().await?;
    lab.play(vec![Step::Enqueue(vec![run(9)])], Ending::RollBack).await?;
    lab.assert_unchanged(&before).await?;
    let script = vec![
        Step::Savepoint,
        Step::Enqueue(vec![run(9)]),
        Step::RollbackToSavepoint,
        Step::Enqueue(vec![run(4)]),
    ];
    let mut replies = lab.play(script, Ending::Commit).await?;
    let Some(Reply::Enqueue(answers)) = replies.pop() else { panic!("an enqueue answers as one") };
    assert!(answers?.remove(0)?.is_new());
    Ok(())
}

/// The very same request sent again is the same job, also when a higher version came in between.
///
/// Proves: GLO-2, IDM-4
async fn repeat_of_a_rerun_is_recognised(lab: &Lab) -> Result<()> {
    let asked = run(3);
    lab.add(asked.clone()).await?;
    lab.add(run(4)).await?;
    let again = lab.enqueue_one(asked.clone()).await?;
    assert_eq!((again.is_new(), again.job()), (false, asked.id));
    lab.control(Control::RequestCancel { job: asked.id, actor: actor(), reason: None }).await?;
    assert!(!lab.enqueue_one(asked).await?.is_new());
    Ok(())
}
