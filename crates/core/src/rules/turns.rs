//! Owns how the partitions of a queue share a claim: whose turn it is, how much each may give, and
//! what is left to be started at its rate. Knows nothing of where the rows are found.
//!
//! The partitions stand in a ring, by name, the jobs without one first. A claim begins after the one
//! that had its turn last and asks the next ones that have a due job and room for a helping each: one
//! job, or so many that a large claim does not touch every place. Where all of them together have too few
//! of those, each gives an equal share. What some lack others give.

use std::collections::{BTreeMap, VecDeque};

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

/// One claim's way around a queue's partitions. It looks no further than it has to: the engine tells of as
/// many partitions as it says it lacks, in the order of their turn, or that there are no more.
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
    /// How many jobs those have for helpings that have not had their turn.
    offered: usize,
    /// How many jobs each gives in its turn.
    helping: usize,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Partitions are found, and give helpings.
    Helpings,
    /// All are found, and those left give the last helpings.
    Last,
    /// What they have beyond that.
    Beyond,
    Done,
}

impl Turn {
    fn ask(&mut self, limit: usize) -> Option<Ask> {
        self.asked += limit;
        let partition = self.found.partition.clone();
        (limit > 0).then_some(Ask { partition, had: self.taken, limit })
    }
}

/// The most partitions that one claim spreads over while they have enough.
const SPREAD: usize = 125;

impl Turns {
    /// Begins a claim of `want` jobs with the partition that comes after `before`.
    pub fn new(now: Timestamp, queue: &QueueRow, want: usize, before: Option<TurnRow>) -> Self {
        Self::spread(now, queue, (want, SPREAD), before)
    }

    fn spread(
        now: Timestamp,
        queue: &QueueRow,
        (want, spread): (usize, usize),
        before: Option<TurnRow>,
    ) -> Self {
        Self {
            queue: queue.clone(),
            now,
            want,
            before,
            turns: Vec::new(),
            by_name: BTreeMap::new(),
            asked: 0,
            offered: 0,
            helping: want.div_ceil(spread).max(1),
            stage: Stage::Helpings,
        }
    }

    /// How many jobs are still wanted.
    pub fn left(&self) -> usize {
        self.want.saturating_sub(self.turns.iter().map(|turn| turn.taken).sum())
    }

    /// How many more partitions that have a due job and room it takes before the next are asked, if each
    /// has enough; 0: no more.
    pub fn lacks(&self) -> usize {
        match self.stage {
            Stage::Helpings => self.left().saturating_sub(self.offered).div_ceil(self.helping),
            _ => 0,
        }
    }

    /// Takes in the next partition of the ring that has a due job and room.
    pub fn find(&mut self, found: Waiting) {
        let room = found.room(&self.queue, self.now);
        self.offered += self.helping.min(room);
        self.by_name.insert(found.partition.clone(), self.turns.len());
        self.turns.push(Turn { found, room, asked: 0, taken: 0 });
    }

    /// Takes note that the ring has no more of them.
    pub fn found_all(&mut self) {
        if self.stage == Stage::Helpings {
            self.stage = Stage::Last;
        }
    }

    /// How many partitions were found so far.
    pub fn found(&self) -> usize {
        self.turns.len()
    }

    /// What to ask next, in order: each for no more than its limit, all for no more than what is
    /// left. First a fair share of each in turn, then what they have beyond it; nothing in the end.
    pub fn asks(&mut self) -> Vec<Ask> {
        let left = self.left();
        if left == 0 || self.stage == Stage::Done {
            return Vec::new();
        }
        let few = self.stage == Stage::Last && self.asked == 0 && self.offered < left;
        let asks = match self.stage {
            Stage::Helpings => return self.helpings(left),
            Stage::Last if few => self.shares(left),
            Stage::Last => self.helpings(left),
            _ => Vec::new(),
        };
        if few {
            self.stage = Stage::Beyond;
        }
        if !asks.is_empty() {
            return asks;
        }
        self.stage = Stage::Done;
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
        let all = self.turns.len();
        let (Some(share), Some(more)) = (left.checked_div(all), left.checked_rem(all)) else {
            return Vec::new();
        };
        self.asked = if more > 0 { more } else { all };
        let asks = self.turns.iter_mut().enumerate().filter_map(|(at, turn)| {
            let limit = (share + usize::from(at < more)).min(turn.room);
            turn.ask(limit)
        });
        asks.collect()
    }

    /// Of many: one helping each, until that may be enough.
    fn helpings(&mut self, left: usize) -> Vec<Ask> {
        let (mut asks, mut sum) = (Vec::new(), 0);
        for turn in self.turns.iter_mut().skip(self.asked) {
            if sum == left {
                break;
            }
            let offered = self.helping.min(turn.room);
            let limit = offered.min(left - sum);
            asks.extend(turn.ask(limit));
            sum += limit;
            self.offered -= offered;
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

/// The way around a queue's partitions that a claim has not gone yet.
#[derive(Debug)]
pub struct Ring {
    ahead: VecDeque<Stretch>,
    step: usize,
}

/// The most partitions that an engine reads beyond those it lacks.
const STEP_MAX: usize = 1_024;

impl Ring {
    /// The whole way, from the partition whose turn it is on.
    pub fn new(before: Option<&TurnRow>) -> Self {
        Self { ahead: stretches(before).into(), step: 0 }
    }

    /// The next part of the way, and how many partitions to read of it at most: what is lacking, and twice
    /// as many as before where that was not enough. `None`: it has come around.
    pub fn next(&mut self, lacks: usize) -> Option<(Stretch, usize)> {
        let stretch = self.ahead.pop_front()?;
        let limit = lacks.max(self.step);
        if matches!(stretch, Stretch::Named { .. }) {
            self.step = limit.saturating_mul(2).min(STEP_MAX);
        }
        Some((stretch, limit))
    }

    /// Gives back what was not read of a part.
    pub fn put_back(&mut self, after: PartitionName, up_to: Option<PartitionName>) {
        self.ahead.push_front(Stretch::Named { after: Some(after), up_to });
    }
}

/// The whole ring, from the one whose turn it is on.
fn stretches(before: Option<&TurnRow>) -> Vec<Stretch> {
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
