//! Owns publishing: which events are new, what each is ordered by, and their numbers.

use super::changes::Draft;
use super::settle::SettleWants;
use super::{KnownEvent, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::event::{NewEvent, Ordering, Published};
use crate::id::{EventId, JobId};
use crate::row::EventRow;

impl SettleWants {
    /// What publishing some events needs.
    pub fn of_events(events: &[NewEvent]) -> Self {
        let mut it = Self::default();
        for event in events {
            it.events.push(event.id);
            if let Some(Ordering::Job(job)) = event.ordering {
                it.jobs.push(job);
            }
        }
        it.sorted()
    }
}

impl Work {
    /// Publishes a batch, all or nothing. The answers' sequences of free keys are known once the
    /// changes are written: see [`Work::published`].
    ///
    /// # Errors
    /// `Invalid`, `Conflict`, `NotFound` naming the first item that breaks a rule.
    pub fn publish(&mut self, events: &[NewEvent]) -> Result<()> {
        self.limits.check_batch("publish", events.len())?;
        let mut draft = Draft::default();
        self.draft_events("publish", &mut draft, None, events)?;
        self.merge(draft);
        Ok(())
    }

    /// The answers to a published batch, from the events written and those known before.
    pub fn published(
        events: &[NewEvent],
        written: &[EventRow],
        known: &super::Known,
    ) -> Vec<Published> {
        let answer = |event: &NewEvent| {
            let new = written.iter().find(|row| row.id == event.id);
            match (new, known.events.get(&event.id)) {
                (Some(row), _) => Published::from_parts(event.id, row.sequence, true),
                (None, old) => {
                    Published::from_parts(event.id, old.and_then(|old| old.sequence), false)
                }
            }
        };
        events.iter().map(answer).collect()
    }

    /// Adds events to a draft; those without an ordering belong to `own`, if there is one.
    pub(super) fn draft_events(
        &self,
        operation: &'static str,
        draft: &mut Draft,
        own: Option<JobId>,
        events: &[NewEvent],
    ) -> Result<()> {
        for event in events {
            event.check(&self.limits).map_err(|e| e.during(operation))?;
            let subject = format!("event {}", event.id);
            self.check_id_time(operation, event.id.unix_ms(), subject.clone())?;
            if self.is_known(operation, draft, event)? {
                continue;
            }
            let ordering = match (&event.ordering, own) {
                (Some(ordering), _) => ordering.clone(),
                (None, Some(job)) => Ordering::Job(job),
                (None, None) => Ordering::Unordered,
            };
            let row = match ordering {
                Ordering::Job(job) => {
                    let in_hand = draft.row(job).or_else(|| self.jobs.get(&job)).cloned();
                    let Some(mut row) = in_hand else {
                        let why = format!("the ordering job {job} does not exist");
                        return Err(Error::new(ErrorKind::NotFound, operation, why).about(subject));
                    };
                    let event = self.own_event(&mut row, event.clone());
                    row.updated_at = row.updated_at.max(self.now);
                    draft.put(row);
                    event
                }
                other => self.event_row(event.clone(), other, None, self.now),
            };
            let known = KnownEvent {
                topic: row.topic.clone(),
                payload: row.payload.clone(),
                sequence: row.sequence,
            };
            draft.known.events.insert(row.id, known);
            draft.changes.events_new.push(row);
        }
        Ok(())
    }

    fn is_known(&self, operation: &'static str, draft: &Draft, event: &NewEvent) -> Result<bool> {
        let id: EventId = event.id;
        let known = draft.known.events.get(&id).or_else(|| self.known.events.get(&id));
        match known {
            None => Ok(false),
            Some(known) if known.topic == event.topic && known.payload == event.payload => Ok(true),
            Some(_) => {
                let why = "the id is taken by another event";
                let error = Error::new(ErrorKind::Conflict, operation, why);
                Err(error.about(format!("event {id}")))
            }
        }
    }
}
