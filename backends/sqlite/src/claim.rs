//! Owns the claim and the reclaim of jobs: which candidates are read, in which order, and within
//! which limits. What a claim does to a row is a rule of the contract.

use leasehold_core::row::{JobRow, QueueRow};
use leasehold_core::rules::{ClaimedRequest, Work, claim_order, queues_once, room};
use leasehold_core::{
    Claim, ClaimRequest, JobId, Json, PartitionName, QueueName, ReclaimRequest, Reclaimable,
    Reclaimed, Result,
};
use rusqlite::{Connection, Row, params};

use crate::error::corrupt;
use crate::joined::Joined;
use crate::load::{self, Before, Facts, bound};
use crate::row::Columns;
use crate::statement::{Sql, execute, id_list, row, rows, sql};
use crate::{deliver, letters, turns, waits, write};

/// The most expired rows that one claim takes back in passing.
const RECLAIM_MAX: usize = 1_000;

/// A row that may be claimed, and what was asked for where that is known already.
pub(crate) type Candidate = (JobRow, Option<Asked>);

/// What a claim tells of what was asked for, and what earlier executions left.
type Asked = (ClaimedRequest, Option<Json>);

/// One claim in the making.
pub(crate) struct Taking<'a> {
    pub(crate) joined: &'a Joined<'a>,
    pub(crate) facts: &'a Facts,
    request: &'a ClaimRequest,
    /// What is decided; turns of partitions among it.
    pub(crate) work: Work,
    rows: Vec<JobRow>,
    /// What was asked for with each of `rows`, where that is known already.
    asked: Vec<Option<Asked>>,
    /// How many of `rows` an earlier send of this request had taken.
    had: usize,
}

impl Joined<'_> {
    pub(crate) fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>> {
        request.check()?;
        self.verb("claim", |facts| {
            let work = facts.work(self.shared);
            let (rows, asked) = (Vec::new(), Vec::new());
            let mut taking = Taking { joined: self, facts, request, work, rows, asked, had: 0 };
            let queues = queues_once(&request.queues);
            if request.repeat {
                queues.iter().try_for_each(|queue| taking.again(queue))?;
            }
            queues.iter().try_for_each(|queue| taking.fill_from(queue))?;
            taking.finish()
        })
    }

    pub(crate) fn reclaim(&self, request: &ReclaimRequest) -> Result<Reclaimed> {
        self.verb("reclaim", |facts| {
            let mut work = facts.work(self.shared);
            let mut done = Reclaimed::default();
            match &request.what {
                Reclaimable::Jobs(queues) => {
                    let found = expired(self.conn, facts, queues.as_deref(), request.limit)?;
                    done.jobs = reclaim_rows(self.conn, &mut work, found)?;
                    done.jobs.sort_unstable();
                }
                Reclaimable::Events(topics) => {
                    deliver::reclaim(self, facts, &mut work, topics.as_deref(), request.limit)?
                        .count(&work, &mut done);
                }
                _ => {}
            }
            self.write(facts, work)?;
            Ok(done)
        })
    }
}

impl Taking<'_> {
    fn left(&self) -> usize {
        self.request.limit.saturating_sub(self.rows.len())
    }

    fn again(&mut self, queue: &QueueName) -> Result<()> {
        let values = params![
            queue.as_str(),
            self.request.claim.as_bytes().as_slice(),
            self.request.worker.as_bytes().as_slice(),
            self.facts.now.as_micros(),
            bound(self.left()),
        ];
        self.rows.extend(job_rows(self.joined.conn, sql!("claim_again"), values)?);
        self.asked.resize_with(self.rows.len(), || None);
        self.had = self.rows.len();
        Ok(())
    }

    fn fill_from(&mut self, name: &QueueName) -> Result<()> {
        let Some(queue) = load::queue(self.joined.conn, name)? else { return Ok(()) };
        if queue.paused || self.left() == 0 {
            return Ok(());
        }
        let shared = turns::are_taken(self.joined.conn, name)?;
        let limited = shared || queue.limit.is_some() || self.facts.limit.is_some();
        if limited {
            self.take_back(name)?;
        }
        let want = self.left().min(self.room(&queue)?);
        if shared {
            return self.fill_in_turns(&queue, want);
        }
        let mut found = self.candidates(name, None, None, want)?;
        if !limited && found.len() + self.freed(name).count() < want {
            self.take_back(name)?;
        }
        let freed: Vec<JobRow> = self.freed(name).cloned().collect();
        if !freed.is_empty() {
            found.extend(freed.into_iter().map(|row| (row, None)));
            found.sort_by_key(|(row, _)| claim_order(row));
            found.truncate(want);
        }
        self.keep(&queue, found);
        Ok(())
    }

    /// Claims rows, which stand in the claim order.
    pub(crate) fn keep(&mut self, queue: &QueueRow, found: Vec<Candidate>) {
        let lease = self.request.lease_for(Some(queue), self.joined.shared.limits.lease_default);
        for (mut row, asked) in found {
            self.work.claim_row(&mut row, self.request, lease);
            self.rows.push(row);
            self.asked.push(asked);
        }
    }

    /// What this claim has made claimable of no partition; partitions give by turns only.
    fn freed<'q>(&'q self, queue: &'q QueueName) -> impl Iterator<Item = &'q JobRow> {
        self.work.freed(queue).filter(|row| row.partition.is_none())
    }

    /// Reclaims a queue's expired rows.
    fn take_back(&mut self, queue: &QueueName) -> Result<()> {
        let queues = std::slice::from_ref(queue);
        let found = expired(self.joined.conn, self.facts, Some(queues), RECLAIM_MAX)?;
        reclaim_rows(self.joined.conn, &mut self.work, found)?;
        waits::resolve(self.joined.conn, &mut self.work)
    }

    fn room(&self, queue: &QueueRow) -> Result<usize> {
        let (conn, now) = (self.joined.conn, self.facts.now.as_micros());
        let mut left = usize::MAX;
        let fresh = self.rows.iter().skip(self.had);
        if queue.limit.is_some() {
            let leased = count(conn, sql!("count_leased"), params![queue.name.as_str(), now])?;
            left = left.min(room(queue.limit, leased));
        }
        if self.facts.limit.is_some() {
            let taken = u64::try_from(fresh.count()).unwrap_or(u64::MAX);
            let leased = count(conn, sql!("count_leased_all"), params![now])?;
            left = left.min(room(self.facts.limit, leased.saturating_add(taken)));
        }
        Ok(left)
    }

    /// Due rows in the claim order: one index range for each priority that is present, from the `first` on,
    /// where that is known.
    pub(crate) fn candidates(
        &self,
        queue: &QueueName,
        partition: Option<&PartitionName>,
        mut first: Option<i64>,
        want: usize,
    ) -> Result<Vec<Candidate>> {
        let conn = self.joined.conn;
        let mut found = Vec::new();
        let mut below = i64::from(i16::MAX) + 1;
        while found.len() < want {
            let next = match partition {
                _ if first.is_some() => first.take(),
                None => {
                    let values = params![queue.as_str(), below];
                    row(conn, sql!("claim_priority"), values, |row| Columns::of(row).raw())?
                }
                Some(name) => turns::priority_below(conn, queue, name, below)?,
            };
            let Some(priority) = next else { break };
            let left = want - found.len();
            found.extend(self.candidates_of(queue, partition, priority, left)?);
            below = priority;
        }
        Ok(found)
    }

    fn candidates_of(
        &self,
        queue: &QueueName,
        partition: Option<&PartitionName>,
        priority: i64,
        want: usize,
    ) -> Result<Vec<Candidate>> {
        let (conn, now) = (self.joined.conn, self.facts.now.as_micros());
        let (name, want) = (queue.as_str(), bound(want));
        let read = |row: &Row<'_>| candidate(row, queue);
        match partition {
            None => rows(conn, sql!("claim"), params![name, priority, now, want], read),
            Some(partition) => {
                let values = params![name, priority, now, want, partition.as_str()];
                rows(conn, sql!("claim_in"), values, read)
            }
        }
    }

    fn finish(mut self) -> Result<Vec<Claim>> {
        let Joined { conn, shared, .. } = *self.joined;
        let fresh = self.rows.get_mut(self.had..).unwrap_or_default();
        self.work.claimed(fresh)?;
        let pairs = || self.rows.iter().zip(&self.asked);
        let unknown = pairs().filter(|(_, asked)| asked.is_none()).map(|(row, _)| row.id);
        let mut more = load::asked(conn, unknown)?;
        let mut claims = Vec::with_capacity(self.rows.len());
        for (row, asked) in self.rows.iter().zip(self.asked) {
            let found = || more.remove(&row.id).map(|(request, left)| (request.into(), left));
            let asked = asked.or_else(found);
            let (request, left) =
                asked.ok_or_else(|| corrupt("a claimed job is gone").about(row.id))?;
            claims.push(self.work.claim_of(row, request, left)?);
        }
        let fresh = self.rows.get(self.had..).unwrap_or_default();
        // Rows that this transaction has reclaimed or logged are in hand, the others are only claimed.
        let in_hand = |row: &&JobRow| self.work.job(row.id).is_some();
        let (others, plain): (Vec<_>, Vec<_>) = fresh.iter().partition(in_hand);
        let mut changes = self.work.into_changes();
        write::changes(conn, shared, self.facts.now, &mut changes, &Before::new())?;
        if changes.is_empty() && !fresh.is_empty() {
            shared.clock.keep(conn, self.facts.now)?;
        }
        others.into_iter().try_for_each(|row| write::job(conn, row))?;
        write_claimed(conn, self.facts, self.request, &plain)?;
        Ok(claims)
    }
}

/// Writes rows that were waiting and are claimed: one statement for each length of lease.
fn write_claimed(
    conn: &Connection,
    facts: &Facts,
    request: &ClaimRequest,
    rows: &[&JobRow],
) -> Result<()> {
    let mut left = rows;
    while let Some(lease) = left.first().and_then(|row| row.lease) {
        let same = |row: &&&JobRow| row.lease.is_some_and(|it| it.length == lease.length);
        let (these, rest) = left.split_at(left.iter().take_while(same).count());
        let values = params![
            id_list(these.iter().map(|row| row.id.as_bytes())),
            request.claim.as_bytes().as_slice(),
            request.worker.as_bytes().as_slice(),
            lease.expires_at.as_micros(),
            facts.now.as_micros(),
            lease.length.as_millis(),
        ];
        if execute(conn, sql!("claim_jobs"), values)? != these.len() {
            return Err(corrupt("a job changed under the write lock"));
        }
        left = rest;
    }
    Ok(())
}

/// Reads a row of a queue with what was asked for.
pub(crate) fn candidate(row: &Row<'_>, queue: &QueueName) -> Result<Candidate> {
    let mut columns = Columns::of(row);
    let (row, request) = columns.waiting(queue)?;
    let checkpoint = columns.checkpoint(row.id)?;
    Ok((row, Some((request, checkpoint))))
}

fn job_rows(conn: &Connection, sql: Sql, values: impl rusqlite::Params) -> Result<Vec<JobRow>> {
    rows(conn, sql, values, |row| Columns::of(row).job())
}

fn count(conn: &Connection, sql: Sql, values: impl rusqlite::Params) -> Result<u64> {
    let found: Option<i64> = row(conn, sql, values, |row| Columns::of(row).raw())?;
    Ok(found.and_then(|n| u64::try_from(n).ok()).unwrap_or(0))
}

fn expired(
    conn: &Connection,
    facts: &Facts,
    queues: Option<&[QueueName]>,
    limit: usize,
) -> Result<Vec<JobRow>> {
    let now = facts.now.as_micros();
    let Some(queues) = queues else {
        return job_rows(conn, sql!("expired_jobs_all"), params![now, bound(limit)]);
    };
    let mut found = Vec::new();
    for queue in queues_once(queues) {
        let values = params![queue.as_str(), now, bound(limit.saturating_sub(found.len()))];
        found.extend(job_rows(conn, sql!("expired_jobs"), values)?);
    }
    Ok(found)
}

fn reclaim_rows(
    conn: &Connection,
    work: &mut Work,
    rows: Vec<JobRow>,
) -> Result<Vec<(JobId, leasehold_core::Place)>> {
    let ids: Vec<JobId> = rows.iter().map(|row| row.id).collect();
    work.load_jobs(rows);
    letters::load(conn, work)?;
    let mut done = Vec::with_capacity(ids.len());
    for id in ids {
        done.extend(work.reclaim(id)?.map(|place| (id, place)));
    }
    Ok(done)
}
