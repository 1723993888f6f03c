//! Owns what operators and start-up code set: queues, limits, lifecycles, cancels, the epoch.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::fence::Epoch;
use crate::id::{EventId, JobId, WorkerId};
use crate::letter::{LetterAct, Replay};
use crate::lifecycle::Lifecycle;
use crate::name::{Actor, QueueName, Topic};
use crate::record::{Rate, check_bucket};
use crate::time::LeaseLength;

/// One act of control; each is one transaction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Control {
    /// Stops claims from a queue; jobs in hand go on. Makes the queue where it does not exist.
    Pause(QueueName),
    /// Allows claims from a queue again.
    Resume(QueueName),
    /// Changes a queue's settings. Makes the queue where it does not exist.
    SetQueue(QueueName, QueueSettings),
    /// Limits the unexpired leases over all queues; `None` lifts the limit.
    SetStoreLimit(Option<u32>),
    /// Says whether events of a topic published from now on keep the order of their key.
    SetTopic {
        /// The topic.
        topic: Topic,
        /// Whether order is kept.
        ordered: bool,
    },
    /// Makes a lifecycle known; the same definition again changes nothing.
    Register(Box<Lifecycle>),
    /// Makes a worker's name known.
    Introduce {
        /// The worker.
        worker: WorkerId,
        /// Its name, for people.
        name: String,
    },
    /// Calls a job off: a waiting one at once, a leased one by a flag its handler is told of.
    RequestCancel {
        /// The job.
        job: JobId,
        /// Who asks.
        actor: Actor,
        /// Why.
        reason: Option<String>,
    },
    /// Takes a failed job back to waiting while its budget lasts.
    Retry {
        /// The job.
        job: JobId,
        /// Who asks.
        actor: Actor,
    },
    /// Makes a waiting job due now, whenever it was to run; one that its worker is about to put to
    /// rest is due again at once. Its budget stays.
    Wake {
        /// The job.
        job: JobId,
        /// Who asks.
        actor: Actor,
    },
    /// Runs a dead-lettered job again, with a fresh budget.
    Replay(Box<Replay>),
    /// Annotates, closes or escalates a job's newest dead letter.
    NoteLetter {
        /// What is done.
        act: LetterAct,
        /// The job.
        job: JobId,
        /// Who acts.
        actor: Actor,
        /// Why; must not be blank.
        note: String,
    },
    /// Sends a dead-lettered event again, with a fresh budget.
    ReplayEvent {
        /// The event.
        event: EventId,
        /// Who asks.
        actor: Actor,
    },
    /// Raises the epoch, so that no earlier fence or token lives.
    BumpEpoch {
        /// Who asks.
        actor: Actor,
    },
    /// Sets the store's clock to the machine's where that is possible: only when nothing is leased.
    /// Where the database server keeps the clock this changes nothing.
    ResetClock {
        /// Who asks.
        actor: Actor,
    },
}

/// A change of a queue's settings; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct QueueSettings {
    /// The most unexpired leases; `Some(None)` lifts the limit.
    pub limit: Option<Option<u32>>,
    /// The lease of claims that name none.
    pub lease: Option<LeaseLength>,
    /// Whether a transition log is kept; `Some(None)`: as the lifecycle says. For jobs enqueued
    /// from now on.
    pub log: Option<Option<bool>>,
    /// The most unexpired leases of each partition; `Some(None)` lifts the limit.
    pub partition_limit: Option<Option<u32>>,
    /// How fast jobs of each partition may be begun; `Some(None)` lifts the limit.
    pub partition_rate: Option<Option<StartRate>>,
    /// How long succeeded and cancelled jobs stay; 24 h unless set.
    pub keep_succeeded: Option<Duration>,
    /// How long failed jobs stay; 7 days unless set.
    pub keep_failed: Option<Duration>,
    /// How long dead letters stay; 30 days unless set.
    pub keep_dead: Option<Duration>,
}

impl QueueSettings {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most unexpired leases; `None` lifts the limit.
    #[must_use]
    pub fn limit(mut self, limit: Option<u32>) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets the lease of claims that name none.
    #[must_use]
    pub fn lease(mut self, lease: LeaseLength) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets whether a transition log is kept; `None`: as the lifecycle says.
    #[must_use]
    pub fn log(mut self, log: Option<bool>) -> Self {
        self.log = Some(log);
        self
    }

    /// Sets the most unexpired leases of each partition; `None` lifts the limit.
    ///
    /// Jobs without a partition are not limited by it. A limit below what is leased takes nothing
    /// away: it drains.
    #[must_use]
    pub fn partition_limit(mut self, limit: Option<u32>) -> Self {
        self.partition_limit = Some(limit);
        self
    }

    /// Sets how fast jobs of each partition may be begun; `None` lifts the limit.
    ///
    /// Jobs without a partition are not limited by it. A new rate begins with a full burst for each
    /// partition; the same one again changes nothing.
    #[must_use]
    pub fn partition_rate(mut self, rate: Option<StartRate>) -> Self {
        self.partition_rate = Some(rate);
        self
    }

    /// Sets how long ended jobs stay: succeeded and cancelled, failed, dead letters.
    #[must_use]
    pub fn keep(mut self, succeeded: Duration, failed: Duration, dead: Duration) -> Self {
        self.keep_succeeded = Some(succeeded);
        self.keep_failed = Some(failed);
        self.keep_dead = Some(dead);
        self
    }
}

/// How fast jobs may be begun: so many in a time, and how many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartRate {
    rate: Rate,
    burst: u32,
}

impl StartRate {
    /// Begins at most `burst` jobs at once, and in the long run `rate`.
    ///
    /// # Errors
    /// `Invalid` for a rate or a burst of 0 or above 1,000,000,000 (a second).
    pub fn new(rate: Rate, burst: u32) -> Result<Self> {
        check_bucket(rate, burst).map_err(|why| Error::invalid("set queue", why))?;
        Ok(Self { rate, burst })
    }

    /// Puts a rate together from its columns; for stores.
    ///
    /// # Errors
    /// `Corrupt` for what [`StartRate::new`] refuses.
    pub fn from_columns(hourly: i64, burst: i64) -> Result<Self> {
        let corrupt =
            |_| Error::new(ErrorKind::Corrupt, "load", "a rate of starts is out of range");
        let hourly = u64::try_from(hourly).unwrap_or(0);
        Self::new(Rate::of_hourly(hourly), u32::try_from(burst).unwrap_or(0)).map_err(corrupt)
    }

    /// How fast in the long run.
    pub fn rate(self) -> Rate {
        self.rate
    }

    /// How many at once.
    pub fn burst(self) -> u32 {
        self.burst
    }
}

/// What an act of control did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Controlled {
    /// It is done.
    Done,
    /// It was so already; nothing was written.
    Unchanged,
    /// The job is called off.
    Cancelled,
    /// The job's holder will be told at its next renewal.
    CancelRequested,
    /// The dead letter is being replayed, or has been.
    Replayed {
        /// The job that replays it: the same one, or the new one in its place.
        job: JobId,
        /// Whether an earlier request began that; nothing was written now.
        repeated: bool,
    },
    /// The epoch that holds now.
    Epoch(Epoch),
}
