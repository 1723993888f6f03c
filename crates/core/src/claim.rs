//! Owns what a worker asks for and gets: claims, renewals, and the jobs they carry.

use std::time::Duration;

use crate::error::LostReason;
use crate::fence::Fence;
use crate::id::{ClaimId, JobId, WorkerId};
use crate::job::Subject;
use crate::json::Json;
use crate::lifecycle::Place;
use crate::name::{JobKind, LifecycleName, PartitionName, QueueName, StageName, Topic};
use crate::time::{LeaseLength, Timestamp};

/// A request for jobs: queues in order, up to `limit`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClaimRequest {
    /// Who asks.
    pub worker: WorkerId,
    /// The id of this call, made here; the same request sent again is recognised by it.
    pub claim: ClaimId,
    /// The queues, first listed first filled from.
    pub queues: Vec<QueueName>,
    /// The most jobs to take; 1 unless set.
    pub limit: usize,
    /// The lease; the queue's own when `None`.
    pub lease: Option<LeaseLength>,
    /// Whether the reply to an earlier send of this very request was lost.
    pub repeat: bool,
}

impl ClaimRequest {
    /// Begins a request for one job of some queues.
    pub fn new(worker: WorkerId, queues: impl IntoIterator<Item = QueueName>) -> Self {
        Self {
            worker,
            claim: ClaimId::new(),
            queues: queues.into_iter().collect(),
            limit: 1,
            lease: None,
            repeat: false,
        }
    }

    /// Sets the most jobs to take.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the lease in place of the queues' own.
    #[must_use]
    pub fn lease(mut self, lease: LeaseLength) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets the id of this call.
    #[must_use]
    pub fn claim_id(mut self, claim: ClaimId) -> Self {
        self.claim = claim;
        self
    }

    /// Says that the reply to an earlier send was lost: what that send took is given first.
    #[must_use]
    pub fn repeat(mut self) -> Self {
        self.repeat = true;
        self
    }
}

/// One job in hand: what it is, the fence that proves the claim, and how long it lasts.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Claim {
    /// The proof that every later write presents.
    pub fence: Fence,
    /// What is left of the lease; counted from before the request was sent.
    pub remaining: Duration,
    /// When the lease ends, by the store's clock.
    pub lease_expires_at: Timestamp,
    /// The job.
    pub job: ClaimedJob,
}

/// The job of a claim.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClaimedJob {
    /// The id; also the handler's dedupe key over all executions.
    pub id: JobId,
    /// The queue it came from.
    pub queue: QueueName,
    /// What it is.
    pub kind: JobKind,
    /// What it works on.
    pub payload: Json,
    /// What an earlier execution left for this one.
    pub checkpoint: Option<Json>,
    /// Its lifecycle.
    pub lifecycle: LifecycleName,
    /// The stage it is at.
    pub stage: StageName,
    /// Which attempt of the budget this is, from 1.
    pub attempt: u32,
    /// How many attempts the budget has.
    pub max_attempts: u32,
    /// How often the job was begun in all, this time included.
    pub executions: u32,
    /// Its priority.
    pub priority: i16,
    /// What it is about.
    pub subject: Option<Subject>,
    /// The W3C trace context it carries.
    pub traceparent: Option<String>,
    /// Whose share of the queue it belongs to.
    pub partition: Option<PartitionName>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it became due.
    pub run_at: Timestamp,
}

/// A request to hold claims longer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RenewRequest<F = Fence> {
    /// The fences to renew.
    pub fences: Vec<F>,
    /// The new lease, from now; as at the claim when `None`.
    pub lease: Option<LeaseLength>,
}

impl<F> RenewRequest<F> {
    /// Begins a request to renew some fences.
    pub fn new(fences: impl IntoIterator<Item = F>) -> Self {
        Self { fences: fences.into_iter().collect(), lease: None }
    }

    /// Sets the lease in place of the claim's own.
    #[must_use]
    pub fn lease(mut self, lease: LeaseLength) -> Self {
        self.lease = Some(lease);
        self
    }
}

/// The answer to one renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease runs on.
    Renewed {
        /// What it lasts from the store's now.
        remaining: Duration,
        /// Whether the job's cancel was requested: the handler should stop.
        cancel_requested: bool,
    },
    /// The claim no longer owns the row.
    Lost(LostReason),
    /// Another transaction holds the row just now; the lease is as it was. Ask again soon.
    Locked,
}

/// Which expired leases to take back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReclaimRequest {
    /// Which rows.
    pub what: Reclaimable,
    /// The most rows of this call: 100 unless set.
    pub limit: usize,
}

/// Which rows a reclaim looks at.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reclaimable {
    /// Jobs of some queues; `None`: of all.
    Jobs(Option<Vec<QueueName>>),
    /// Outbox events of some topics; `None`: of all.
    Events(Option<Vec<Topic>>),
}

impl ReclaimRequest {
    /// Takes back expired jobs of all queues.
    pub fn jobs() -> Self {
        Self { what: Reclaimable::Jobs(None), limit: 100 }
    }

    /// Takes back expired jobs of some queues.
    pub fn queues(queues: impl IntoIterator<Item = QueueName>) -> Self {
        Self { what: Reclaimable::Jobs(Some(queues.into_iter().collect())), limit: 100 }
    }

    /// Takes back expired deliveries.
    pub fn events() -> Self {
        Self { what: Reclaimable::Events(None), limit: 100 }
    }

    /// Sets the most rows of this call.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// What a reclaim did; a row is listed once.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Reclaimed {
    /// The jobs taken back, in id order, and where each landed.
    pub jobs: Vec<(JobId, Place)>,
    /// How many deliveries went back to waiting.
    pub events_returned: usize,
    /// How many deliveries ended in the outbox's dead letters.
    pub events_dead: usize,
}

impl Reclaimed {
    /// How many rows were taken back.
    pub fn total(&self) -> usize {
        self.jobs.len() + self.events_returned + self.events_dead
    }
}
