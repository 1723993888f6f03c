//! Owns the claim from a queue with partitions: which of them wait, and which of their rows are read.
//! Whose turn it is and how much each gives is a rule of the contract.

use std::collections::BTreeSet;

use super::claim::Taking;
use crate::error::Result;
use crate::lifecycle::State as JobState;
use crate::name::{PartitionName, QueueName};
use crate::row::{JobRow, QueueRow, TurnRow};
use crate::rules::{Turns, Waiting, claim_order, in_turn};

impl Taking<'_> {
    /// Claims up to `want` rows; `back` are the due ones that this claim has taken back.
    pub(super) fn fill_in_turns(
        &mut self,
        queue: &QueueRow,
        want: usize,
        back: &[JobRow],
    ) -> Result<()> {
        let before = self.state.turns.get(&queue.name).cloned();
        let mut ring = self.ring(queue, before.as_ref(), back).into_iter();
        let mut turns = Turns::new(self.facts.now, queue, want, before);
        let mut found = Vec::new();
        loop {
            while turns.lacks() > 0 {
                match ring.find_map(|name| self.open(queue, name, back)) {
                    Some(next) => turns.find(next),
                    None => turns.found_all(),
                }
            }
            let asks = turns.asks();
            if asks.is_empty() {
                break;
            }
            for ask in asks {
                let limit = ask.limit.min(turns.left());
                let due = self.due(&queue.name, ask.partition.as_ref(), ask.had + limit, back);
                let rows = due.get(ask.had..).unwrap_or_default();
                turns.took(rows);
                found.extend_from_slice(rows);
            }
        }
        self.work.turned(&turns);
        found.sort_by_key(claim_order);
        self.keep(queue, found);
        Ok(())
    }

    /// The partitions in the order of their turn.
    fn ring(
        &self,
        queue: &QueueRow,
        before: Option<&TurnRow>,
        back: &[JobRow],
    ) -> Vec<Option<PartitionName>> {
        let waiting = self.state.orders.partitions(&queue.name).into_iter().map(Some);
        let back_in = back.iter().map(|row| row.partition.clone());
        let names: BTreeSet<Option<PartitionName>> = waiting.chain(back_in).chain([None]).collect();
        in_turn(names.into_iter().collect(), before, Option::as_ref)
    }

    /// The partition, where it has a due job and room.
    fn open(
        &self,
        queue: &QueueRow,
        partition: Option<PartitionName>,
        back: &[JobRow],
    ) -> Option<Waiting> {
        let found = self.look_at(&queue.name, partition);
        let due = || !self.due(&queue.name, found.partition.as_ref(), 1, back).is_empty();
        (found.room(queue, self.facts.now) > 0 && due()).then_some(found)
    }

    fn look_at(&self, queue: &QueueName, partition: Option<PartitionName>) -> Waiting {
        let Some(name) = partition else {
            return Waiting { partition, leased: 0, starts: None };
        };
        let still = |job| self.work.job(job).is_none_or(|row| row.state == JobState::Leased);
        let leased = self.state.orders.leased_in(queue, &name).filter(|id| still(*id)).count();
        let starts = self.state.starts.get(&(queue.clone(), name.clone())).cloned();
        let leased = u64::try_from(leased).unwrap_or(u64::MAX);
        Waiting { partition: Some(name), leased, starts }
    }

    /// The first due rows of a partition, those taken back among them.
    fn due(
        &self,
        queue: &QueueName,
        partition: Option<&PartitionName>,
        limit: usize,
        back: &[JobRow],
    ) -> Vec<JobRow> {
        let waiting = self.state.orders.waiting(queue, partition);
        let due = waiting.filter(|(run_at, _)| *run_at <= self.facts.now).take(limit);
        let back = back.iter().filter(|row| row.partition.as_ref() == partition);
        let rows = due.filter_map(|(_, id)| self.state.jobs.get(&id)).chain(back);
        let mut rows: Vec<JobRow> = rows.cloned().collect();
        rows.sort_by_key(claim_order);
        rows.truncate(limit);
        rows
    }
}
