//! Owns the claim and the reclaim of jobs: which candidates are taken, in which order, and within
//! which limits. What a reclaim does to a row is a rule of the contract.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use futures_util::future::try_join3;
use leasehold_core::row::{JobRow, Lease, QueueRow};
use leasehold_core::rules::{ClaimedRequest, Turns, Work, claim_order, queues_once, room};
use leasehold_core::{
    Claim, ClaimRequest, JobId, LeaseLength, Place, QueueName, ReclaimRequest, Reclaimable,
    Reclaimed, Result,
};
use tokio_postgres::Row;

use crate::bind::Params;
use crate::joined::{Joined, Verb};
use crate::load::{self, Facts};
use crate::row::{ClaimedBy, Columns};
use crate::statement::{Db, Sql, sql};
use crate::write::Spared;
use crate::{deliver, letters, turns};

/// The most expired rows that one claim takes back in passing.
const RECLAIM_MAX: usize = 1_000;

/// A row that was taken, and what it was asked for.
pub(crate) type Taken = (JobRow, ClaimedRequest);

/// One claim in the making.
pub(crate) struct Taking<'a> {
    pub(crate) joined: &'a Joined<'a>,
    pub(crate) facts: Facts,
    pub(crate) request: &'a ClaimRequest,
    queues: BTreeMap<QueueName, QueueRow>,
    /// Those of them that have rows of partitions.
    shared: BTreeSet<QueueName>,
    /// The ways around their partitions.
    pub(crate) turns: Vec<Turns>,
    rows: Vec<JobRow>,
    /// What each of `rows` was asked for.
    requests: Vec<ClaimedRequest>,
    /// How many of `rows` an earlier send of this request had taken.
    had: usize,
}

#[async_trait]
impl Verb for ClaimRequest {
    const NAME: &'static str = "claim";
    type Answer = Vec<Claim>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        self.check()?;
        let names = queues_once(&self.queues);
        let wanted: Vec<&QueueName> = names.iter().collect();
        let settings = load::queues(&tx.db, &wanted);
        let (facts, found, shared) =
            try_join3(tx.facts(), settings, turns::shared(&tx.db, &wanted)).await?;
        let mut taking = Taking {
            joined: tx,
            facts,
            request: self,
            queues: BTreeMap::new(),
            shared,
            turns: Vec::new(),
            rows: Vec::new(),
            requests: Vec::new(),
            had: 0,
        };
        if self.repeat {
            for name in &names {
                taking.again(name).await?;
            }
        }
        taking.look_up(found).await?;
        tx.shared.needs_long(names.iter().map(|name| (name, taking.is_limited(name))));
        for name in &names {
            taking.fill_from(name).await?;
        }
        taking.finish().await
    }
}

#[async_trait]
impl Verb for ReclaimRequest {
    const NAME: &'static str = "reclaim";
    type Answer = Reclaimed;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        let facts = tx.facts().await?;
        let mut work = facts.work(tx.shared);
        let mut done = Reclaimed::default();
        match &self.what {
            Reclaimable::Jobs(queues) => {
                let found = expired(&tx.db, &facts, queues.as_deref(), self.limit).await?;
                done.jobs = reclaim_rows(&tx.db, &mut work, found).await?;
                done.jobs.sort_unstable();
            }
            Reclaimable::Events(topics) => {
                let topics = topics.as_deref();
                let back = deliver::reclaim(&tx.db, &facts, &mut work, topics, self.limit).await?;
                back.count(&work, &mut done);
            }
            _ => {}
        }
        tx.write(work).await?;
        Ok(done)
    }
}

impl Taking<'_> {
    pub(crate) fn left(&self) -> usize {
        self.request.limit.saturating_sub(self.rows.len())
    }

    /// Takes rows in, in the claim order.
    pub(crate) fn take(&mut self, mut found: Vec<Taken>) {
        found.sort_by_key(|(row, _)| claim_order(row));
        for (row, request) in found {
            self.rows.push(row);
            self.requests.push(request);
        }
    }

    async fn again(&mut self, queue: &QueueName) -> Result<()> {
        let values = Params::new()
            .one(queue.as_str())
            .one(self.request.claim)
            .one(self.request.worker)
            .one(self.facts.now)
            .one(self.left());
        let read = |row: &Row| {
            let mut columns = Columns::of(row);
            let job = columns.job()?;
            let asked = columns.asked().map_err(|error| error.damaging(job.id))?;
            Ok((job, asked))
        };
        let found = self.joined.db.rows(sql!("claim_again"), values, read).await?;
        self.take(found);
        self.had = self.rows.len();
        Ok(())
    }

    /// Takes in the queues' settings. Where a limit holds or partitions take turns, its row is locked, the
    /// store's first and then the queues' by name, so that whoever counts under the same limit waits.
    async fn look_up(&mut self, mut found: Vec<QueueRow>) -> Result<()> {
        let Joined { db, shared, .. } = *self.joined;
        if self.left() > 0 {
            if self.facts.limit.is_some() {
                self.facts.lock_store(&db, shared).await?;
            }
            let limited = |row: &QueueRow| row.limit.is_some() || self.shared.contains(&row.name);
            let open = |row: &&QueueRow| limited(row) && !row.paused;
            let limited: Vec<&QueueName> = found.iter().filter(open).map(|row| &row.name).collect();
            if !limited.is_empty() {
                let locked = self.facts.lock_queues(&db, shared, &limited).await?;
                found.extend(locked);
            }
        }
        self.queues = found.into_iter().map(|row| (row.name.clone(), row)).collect();
        Ok(())
    }

    async fn fill_from(&mut self, name: &QueueName) -> Result<()> {
        let Some(queue) = self.queues.get(name).cloned() else { return Ok(()) };
        if queue.paused || self.left() == 0 {
            return Ok(());
        }
        if self.shared.contains(name) {
            return self.fill_in_turns(&queue).await;
        }
        let limited = self.is_limited(name);
        let raised = if limited { self.take_back(name).await? } else { Vec::new() };
        let want = self.left().min(self.room(&queue).await?);
        if want == 0 {
            return Ok(());
        }
        let lease = self.lease(&queue);
        let mut found = self.candidates(name, want, lease, &raised, limited).await?;
        if !limited && found.len() < want {
            let raised = self.take_back(name).await?;
            if !raised.is_empty() {
                let want = want - found.len();
                found.extend(self.candidates(name, want, lease, &raised, true).await?);
            }
        }
        self.take(found);
        Ok(())
    }

    /// Whether what a queue's claim takes depends on what is leased.
    fn is_limited(&self, name: &QueueName) -> bool {
        let has_limit = self.queues.get(name).is_some_and(|queue| queue.limit.is_some());
        has_limit || self.facts.limit.is_some() || self.shared.contains(name)
    }

    /// The lease of a queue's jobs.
    pub(crate) fn lease(&self, queue: &QueueRow) -> LeaseLength {
        self.request.lease_for(Some(queue), self.joined.shared.limits.lease_default)
    }

    /// Reclaims a queue's expired rows, written at once, so that they are candidates again.
    pub(crate) async fn take_back(&self, queue: &QueueName) -> Result<Vec<JobId>> {
        let queues = std::slice::from_ref(queue);
        let found = expired(&self.joined.db, &self.facts, Some(queues), RECLAIM_MAX).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let mut work = self.facts.work(self.joined.shared);
        let back = reclaim_rows(&self.joined.db, &mut work, found).await?;
        self.joined.write(work).await?;
        Ok(back.into_iter().map(|(id, _)| id).collect())
    }

    /// How many more leases the limits allow. What this very call took is counted too: it is written.
    pub(crate) async fn room(&self, queue: &QueueRow) -> Result<usize> {
        let (db, now) = (&self.joined.db, self.facts.now);
        let mut left = usize::MAX;
        if queue.limit.is_some() {
            let values = Params::new().one(queue.name.as_str()).one(now);
            left = left.min(room(queue.limit, count(db, sql!("count_leased"), values).await?));
        }
        if self.facts.limit.is_some() {
            let leased = count(db, sql!("count_leased_all"), Params::new().one(now)).await?;
            left = left.min(room(self.facts.limit, leased));
        }
        Ok(left)
    }

    /// Claims due rows. Unless told to go on `anyway` it takes all that are wanted or, while expired
    /// rows of the queue are free to be taken back first, none.
    pub(crate) async fn candidates(
        &self,
        queue: &QueueName,
        want: usize,
        lease: LeaseLength,
        raised: &[JobId],
        anyway: bool,
    ) -> Result<Vec<Taken>> {
        let now = self.facts.now;
        let values = Params::new()
            .one(queue.as_str())
            .one(now)
            .one(want)
            .one(self.request.claim)
            .one(self.request.worker)
            .one(now.plus(lease.as_duration()))
            .one(lease.as_millis())
            .many(raised.iter().copied())
            .one(anyway);
        self.taken(sql!("claim"), values, queue, lease).await
    }

    /// Runs one of the statements that take rows of a queue.
    pub(crate) async fn taken(
        &self,
        sql: Sql,
        values: Params,
        queue: &QueueName,
        lease: LeaseLength,
    ) -> Result<Vec<Taken>> {
        let now = self.facts.now;
        let lease = Lease {
            worker: self.request.worker,
            expires_at: now.plus(lease.as_duration()),
            heartbeat_at: now,
            length: lease,
        };
        let by = ClaimedBy { queue, claim: self.request.claim, lease };
        self.joined.db.rows(sql, values, |row| Columns::of(row).claimed(&by)).await
    }

    /// The jobs for which something may be left. Every claim raises the version, so a job at its first
    /// has not been executed before, unless this is the repeat of that claim; but it may go on where one
    /// that it replays has failed.
    fn executed_before(&self) -> Vec<JobId> {
        let again =
            |(at, row): &(usize, &JobRow)| *at < self.had || row.version.get() > 1 || row.again;
        self.rows.iter().enumerate().filter(again).map(|(_, row)| row.id).collect()
    }

    async fn finish(mut self) -> Result<Vec<Claim>> {
        if self.rows.is_empty() && self.turns.is_empty() {
            return Ok(Vec::new());
        }
        let mut work = self.facts.work(self.joined.shared);
        self.turns.iter().for_each(|turns| work.turned(turns));
        work.claimed(self.rows.get_mut(self.had..).unwrap_or_default())?;
        let mut checkpoints = load::checkpoints(&self.joined.db, &self.executed_before()).await?;
        let mut claims = Vec::with_capacity(self.rows.len());
        for (row, request) in self.rows.iter().zip(self.requests) {
            claims.push(work.claim_of(row, request, checkpoints.remove(&row.id))?);
        }
        let spared = Spared { is_last: true, ..Spared::default() };
        self.joined.write_sparing(work, &spared).await?;
        Ok(claims)
    }
}

async fn job_rows(db: &Db<'_>, sql: Sql, values: Params) -> Result<Vec<JobRow>> {
    db.rows(sql, values, |row| Columns::of(row).job()).await
}

async fn count(db: &Db<'_>, sql: Sql, values: Params) -> Result<u64> {
    let found: Option<u64> = db.row(sql, values, |row| Columns::of(row).number()).await?;
    Ok(found.unwrap_or(0))
}

async fn expired(
    db: &Db<'_>,
    facts: &Facts,
    queues: Option<&[QueueName]>,
    limit: usize,
) -> Result<Vec<JobRow>> {
    let Some(queues) = queues else {
        let values = Params::new().one(facts.now).one(limit);
        return job_rows(db, sql!("expired_jobs_all"), values).await;
    };
    let mut found: Vec<JobRow> = Vec::new();
    for queue in queues_once(queues) {
        let left = limit.saturating_sub(found.len());
        let values = Params::new().one(queue.as_str()).one(facts.now).one(left);
        found.extend(job_rows(db, sql!("expired_jobs"), values).await?);
    }
    Ok(found)
}

async fn reclaim_rows(
    db: &Db<'_>,
    work: &mut Work,
    rows: Vec<JobRow>,
) -> Result<Vec<(JobId, Place)>> {
    let ids: Vec<JobId> = rows.iter().map(|row| row.id).collect();
    work.load_jobs(rows);
    letters::load(db, work).await?;
    let mut done = Vec::with_capacity(ids.len());
    for id in ids {
        done.extend(work.reclaim(id)?.map(|place| (id, place)));
    }
    Ok(done)
}
