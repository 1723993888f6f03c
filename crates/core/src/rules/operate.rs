//! Owns operator acts on one job or event: cancel, retry, replay; each leaves an audit entry.

use super::Work;
use super::changes::Draft;
use crate::control::{Controlled, QueueSettings};
use crate::error::{Error, ErrorKind, Result};
use crate::event::EventState;
use crate::fence::Epoch;
use crate::id::{EventId, JobId};
use crate::lifecycle::{Place, State, Verb};
use crate::name::Actor;
use crate::row::{AuditRow, JobRow, QueueRow};

impl Work {
    pub(super) fn owned_row(&self, operation: &'static str, id: JobId) -> Result<JobRow> {
        let none = || {
            let why = "there is no such job";
            Error::new(ErrorKind::NotFound, operation, why).about(format!("job {id}"))
        };
        self.jobs.get(&id).cloned().ok_or_else(none)
    }

    /// Calls a loaded job off.
    ///
    /// # Errors
    /// `NotFound`; `IllegalTransition` where its lifecycle lists no cancel, or it has ended.
    pub fn request_cancel(
        &mut self,
        id: JobId,
        actor: &Actor,
        reason: Option<&str>,
    ) -> Result<Controlled> {
        let mut row = self.owned_row("cancel", id)?;
        if row.state == State::Cancelled || (row.state == State::Leased && row.cancel_requested) {
            return Ok(Controlled::Unchanged);
        }
        let mut draft = Draft::default();
        let lifecycle = self.lifecycle(&row)?.clone();
        let about = |e: Error| e.about(format!("job {id}"));
        let done = if row.state == State::Leased {
            lifecycle.take("cancel", row.place(), Verb::Cancel).map_err(about)?;
            row.cancel_requested = true;
            row.updated_at = row.updated_at.max(self.now);
            draft.put(row);
            Controlled::CancelRequested
        } else {
            let to = lifecycle.take("cancel", row.place(), Verb::RequestCancel).map_err(about)?;
            let row = self.move_job(&mut draft, row, Verb::RequestCancel, to, Some(actor))?;
            draft.put(row);
            Controlled::Cancelled
        };
        self.draft_audit(&mut draft, actor, "cancel", format!("job {id}"), reason);
        self.merge(draft);
        Ok(done)
    }

    /// Takes a loaded failed job back to waiting.
    ///
    /// # Errors
    /// `NotFound`; `IllegalTransition` where its lifecycle lists no such edge or the budget is gone.
    pub fn reopen(&mut self, id: JobId, actor: &Actor) -> Result<Controlled> {
        let mut row = self.owned_row("retry", id)?;
        let about = |e: Error| e.about(format!("job {id}"));
        let to = self.lifecycle(&row)?.take("retry", row.place(), Verb::Reopen).map_err(about)?;
        if row.attempts >= row.attempts_max {
            let why = format!("the budget of {} attempts is spent", row.attempts_max);
            return Err(about(Error::new(ErrorKind::IllegalTransition, "retry", why)));
        }
        let mut draft = Draft::default();
        row.run_at = self.now;
        row.cancel_requested = false;
        let row = self.move_job(&mut draft, row, Verb::Reopen, to, Some(actor))?;
        debug_assert_eq!(row.place(), Place::Waiting);
        draft.put(row);
        self.draft_audit(&mut draft, actor, "retry", format!("job {id}"), None);
        self.merge(draft);
        Ok(Controlled::Done)
    }

    /// Makes a loaded waiting job due now; of a leased one it notes that it must not rest.
    ///
    /// # Errors
    /// `NotFound`; `IllegalTransition` when it has ended, or waits for other jobs.
    pub fn wake(&mut self, id: JobId, actor: &Actor) -> Result<Controlled> {
        let mut row = self.owned_row("wake", id)?;
        let refuse = |why: &str| {
            let error = Error::new(ErrorKind::IllegalTransition, "wake", why);
            Err(error.about(format!("job {id}")))
        };
        let woken = match (row.state, row.started_at) {
            (State::Waiting, _) if row.held => return refuse("it waits for other jobs"),
            (State::Waiting, _) if row.run_at <= self.now => return Ok(Controlled::Unchanged),
            (State::Waiting, _) => self.now,
            (State::Leased, Some(started)) if row.run_at > started => {
                return Ok(Controlled::Unchanged);
            }
            // Behind the claim's own time, also within its microsecond.
            (State::Leased, Some(started)) => {
                self.now.max(started.plus(std::time::Duration::from_micros(1)))
            }
            (State::Leased, None) => return refuse("it is leased, and nobody knows since when"),
            _ => return refuse("it has ended"),
        };
        let mut draft = Draft::default();
        row.run_at = woken;
        row.updated_at = row.updated_at.max(self.now);
        draft.put(row);
        self.draft_audit(&mut draft, actor, "wake", format!("job {id}"), None);
        self.merge(draft);
        Ok(Controlled::Done)
    }

    /// Sends a loaded dead-lettered event again.
    ///
    /// # Errors
    /// `NotFound`; `IllegalTransition` when it is not dead-lettered.
    pub fn replay_event(&mut self, id: EventId, actor: &Actor) -> Result<Controlled> {
        let fail =
            |kind, why: String| Err(Error::new(kind, "replay", why).about(format!("event {id}")));
        let Some(mut row) = self.events.get(&id).cloned() else {
            return fail(ErrorKind::NotFound, "there is no such event".to_owned());
        };
        if row.state != EventState::DeadLetter {
            let why = format!("it is {}, only dead letters are replayed", row.state.as_str());
            return fail(ErrorKind::IllegalTransition, why);
        }
        self.end_event(&mut row, EventState::Waiting);
        row.attempts = 0;
        row.run_at = self.now;
        let mut draft = Draft { event_rows: vec![row], ..Draft::default() };
        self.draft_audit(&mut draft, actor, "replay", format!("event {id}"), None);
        self.merge(draft);
        Ok(Controlled::Done)
    }

    /// The next epoch, kept as an operator act.
    ///
    /// # Errors
    /// `Invalid` when the epochs are used up.
    pub fn bump_epoch(&mut self, actor: &Actor) -> Result<Epoch> {
        let next =
            Epoch::new(i64::from(self.epoch.get()) + 1).map_err(|e| e.during("bump epoch"))?;
        self.audit(actor, "bump_epoch", "store".to_owned(), Some(&next.get().to_string()));
        Ok(next)
    }

    /// Keeps a clock reset as an operator act.
    pub fn note_clock_reset(&mut self, actor: &Actor) {
        self.audit(actor, "reset_clock", "store".to_owned(), None);
    }

    /// Keeps an operator act that changes no job or event row.
    pub fn audit(&mut self, actor: &Actor, action: &str, target: String, detail: Option<&str>) {
        let mut draft = Draft::default();
        self.draft_audit(&mut draft, actor, action, target, detail);
        self.merge(draft);
    }

    pub(super) fn draft_audit(
        &self,
        draft: &mut Draft,
        actor: &Actor,
        action: &str,
        target: String,
        detail: Option<&str>,
    ) {
        draft.changes.audit.push(AuditRow {
            id: self.ids.next(),
            at: self.now,
            actor: actor.clone(),
            action: action.to_owned(),
            target,
            detail: detail
                .map(|text| crate::json::escape_text(&crate::sanitize::sanitize(text), 1024)),
        });
    }
}

impl QueueRow {
    /// Changes what the settings name; whether anything differs.
    pub fn apply(&mut self, settings: &QueueSettings) -> bool {
        let before = self.clone();
        let secs = |d: std::time::Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
        self.limit = settings.limit.unwrap_or(self.limit);
        self.lease = settings.lease.or(self.lease);
        self.log = settings.log.unwrap_or(self.log);
        self.partition_limit = settings.partition_limit.unwrap_or(self.partition_limit);
        self.partition_rate = settings.partition_rate.unwrap_or(self.partition_rate);
        self.keep_succeeded_s = settings.keep_succeeded.map_or(self.keep_succeeded_s, secs);
        self.keep_failed_s = settings.keep_failed.map_or(self.keep_failed_s, secs);
        self.keep_dead_s = settings.keep_dead.map_or(self.keep_dead_s, secs);
        *self != before
    }

    /// How long a job that ended at this state stays, in seconds; `None` for live states.
    pub fn keep_seconds(&self, state: State) -> Option<i64> {
        match state {
            State::Succeeded | State::Cancelled => Some(self.keep_succeeded_s),
            State::Failed => Some(self.keep_failed_s),
            State::DeadLetter => Some(self.keep_dead_s),
            State::Waiting | State::Leased => None,
        }
    }
}
