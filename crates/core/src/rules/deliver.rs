//! Owns the outbox's side of the ownership protocol: claim, renewal, end and reclaim of deliveries.

use std::time::Duration;

use super::Work;
use super::changes::Draft;
use super::ownership::Ownership;
use super::settle::alert_topic;
use crate::claim::{RenewRequest, Renewal};
use crate::error::{Error, ErrorKind, LostReason, Result};
use crate::event::{
    EventClaim, EventClaimRequest, EventSettlement, EventState, EventVerdict, NewEvent, Ordering,
};
use crate::failure::{Failure, FailureCode};
use crate::fence::EventFence;
use crate::id::EventId;
use crate::json::Json;
use crate::row::{EventRow, Lease};
use crate::time::LeaseLength;

impl EventClaimRequest {
    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or above 10,000, or an empty list of topics.
    pub fn check(&self) -> Result<()> {
        if !(1..=10_000).contains(&self.limit) {
            let why = format!("a limit of {}, 1 to 10,000 are allowed", self.limit);
            return Err(Error::invalid("claim events", why));
        }
        if self.topics.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::invalid("claim events", "the list of topics is empty"));
        }
        Ok(())
    }
}

impl Work {
    /// Claims a loaded waiting event. One that was reclaimed in this very transaction is not raised
    /// twice.
    ///
    /// # Errors
    /// `Corrupt` when it is not loaded.
    pub fn claim_event(&mut self, id: EventId, request: &EventClaimRequest) -> Result<EventClaim> {
        let missing = || Error::new(ErrorKind::Corrupt, "claim events", "the row is not loaded");
        let mut row = self.events.get(&id).cloned().ok_or_else(missing)?;
        let length: LeaseLength = request.lease.unwrap_or(self.limits.lease_default);
        if !self.changed_events.contains(&id) {
            row.version = row.version.next();
        }
        row.state = EventState::Leased;
        row.claim = Some(request.claim);
        row.last_verdict = None;
        row.lease = Some(Lease {
            worker: request.worker,
            expires_at: self.now.plus(length.as_duration()),
            heartbeat_at: self.now,
            length,
        });
        row.attempts += 1;
        row.updated_at = row.updated_at.max(self.now);
        let claim = self.event_claim_of(&row, request);
        self.put_event(row);
        Ok(claim)
    }

    /// The claim that a leased event is under, as its claimant sees it.
    pub fn event_claim_of(&self, row: &EventRow, request: &EventClaimRequest) -> EventClaim {
        let (id, version) = (row.id, row.version);
        let fence = EventFence::from_parts(id, version, request.claim, request.worker, self.epoch);
        EventClaim {
            fence,
            remaining: row.lease.map_or(Duration::ZERO, |held| held.expires_at.since(self.now)),
            topic: row.topic.clone(),
            ordering: row.ordering.clone(),
            sequence: row.sequence,
            payload: row.payload.clone(),
            attempt: row.attempts,
            max_attempts: row.attempts_max,
            traceparent: row.traceparent.clone(),
            created_at: row.created_at,
        }
    }

    /// Renews one delivery whose row this transaction has locked (or knows to be gone).
    pub fn renew_event(
        &mut self,
        fence: &EventFence,
        request: &RenewRequest<EventFence>,
    ) -> Renewal {
        let mut row = match self.event_ownership(fence) {
            Ok(Ownership::Owned(row)) => row,
            Ok(Ownership::Ended(..)) => return Renewal::Lost(LostReason::Settled),
            Err(why) => return Renewal::Lost(why),
        };
        let remaining = self.extend(&mut row.lease, request.lease);
        row.updated_at = row.updated_at.max(self.now);
        self.put_event(row);
        Renewal::Renewed { remaining, cancel_requested: false }
    }

    /// Ends one delivery; `Err` is that item's answer and leaves nothing.
    ///
    /// # Errors
    /// `FenceLost`.
    pub fn settle_event(&mut self, settlement: &EventSettlement) -> Result<()> {
        let fence = &settlement.fence;
        let lost = |why| Error::lost("settle", format!("event {}", fence.event()), why);
        let kind = settlement.verdict.kind();
        let mut row = match self.event_ownership(fence).map_err(lost)? {
            Ownership::Owned(row) => row,
            Ownership::Ended(ended, _) if ended == kind => return Ok(()),
            Ownership::Ended(..) => return Err(lost(LostReason::Settled)),
        };
        row.last_verdict = Some(kind);
        match &settlement.verdict {
            EventVerdict::Delivered => self.end_event(&mut row, EventState::Delivered),
            EventVerdict::Retry { failure, delay } => {
                row.failure = Some(failure.to_json());
                if failure.is_retryable() && row.attempts < row.attempts_max {
                    self.end_event(&mut row, EventState::Waiting);
                    row.run_at = self.now.plus(delay.unwrap_or_default());
                } else {
                    self.end_event(&mut row, EventState::DeadLetter);
                }
            }
            EventVerdict::DeadLetter { failure } => {
                row.failure = Some(failure.to_json());
                self.end_event(&mut row, EventState::DeadLetter);
            }
            EventVerdict::Release { delay } => {
                row.attempts = row.attempts.saturating_sub(1);
                row.version = row.version.next();
                self.end_event(&mut row, EventState::Waiting);
                if let Some(delay) = delay {
                    row.run_at = self.now.plus(*delay);
                }
            }
        }
        let dead = row.state == EventState::DeadLetter;
        if let (true, Some(failure)) = (dead, settlement.verdict.failure()) {
            self.alert_of_event(&row, failure)?;
        }
        self.put_event(row);
        Ok(())
    }

    /// A bug or a bad configuration calls a person, unless it is that very call which fails.
    fn alert_of_event(&mut self, row: &EventRow, failure: &Failure) -> Result<()> {
        let topic = alert_topic();
        if !failure.raises_alert() || row.topic == topic {
            return Ok(());
        }
        let payload = Json::of(&serde_json::json!({
            "event_id": row.id.to_string(),
            "topic": row.topic.as_str(),
            "error_class": failure.code_id(),
        }))?;
        let event = NewEvent::new(topic, payload).id(EventId::from_uuid(self.ids.next()));
        let mut draft = Draft::default();
        let event = self.event_row(event, Ordering::Unordered, None, self.now);
        draft.changes.events_new.push(event);
        self.merge(draft);
        Ok(())
    }

    /// Takes a loaded event's expired lease back; `None` when it is not leased or not expired.
    pub fn reclaim_event(&mut self, id: EventId) -> Option<EventState> {
        let mut row = self.events.get(&id).cloned()?;
        if row.lease.is_none_or(|lease| lease.expires_at > self.now) {
            return None;
        }
        row.version = row.version.next();
        row.last_verdict = None;
        row.failure = Some(Failure::new(FailureCode::WorkerLost, "the lease ran out").to_json());
        let left = row.attempts < row.attempts_max;
        let state = if left { EventState::Waiting } else { EventState::DeadLetter };
        self.end_event(&mut row, state);
        self.put_event(row);
        Some(state)
    }

    pub(super) fn end_event(&self, row: &mut EventRow, state: EventState) {
        row.state = state;
        row.lease = None;
        row.updated_at = row.updated_at.max(self.now);
        let ended = matches!(state, EventState::Delivered | EventState::DeadLetter);
        row.finished_at = ended.then_some(row.updated_at);
    }

    pub(super) fn put_event(&mut self, row: EventRow) {
        self.merge(Draft { event_rows: vec![row], ..Draft::default() });
    }
}
