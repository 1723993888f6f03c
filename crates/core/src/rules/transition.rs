//! Owns a single move of a job: state, stage, version, times, lease, and the log entry and event
//! that go with it. Every verb that moves a job moves it here.

use serde::Serialize;

use super::Work;
use super::changes::Draft;
use crate::error::Result;
use crate::event::{EventState, NewEvent, Ordering};
use crate::failure::Failure;
use crate::id::EventId;
use crate::json::{Json, JsonLimits};
use crate::lifecycle::{Place, ResumeAt, State, Verb};
use crate::name::Actor;
use crate::row::{EventRow, JobRow, TransitionRow};
use crate::time::Timestamp;

#[derive(Serialize)]
struct Moved<'a> {
    job_id: String,
    seq: i64,
    from: &'a str,
    to: &'a str,
    stage: &'a str,
    at: String,
}

/// Why a job failed, in terms that are the same for every kind.
#[derive(Serialize)]
struct Wrong<'a> {
    code: &'a str,
    class: &'a str,
    message: &'a str,
    retryable: bool,
}

/// Adds to what is told of a job's end: its result, as the worker gave it, or why it failed.
///
/// A result that an event cannot hold is left out, and that is told.
fn with_end(told: Json, draft: &Draft, row: &JobRow, bytes_max: usize) -> Result<Json> {
    let outcome = draft.changes.outcomes.iter().find(|patch| patch.job == row.id);
    let result = || outcome.and_then(|outcome| outcome.result.as_ref());
    let failure = || outcome.and_then(|outcome| outcome.failure.as_ref());
    match row.state {
        State::Succeeded => result().map_or(Ok(told.clone()), |result| {
            let fits = told.len() + result.len() + 32 <= bytes_max;
            let whole = fits.then(|| with(&told, "result", result).ok()).flatten();
            whole.map_or_else(|| with(&told, "result_omitted", &Json::of(&true)?), Ok)
        }),
        State::Failed | State::DeadLetter => failure().map_or(Ok(told.clone()), |failure| {
            with(&told, "error", &normalized(&Failure::from_json(failure)?)?)
        }),
        _ => Ok(told),
    }
}

/// An object with one member more.
fn with(object: &Json, name: &str, value: &Json) -> Result<Json> {
    let open = object.as_str().strip_suffix('}').unwrap_or_default();
    let limits = JsonLimits { bytes_max: usize::MAX, ..JsonLimits::default() };
    Json::parse_with(format!("{open},\"{name}\":{}}}", value.as_str()), &limits)
}

fn normalized(failure: &Failure) -> Result<Json> {
    Json::of(&Wrong {
        code: failure.code_id(),
        class: failure.class().id(),
        message: failure.message(),
        retryable: failure.is_retryable(),
    })
}

impl Work {
    /// Moves a job along a listed edge, into the draft.
    pub(super) fn move_job(
        &self,
        draft: &mut Draft,
        mut row: JobRow,
        verb: Verb,
        to: Place,
        actor: Option<&Actor>,
    ) -> Result<JobRow> {
        let lifecycle = self.lifecycle(&row)?.clone();
        let from = lifecycle.public_name(row.place(), row.again).to_owned();
        let worker = row.lease.map(|lease| lease.worker);
        let stage_before = row.stage;
        row.state = to.state();
        match to {
            Place::Leased(stage) => row.stage = stage,
            Place::Waiting => {
                row.again |=
                    matches!(verb, Verb::Retry | Verb::Reclaim | Verb::Reopen | Verb::Replay);
                if lifecycle.resume_at() == ResumeAt::FirstStage {
                    row.stage = 0;
                }
            }
            _ => {}
        }
        if verb.raises_version() && verb != Verb::Claim {
            row.version = row.version.next();
        }
        if row.state != State::Leased {
            row.lease = None;
        }
        row.held &= row.state == State::Waiting;
        row.updated_at = row.updated_at.max(self.now);
        row.finished_at = row.state.is_terminal().then_some(row.updated_at);
        self.record_move(draft, &mut row, verb, (&from, stage_before), worker, actor)?;
        Ok(row)
    }

    /// Writes a move's log entry and event, where its job keeps them.
    pub(super) fn record_move(
        &self,
        draft: &mut Draft,
        row: &mut JobRow,
        verb: Verb,
        (from, stage_before): (&str, u8),
        worker: Option<crate::id::WorkerId>,
        actor: Option<&Actor>,
    ) -> Result<()> {
        let lifecycle = self.lifecycle(row)?.clone();
        if !row.log && lifecycle.events_topic().is_none() {
            return Ok(());
        }
        let to = lifecycle.public_name(row.place(), row.again).to_owned();
        row.transition_seq += 1;
        if row.log {
            draft.changes.transitions.push(TransitionRow {
                job: row.id,
                sequence: row.transition_seq,
                at: row.updated_at,
                verb,
                from: from.to_owned(),
                to: to.clone(),
                version: row.version,
                worker,
                actor: actor.cloned(),
            });
        }
        if let Some(topic) = lifecycle.events_topic() {
            let stage = match row.state {
                State::Leased => row.stage,
                _ => stage_before,
            };
            let payload = Json::of(&Moved {
                job_id: row.id.to_string(),
                seq: row.transition_seq,
                from,
                to: &to,
                stage: lifecycle.stage_name(stage).map_or("", |name| name.as_str()),
                at: row.updated_at.to_string(),
            })?;
            let payload = with_end(payload, draft, row, self.limits.payload_bytes_max)?;
            let id = EventId::from_uuid(self.ids.next());
            let event = NewEvent::new(topic.clone(), payload).id(id);
            let event = self.own_event(row, event);
            draft.changes.events_new.push(event);
        }
        Ok(())
    }

    /// The row of an event ordered by a job in hand; raises the job's event number.
    pub(super) fn own_event(&self, row: &mut JobRow, event: NewEvent) -> EventRow {
        row.event_seq += 1;
        let (job, sequence) = (row.id, row.event_seq);
        self.event_row(event, Ordering::Job(job), Some(sequence), self.now)
    }

    /// The row of a new event.
    pub(super) fn event_row(
        &self,
        event: NewEvent,
        ordering: Ordering,
        sequence: Option<i64>,
        now: Timestamp,
    ) -> EventRow {
        EventRow {
            id: event.id,
            topic: event.topic,
            ordered: ordering != Ordering::Unordered,
            ordering,
            sequence,
            payload: event.payload,
            traceparent: event.traceparent,
            state: EventState::Waiting,
            run_at: now,
            attempts: 0,
            attempts_max: u32::from(event.max_attempts.unwrap_or(self.limits.event_attempts)),
            version: crate::fence::ClaimVersion::ZERO,
            claim: None,
            last_verdict: None,
            lease: None,
            failure: None,
            created_at: now,
            updated_at: now,
            finished_at: None,
        }
    }
}
