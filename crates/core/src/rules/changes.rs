//! Owns the list of what a transaction writes, in the order in which it is written.

use std::collections::BTreeMap;

use super::Known;
use crate::event::Ordering;
use crate::id::JobId;
use crate::name::{OrderKey, QueueName};
use crate::row::{
    AuditRow, DeadLetterRow, EventRow, JobRow, KeyRow, OutcomePatch, ReplayRow, RequestRow,
    StartsRow, SubjectRow, TransitionRow, TurnRow, WaitRow,
};

/// What a transaction writes; an engine writes the fields in this order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Changes {
    /// Idempotency keys to take. A key that is there already and has not lapsed means that another
    /// transaction came first: nothing else may be written, and the rules are asked again.
    pub keys: Vec<KeyRow>,
    /// Marks of subjects to set. One that is not as it was means that another transaction came first.
    pub subjects: Vec<SubjectRow>,
    /// Queues to make where they do not exist.
    pub queues: Vec<QueueName>,
    /// New jobs. An id that is there already means that another transaction came first.
    pub jobs_new: Vec<(JobRow, RequestRow)>,
    /// Job rows to write back.
    pub jobs: Vec<JobRow>,
    /// New waits. An open one needs its parent's row written too where that was only locked, so that
    /// a transaction of an older snapshot cannot end the parent without seeing the wait.
    pub waits_new: Vec<WaitRow>,
    /// Waits to write back.
    pub waits: Vec<WaitRow>,
    /// What executions left.
    pub outcomes: Vec<OutcomePatch>,
    /// New events, in order. Those with a free key have no sequence yet: see
    /// [`Changes::sequences_wanted`]. An id that is there already means that another came first.
    pub events_new: Vec<EventRow>,
    /// Event rows to write back.
    pub events: Vec<EventRow>,
    /// Transitions to log.
    pub transitions: Vec<TransitionRow>,
    /// Dead letters to keep.
    pub dead_letters: Vec<DeadLetterRow>,
    /// Dead letters to write back: state, replaying job, when, who and note.
    pub letters: Vec<DeadLetterRow>,
    /// Jobs whose checkpoints are dropped.
    pub checkpoints_dropped: Vec<JobId>,
    /// New jobs that replay others; their rows are written before.
    pub replays: Vec<ReplayRow>,
    /// Keys that pass from a job, where it holds them, to the job of the row; when they lapse stays.
    pub keys_passed: Vec<(JobId, KeyRow)>,
    /// Operator acts to keep.
    pub audit: Vec<AuditRow>,
    /// Turns of partitions, each in place of its queue's earlier ones.
    pub turns: Vec<TurnRow>,
    /// Buckets of starts, each in place of its partition's earlier one.
    pub starts: Vec<StartsRow>,
}

impl Changes {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many numbers each free ordering key needs, keys in order.
    pub fn sequences_wanted(&self) -> BTreeMap<OrderKey, i64> {
        let mut wanted = BTreeMap::new();
        for event in &self.events_new {
            if let (Ordering::Key(key), None) = (&event.ordering, event.sequence) {
                *wanted.entry(key.clone()).or_insert(0) += 1;
            }
        }
        wanted
    }

    /// Numbers the new events of free keys, given each key's last number after the raise.
    pub fn assign_sequences(&mut self, last: &BTreeMap<OrderKey, i64>) {
        let mut next: BTreeMap<OrderKey, i64> = self
            .sequences_wanted()
            .into_iter()
            .filter_map(|(key, n)| last.get(&key).map(|last| (key.clone(), last - n + 1)))
            .collect();
        for event in &mut self.events_new {
            if let (Ordering::Key(key), None) = (&event.ordering, event.sequence)
                && let Some(number) = next.get_mut(key)
            {
                event.sequence = Some(*number);
                *number += 1;
            }
        }
    }

    pub(super) fn append(&mut self, other: &mut Self) {
        self.keys.append(&mut other.keys);
        self.subjects.append(&mut other.subjects);
        for queue in other.queues.drain(..) {
            if !self.queues.contains(&queue) {
                self.queues.push(queue);
            }
        }
        self.jobs_new.append(&mut other.jobs_new);
        self.jobs.append(&mut other.jobs);
        self.waits_new.append(&mut other.waits_new);
        self.waits.append(&mut other.waits);
        self.outcomes.append(&mut other.outcomes);
        self.events_new.append(&mut other.events_new);
        self.events.append(&mut other.events);
        self.transitions.append(&mut other.transitions);
        self.dead_letters.append(&mut other.dead_letters);
        self.letters.append(&mut other.letters);
        self.checkpoints_dropped.append(&mut other.checkpoints_dropped);
        self.replays.append(&mut other.replays);
        self.keys_passed.append(&mut other.keys_passed);
        self.audit.append(&mut other.audit);
        self.turns.append(&mut other.turns);
        self.starts.append(&mut other.starts);
    }
}

/// What one item decided; dropped whole when the item fails.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) rows: Vec<JobRow>,
    pub(super) event_rows: Vec<EventRow>,
    pub(super) changes: Changes,
    pub(super) known: Known,
}

impl Draft {
    /// The draft's copy of a job row, if it has one.
    pub(super) fn row(&self, id: crate::id::JobId) -> Option<&JobRow> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Puts a job row in place of the draft's copy.
    pub(super) fn put(&mut self, row: JobRow) {
        match self.rows.iter_mut().find(|old| old.id == row.id) {
            Some(old) => *old = row,
            None => self.rows.push(row),
        }
    }
}
