//! Owns the orders in which rows are looked for: claimable, leased, still to be delivered. They
//! follow from the rows alone and change only where a row is put or taken out.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

use uuid::Uuid;

use super::state::State;
use crate::event::{EventState, Ordering};
use crate::id::{EventId, JobId};
use crate::lifecycle::State as JobState;
use crate::name::{PartitionName, QueueName};
use crate::row::{EventRow, JobRow};
use crate::time::Timestamp;

/// Which rows stand where, in the order of their turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Orders {
    /// Jobs that may be claimed once due, in claim order within their queue.
    jobs_waiting: BTreeSet<Turn>,
    jobs_leased: BTreeSet<(QueueName, JobId)>,
    /// The leased jobs of partitions.
    jobs_leased_in: BTreeSet<(QueueName, PartitionName, JobId)>,
    /// Events that wait, by their turn.
    events_waiting: BTreeSet<(Timestamp, EventId)>,
    events_leased: BTreeSet<EventId>,
    /// Events that later ones of their key wait for.
    undelivered: BTreeSet<(Ordering, Option<i64>, EventId)>,
}

impl Orders {
    fn add_job(&mut self, row: &JobRow) {
        match row.state {
            JobState::Waiting if !row.held => {
                self.jobs_waiting.insert(turn(row));
            }
            JobState::Leased => {
                self.jobs_leased.insert((row.queue.clone(), row.id));
                self.jobs_leased_in.extend(place(row));
            }
            _ => {}
        }
    }

    fn drop_job(&mut self, row: &JobRow) {
        self.jobs_waiting.remove(&turn(row));
        self.jobs_leased.remove(&(row.queue.clone(), row.id));
        if let Some(place) = place(row) {
            self.jobs_leased_in.remove(&place);
        }
    }

    fn add_event(&mut self, row: &EventRow) {
        match row.state {
            EventState::Waiting => {
                self.events_waiting.insert((row.run_at, row.id));
            }
            EventState::Leased => {
                self.events_leased.insert(row.id);
            }
            EventState::Delivered | EventState::DeadLetter => return,
        }
        if row.ordered {
            self.undelivered.insert((row.ordering.clone(), row.sequence, row.id));
        }
    }

    fn drop_event(&mut self, row: &EventRow) {
        self.events_waiting.remove(&(row.run_at, row.id));
        self.events_leased.remove(&row.id);
        self.undelivered.remove(&(row.ordering.clone(), row.sequence, row.id));
    }

    /// The claimable jobs of a queue that are of a partition, or of none, in claim order, due or not.
    pub(super) fn waiting(
        &self,
        queue: &QueueName,
        partition: Option<&PartitionName>,
    ) -> impl Iterator<Item = (Timestamp, JobId)> {
        let rows = self.jobs_waiting.range(first(queue, partition)..);
        let rows = rows.take_while(move |(of, name, ..)| of == queue && name.as_ref() == partition);
        rows.map(|(_, _, _, run_at, id)| (*run_at, *id))
    }

    /// The partitions of a queue that have claimable jobs, due or not, by name.
    pub(super) fn partitions(&self, queue: &QueueName) -> Vec<PartitionName> {
        let mut names: Vec<PartitionName> = Vec::new();
        while let Some(next) = self.partition_after(queue, names.last()) {
            names.push(next.clone());
        }
        names
    }

    fn partition_after(
        &self,
        queue: &QueueName,
        name: Option<&PartitionName>,
    ) -> Option<&PartitionName> {
        let (priority, id) = (Reverse(i16::MIN), JobId::from_uuid(Uuid::max()));
        let last = (queue.clone(), name.cloned(), priority, Timestamp::MAX, id);
        let next = self.jobs_waiting.range((Bound::Excluded(last), Bound::Unbounded)).next();
        next.filter(|(of, ..)| of == queue).and_then(|(_, name, ..)| name.as_ref())
    }

    /// Whether a queue has claimable or leased jobs of partitions.
    pub(super) fn is_shared(&self, queue: &QueueName) -> bool {
        self.partition_after(queue, None).is_some()
            || self.jobs_leased_in.iter().any(|(of, ..)| of == queue)
    }

    /// The leased jobs of a partition.
    pub(super) fn leased_in(
        &self,
        queue: &QueueName,
        partition: &PartitionName,
    ) -> impl Iterator<Item = JobId> {
        let from = (queue.clone(), partition.clone(), JobId::from_uuid(Uuid::nil()));
        let rows = self.jobs_leased_in.range(from..);
        let rows = rows.take_while(move |(of, name, _)| of == queue && name == partition);
        rows.map(|(_, _, id)| *id)
    }

    /// The leased jobs of a queue, in id order.
    pub(super) fn leased(&self, queue: &QueueName) -> impl Iterator<Item = JobId> {
        let from = (queue.clone(), JobId::from_uuid(Uuid::nil()));
        let rows = self.jobs_leased.range(from..).take_while(move |(name, _)| name == queue);
        rows.map(|(_, id)| *id)
    }

    /// The leased jobs of all queues.
    pub(super) fn leased_anywhere(&self) -> impl Iterator<Item = JobId> {
        self.jobs_leased.iter().map(|(_, id)| *id)
    }

    /// The waiting events that are due, in the order of their turn.
    pub(super) fn due_events(&self, now: Timestamp) -> impl Iterator<Item = EventId> {
        let to = (now, EventId::from_uuid(Uuid::max()));
        self.events_waiting.range(..=to).map(|(_, id)| *id)
    }

    /// The leased events, in id order.
    pub(super) fn leased_events(&self) -> impl Iterator<Item = EventId> {
        self.events_leased.iter().copied()
    }

    /// Whether no earlier event of the same key is still to go.
    pub(super) fn is_first(&self, row: &EventRow) -> bool {
        let at = |sequence| (row.ordering.clone(), sequence, EventId::from_uuid(Uuid::nil()));
        !row.ordered || self.undelivered.range(at(None)..at(row.sequence)).next().is_none()
    }

    /// The orders that some rows stand in.
    #[cfg(test)]
    pub(super) fn of(state: &State) -> Self {
        let mut it = Self::default();
        state.jobs.values().for_each(|row| it.add_job(row));
        state.events.values().for_each(|row| it.add_event(row));
        it
    }
}

type Turn = (QueueName, Option<PartitionName>, Reverse<i16>, Timestamp, JobId);

fn turn(row: &JobRow) -> Turn {
    (row.queue.clone(), row.partition.clone(), Reverse(row.priority), row.run_at, row.id)
}

/// Comes before every turn of a partition.
fn first(queue: &QueueName, partition: Option<&PartitionName>) -> Turn {
    let (priority, id) = (Reverse(i16::MAX), JobId::from_uuid(Uuid::nil()));
    (queue.clone(), partition.cloned(), priority, Timestamp::MIN, id)
}

fn place(row: &JobRow) -> Option<(QueueName, PartitionName, JobId)> {
    Some((row.queue.clone(), row.partition.clone()?, row.id))
}

impl State {
    /// Puts a job row in its place.
    pub(super) fn put_job(&mut self, row: JobRow) {
        self.take_job(row.id);
        self.orders.add_job(&row);
        self.jobs.insert(row.id, row);
    }

    /// Takes a job row out.
    pub(super) fn take_job(&mut self, id: JobId) -> Option<JobRow> {
        let old = self.jobs.remove(&id)?;
        self.orders.drop_job(&old);
        Some(old)
    }

    /// Puts an event row in its place.
    pub(super) fn put_event(&mut self, row: EventRow) {
        self.take_event(row.id);
        self.orders.add_event(&row);
        self.events.insert(row.id, row);
    }

    /// Takes an event row out.
    pub(super) fn take_event(&mut self, id: EventId) -> Option<EventRow> {
        let old = self.events.remove(&id)?;
        self.orders.drop_event(&old);
        Some(old)
    }
}
