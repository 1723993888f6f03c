//! Owns what lifecycles promise: every pair of place and verb does what the table lists, and what
//! it does not list is refused whole.

use leasehold_core::{
    Control, ErrorKind, JobId, Lifecycle, LifecycleName, LostReason, NewJob, Place, Progress,
    Result, Settled, Settlement, StageName, State, StoreExt, Verb, Verdict,
};

use super::group;
use crate::lab::{Lab, job, passing};

group!("lifecycles": standard_follows_its_table, work_queue_follows_its_table,
    transcode_follows_its_table, review_follows_its_table, stage_not_next_is_refused, early_success_is_refused_later,
    transcode_dies_by_way_of_failed, work_queue_failure_leaves_a_dead_letter,
    unknown_lifecycle_is_refused);

/// Every verdict at every stage of `standard` does what the table lists.
///
/// Proves: WQ-1, WQ-2
async fn standard_follows_its_table(lab: &Lab) -> Result<()> {
    follows_its_table(lab, &Lifecycle::standard()).await
}

/// Every verdict at every stage of `work_queue` does what the table lists.
///
/// Proves: WQ-1, WQ-2
async fn work_queue_follows_its_table(lab: &Lab) -> Result<()> {
    follows_its_table(lab, &Lifecycle::work_queue()).await
}

/// Every verdict at every stage of `transcode` does what the table lists.
///
/// Proves: WQ-1, WQ-2
async fn transcode_follows_its_table(lab: &Lab) -> Result<()> {
    follows_its_table(lab, &Lifecycle::transcode()).await
}

/// Every verdict at every stage of `review` does what the table lists.
///
/// Proves: WQ-1, WQ-2
async fn review_follows_its_table(lab: &Lab) -> Result<()> {
    follows_its_table(lab, &Lifecycle::review()).await
}

fn new(lifecycle: &Lifecycle) -> NewJob {
    job(1).lifecycle(lifecycle.name().clone())
}

async fn follows_its_table(lab: &Lab, lifecycle: &Lifecycle) -> Result<()> {
    for stage in (0..).take(lifecycle.stages().len()) {
        for (verb, verdict) in verdicts() {
            let settlement = at_stage(lab, lifecycle, stage, verdict).await?;
            let id = settlement.fence.job();
            let before = lab.dump().await?;
            let answer = lab.settle_one(settlement.clone()).await;
            match expected(lifecycle, stage, verb) {
                Some(place) => assert_eq!(answer?.place, place, "{verb} from stage {stage}"),
                None => {
                    refused(answer, verb);
                    lab.assert_unchanged(&before).await?;
                    let fail = Verdict::Fail { failure: passing() };
                    lab.settle_one(Settlement::new(settlement.fence, fail)).await?;
                }
            }
            park(lab, id).await?;
        }
    }
    Ok(())
}

fn refused(answer: Result<Settled>, verb: Verb) {
    let error = answer.expect_err("a verb that is not listed");
    assert_eq!(error.kind(), ErrorKind::IllegalTransition, "{verb}: {error}");
}

/// Where the table takes a verdict; an unrecoverable end goes on to its burial where one is listed.
fn expected(lifecycle: &Lifecycle, stage: u8, verb: Verb) -> Option<Place> {
    let to = lifecycle.after(Place::Leased(stage), verb)?;
    match (verb, to) {
        (Verb::DeadLetter, Place::Failed) => {
            Some(lifecycle.after(Place::Failed, Verb::Bury).unwrap_or(to))
        }
        _ => Some(to),
    }
}

/// Ends a job that went back to waiting, so that the next one is the only one due.
async fn park(lab: &Lab, id: JobId) -> Result<()> {
    if lab.row(id).await?.state == State::Waiting {
        lab.advance(3600);
        let claim = lab.take_one().await?;
        lab.settle_one(Settlement::new(claim.fence, Verdict::Fail { failure: passing() })).await?;
    }
    Ok(())
}

async fn at_stage(
    lab: &Lab,
    lifecycle: &Lifecycle,
    stage: u8,
    verdict: Verdict,
) -> Result<Settlement> {
    lab.add(new(lifecycle)).await?;
    let claim = lab.take_one().await?;
    for next in 1..=stage {
        let name = lifecycle.stage_name(next).expect("a stage").clone();
        lab.progress_one(Progress::new(claim.fence, u32::from(next)).advance(name)).await?;
    }
    Ok(Settlement::new(claim.fence, verdict))
}

fn verdicts() -> [(Verb, Verdict); 7] {
    let delay = std::time::Duration::from_secs(7);
    let failure = passing();
    [
        (Verb::Succeed, Verdict::Succeed { result: None }),
        (Verb::Retry, Verdict::Retry { failure: failure.clone(), delay: Some(delay) }),
        (Verb::Snooze, Verdict::Snooze { delay }),
        (Verb::Release, Verdict::Release { delay: Some(delay) }),
        (Verb::Fail, Verdict::Fail { failure: failure.clone() }),
        (Verb::DeadLetter, Verdict::DeadLetter { failure }),
        (Verb::Cancel, Verdict::Cancel { reason: None }),
    ]
}

/// An advance that skips a stage is refused and writes nothing.
///
/// Proves: WQ-2, QUE-5
async fn stage_not_next_is_refused(lab: &Lab) -> Result<()> {
    let lifecycle = Lifecycle::transcode();
    lab.add(new(&lifecycle)).await?;
    let claim = lab.take_one().await?;
    let before = lab.dump().await?;
    let skip = lifecycle.stage_name(2).expect("a stage").clone();
    let answer = lab.progress_one(Progress::new(claim.fence, 1).advance(skip)).await;
    assert_eq!(answer.expect_err("a skip").kind(), ErrorKind::IllegalTransition);
    lab.assert_unchanged(&before).await
}

/// A success that is listed from the first stage alone is refused from the second, however bare it is.
///
/// Proves: WQ-2, QUE-5
async fn early_success_is_refused_later(lab: &Lab) -> Result<()> {
    let stages = ["fetch", "load"].map(|name| StageName::new(name).expect("a stage")).to_vec();
    let name = LifecycleName::new("early").expect("a name");
    let lifecycle = Lifecycle::builder(name, stages)
        .edge(Place::Leased(0), Verb::Succeed, Place::Succeeded)
        .from_leased(Verb::Exhaust, State::DeadLetter)
        .build()?;
    lab.control(Control::Register(Box::new(lifecycle.clone()))).await?;
    let settlement = at_stage(lab, &lifecycle, 1, Verdict::Succeed { result: None }).await?;
    let before = lab.dump().await?;
    let answer = lab.settle_one(settlement).await;
    assert_eq!(answer.expect_err("not listed").kind(), ErrorKind::IllegalTransition);
    lab.assert_unchanged(&before).await
}

/// A transcode job reaches the dead letters by two logged transitions with two numbers.
///
/// Proves: WQ-16
async fn transcode_dies_by_way_of_failed(lab: &Lab) -> Result<()> {
    let verdict = Verdict::DeadLetter { failure: passing() };
    let settlement = at_stage(lab, &Lifecycle::transcode(), 0, verdict).await?;
    let logged = lab.dump().await?.rows("transitions").len();
    let settled = lab.settle_one(settlement).await?;
    assert_eq!(settled.place, Place::DeadLetter);
    let dump = lab.dump().await?;
    assert_eq!(dump.rows("transitions").len(), logged + 2);
    assert_eq!(dump.rows("dead_letters").len(), 1);
    Ok(())
}

/// A work_queue job that fails for good is failed, with a dead letter.
///
/// Proves: WQ-17
async fn work_queue_failure_leaves_a_dead_letter(lab: &Lab) -> Result<()> {
    let verdict = Verdict::Fail { failure: passing() };
    let settlement = at_stage(lab, &Lifecycle::work_queue(), 0, verdict).await?;
    let fence = settlement.fence;
    assert_eq!(lab.settle_one(settlement).await?.place, Place::Failed);
    assert_eq!(lab.dump().await?.rows("dead_letters").len(), 1);
    crate::lab::assert_lost(lab.succeed(fence).await, LostReason::Settled);
    Ok(())
}

/// A lifecycle that nobody registered is refused at the enqueue.
///
/// Proves: WQ-1
async fn unknown_lifecycle_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let name = leasehold_core::LifecycleName::new("nobody-knows").expect("a name");
    let error = lab.enqueue(vec![job(1).lifecycle(name)]).await.expect_err("not found");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    lab.assert_unchanged(&before).await
}
