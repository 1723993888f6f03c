//! Owns what operators can do to a job at each place of each lifecycle: what its table lists.

use leasehold_core::{
    ClaimRequest, Controlled, ErrorKind, JobId, Lifecycle, NewJob, Place, Progress, Result,
    Settlement, State, StoreExt, Verb, Verdict, WorkerId,
};

use super::group;
use crate::lab::{Lab, assert_refused, job_of, passing, queue};

group!("operators": standard_follows_its_table, work_queue_follows_its_table,
    transcode_follows_its_table, review_follows_its_table);

/// Cancel and retry of a `standard` job at each place do what the table lists.
///
/// Proves: WQ-1, WQ-2
async fn standard_follows_its_table(lab: &Lab) -> Result<()> {
    follows_its_table(lab, &Lifecycle::standard()).await
}

/// Cancel and retry of a `work_queue` job at each place do what the table lists.
///
/// Proves: WQ-1, WQ-2, WQ-17
async fn work_queue_follows_its_table(lab: &Lab) -> Result<()> {
    follows_its_table(lab, &Lifecycle::work_queue()).await
}

/// Cancel and retry of a `transcode` job at each place do what the table lists.
///
/// Proves: WQ-1, WQ-2
async fn transcode_follows_its_table(lab: &Lab) -> Result<()> {
    follows_its_table(lab, &Lifecycle::transcode()).await
}

/// Cancel and retry of a `review` job at each place do what the table lists.
///
/// Proves: WQ-1, WQ-2
async fn review_follows_its_table(lab: &Lab) -> Result<()> {
    follows_its_table(lab, &Lifecycle::review()).await
}

async fn follows_its_table(lab: &Lab, lifecycle: &Lifecycle) -> Result<()> {
    let mut seen = 0;
    for state in State::ALL {
        let Some(id) = put(lab, lifecycle, state, "to cancel").await? else { continue };
        let place = Place::of(state, 0);
        let listed = match state {
            State::Leased => lifecycle.after(place, Verb::Cancel).map(|_| place),
            State::Cancelled => Some(place),
            _ => lifecycle.after(place, Verb::RequestCancel),
        };
        act(lab, id, listed, lab.cancel(id)).await?;
        let id = put(lab, lifecycle, state, "to retry").await?.expect("as before");
        act(lab, id, lifecycle.after(place, Verb::Reopen), lab.reopen(id)).await?;
        seen += 1;
    }
    let reached = State::ALL.iter().filter(|state| lifecycle.reaches(**state)).count();
    assert_eq!(seen, reached, "every state of {} is visited", lifecycle.name());
    Ok(())
}

/// Does an act; where it is not listed it is refused and writes nothing.
async fn act(
    lab: &Lab,
    id: JobId,
    listed: Option<Place>,
    act: impl Future<Output = Result<Controlled>>,
) -> Result<()> {
    let before = lab.dump().await?;
    let answer = act.await;
    match listed {
        Some(place) => {
            answer?;
            assert_eq!(lab.row(id).await?.state, place.state());
        }
        None => {
            assert_refused(answer, ErrorKind::IllegalTransition);
            lab.assert_unchanged(&before).await?;
        }
    }
    Ok(())
}

/// A job at a state; `None` where its lifecycle leads nobody there.
async fn put(lab: &Lab, lifecycle: &Lifecycle, state: State, what: &str) -> Result<Option<JobId>> {
    if !lifecycle.reaches(state) {
        return Ok(None);
    }
    let queue = queue(&format!("{what} {state}"));
    let new: NewJob = job_of(lifecycle).queue(queue.clone());
    let id = lab.add(new).await?;
    let failure = passing();
    let verdict = match state {
        State::Waiting => return Ok(Some(id)),
        State::Leased => None,
        State::Succeeded => Some(Verdict::Succeed { result: None }),
        State::Failed => Some(Verdict::Fail { failure }),
        State::DeadLetter => Some(Verdict::DeadLetter { failure }),
        State::Cancelled => Some(Verdict::Cancel { reason: None }),
    };
    let fence = lab.claim(ClaimRequest::new(WorkerId::new(), [queue])).await?.remove(0).fence;
    let Some(verdict) = verdict else { return Ok(Some(id)) };
    if state == State::Succeeded {
        for (step, stage) in (1..).zip(lifecycle.stages().iter().skip(1)) {
            lab.progress_one(Progress::new(fence, step).advance(stage.clone())).await?;
        }
    }
    lab.settle_one(Settlement::new(fence, verdict)).await?;
    assert_eq!(lab.row(id).await?.state, state);
    Ok(Some(id))
}
