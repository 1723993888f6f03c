//! Owns the claim from a queue with partitions: which of them wait, and which of their rows are taken.
//! Whose turn it is and how much each gives is a rule of the contract. The queue's row is locked before,
//! so nobody else takes from its partitions meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join_all, try_join3};
use leasehold_core::row::{QueueRow, TurnRow};
use leasehold_core::rules::{Ask, Changes, Ring, Stretch, Turns, Waiting};
use leasehold_core::{JobId, LeaseLength, PartitionName, QueueName, Result};
use tokio_postgres::Row;

use crate::bind::Params;
use crate::claim::{Taken, Taking};
use crate::own::Own;
use crate::row::Columns;
use crate::statement::{Db, Sql, sql};

/// How many times as many partitions as jobs are wanted a claim finds at most, which is only where it meets
/// heads that are locked.
const FOUND_MAX: usize = 3;

/// The first due row of each partition, and the largest priority in it.
type Heads = BTreeMap<PartitionName, (JobId, i16)>;

/// Which of some queues have claimable or leased rows of partitions.
pub(crate) async fn shared(db: &Db<'_>, names: &[&QueueName]) -> Result<BTreeSet<QueueName>> {
    let values = Params::new().many(names.iter().map(|name| name.as_str()));
    let found = db
        .rows(sql!("shared_queues"), values, |row| Columns::of(row).text(|it| QueueName::new(it)));
    Ok(found.await?.into_iter().collect())
}

impl Taking<'_> {
    /// Claims as many rows as are wanted and have room.
    pub(crate) async fn fill_in_turns(&mut self, queue: &QueueRow) -> Result<()> {
        let name = &queue.name;
        let (raised, before, mut plain) =
            try_join3(self.take_back(name), self.turn(name), self.plain(name)).await?;
        if !raised.is_empty() {
            plain = self.plain(name).await?;
        }
        let want = self.left().min(self.room(queue).await?);
        if want == 0 {
            return Ok(());
        }
        let (lease, raised) = (self.lease(queue), &*raised);
        let (mut ring, mut heads) = (Ring::new(before.as_ref()), Heads::new());
        let mut turns = Turns::new(self.facts.now, queue, want, before);
        let mut found = Vec::new();
        loop {
            self.look(queue, (&mut ring, &mut heads, plain), &mut turns).await?;
            let asks = turns.asks();
            if asks.is_empty() {
                break;
            }
            // The jobs without a partition are one in the round, between two runs of named ones.
            for run in asks.chunk_by(|a, b| a.partition.is_some() && b.partition.is_some()) {
                let left = turns.left();
                let taken = self.give(&queue.name, run, left, (&heads, lease, raised)).await?;
                turns.took(taken.iter().map(|(row, _)| row));
                found.extend(taken);
            }
            if turns.found() > want.saturating_mul(FOUND_MAX) {
                turns.found_all();
            }
        }
        // Whoever finds all heads locked has not had a turn.
        if !found.is_empty() {
            self.turns.push(turns);
            self.take(found);
        }
        Ok(())
    }

    async fn turn(&self, queue: &QueueName) -> Result<Option<TurnRow>> {
        let values = Params::new().one(queue.as_str());
        let read = |row: &Row| Columns::of(row).turn(queue.clone());
        self.joined.db.row(sql!("load_turn"), values, read).await
    }

    /// Whether a row of no partition is due.
    async fn plain(&self, queue: &QueueName) -> Result<bool> {
        let values = Params::new().one(queue.as_str()).one(self.facts.now);
        let found = self.joined.db.row(sql!("without_due"), values, |row| Columns::of(row).id());
        Ok(found.await?.is_some())
    }

    /// Goes on around the ring for as many partitions with a due row and room as are lacking.
    async fn look(
        &self,
        queue: &QueueRow,
        (ring, heads, plain): (&mut Ring, &mut Heads, bool),
        turns: &mut Turns,
    ) -> Result<()> {
        while turns.lacks() > 0 {
            match ring.next(turns.lacks()) {
                None => turns.found_all(),
                Some((Stretch::Without, _)) if plain => {
                    turns.find(Waiting { partition: None, leased: 0, starts: None });
                }
                Some((Stretch::Without, _)) => {}
                Some((Stretch::Named { after, up_to }, limit)) => {
                    let steps = self.steps(queue, (after.as_ref(), up_to.as_ref()), limit).await?;
                    if let Some(last) = steps.last().filter(|_| steps.len() == limit) {
                        ring.put_back(last.name.clone(), up_to);
                    }
                    for step in steps {
                        let open = step.waiting.room(queue, self.facts.now) > 0;
                        if let Some(head) = step.head.filter(|_| open) {
                            turns.find(step.waiting);
                            heads.insert(step.name, (head, step.priority));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The next partitions by name that have a claimable row, due or not.
    async fn steps(
        &self,
        queue: &QueueRow,
        (after, up_to): (Option<&PartitionName>, Option<&PartitionName>),
        limit: usize,
    ) -> Result<Vec<Step>> {
        let values = Params::new()
            .one(queue.name.as_str())
            .one(after.map_or("", PartitionName::as_str))
            .one(up_to.map(PartitionName::as_str))
            .one(self.facts.now)
            .one(queue.partition_limit.is_some())
            .one(queue.partition_rate.is_some())
            .one(limit);
        let read = |row: &Row| step(&mut Columns::of(row), &queue.name);
        self.joined.db.rows(sql!("partitions"), values, read).await
    }

    /// Takes what is asked of one run, `left` rows at most.
    async fn give(
        &self,
        queue: &QueueName,
        run: &[Ask],
        left: usize,
        (heads, lease, raised): (&Heads, LeaseLength, &[JobId]),
    ) -> Result<Vec<Taken>> {
        if let [Ask { partition: None, limit, .. }] = run {
            return self.candidates(queue, left.min(*limit), lease, raised, true).await;
        }
        if left == 0 {
            return Ok(Vec::new());
        }
        let (request, now) = (self.request, self.facts.now);
        let named = || run.iter().filter_map(|ask| Some((ask.partition.as_ref()?, ask)));
        let kept = |values: Params| {
            let ends = now.plus(lease.as_duration());
            let values = values.one(request.claim).one(request.worker).one(ends);
            values.one(lease.as_millis()).many(raised.iter().copied())
        };
        if run.iter().all(|ask| ask.had == 0 && ask.limit == 1) {
            let ids = named().filter_map(|(name, _)| Some(heads.get(name)?.0));
            let values = kept(Params::new().many(ids).one(now));
            return self.taken(sql!("claim_heads"), values, queue, lease).await;
        }
        let values = kept(Params::new().one(queue.as_str()).one(now).one(left))
            .many(named().map(|(name, _)| name.as_str()))
            .many(named().map(|(_, ask)| ask.limit))
            .many(named().map(|(name, _)| heads.get(name).map_or(i16::MAX, |head| head.1)));
        self.taken(sql!("claim_turns"), values, queue, lease).await
    }
}

/// A partition as one step finds it.
struct Step {
    name: PartitionName,
    /// Its first due row.
    head: Option<JobId>,
    /// The largest priority in it, due or not.
    priority: i16,
    waiting: Waiting,
}

fn step(columns: &mut Columns<'_>, queue: &QueueName) -> Result<Step> {
    let name = columns.text(|text| PartitionName::new(text))?;
    let head = columns.maybe_id()?.map(JobId::from_uuid);
    let leased = columns.number()?;
    let priority = columns.raw()?;
    let starts = columns.starts(queue, &name)?;
    let waiting = Waiting { partition: Some(name.clone()), leased, starts };
    Ok(Step { name, head, priority, waiting })
}

/// Writes whose turn it was, and what may still be started.
pub(crate) async fn write(db: &Db<'_>, changes: &Changes) -> Result<()> {
    let writes = statements(changes).map(|(sql, values)| db.execute(sql, values));
    try_join_all(writes).await.map(|_| ())
}

/// Writes them as the last of a transaction of the store's own, with its commit sent along.
pub(crate) async fn write_last(db: &Db<'_>, own: &Own<'_>, changes: &Changes) -> Result<()> {
    let all: Vec<(Sql, Params)> = statements(changes).collect();
    try_join_all(all.iter().map(|(sql, values)| db.prepare(*sql, values))).await?;
    let writes = try_join_all(all.into_iter().map(|(sql, values)| db.execute(sql, values)));
    own.commit_along(async { writes.await.map(|_| ()) }).await
}

fn statements(changes: &Changes) -> impl Iterator<Item = (Sql, Params)> {
    let turns = turns(changes).map(|values| (sql!("write_turns"), values));
    turns.into_iter().chain(starts(changes).map(|values| (sql!("write_starts"), values)))
}

fn turns(changes: &Changes) -> Option<Params> {
    let turns = || changes.turns.iter();
    let named = |row: &TurnRow| row.partition.as_ref().map_or("", PartitionName::as_str).to_owned();
    let values = Params::new()
        .many(turns().map(|row| row.queue.as_str()))
        .many(turns().map(|row| row.turn))
        .many(turns().map(named));
    (!changes.turns.is_empty()).then_some(values)
}

fn starts(changes: &Changes) -> Option<Params> {
    let starts = || changes.starts.iter();
    let values = Params::new()
        .many(starts().map(|row| row.queue.as_str()))
        .many(starts().map(|row| row.partition.as_str()))
        .many(starts().map(|row| row.level))
        .many(starts().map(|row| row.at))
        .many(starts().map(|row| row.open_at))
        .many(starts().map(|row| row.full_at));
    (!changes.starts.is_empty()).then_some(values)
}
