//! Owns the claim from a queue with partitions: which of them wait, and which of their rows are read.
//! Whose turn it is and how much each gives is a rule of the contract.

use std::collections::BTreeMap;

use leasehold_core::row::{QueueRow, TurnRow};
use leasehold_core::rules::{Ask, Changes, Stretch, Turns, Waiting, claim_order, stretches};
use leasehold_core::{JobId, PartitionName, QueueName, Result, Timestamp};
use rusqlite::{Connection, params};

use crate::claim::{Candidate, Taking, candidate};
use crate::load::{Before, bound};
use crate::row::Columns;
use crate::statement::{execute, id_list, row, rows, sql};
use crate::write;

/// The fewest partitions that one step around the ring reads.
const STEP_MIN: usize = 64;

/// The first due row of each partition.
type Heads = BTreeMap<PartitionName, JobId>;

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
        let read = |row: &rusqlite::Row<'_>| Columns::of(row).turn(queue.name.clone());
        let before = row(conn, sql!("load_turn"), params![queue.name.as_str()], read)?;
        let (waiting, heads) = self.ring(queue, want, before.as_ref())?;
        if waiting.is_empty() {
            return Ok(());
        }
        let mut turns = Turns::new(self.facts.now, queue, want, before, waiting);
        let mut found = Vec::new();
        loop {
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
                let taken = self.candidates(&queue.name, ask.partition.as_ref(), wanted)?;
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
        let ids = asks.iter().filter_map(|ask| heads.get(ask.partition.as_ref()?));
        let list = id_list(ids.map(JobId::as_bytes));
        let mut found = rows(self.joined.conn, sql!("claim_heads"), params![list], candidate)?;
        if asks.iter().any(|ask| ask.partition.is_none()) {
            found.extend(self.candidates(queue, None, 1)?);
        }
        Ok(found)
    }

    /// The partitions that have a due row and room, in the order of their turn.
    fn ring(
        &self,
        queue: &QueueRow,
        want: usize,
        before: Option<&TurnRow>,
    ) -> Result<(Vec<Waiting>, Heads)> {
        let (mut found, mut heads) = (Vec::new(), Heads::new());
        for stretch in stretches(before) {
            match stretch {
                Stretch::Without => {
                    if found.len() < want && !self.candidates(&queue.name, None, 1)?.is_empty() {
                        found.push(Waiting { partition: None, leased: 0, starts: None });
                    }
                }
                Stretch::Named { after, up_to } => {
                    let ends = (after, up_to.as_ref());
                    self.walk(queue, want, ends, (&mut found, &mut heads))?;
                }
            }
        }
        Ok((found, heads))
    }

    fn walk(
        &self,
        queue: &QueueRow,
        want: usize,
        (mut after, up_to): (Option<PartitionName>, Option<&PartitionName>),
        (found, heads): (&mut Vec<Waiting>, &mut Heads),
    ) -> Result<()> {
        while found.len() < want {
            let limit = (want - found.len()).max(STEP_MIN);
            let values = params![
                queue.name.as_str(),
                after.as_ref().map_or("", PartitionName::as_str),
                up_to.map(PartitionName::as_str),
                queue.partition_limit.is_some(),
                queue.partition_rate.is_some(),
                bound(limit),
            ];
            let read = |row: &rusqlite::Row<'_>| step(&mut Columns::of(row), &queue.name);
            let steps = rows(self.joined.conn, sql!("partitions"), values, read)?;
            let more = steps.len() == limit;
            after = steps.last().map(|step| step.name.clone());
            for step in steps.into_iter() {
                let open = found.len() < want && step.waiting.room(queue, self.facts.now) > 0;
                let head = if open { self.head(&queue.name, &step)? } else { None };
                if let Some(head) = head {
                    found.push(step.waiting);
                    heads.insert(step.name, head);
                }
            }
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// The first due row of a partition.
    fn head(&self, queue: &QueueName, step: &Step) -> Result<Option<JobId>> {
        let now = self.facts.now;
        let (mut priority, mut run_at, mut head) = (step.priority, step.run_at, step.head);
        while run_at > now {
            let values = params![queue.as_str(), step.name.as_str(), priority];
            let read = |row: &rusqlite::Row<'_>| {
                let mut columns = Columns::of(row);
                Ok((columns.raw()?, columns.time()?, JobId::from_uuid(columns.id()?)))
            };
            let below = row(self.joined.conn, sql!("claim_below"), values, read)?;
            let Some(below) = below else { return Ok(None) };
            (priority, run_at, head) = below;
        }
        Ok(Some(head))
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
