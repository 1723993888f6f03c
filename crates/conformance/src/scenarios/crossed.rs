//! Owns the table of every verb that presents a fence, and its crossing with every way to lose a
//! job's: alone and joined, to another worker's claim and to the same worker's. `tests/tidy.rs` holds [`VERBS`] and
//! [`JOINED`] against the seam and both engines, so that no verb can be added without its crossing.

use leasehold_core::lab::{Dump, Ending, Reply, Step};
use leasehold_core::{
    ClaimId, Control, Fence, JobId, Progress, PruneRequest, ReclaimRequest, Renewal, Result,
    Settlement, StoreExt, Verdict, WorkerId,
};

use super::group;
use crate::lab::{Lab, actor, event, job, json, passing, request, retry, seconds};

group!("crossed": every_job_verb_refuses_every_stale_fence);

/// What a verb presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presents {
    /// The fence of a job's claim.
    JobFence,
    /// The fence of an event's claim.
    EventFence,
    /// No fence, for this reason.
    Nothing(&'static str),
}

use Presents::{EventFence as OfEvent, JobFence as OfJob, Nothing};

/// Every verb of the seam, and what it presents.
pub const VERBS: [(&str, Presents); 14] = [
    ("enqueue", Nothing("the job is new")),
    ("claim", Nothing("it hands fences out")),
    ("renew", OfJob),
    ("progress", OfJob),
    ("settle", OfJob),
    ("reclaim", Nothing("it judges by the lease's end")),
    ("publish", Nothing("the event is new")),
    ("claim_events", Nothing("it hands fences out")),
    ("renew_events", OfEvent),
    ("settle_events", OfEvent),
    ("control", Nothing("an operator owns no claim")),
    ("find", Nothing("it reads")),
    ("look", Nothing("it reads")),
    ("prune", Nothing("it touches ended rows only")),
];

/// Every verb that joins a caller's transaction, and what it presents.
pub const JOINED: [(&str, Presents); 5] = [
    ("enqueue", Nothing("the job is new")),
    ("publish", Nothing("the event is new")),
    ("progress", OfJob),
    ("settle", OfJob),
    ("settle_one", Nothing("it is settle of one item")),
];

pub(super) fn presenting(what: Presents, verbs: &[(&'static str, Presents)]) -> Vec<&'static str> {
    verbs.iter().filter(|(_, presents)| *presents == what).map(|(name, _)| *name).collect()
}

/// How a claim is lost; the last four are fences that differ from it in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Expired,
    Reclaimed,
    TakenOver,
    TakenOverBySameWorker,
    SnoozedAndClaimedBySameWorker,
    Reopened,
    Ended,
    Cancelled,
    EpochRaised,
    Pruned,
    Gone,
    OtherJob,
    OtherVersion,
    OtherClaim,
    OtherWorker,
}

pub(super) const LOSSES: [Loss; 15] = [
    Loss::Expired,
    Loss::Reclaimed,
    Loss::TakenOver,
    Loss::TakenOverBySameWorker,
    Loss::SnoozedAndClaimedBySameWorker,
    Loss::Reopened,
    Loss::Ended,
    Loss::Cancelled,
    Loss::EpochRaised,
    Loss::Pruned,
    Loss::Gone,
    Loss::OtherJob,
    Loss::OtherVersion,
    Loss::OtherClaim,
    Loss::OtherWorker,
];

/// Claims a job and loses the claim.
async fn lose(lab: &Lab, loss: Loss) -> Result<Fence> {
    let worker = WorkerId::new();
    lab.add(job(1)).await?;
    let it = lab.take_by(worker).await?.fence;
    let fence = Fence::from_parts;
    match loss {
        Loss::Expired => lab.advance(30),
        Loss::Reclaimed => {
            lab.advance(30);
            lab.reclaim(ReclaimRequest::jobs()).await?;
        }
        Loss::TakenOver => {
            lab.advance(30);
            let _newer = lab.take_one().await?;
        }
        Loss::TakenOverBySameWorker => {
            lab.advance(30);
            let _newer = lab.take_by(worker).await?;
        }
        Loss::SnoozedAndClaimedBySameWorker => {
            lab.end(it, Verdict::Snooze { delay: seconds(0) }).await?;
            let _newer = lab.take_by(worker).await?;
        }
        Loss::Reopened => {
            lab.end(it, Verdict::Fail { failure: passing() }).await?;
            lab.reopen(it.job()).await?;
            let _newer = lab.take_by(worker).await?;
        }
        Loss::Ended => {
            lab.end(it, Verdict::Cancel { reason: None }).await?;
        }
        Loss::Cancelled => {
            lab.cancel(it.job()).await?;
            lab.advance(30);
            lab.reclaim(ReclaimRequest::jobs()).await?;
        }
        Loss::EpochRaised => {
            lab.control(Control::BumpEpoch { actor: actor() }).await?;
        }
        Loss::Pruned | Loss::Gone => {
            lab.end(it, Verdict::Cancel { reason: None }).await?;
            for _ in 0..if loss == Loss::Gone { 2 } else { 1 } {
                lab.advance(31 * 24 * 3600);
                lab.prune(PruneRequest::new()).await?;
            }
        }
        Loss::OtherJob => {
            return Ok(fence(JobId::new(), it.version(), it.claim(), it.worker(), it.epoch()));
        }
        Loss::OtherVersion => {
            return Ok(fence(it.job(), it.version().next(), it.claim(), it.worker(), it.epoch()));
        }
        Loss::OtherClaim => {
            return Ok(fence(it.job(), it.version(), ClaimId::new(), it.worker(), it.epoch()));
        }
        Loss::OtherWorker => {
            return Ok(fence(it.job(), it.version(), it.claim(), WorkerId::new(), it.epoch()));
        }
    }
    Ok(it)
}

/// Every verdict but Cancel, by which the lost claims above have ended where they have.
fn verdicts() -> [Verdict; 6] {
    let failure = passing();
    [
        Verdict::Succeed { result: Some(json(11)) },
        retry(12),
        Verdict::Snooze { delay: seconds(13) },
        Verdict::Release { delay: Some(seconds(14)) },
        Verdict::Fail { failure: failure.clone() },
        Verdict::DeadLetter { failure },
    ]
}

fn settlements(fence: Fence) -> Vec<Settlement> {
    let whole = |verdict| {
        let settlement = Settlement::new(fence, verdict).checkpoint(json(15));
        settlement.event(event(16)).job(job(17))
    };
    verdicts().into_iter().map(whole).collect()
}

fn reports(fence: Fence) -> Vec<Progress> {
    (1..=2).map(|step| Progress::new(fence, step).checkpoint(json(18)).event(event(19))).collect()
}

pub(super) fn lost<T: std::fmt::Debug>(what: &str, answer: Result<T>) {
    let error = answer.expect_err(what);
    assert!(error.is_fence_lost(), "{what}: {error}");
}

async fn refuses(lab: &Lab, verb: &str, fence: Fence, what: &str) -> Result<()> {
    match verb {
        "renew" => assert!(matches!(lab.renew_one(fence).await?, Renewal::Lost(_)), "{what}"),
        "progress" => {
            for answer in lab.progress(reports(fence)).await? {
                lost(what, answer);
            }
        }
        "settle" => {
            for answer in lab.settle(settlements(fence)).await? {
                lost(what, answer);
            }
        }
        other => panic!("{other} presents a fence and is not crossed"),
    }
    Ok(())
}

async fn refuses_joined(lab: &Lab, verb: &str, fence: Fence, what: &str) -> Result<()> {
    let step = match verb {
        "progress" => Step::Progress(reports(fence)),
        "settle" => Step::Settle(settlements(fence)),
        other => panic!("{other} presents a fence in a transaction and is not crossed"),
    };
    match lab.play(vec![step], Ending::Commit).await?.pop() {
        Some(Reply::Progress(answers)) => answers?.into_iter().for_each(|it| lost(what, it)),
        Some(Reply::Settle(answers)) => answers?.into_iter().for_each(|it| lost(what, it)),
        other => panic!("{what}: {other:?}"),
    }
    Ok(())
}

/// Each way to lose a claim, each verb that presents its fence: refused, and nothing is written.
///
/// Proves: GLO-3, PAR-1, TX-2, WQ-5, WQ-6, WQ-10, WQ-12, WQ-15
async fn every_job_verb_refuses_every_stale_fence(lab: &Lab) -> Result<()> {
    for loss in LOSSES {
        let fence = lose(lab, loss).await?;
        let before = lab.dump().await?;
        for verb in presenting(OfJob, &VERBS) {
            let what = format!("{verb} after {loss:?}");
            refuses(lab, verb, fence, &what).await?;
            unchanged(lab, &before, &what).await?;
        }
        for verb in presenting(OfJob, &JOINED) {
            let what = format!("{verb}, joined, after {loss:?}");
            refuses_joined(lab, verb, fence, &what).await?;
            unchanged(lab, &before, &what).await?;
        }
        clear(lab).await?;
    }
    Ok(())
}

pub(super) async fn unchanged(lab: &Lab, before: &Dump, what: &str) -> Result<()> {
    let changes = before.difference(&lab.dump().await?);
    assert!(changes.is_empty(), "{what} changed the store:\n{changes}");
    Ok(())
}

/// Ends whatever is left, so that the next loss begins with one job.
async fn clear(lab: &Lab) -> Result<()> {
    lab.advance(60);
    for claim in lab.claim(request(WorkerId::new()).limit(99)).await? {
        lab.succeed(claim.fence).await?;
    }
    Ok(())
}
