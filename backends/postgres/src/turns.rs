//! Owns the claim from a queue with partitions: which of them wait, and which of their rows are taken.
//! Whose turn it is and how much each gives is a rule of the contract. The queue's row is locked before,
//! so nobody else takes from its partitions meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;
use leasehold_core::row::{QueueRow, TurnRow};
use leasehold_core::rules::{Ask, Changes, Stretch, Turns, Waiting, stretches};
use leasehold_core::{JobId, LeaseLength, PartitionName, QueueName, Result};
use tokio_postgres::Row;

use crate::bind::Params;
use crate::claim::{Taken, Taking, taken_rows};
use crate::row::Columns;
use crate::statement::{Db, sql};

/// The fewest partitions that one step around the ring reads.
const STEP_MIN: usize = 64;

/// How often a claim goes around the ring where it finds nothing but locked heads.
const ROUNDS_MAX: usize = 3;

/// The first due row of each partition.
type Heads = BTreeMap<PartitionName, JobId>;

/// Which of some queues have claimable or leased rows of partitions.
pub(crate) async fn shared(db: &Db<'_>, names: &[&QueueName]) -> Result<BTreeSet<QueueName>> {
    let values = Params::new().many(names.iter().map(|name| name.as_str()));
    let found = db
        .rows(sql!("shared_queues"), values, |row| Columns::of(row).text(|it| QueueName::new(it)));
    Ok(found.await?.into_iter().collect())
}

impl Taking<'_> {
    /// Claims up to `want` rows.
    pub(crate) async fn fill_in_turns(
        &mut self,
        queue: &QueueRow,
        want: usize,
        lease: LeaseLength,
        raised: &[JobId],
    ) -> Result<()> {
        let (mut before, plain) = try_join(self.turn(&queue.name), self.plain(&queue.name)).await?;
        let mut passed = BTreeSet::new();
        for round in 0..ROUNDS_MAX {
            let (waiting, heads) = self.ring(queue, want, before.as_ref(), plain).await?;
            let nothing_new = heads.values().all(|head| passed.contains(head));
            if waiting.is_empty() || (round > 0 && nothing_new) {
                return Ok(());
            }
            let mut turns = Turns::new(self.facts.now, queue, want, before.clone(), waiting);
            let found = self.once_around(queue, &mut turns, (&heads, lease, raised)).await?;
            if !found.is_empty() {
                self.turns.push(turns);
                self.take(found);
                return Ok(());
            }
            // Others have locked the heads of those whose turn it was: the next ones may be free.
            let turn = before.as_ref().map_or(0, |before| before.turn);
            before = turns.next().map(|next| TurnRow { turn, ..next }).or(before);
            passed.extend(heads.into_values());
        }
        Ok(())
    }

    async fn once_around(
        &self,
        queue: &QueueRow,
        turns: &mut Turns,
        how: (&Heads, LeaseLength, &[JobId]),
    ) -> Result<Vec<Taken>> {
        let mut found = Vec::new();
        loop {
            let asks = turns.asks();
            if asks.is_empty() {
                return Ok(found);
            }
            // The jobs without a partition are one in the round, between two runs of named ones.
            for run in asks.chunk_by(|a, b| a.partition.is_some() && b.partition.is_some()) {
                let left = turns.left();
                let taken = self.give(&queue.name, run, left, how).await?;
                turns.took(taken.iter().map(|(row, _)| row));
                found.extend(taken);
            }
        }
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

    /// The partitions that have a due row and room, in the order of their turn.
    async fn ring(
        &self,
        queue: &QueueRow,
        want: usize,
        before: Option<&TurnRow>,
        plain: bool,
    ) -> Result<(Vec<Waiting>, Heads)> {
        let (mut found, mut heads) = (Vec::new(), Heads::new());
        for stretch in stretches(before) {
            match stretch {
                Stretch::Without if plain && found.len() < want => {
                    found.push(Waiting { partition: None, leased: 0, starts: None });
                }
                Stretch::Without => {}
                Stretch::Named { after, up_to } => {
                    let ends = (after, up_to.as_ref());
                    self.walk(queue, want, ends, (&mut found, &mut heads)).await?;
                }
            }
        }
        Ok((found, heads))
    }

    async fn walk(
        &self,
        queue: &QueueRow,
        want: usize,
        (mut after, up_to): (Option<PartitionName>, Option<&PartitionName>),
        (found, heads): (&mut Vec<Waiting>, &mut Heads),
    ) -> Result<()> {
        while found.len() < want {
            let step = (want - found.len()).max(STEP_MIN);
            let values = Params::new()
                .one(queue.name.as_str())
                .one(after.as_ref().map_or("", PartitionName::as_str))
                .one(up_to.map(PartitionName::as_str))
                .one(self.facts.now)
                .one(queue.partition_limit.is_some())
                .one(queue.partition_rate.is_some())
                .one(step);
            let read = |row: &Row| waiting(&mut Columns::of(row), &queue.name);
            let rows = self.joined.db.rows(sql!("partitions"), values, read).await?;
            let more = rows.len() == step;
            after = rows.last().map(|(name, ..)| name.clone());
            for (name, head, waiting) in rows {
                let open = waiting.room(queue, self.facts.now) > 0;
                if let Some(head) = head.filter(|_| open && found.len() < want) {
                    found.push(waiting);
                    heads.insert(name, head);
                }
            }
            if !more {
                break;
            }
        }
        Ok(())
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
        let (db, request, now) = (&self.joined.db, self.request, self.facts.now);
        let named = || run.iter().filter_map(|ask| Some((ask.partition.as_ref()?, ask)));
        let kept = |values: Params| {
            let ends = now.plus(lease.as_duration());
            let values = values.one(request.claim).one(request.worker).one(ends);
            values.one(lease.as_millis()).many(raised.iter().copied())
        };
        if run.iter().all(|ask| ask.had == 0 && ask.limit == 1) {
            let ids = named().filter_map(|(name, _)| heads.get(name).copied());
            let values = kept(Params::new().many(ids).one(now));
            return taken_rows(db, sql!("claim_heads"), values).await;
        }
        let values = kept(Params::new().one(queue.as_str()).one(now).one(left))
            .many(named().map(|(name, _)| name.as_str()))
            .many(named().map(|(_, ask)| ask.limit));
        taken_rows(db, sql!("claim_turns"), values).await
    }
}

fn waiting(
    columns: &mut Columns<'_>,
    queue: &QueueName,
) -> Result<(PartitionName, Option<JobId>, Waiting)> {
    let name = columns.text(|text| PartitionName::new(text))?;
    let head = columns.maybe_id()?.map(JobId::from_uuid);
    let leased = columns.number()?;
    let starts = columns.starts(queue, &name)?;
    Ok((name.clone(), head, Waiting { partition: Some(name), leased, starts }))
}

/// Writes whose turn it was, and what may still be started.
pub(crate) async fn write(db: &Db<'_>, changes: &Changes) -> Result<()> {
    if !changes.turns.is_empty() {
        let turns = || changes.turns.iter();
        let named =
            |row: &TurnRow| row.partition.as_ref().map_or("", PartitionName::as_str).to_owned();
        let values = Params::new()
            .many(turns().map(|row| row.queue.as_str()))
            .many(turns().map(|row| row.turn))
            .many(turns().map(named));
        db.execute(sql!("write_turns"), values).await?;
    }
    if !changes.starts.is_empty() {
        let starts = || changes.starts.iter();
        let values = Params::new()
            .many(starts().map(|row| row.queue.as_str()))
            .many(starts().map(|row| row.partition.as_str()))
            .many(starts().map(|row| row.level))
            .many(starts().map(|row| row.at))
            .many(starts().map(|row| row.open_at))
            .many(starts().map(|row| row.full_at));
        db.execute(sql!("write_starts"), values).await?;
    }
    Ok(())
}
