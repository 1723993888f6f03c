//! Owns what acts of control promise: done once, unchanged the second time, kept where they touch a
//! job.

use leasehold_core::{
    Control, Controlled, ErrorKind, Lifecycle, LifecycleName, Query, QueueSettings, Result,
    StageName, State, StoreExt, Topic, Verb, Verdict, WorkerId,
};

use super::group;
use crate::lab::{Lab, actor, assert_refused, job, job_of, passing, queue, retry, seconds};

group!("control": second_time_changes_nothing, queue_settings_are_listed,
    other_definition_is_a_conflict, newest_revision_is_taken, reopened_job_runs_again,
    spent_budget_is_not_reopened, only_failed_jobs_are_reopened, reopen_is_kept_in_the_audit,
    raised_epoch_raises_every_token, worker_is_introduced_once, paused_queue_takes_jobs_in);

fn import(revision: u32, stage: &str) -> Lifecycle {
    let stages = vec![StageName::new(stage).expect("a stage")];
    let name = LifecycleName::new("import").expect("a name");
    let builder = Lifecycle::builder(name, stages).revision(revision);
    let builder = builder.from_leased(Verb::Succeed, State::Succeeded);
    builder.from_leased(Verb::Exhaust, State::DeadLetter).build().expect("a lifecycle")
}

/// An act done a second time is answered as unchanged and writes nothing.
///
/// Proves: GLO-2, QUE-1
async fn second_time_changes_nothing(lab: &Lab) -> Result<()> {
    let settings = QueueSettings::new().limit(Some(7)).log(Some(true));
    let settings = settings.keep(seconds(60), seconds(70), seconds(80));
    let acts = [
        Control::Pause(queue("a")),
        Control::Resume(queue("a")),
        Control::SetQueue(queue("b"), settings),
        Control::SetStoreLimit(Some(9)),
        Control::SetStoreLimit(None),
        Control::SetTopic { topic: Topic::new("mail")?, ordered: false },
        Control::Register(Box::new(import(3, "load"))),
        Control::Introduce { worker: WorkerId::new(), name: "node-7".to_owned() },
    ];
    for act in acts {
        assert_eq!(lab.control(act.clone()).await?, Controlled::Done, "{act:?}");
        lab.advance(1);
        let before = lab.dump().await?;
        assert_eq!(lab.control(act.clone()).await?, Controlled::Unchanged, "{act:?}");
        lab.assert_unchanged(&before).await?;
    }
    Ok(())
}

/// A queue's settings are what was set, and what was not named stays.
///
/// Proves: QUE-1, WQ-18
async fn queue_settings_are_listed(lab: &Lab) -> Result<()> {
    let lease = leasehold_core::LeaseLength::new(seconds(45))?;
    let name = queue("reports");
    let first = QueueSettings::new().limit(Some(4)).lease(lease);
    lab.control(Control::SetQueue(name.clone(), first)).await?;
    lab.control(Control::Pause(name.clone())).await?;
    lab.control(Control::SetQueue(name.clone(), QueueSettings::new().log(Some(false)))).await?;
    let page = lab.find(Query::Queues).await?;
    let found = page.items.into_iter().find_map(|found| match found {
        leasehold_core::Found::Queue(row) if row.name == name => Some(row),
        _ => None,
    });
    let row = found.expect("the queue");
    assert_eq!((row.paused, row.limit), (true, Some(4)));
    assert_eq!((row.lease, row.log), (Some(lease), Some(false)));
    Ok(())
}

/// Another definition under a registered name and revision is a conflict.
///
/// Proves: WQ-1
async fn other_definition_is_a_conflict(lab: &Lab) -> Result<()> {
    lab.control(Control::Register(Box::new(import(1, "load")))).await?;
    let before = lab.dump().await?;
    let other = Control::Register(Box::new(import(1, "fetch")));
    assert_refused(lab.control(other).await, ErrorKind::Conflict);
    lab.assert_unchanged(&before).await
}

/// New jobs take the newest revision; a job in hand keeps the one it began with.
///
/// Proves: WQ-1
async fn newest_revision_is_taken(lab: &Lab) -> Result<()> {
    let (first, second) = (import(1, "load"), import(2, "fetch"));
    lab.control(Control::Register(Box::new(first.clone()))).await?;
    let old = lab.add(job_of(&first)).await?;
    lab.control(Control::Register(Box::new(second.clone()))).await?;
    let new = lab.add(job_of(&second)).await?;
    assert_eq!(lab.row(old).await?.stage.as_str(), "load");
    assert_eq!(lab.row(new).await?.stage.as_str(), "fetch");
    for claim in lab.take(2).await? {
        assert_eq!(lab.succeed(claim.fence).await?.place.state(), State::Succeeded);
    }
    Ok(())
}

async fn failed(lab: &Lab, attempts: u16) -> Result<leasehold_core::JobId> {
    let id = lab.add(job(1).max_attempts(attempts)).await?;
    let claim = lab.take_one().await?;
    lab.end(claim.fence, Verdict::Fail { failure: passing() }).await?;
    Ok(id)
}

/// A failed job with budget left goes back to waiting, due at once, and counts on.
///
/// Proves: WQ-14
async fn reopened_job_runs_again(lab: &Lab) -> Result<()> {
    let id = failed(lab, 2).await?;
    lab.advance(40);
    assert_eq!(lab.reopen(id).await?, Controlled::Done);
    let row = lab.row(id).await?;
    assert_eq!((row.state, row.finished_at), (State::Waiting, None));
    assert_eq!(row.run_at, lab.clock().now());
    let claim = lab.take_one().await?;
    assert_eq!((claim.job.attempt, claim.fence.version().get()), (2, 2));
    Ok(())
}

/// A failed job whose budget is spent stays failed.
///
/// Proves: WQ-14
async fn spent_budget_is_not_reopened(lab: &Lab) -> Result<()> {
    let id = failed(lab, 1).await?;
    let before = lab.dump().await?;
    assert_refused(lab.reopen(id).await, ErrorKind::IllegalTransition);
    lab.assert_unchanged(&before).await
}

/// A job that has not failed cannot be reopened.
///
/// Proves: GLO-1, WQ-2
async fn only_failed_jobs_are_reopened(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1)).await?;
    assert_refused(lab.reopen(id).await, ErrorKind::IllegalTransition);
    let claim = lab.take_one().await?;
    assert_refused(lab.reopen(id).await, ErrorKind::IllegalTransition);
    lab.end(claim.fence, retry(0)).await?;
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    let before = lab.dump().await?;
    assert_refused(lab.reopen(id).await, ErrorKind::IllegalTransition);
    lab.assert_unchanged(&before).await
}

/// Who reopened what is kept.
///
/// Proves: GLO-1
async fn reopen_is_kept_in_the_audit(lab: &Lab) -> Result<()> {
    let id = failed(lab, 3).await?;
    lab.reopen(id).await?;
    let dump = lab.dump().await?;
    let [row] = dump.rows("audit") else { panic!("one entry: {dump:?}") };
    for part in ["\"retry\"", "operator-7", &id.to_string()] {
        assert!(row.contains(part), "{part} in {row}");
    }
    Ok(())
}

/// A raised epoch puts every later fencing token above every earlier one.
///
/// Proves: WQ-12
async fn raised_epoch_raises_every_token(lab: &Lab) -> Result<()> {
    let mut before = lab.claimed().await?.fence;
    for _ in 0..3 {
        lab.end(before, retry(0)).await?;
        before = lab.take_one().await?.fence;
    }
    let epoch = lab.stats().await?.epoch;
    let raised = lab.control(Control::BumpEpoch { actor: actor() }).await?;
    let Controlled::Epoch(next) = raised else { panic!("an epoch: {raised:?}") };
    assert_eq!(next.get(), epoch.get() + 1);
    let after = lab.claimed().await?.fence;
    assert_eq!((after.epoch(), lab.stats().await?.epoch), (next, next));
    assert!(after.version() < before.version());
    assert!(after.fencing_token() > before.fencing_token());
    Ok(())
}

/// A worker's name is kept from when it was first introduced, and can be corrected.
///
/// Proves: WQ-13
async fn worker_is_introduced_once(lab: &Lab) -> Result<()> {
    let worker = WorkerId::new();
    let as_name = |name: &str| Control::Introduce { worker, name: name.to_owned() };
    lab.control(as_name("node-7")).await?;
    let first = lab.dump().await?;
    lab.advance(5);
    lab.control(as_name("node-8")).await?;
    let second = lab.dump().await?;
    let expected = first.rows("workers")[0].replace("node-7", "node-8");
    assert_eq!(second.rows("workers"), [expected]);
    Ok(())
}

/// A paused queue still takes jobs in and lets running ones end.
///
/// Proves: QUE-1
async fn paused_queue_takes_jobs_in(lab: &Lab) -> Result<()> {
    let held = lab.claimed().await?;
    lab.control(Control::Pause(held.job.queue.clone())).await?;
    let waiting = lab.add(job(2)).await?;
    lab.renew_one(held.fence).await?;
    assert_eq!(lab.succeed(held.fence).await?.place.state(), State::Succeeded);
    assert!(lab.take(9).await?.is_empty());
    lab.control(Control::Resume(held.job.queue)).await?;
    assert_eq!(lab.take_one().await?.job.id, waiting);
    Ok(())
}
