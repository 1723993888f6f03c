//! Owns the end of a claim: which edge a verdict takes, what becomes of attempt, failure and result,
//! and what lands together with it.

use std::time::Duration;

use super::changes::Draft;
use super::ownership::Ownership;
use super::waits::Call;
use super::{EnqueueWants, Work};
use crate::error::{Error, ErrorKind, LostReason, Result};
use crate::event::NewEvent;
use crate::failure::{Failure, FailureCode};
use crate::id::{EventId, JobId};
use crate::json::Json;
use crate::letter::LetterState;
use crate::lifecycle::{Lifecycle, Place, State, Verb};
use crate::name::Topic;
use crate::row::{DeadLetterRow, JobRow, OutcomePatch};
use crate::settle::{Settled, Settlement, Verdict};
use crate::time::Timestamp;

/// What reports and settlements have to be told of, and which rows they lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettleWants {
    /// Jobs to lock, in order, each once.
    pub jobs: Vec<JobId>,
    /// What follow-on jobs need.
    pub enqueue: EnqueueWants,
    /// Event ids that may exist, in order, each once.
    pub events: Vec<EventId>,
}

impl SettleWants {
    /// What some settlements need.
    pub fn of(settlements: &[Settlement]) -> Self {
        let mut it = Self {
            enqueue: EnqueueWants::of(settlements.iter().flat_map(|s| &s.jobs)),
            ..Self::default()
        };
        for settlement in settlements {
            it.add(settlement.fence.job(), &settlement.events);
        }
        it.sorted()
    }

    pub(super) fn add(&mut self, job: JobId, events: &[NewEvent]) {
        self.jobs.push(job);
        for event in events {
            self.events.push(event.id);
            if let Some(crate::event::Ordering::Job(other)) = event.ordering {
                self.jobs.push(other);
            }
        }
    }

    pub(super) fn sorted(mut self) -> Self {
        self.jobs.sort_unstable();
        self.jobs.dedup();
        self.events.sort_unstable();
        self.events.dedup();
        self
    }
}

impl Work {
    /// Settles one claim; `Err` is that item's answer and leaves nothing.
    ///
    /// # Errors
    /// `FenceLost`, `IllegalTransition`, `Invalid`, `Conflict`, `NotFound` (an ordering job).
    pub fn settle(&mut self, settlement: &Settlement) -> Result<Settled> {
        let fence = &settlement.fence;
        let subject = || format!("job {}", fence.job());
        let row = match self.ownership("settle", fence)? {
            Ownership::Owned(row) => row,
            Ownership::Ended(kind, row) if kind == settlement.verdict.kind() => {
                let place = match row {
                    Some(row) => row.place(),
                    None => Place::of(self.tombstone_state(fence).unwrap_or(State::Succeeded), 0),
                };
                return Ok(Settled { place, repeated: true });
            }
            Ownership::Ended(..) => {
                return Err(Error::lost("settle", subject(), LostReason::Settled));
            }
        };
        let draft = self.draft_settlement(row, settlement).map_err(|e| match e.kind() {
            ErrorKind::IllegalTransition => e.about(subject()),
            _ => e,
        })?;
        let place = draft.row(fence.job()).map_or(Place::Waiting, JobRow::place);
        self.merge(draft);
        Ok(Settled { place, repeated: false })
    }

    fn draft_settlement(&self, row: JobRow, settlement: &Settlement) -> Result<Draft> {
        let mut draft = Draft::default();
        let id = row.id;
        for job in &settlement.jobs {
            self.check_new_job_in("settle", job)?;
        }
        let order = self.check_waits(&settlement.jobs).map_err(|e| e.during("settle"))?;
        self.check_json("settle", id, settlement.checkpoint.as_ref())?;
        draft.put(row);
        self.draft_events("settle", &mut draft, Some(id), &settlement.events)?;
        self.draft_verdict(&mut draft, id, &settlement.verdict)?;
        let mut call = Call::new();
        for job in order.into_iter().filter_map(|at| settlement.jobs.get(at)) {
            let (stands_for, ..) = self
                .draft_job(&mut draft, job, job.request_hash(), &call)
                .map_err(|e| e.during("settle"))?;
            call.entry(job.id).or_insert(Some(stands_for));
        }
        if let Some(checkpoint) = &settlement.checkpoint {
            patch(&mut draft, id, |patch| patch.checkpoint = Some(checkpoint.clone()));
        }
        if let Some(row) = draft.rows.iter_mut().find(|row| row.id == id) {
            row.last_verdict = Some(settlement.verdict.kind());
        }
        Ok(draft)
    }

    fn check_new_job_in(&self, operation: &'static str, job: &crate::job::NewJob) -> Result<()> {
        self.check_new_jobs(std::slice::from_ref(job)).map_err(|e| e.during(operation))
    }

    pub(super) fn check_json(
        &self,
        operation: &'static str,
        job: JobId,
        json: Option<&Json>,
    ) -> Result<()> {
        let max = self.limits.payload_bytes_max;
        match json {
            Some(json) if json.len() > max => {
                let why =
                    format!("a checkpoint of {} bytes, at most {max} are allowed", json.len());
                Err(Error::invalid(operation, why).about(format!("job {job}")))
            }
            _ => Ok(()),
        }
    }

    fn draft_verdict(&self, draft: &mut Draft, id: JobId, verdict: &Verdict) -> Result<()> {
        let Some(mut row) = draft.row(id).cloned() else { return Ok(()) };
        let lifecycle = self.lifecycle(&row)?.clone();
        let cancels = row.cancel_requested
            && lifecycle.after(row.place(), Verb::Cancel).is_some()
            && matches!(
                verdict,
                Verdict::Retry { .. }
                    | Verdict::Rest { .. }
                    | Verdict::Snooze { .. }
                    | Verdict::Release { .. }
            );
        if cancels {
            if let Some(failure) = verdict.failure() {
                self.note_failure(draft, id, failure);
            }
            return self.take_edge(draft, row, Verb::Cancel);
        }
        match verdict {
            Verdict::Succeed { result } => match result {
                Some(result) if result.len() > self.limits.payload_bytes_max => {
                    let failure = Failure::new(
                        FailureCode::ResultInvalid,
                        format!("the result has {} bytes, over the limit", result.len()),
                    );
                    self.end_badly(draft, row, &lifecycle, Verb::Exhaust, &failure)
                }
                _ => {
                    if result.is_some() {
                        patch(draft, id, |patch| patch.result.clone_from(result));
                    }
                    self.take_edge(draft, row, Verb::Succeed)
                }
            },
            Verdict::Retry { failure, delay } => {
                if failure.is_retryable() && row.attempts < row.attempts_max {
                    self.note_failure(draft, id, failure);
                    self.put_off(&mut row, *delay);
                    return self.take_edge(draft, row, Verb::Retry);
                }
                self.end_badly(draft, row, &lifecycle, Verb::Exhaust, failure)
            }
            Verdict::Rest { failure } => {
                self.note_failure(draft, id, failure);
                put_to_rest(&mut row);
                self.take_edge(draft, row, Verb::Retry)
            }
            Verdict::Snooze { delay } => {
                refund(&mut row);
                self.put_off(&mut row, Some(*delay));
                self.take_edge(draft, row, Verb::Snooze)
            }
            Verdict::Release { delay } => {
                refund(&mut row);
                self.put_off(&mut row, *delay);
                self.take_edge(draft, row, Verb::Release)
            }
            Verdict::Fail { failure } => {
                self.end_badly(draft, row, &lifecycle, Verb::Fail, failure)
            }
            Verdict::DeadLetter { failure } => {
                self.end_badly(draft, row, &lifecycle, Verb::DeadLetter, failure)
            }
            Verdict::Cancel { reason } => {
                if let Some(reason) = reason {
                    let failure = Failure::new(FailureCode::Cancelled, reason.clone());
                    patch(draft, id, |patch| patch.failure = Some(failure.to_json()));
                }
                self.take_edge(draft, row, Verb::Cancel)
            }
        }
    }

    fn put_off(&self, row: &mut JobRow, delay: Option<Duration>) {
        // Without a delay the job keeps its place in the order; it was due already.
        if let Some(delay) = delay {
            row.run_at = self.now.plus(delay);
        }
    }

    pub(super) fn take_edge(&self, draft: &mut Draft, row: JobRow, verb: Verb) -> Result<()> {
        let to = self.lifecycle(&row)?.take("settle", row.place(), verb)?;
        let row = self.move_job(draft, row, verb, to, None)?;
        draft.put(row);
        Ok(())
    }

    /// Ends a job by a failure: along the verb's edge, on to the dead letters where the lifecycle
    /// buries what it cannot retry, with a dead letter and an alert where they are due.
    pub(super) fn end_badly(
        &self,
        draft: &mut Draft,
        row: JobRow,
        lifecycle: &Lifecycle,
        verb: Verb,
        failure: &Failure,
    ) -> Result<()> {
        let to = lifecycle.take("settle", row.place(), verb)?;
        let (stage, attempts) = (row.stage, row.attempts);
        self.note_failure(draft, row.id, failure);
        let mut row = self.move_job(draft, row, verb, to, None)?;
        let spent = verb != Verb::Fail || row.attempts >= row.attempts_max;
        if let (true, State::Failed, Some(to)) =
            (spent, row.state, lifecycle.after(Place::Failed, Verb::Bury))
        {
            row = self.move_job(draft, row, Verb::Bury, to, None)?;
        }
        let buried = row.state == State::DeadLetter
            || (row.state == State::Failed && !lifecycle.reaches(State::DeadLetter));
        if buried {
            let name = lifecycle.stage_name(stage).cloned();
            draft.changes.dead_letters.push(DeadLetterRow {
                job: row.id,
                version: row.version,
                queue: row.queue.clone(),
                kind: row.kind.clone(),
                stage: name.unwrap_or_else(|| crate::name::StageName::literal("unknown")),
                error_class: failure.code_id().to_owned(),
                failure: failure.to_json(),
                attempts,
                last_failure_at: self.now,
                state: LetterState::Open,
                replay_job: None,
                changed_at: None,
                changed_by: None,
                note: None,
            });
        }
        if failure.raises_alert() {
            self.draft_alert(draft, &mut row, failure)?;
        }
        draft.put(row);
        Ok(())
    }

    pub(super) fn note_failure(&self, draft: &mut Draft, id: JobId, failure: &Failure) {
        patch(draft, id, |patch| {
            patch.failure = Some(failure.to_json());
            patch.failed_at = Some(self.now);
        });
    }

    /// A bug or a bad configuration calls a person: an event on the topic `leasehold.alerts`.
    fn draft_alert(&self, draft: &mut Draft, row: &mut JobRow, failure: &Failure) -> Result<()> {
        let payload = Json::of(&serde_json::json!({
            "job_id": row.id.to_string(),
            "kind": row.kind.as_str(),
            "queue": row.queue.as_str(),
            "error_class": failure.code_id(),
        }))?;
        let id = EventId::from_uuid(self.ids.next());
        let event = NewEvent::new(alert_topic(), payload).id(id);
        let event = self.event_row(event, crate::event::Ordering::Unordered, None, self.now);
        draft.changes.events_new.push(event);
        Ok(())
    }
}

/// Where what a person must hear of is published.
pub(super) fn alert_topic() -> Topic {
    Topic::literal("leasehold.alerts")
}

/// Only a wake can have set a time behind the claim's own; else nobody claims the job.
fn put_to_rest(row: &mut JobRow) {
    refund(row);
    if row.started_at.is_none_or(|started| row.run_at <= started) {
        row.run_at = Timestamp::MAX;
    }
}

fn refund(row: &mut JobRow) {
    row.attempts = row.attempts.saturating_sub(1);
    row.executions = row.executions.saturating_sub(1);
}

/// Changes the draft's outcome patch of a job.
pub(super) fn patch(draft: &mut Draft, job: JobId, change: impl FnOnce(&mut OutcomePatch)) {
    let outcomes = &mut draft.changes.outcomes;
    if let Some(old) = outcomes.iter_mut().find(|patch| patch.job == job) {
        return change(old);
    }
    let mut fresh =
        OutcomePatch { job, checkpoint: None, result: None, failure: None, failed_at: None };
    change(&mut fresh);
    outcomes.push(fresh);
}
