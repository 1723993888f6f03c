//! Owns what happens to leases besides their end by a verdict: the claim, the renewal, the reclaim.

use std::cmp::Reverse;
use std::time::Duration;

use super::Work;
use super::changes::Draft;
use super::ownership::Ownership;
use crate::claim::{ClaimRequest, RenewRequest, Renewal};
use crate::error::{Error, LostReason, Result};
use crate::failure::{Failure, FailureCode};
use crate::fence::Fence;
use crate::id::JobId;
use crate::lifecycle::{Place, State, Verb};
use crate::name::QueueName;
use crate::row::{JobRow, Lease, QueueRow};
use crate::time::{LeaseLength, Timestamp};

impl ClaimRequest {
    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` without queues, or for a limit of 0 or above 10,000.
    pub fn check(&self) -> Result<()> {
        if self.queues.is_empty() {
            return Err(Error::invalid("claim", "no queue is named"));
        }
        if !(1..=10_000).contains(&self.limit) {
            let why = format!("a limit of {}, 1 to 10,000 are allowed", self.limit);
            return Err(Error::invalid("claim", why));
        }
        Ok(())
    }

    /// The lease that a claim from this queue gets.
    pub fn lease_for(&self, queue: Option<&QueueRow>, default: LeaseLength) -> LeaseLength {
        self.lease.or_else(|| queue.and_then(|queue| queue.lease)).unwrap_or(default)
    }
}

/// The total claim order: larger priority first, then `run_at`, then id.
pub fn claim_order(row: &JobRow) -> ClaimOrder {
    order_of(row.priority, row.run_at, row.id)
}

/// A job's place in the claim order.
pub type ClaimOrder = (Reverse<i16>, Timestamp, JobId);

pub(super) fn order_of(priority: i16, run_at: Timestamp, id: JobId) -> ClaimOrder {
    (Reverse(priority), run_at, id)
}

impl Work {
    /// Claims a waiting row in memory, for engines whose claim is not one statement. A row that was
    /// reclaimed in this very transaction is not raised twice.
    pub fn claim_row(&self, row: &mut JobRow, request: &ClaimRequest, lease: LeaseLength) {
        if !self.reclaimed.contains(&row.id) {
            row.version = row.version.next();
        }
        row.state = State::Leased;
        row.claim = Some(request.claim);
        row.last_verdict = None;
        row.lease = Some(Lease {
            worker: request.worker,
            expires_at: self.now.plus(lease.as_duration()),
            heartbeat_at: self.now,
            length: lease,
        });
        row.step = 0;
        row.attempts += 1;
        row.executions += 1;
        row.updated_at = row.updated_at.max(self.now);
        row.started_at = Some(self.now);
    }

    /// The due jobs of a queue that this transaction has made claimable and has not claimed, by id;
    /// for engines that write last and ask once a queue.
    pub fn freed<'a>(&'a self, queue: &'a QueueName) -> impl Iterator<Item = &'a JobRow> {
        let rows = self.changed_jobs.iter().filter_map(|id| self.jobs.get(id));
        let due = |row: &JobRow| !row.held && row.run_at <= self.now;
        rows.filter(move |row| row.state == State::Waiting && row.queue == *queue && due(row))
    }

    /// Logs rows that were just claimed (as they are now), where their jobs keep a log or events.
    ///
    /// # Errors
    /// `Corrupt` for a lifecycle that is not registered.
    pub fn claimed(&mut self, rows: &mut [JobRow]) -> Result<()> {
        for row in rows {
            let lifecycle = self.lifecycle(row)?.clone();
            let from = lifecycle.public_name(Place::Waiting, row.again).to_owned();
            let before = row.transition_seq;
            let worker = row.lease.map(|lease| lease.worker);
            let mut draft = Draft::default();
            let stage = row.stage;
            self.record_move(&mut draft, row, Verb::Claim, (&from, stage), worker, None)?;
            if row.transition_seq != before {
                draft.put(row.clone());
                self.merge(draft);
            }
        }
        Ok(())
    }

    /// Renews one claim whose row this transaction has locked (or knows to be gone).
    pub fn renew(&mut self, fence: &Fence, request: &RenewRequest) -> Renewal {
        let mut row = match self.job_ownership(fence) {
            Ok(Ownership::Owned(row)) => row,
            Ok(Ownership::Ended(..)) => return Renewal::Lost(LostReason::Settled),
            Err(why) => return Renewal::Lost(why),
        };
        let cancel_requested = row.cancel_requested;
        let remaining = self.extend(&mut row.lease, request.lease);
        row.updated_at = row.updated_at.max(self.now);
        self.merge(Draft { rows: vec![row], ..Draft::default() });
        Renewal::Renewed { remaining, cancel_requested }
    }

    pub(super) fn extend(
        &self,
        lease: &mut Option<Lease>,
        length: Option<LeaseLength>,
    ) -> Duration {
        let Some(lease) = lease else { return Duration::ZERO };
        lease.length = length.unwrap_or(lease.length);
        // A renewal never shortens a lease.
        lease.expires_at = lease.expires_at.max(self.now.plus(lease.length.as_duration()));
        lease.heartbeat_at = lease.heartbeat_at.max(self.now);
        lease.expires_at.since(self.now)
    }

    /// Takes a loaded job's expired lease back; `None` when it is not leased or not expired.
    ///
    /// # Errors
    /// `Corrupt` for a lifecycle that is not registered.
    pub fn reclaim(&mut self, id: JobId) -> Result<Option<Place>> {
        let Some(mut row) = self.jobs.get(&id).cloned() else { return Ok(None) };
        if row.lease.is_none_or(|lease| lease.expires_at > self.now) {
            return Ok(None);
        }
        let lifecycle = self.lifecycle(&row)?.clone();
        let mut draft = Draft::default();
        row.last_verdict = None;
        let failure = Failure::new(FailureCode::WorkerLost, "the lease ran out");
        let cancels = row.cancel_requested && lifecycle.after(row.place(), Verb::Cancel).is_some();
        let before = row.version;
        if cancels {
            self.take_edge(&mut draft, row, Verb::Cancel)?;
        } else if row.attempts < row.attempts_max {
            self.note_failure(&mut draft, id, &failure);
            self.take_edge(&mut draft, row, Verb::Reclaim)?;
        } else {
            row.version = row.version.next();
            self.end_badly(&mut draft, row, &lifecycle, Verb::Exhaust, &failure)?;
        }
        if let Some(row) = draft.rows.iter_mut().find(|row| row.id == id && row.version == before) {
            row.version = row.version.next();
        }
        let place = draft.row(id).map(JobRow::place);
        self.merge(draft);
        self.reclaimed.insert(id);
        Ok(place)
    }
}

/// How many more jobs a queue's limits allow, given how many rows are leased (or locked) now.
pub fn room(limit: Option<u32>, leased: u64) -> usize {
    match limit {
        None => usize::MAX,
        Some(limit) => usize::try_from(u64::from(limit).saturating_sub(leased)).unwrap_or(0),
    }
}

/// The queues of a claim in their order, each once.
pub fn queues_once(queues: &[QueueName]) -> Vec<QueueName> {
    let mut out: Vec<QueueName> = Vec::with_capacity(queues.len());
    for queue in queues {
        if !out.contains(queue) {
            out.push(queue.clone());
        }
    }
    out
}
