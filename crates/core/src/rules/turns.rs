//! Owns how the partitions of a queue share a claim: whose turn it is, how much each may give, and
//! what is left to be started at its rate. Knows nothing of where the rows are found.
//!
//! The partitions stand in a ring, by name, the jobs without one first. A claim begins after the one
//! that had its turn last and asks the next ones that have a due job and room: one job each; where they
//! are few, an equal share each; where both are many, a helping each. What some lack others give.

use std::collections::BTreeMap;

use super::bucket::{Bucket, Level};
use super::{Work, room};
use crate::control::StartRate;
use crate::name::PartitionName;
use crate::row::{JobRow, QueueRow, StartsRow, TurnRow};
use crate::time::Timestamp;

/// A partition with a due job, as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The partition; `None`: the jobs without one.
    pub partition: Option<PartitionName>,
    /// How many of its jobs are leased, once what has expired was taken back.
    pub leased: u64,
    /// Its bucket of starts, where the queue has a rate and the bucket is not full.
    pub starts: Option<StartsRow>,
}

impl Waiting {
    /// How many more jobs it may begin now.
    pub fn room(&self, queue: &QueueRow, now: Timestamp) -> usize {
        if self.partition.is_none() {
            return usize::MAX;
        }
        let starts = queue.partition_rate.map_or(usize::MAX, |rate| match &self.starts {
            Some(starts) if starts.open_at > now => 0,
            starts => usize::try_from(bucket(now, rate, starts.as_ref()).whole()).unwrap_or(0),
        });
        room(queue.partition_limit, self.leased).min(starts)
    }
}

fn bucket(now: Timestamp, rate: StartRate, found: Option<&StartsRow>) -> Bucket {
    let found = found.map(|row| Level { level: row.level, at: row.at, full_at: row.full_at });
    Bucket::at(now, rate.rate(), rate.burst(), found)
}

/// What a claim asks of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The partition; `None`: the jobs without one.
    pub partition: Option<PartitionName>,
    /// How many it has given to this claim.
    pub had: usize,
    /// How many more it may give.
    pub limit: usize,
}

#[derive(Debug)]
struct Turn {
    found: Waiting,
    room: usize,
    asked: usize,
    taken: usize,
}

/// One claim's way around a queue's partitions.
#[derive(Debug)]
pub struct Turns {
    queue: QueueRow,
    now: Timestamp,
    want: usize,
    before: Option<TurnRow>,
    turns: Vec<Turn>,
    by_name: BTreeMap<Option<PartitionName>, usize>,
    /// How many have had their turn.
    asked: usize,
    /// Above how many each gives more than one job, so that a large claim does not touch every place.
    spread: usize,
    done: bool,
}

impl Turn {
    fn ask(&mut self, limit: usize) -> Option<Ask> {
        self.asked += limit;
        let partition = self.found.partition.clone();
        (limit > 0).then_some(Ask { partition, had: self.taken, limit })
    }
}

/// The most partitions that one claim spreads over while they have enough.
const SPREAD: usize = 250;

impl Turns {
    /// Begins a claim of `want` jobs from partitions that have a due job and room: as many as wanted
    /// at most, in the order of the ring, from the one after `before` on.
    pub fn new(
        now: Timestamp,
        queue: &QueueRow,
        want: usize,
        before: Option<TurnRow>,
        found: Vec<Waiting>,
    ) -> Self {
        let by_name = found.iter().enumerate().map(|(at, it)| (it.partition.clone(), at)).collect();
        let turn = |found: Waiting| {
            let room = found.room(queue, now);
            Turn { found, room, asked: 0, taken: 0 }
        };
        let turns = found.into_iter().take(want).map(turn).collect();
        let queue = queue.clone();
        Self { queue, now, want, before, turns, by_name, asked: 0, spread: SPREAD, done: false }
    }

    /// How many jobs are still wanted.
    pub fn left(&self) -> usize {
        self.want.saturating_sub(self.turns.iter().map(|turn| turn.taken).sum())
    }

    /// What to ask next, in order: each for no more than its limit, all for no more than what is
    /// left. First a fair share of each in turn, then what they have beyond it; nothing in the end.
    pub fn asks(&mut self) -> Vec<Ask> {
        let left = self.left();
        if left == 0 || self.done {
            return Vec::new();
        }
        let asks =
            if self.turns.len() <= self.spread { self.shares(left) } else { self.helpings(left) };
        if !asks.is_empty() {
            return asks;
        }
        self.done = true;
        let mut asks = Vec::new();
        for turn in self.turns.iter_mut() {
            // Who gave less than it was asked for has no more.
            let limit = left.min(turn.room.saturating_sub(turn.taken));
            asks.extend(turn.ask(if turn.taken == turn.asked { limit } else { 0 }));
        }
        asks
    }

    /// Of few: equal shares, and what is left over from the front.
    fn shares(&mut self, left: usize) -> Vec<Ask> {
        if self.asked > 0 || self.turns.is_empty() {
            return Vec::new();
        }
        let (share, more) = (left / self.turns.len(), left % self.turns.len());
        self.asked = if more > 0 { more } else { self.turns.len() };
        let asks = self.turns.iter_mut().enumerate().filter_map(|(at, turn)| {
            let limit = (share + usize::from(at < more)).min(turn.room);
            turn.ask(limit)
        });
        asks.collect()
    }

    /// Of many: one helping each, so large that not too many are asked, until that may be enough.
    fn helpings(&mut self, left: usize) -> Vec<Ask> {
        let helping = self.want.div_ceil(self.spread);
        let (mut asks, mut sum) = (Vec::new(), 0);
        for turn in self.turns.iter_mut().skip(self.asked) {
            if sum == left {
                break;
            }
            let limit = helping.min(turn.room).min(left - sum);
            asks.extend(turn.ask(limit));
            sum += limit;
            self.asked += 1;
        }
        asks
    }

    /// Counts what was taken.
    pub fn took<'r>(&mut self, rows: impl IntoIterator<Item = &'r JobRow>) {
        for row in rows {
            let at = self.by_name.get(&row.partition);
            if let Some(turn) = at.and_then(|at| self.turns.get_mut(*at)) {
                turn.taken += 1;
            }
        }
    }

    /// The turn that is stored in place of the one before; `None` where that stays.
    pub fn next(&self) -> Option<TurnRow> {
        let partition = self.turns.get(self.asked.checked_sub(1)?)?.found.partition.clone();
        if self.before.as_ref().is_some_and(|before| before.partition == partition) {
            return None;
        }
        let turn = self.before.as_ref().map_or(1, |before| before.turn.saturating_add(1));
        Some(TurnRow { queue: self.queue.name.clone(), turn, partition })
    }

    fn starts(&self) -> Vec<StartsRow> {
        let Some(rate) = self.queue.partition_rate else { return Vec::new() };
        let row = |turn: &Turn| {
            let partition = turn.found.partition.clone().filter(|_| turn.taken > 0)?;
            let mut bucket = bucket(self.now, rate, turn.found.starts.as_ref());
            bucket.take(u64::try_from(turn.taken).unwrap_or(u64::MAX));
            let Level { level, at, full_at } = bucket.level();
            let open_at = at.plus(bucket.wait(1));
            let queue = self.queue.name.clone();
            Some(StartsRow { queue, partition, level, at, open_at, full_at })
        };
        self.turns.iter().filter_map(row).collect()
    }
}

impl Work {
    /// Keeps whose turn it was and what each partition may still start.
    pub fn turned(&mut self, turns: &Turns) {
        self.changes.turns.extend(turns.next());
        self.changes.starts.extend(turns.starts());
    }
}

/// A part of the ring, as an engine reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// The jobs without a partition.
    Without,
    /// The partitions by name, from the one after `after` to the one that is `up_to`, or to the last.
    Named {
        /// Where it begins; `None`: at the first.
        after: Option<PartitionName>,
        /// Where it ends.
        up_to: Option<PartitionName>,
    },
}

/// The whole ring, from the one whose turn it is on.
pub fn stretches(before: Option<&TurnRow>) -> Vec<Stretch> {
    let all = Stretch::Named { after: None, up_to: None };
    match before.map(|before| before.partition.clone()) {
        None => vec![Stretch::Without, all],
        Some(None) => vec![all, Stretch::Without],
        Some(last) => vec![
            Stretch::Named { after: last.clone(), up_to: None },
            Stretch::Without,
            Stretch::Named { after: None, up_to: last },
        ],
    }
}

/// Puts partitions, by name, in the order of their turn.
pub fn in_turn<T>(
    found: Vec<T>,
    before: Option<&TurnRow>,
    name: impl Fn(&T) -> Option<&PartitionName>,
) -> Vec<T> {
    let Some(before) = before else { return found };
    let (mut after, up_to): (Vec<T>, Vec<T>) =
        found.into_iter().partition(|it| name(it) > before.partition.as_ref());
    after.extend(up_to);
    after
}

#[cfg(test)]
mod tests;
