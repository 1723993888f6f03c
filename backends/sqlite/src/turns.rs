//! Owns the claim from a queue with partitions: which of them wait, and which of their rows are read.
//! Whose turn it is and how much each gives is a rule of the contract.

use std::collections::BTreeMap;

use leasehold_core::row::QueueRow;
use leasehold_core::rules::{Ask, Changes, Ring, Stretch, Turns, Waiting, claim_order};
use leasehold_core::{JobId, PartitionName, QueueName, Result, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::claim::{Candidate, Taking, candidate};
use crate::load::{Before, bound};
use crate::row::Columns;
use crate::statement::{execute, id_list, row, rows, sql};
use crate::write;

/// The first due row of each partition, and its priority.
type Heads = BTreeMap<PartitionName, (i64, JobId)>;

/// A partition as one step finds it: its first row, due or not.
struct Step {
    name: PartitionName,
    priority: i64,
    run_at: Timestamp,
    head: JobId,
    waiting: Waiting,
}

/// Whether a queue has claimable or leased rows of partitions.
pub(crate) fn are_taken(conn: &Connection, queue: &QueueName) -> Result<bool> {
    let values = params![queue.as_str()];
    let found = row(conn, sql!("shared_queues"), values, |row| Columns::of(row).raw())?;
    Ok(found.unwrap_or(false))
}

/// The largest priority below another that has a claimable row in a partition.
pub(crate) fn priority_below(
    conn: &Connection,
    queue: &QueueName,
    partition: &PartitionName,
    below: i64,
) -> Result<Option<i64>> {
    let values = params![queue.as_str(), partition.as_str(), below];
    row(conn, sql!("claim_below"), values, |row| Columns::of(row).raw())
}

impl Taking<'_> {
    /// Claims up to `want` rows. What this claim has taken back is written first.
    pub(crate) fn fill_in_turns(&mut self, queue: &QueueRow, want: usize) -> Result<()> {
        let (conn, shared) = (self.joined.conn, self.joined.shared);
        let mut back = self.work.take_changes();
        write::changes(conn, shared, self.facts.now, &mut back, &Before::new())?;
        let read = |row: &Row<'_>| Columns::of(row).turn(queue.name.clone());
        let before = row(conn, sql!("load_turn"), params![queue.name.as_str()], read)?;
        let (mut ring, mut heads) = (Ring::new(before.as_ref()), Heads::new());
        let mut turns = Turns::new(self.facts.now, queue, want, before);
        let mut found = Vec::new();
        loop {
            self.look(queue, (&mut ring, &mut heads), &mut turns)?;
            let asks = turns.asks();
            if asks.is_empty() {
                break;
            }
            if asks.iter().all(|ask| ask.had == 0 && ask.limit == 1) {
                let taken = self.heads(&queue.name, &asks, &heads)?;
                turns.took(taken.iter().map(|(row, _)| row));
                found.extend(taken);
                continue;
            }
            for ask in asks {
                let wanted = ask.had + ask.limit.min(turns.left());
                let partition = ask.partition.as_ref();
                let first = partition.and_then(|name| heads.get(name)).map(|head| head.0);
                let taken = self.candidates(&queue.name, partition, first, wanted)?;
                let taken: Vec<Candidate> = taken.into_iter().skip(ask.had).collect();
                turns.took(taken.iter().map(|(row, _)| row));
                found.extend(taken);
            }
        }
        self.work.turned(&turns);
        found.sort_by_key(|(row, _)| claim_order(row));
        self.keep(queue, found);
        Ok(())
    }

    /// The first row of each that is asked.
    fn heads(&self, queue: &QueueName, asks: &[Ask], heads: &Heads) -> Result<Vec<Candidate>> {
        let heads = asks.iter().filter_map(|ask| heads.get(ask.partition.as_ref()?));
        let list = id_list(heads.map(|(_, id)| id.as_bytes()));
        let read = |row: &Row<'_>| candidate(row, queue);
        let mut found = rows(self.joined.conn, sql!("claim_heads"), params![list], read)?;
        if asks.iter().any(|ask| ask.partition.is_none()) {
            found.extend(self.candidates(queue, None, None, 1)?);
        }
        Ok(found)
    }

    /// Goes on around the ring for as many partitions with a due row and room as are lacking.
    fn look(
        &self,
        queue: &QueueRow,
        (ring, heads): (&mut Ring, &mut Heads),
        turns: &mut Turns,
    ) -> Result<()> {
        while turns.lacks() > 0 {
            match ring.next(turns.lacks()) {
                None => turns.found_all(),
                Some((Stretch::Without, _)) => {
                    if !self.candidates(&queue.name, None, None, 1)?.is_empty() {
                        turns.find(Waiting { partition: None, leased: 0, starts: None });
                    }
                }
                Some((Stretch::Named { after, up_to }, limit)) => {
                    let steps = self.steps(queue, (after.as_ref(), up_to.as_ref()), limit)?;
                    if let Some(last) = steps.last().filter(|_| steps.len() == limit) {
                        ring.put_back(last.name.clone(), up_to);
                    }
                    for step in steps {
                        self.keep_open(queue, step, heads, turns)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes a partition in, where it has a due row and room.
    fn keep_open(
        &self,
        queue: &QueueRow,
        step: Step,
        heads: &mut Heads,
        turns: &mut Turns,
    ) -> Result<()> {
        if step.waiting.room(queue, self.facts.now) > 0
            && let Some(head) = self.head(&queue.name, &step)?
        {
            turns.find(step.waiting);
            heads.insert(step.name, head);
        }
        Ok(())
    }

    /// The next partitions by name that have a claimable row, due or not.
    fn steps(
        &self,
        queue: &QueueRow,
        (after, up_to): (Option<&PartitionName>, Option<&PartitionName>),
        limit: usize,
    ) -> Result<Vec<Step>> {
        let values = params![
            queue.name.as_str(),
            after.map_or("", PartitionName::as_str),
            up_to.map(PartitionName::as_str),
            queue.partition_limit.is_some(),
            queue.partition_rate.is_some(),
            bound(limit),
        ];
        let read = |row: &Row<'_>| step(&mut Columns::of(row), &queue.name);
        rows(self.joined.conn, sql!("partitions"), values, read)
    }

    /// The first due row of a partition.
    fn head(&self, queue: &QueueName, step: &Step) -> Result<Option<(i64, JobId)>> {
        let now = self.facts.now;
        let (mut priority, mut run_at, mut head) = (step.priority, step.run_at, step.head);
        while run_at > now {
            let values = params![queue.as_str(), step.name.as_str(), priority];
            let read = |row: &Row<'_>| {
                let mut columns = Columns::of(row);
                Ok((columns.raw()?, columns.time()?, JobId::from_uuid(columns.id()?)))
            };
            let below = row(self.joined.conn, sql!("claim_below"), values, read)?;
            let Some(below) = below else { return Ok(None) };
            (priority, run_at, head) = below;
        }
        Ok(Some((priority, head)))
    }
}

fn step(columns: &mut Columns<'_, '_>, queue: &QueueName) -> Result<Step> {
    let name = columns.text(|text| PartitionName::new(text))?;
    let (priority, run_at) = (columns.raw()?, columns.time()?);
    let head = JobId::from_uuid(columns.id()?);
    let leased: u32 = columns.raw()?;
    let starts = columns.starts(queue, &name)?;
    let waiting = Waiting { partition: Some(name.clone()), leased: u64::from(leased), starts };
    Ok(Step { name, priority, run_at, head, waiting })
}

/// Writes whose turn it was, and what may still be started.
pub(crate) fn write(conn: &Connection, changes: &Changes) -> Result<()> {
    for row in &changes.turns {
        let named = row.partition.as_ref().map_or("", PartitionName::as_str);
        execute(conn, sql!("write_turns"), params![row.queue.as_str(), row.turn, named])?;
    }
    for row in &changes.starts {
        let values = params![
            row.queue.as_str(),
            row.partition.as_str(),
            row.level,
            row.at.as_micros(),
            row.open_at.as_micros(),
            row.full_at.as_micros(),
        ];
        execute(conn, sql!("write_starts"), values)?;
    }
    Ok(())
}
