//! Owns upkeep: what a store tells of itself (stats), and what it lets go of (prune).

use std::time::Duration;

use crate::error::{Error, Result};
use crate::fence::Epoch;
use crate::name::QueueName;
use crate::time::Timestamp;

/// How much a look at a store counts. What is left out stands at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatsScope {
    /// Nothing: the clock, the engine, the settings of the queues, the warnings. Costs the same however many rows
    /// there are.
    Health,
    /// Also what is not over: jobs that wait or are leased, undelivered and dead events. Costs as much as there is
    /// of these.
    Live,
    /// Also what has ended and was not pruned.
    All,
}

/// How much is where.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The store's now.
    pub now: Timestamp,
    /// The store's epoch.
    pub epoch: Epoch,
    /// The limit over all queues.
    pub limit: Option<u32>,
    /// Each queue, by name.
    pub queues: Vec<QueueStats>,
    /// The outbox.
    pub outbox: OutboxStats,
    /// The engine and its version, for people.
    pub engine: String,
    /// How many bytes the write-ahead log takes up, where the engine keeps one beside the database.
    pub log_bytes: Option<u64>,
    /// What an operator should know, for people; empty when all is well.
    pub warnings: Vec<String>,
    /// Whether wake-ups of other processes are heard at this moment; `None` where nobody listens for
    /// them, and while the first connection that does is on its way. Without them pick-up takes up to one poll.
    pub wake_ups_heard: Option<bool>,
}

impl Stats {
    /// Puts empty figures together; stores fill them.
    pub fn new(now: Timestamp, epoch: Epoch, engine: impl Into<String>) -> Self {
        Self {
            now,
            epoch,
            limit: None,
            queues: Vec::new(),
            outbox: OutboxStats::default(),
            engine: engine.into(),
            log_bytes: None,
            warnings: Vec::new(),
            wake_ups_heard: None,
        }
    }

    /// Notes whether wake-ups of other processes are heard, with a warning when not; for stores.
    pub fn tell_of_wake_ups(&mut self, heard: bool) {
        self.wake_ups_heard = Some(heard);
        if !heard {
            let why = "wake-ups of other processes are not heard now; pick-up takes up to one poll";
            self.warnings.push(why.to_owned());
        }
    }

    /// The figures of one queue.
    pub fn queue(&self, name: &QueueName) -> Option<&QueueStats> {
        self.queues.iter().find(|queue| queue.name == *name)
    }
}

/// How much is where in one queue.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QueueStats {
    /// The queue.
    pub name: QueueName,
    /// Whether it is paused.
    pub paused: bool,
    /// Its limit of unexpired leases.
    pub limit: Option<u32>,
    /// Waiting and due.
    pub ready: u64,
    /// Waiting and not yet due.
    pub later: u64,
    /// Waiting for other jobs.
    pub blocked: u64,
    /// Leased.
    pub leased: u64,
    /// Leased, but the lease has run out.
    pub expired: u64,
    /// Succeeded.
    pub succeeded: u64,
    /// Failed.
    pub failed: u64,
    /// Dead-lettered.
    pub dead_letter: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// When the longest-due waiting job became due.
    pub oldest_ready: Option<Timestamp>,
    /// When the first of the waiting jobs was due, or will be; those that wait for other jobs do not count.
    pub first_due: Option<Timestamp>,
}

impl QueueStats {
    /// Begins a queue's figures at zero.
    pub fn new(name: QueueName, paused: bool, limit: Option<u32>) -> Self {
        Self {
            name,
            paused,
            limit,
            ready: 0,
            later: 0,
            blocked: 0,
            leased: 0,
            expired: 0,
            succeeded: 0,
            failed: 0,
            dead_letter: 0,
            cancelled: 0,
            oldest_ready: None,
            first_due: None,
        }
    }
}

/// How much is where in the outbox.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OutboxStats {
    /// Waiting.
    pub waiting: u64,
    /// Leased.
    pub leased: u64,
    /// Delivered and not pruned.
    pub delivered: u64,
    /// Dead-lettered.
    pub dead_letter: u64,
    /// When the oldest undelivered event was published.
    pub oldest_waiting: Option<Timestamp>,
}

/// What to let go of, at most `limit` rows of each sort. Ages are the queues' own.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PruneRequest {
    /// The most rows of each sort: 1,000 unless set.
    pub limit: usize,
    /// An age for every ended job, in place of the queues' own.
    pub older_than: Option<Duration>,
}

impl Default for PruneRequest {
    fn default() -> Self {
        Self { limit: 1_000, older_than: None }
    }
}

impl PruneRequest {
    /// Prunes by the queues' own ages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or above 10,000.
    pub fn check(&self) -> Result<()> {
        if (1..=10_000).contains(&self.limit) {
            return Ok(());
        }
        let why = format!("a limit of {}, 1 to 10,000 are allowed", self.limit);
        Err(Error::invalid("prune", why))
    }

    /// Sets the most rows of each sort.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets an age for every ended job and event, in place of the queues' own.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }
}

/// How much was let go of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Ended jobs; each leaves a tombstone.
    pub jobs: u64,
    /// Delivered or dead-lettered events.
    pub events: u64,
    /// Idempotency keys past their end.
    pub keys: u64,
    /// Tombstones past their end.
    pub tombstones: u64,
    /// Idempotency records past their end.
    pub records: u64,
    /// Documents past their end; each leaves its version for as long as tombstones are kept.
    pub documents: u64,
    /// The versions of documents that went long enough ago.
    pub versions: u64,
    /// Blobs past their end.
    pub blobs: u64,
    /// Buckets of rate tokens that are full again.
    pub buckets: u64,
    /// Buckets of partitions' starts that are full again.
    pub starts: u64,
}

impl Pruned {
    /// How many rows went in all.
    pub fn total(&self) -> u64 {
        let jobs = self.jobs + self.events + self.keys + self.tombstones;
        jobs + self.records
            + self.documents
            + self.versions
            + self.blobs
            + self.buckets
            + self.starts
    }
}
