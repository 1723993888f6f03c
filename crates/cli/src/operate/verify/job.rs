//! Owns the rules of one job: its own numbers and times, its transitions, what it waits for, its dead letter.

use std::sync::Arc;

use leasehold::{
    AuditFilter, Found, JobId, JobView, LetterFilter, Paging, Query, Result, State, Store,
    StoreExt, TransitionView, VerdictKind,
};

use super::unless;

/// Reads a job and everything of its, and tells what cannot be.
pub(super) async fn wrong(store: &Arc<dyn Store>, id: JobId, quick: bool) -> Result<Vec<String>> {
    let Some(job) = store.job(id).await? else { return Ok(Vec::new()) };
    let mut wrong = alone(&job);
    if !quick {
        wrong.extend(trail(store, &job).await?);
        wrong.extend(beside(store, &job).await?);
        // The rows belong together only if nothing happened to the job meanwhile.
        if store.job(id).await?.as_ref() != Some(&job) {
            return Ok(alone(&job));
        }
    }
    Ok(wrong)
}

/// What the row itself says.
pub(super) fn alone(job: &JobView) -> Vec<String> {
    let leased = job.state == State::Leased;
    let ended = job.state.is_terminal();
    let version = u64::try_from(job.claim_version.get()).unwrap_or(0);
    unless([
        (job.worker.is_some() == leased, "a worker holds it, or not, against its state"),
        (job.lease_expires_at.is_some() == leased, "a lease against its state"),
        (job.finished_at.is_some() == ended, "an end against its state"),
        (job.max_attempts >= 1, "a budget of no attempts"),
        (u64::from(job.executions) <= version, "begun more often than claimed"),
        (job.attempts <= job.executions, "more attempts than executions"),
        (!job.blocked || job.state == State::Waiting, "waits for others, but does not wait"),
        (job.created_at <= job.updated_at, "changed before it was made"),
        (job.started_at.is_none_or(|at| at >= job.created_at), "begun before it was made"),
        (job.finished_at.is_none_or(|at| at >= job.created_at), "ended before it was made"),
        (job.finished_at.is_none_or(|at| at <= job.updated_at), "ended after its last change"),
        (job.state != State::Succeeded || job.executions > 0, "succeeded without being begun"),
        (
            job.state != State::Waiting || job.last_verdict != Some(VerdictKind::Succeed),
            "waits, though it has succeeded",
        ),
        (
            job.state != State::Waiting
                || !job.cancel_requested && job.last_verdict != Some(VerdictKind::Cancel),
            "waits, though it was cancelled",
        ),
    ])
}

/// What its transitions say, page by page.
async fn trail(store: &Arc<dyn Store>, job: &JobView) -> Result<Vec<String>> {
    let mut after = None;
    let mut last: Option<TransitionView> = None;
    let mut wrong = Vec::new();
    loop {
        let paging = Paging { size: super::PAGE, after };
        let page = store.find(Query::Transitions(job.id, paging)).await?;
        for found in page.items {
            let Found::Transition(next) = found else { continue };
            if let Some(before) = &last {
                wrong.extend(step(before, &next));
            }
            last = Some(next);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if last.as_ref().is_some_and(|last| last.to != job.status) {
        wrong.push("is not where its last transition led".to_owned());
    }
    wrong.dedup();
    Ok(wrong)
}

/// One step of the trail.
pub(super) fn step(before: &TransitionView, next: &TransitionView) -> Vec<String> {
    unless([
        (next.sequence == before.sequence + 1, "a gap in its transitions"),
        (next.from == before.to, "a transition from where it was not"),
        (next.at >= before.at, "a transition back in time"),
        (next.claim_version >= before.claim_version, "a claim version that fell"),
    ])
}

/// Whether somebody took it back who had no right to: the audit log names each cancel and each retry, and
/// from a cancel no way leads back.
async fn revived(store: &Arc<dyn Store>, job: &JobView) -> Result<Vec<String>> {
    let (mut after, mut last) = (None, None);
    loop {
        let mut wanted = AuditFilter::new();
        wanted.target = Some(format!("job {}", job.id));
        let page = store.records().audit(wanted, Paging { size: super::PAGE, after }).await?;
        let acts = page.items.into_iter().map(|entry| entry.action);
        last = acts.filter(|act| matches!(act.as_str(), "cancel" | "retry")).last().or(last);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let last = last.as_deref();
    let failed = job.last_verdict == Some(VerdictKind::Fail);
    Ok(unless([
        (last != Some("cancel"), "waits, though it was cancelled"),
        (!failed || last == Some("retry"), "waits, though it has failed and nobody retried it"),
    ]))
}

/// What other tables say.
async fn beside(store: &Arc<dyn Store>, job: &JobView) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    if job.state == State::Waiting {
        wrong.extend(revived(store, job).await?);
        let found = store.find(Query::ParentCounts(job.id)).await?.items.pop();
        let open = match found {
            Some(Found::ParentCounts(counts)) => counts.open,
            _ => 0,
        };
        wrong.extend(unless([
            (!job.blocked || open > 0, "waits for others, of which none is left"),
            (job.blocked || open == 0, "does not wait for others that it should wait for"),
        ]));
    }
    if job.state == State::DeadLetter {
        let filter = LetterFilter::new().job(job.id);
        let found = store.find(Query::Letters(filter, Paging::first(1))).await?;
        wrong.extend(unless([(!found.items.is_empty(), "given up without a dead letter")]));
    }
    let pruned = store.find(Query::Tombstone(job.id)).await?;
    wrong.extend(unless([(pruned.items.is_empty(), "there and pruned")]));
    Ok(wrong)
}
