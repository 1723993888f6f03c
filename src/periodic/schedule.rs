//! Owns what a schedule says: when, what, and what becomes of ticks that nobody saw in time.

use std::time::Duration;

use leasehold_core::{
    Error, IdempotencyKey, JobKind, Json, LifecycleName, NewJob, QueueName, RecordKey, Result,
    Scope, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::ticks::Calendar;

/// The longest name, in bytes: a job's key holds it together with the tick.
const NAME_BYTES_MAX: usize = 200;
/// How long a tick's key is kept: longer than any node may stand still between reading and enqueueing.
const KEY_TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// What becomes of ticks that nobody made into jobs in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// They are left out.
    Skip,
    /// The latest of them runs, once for all.
    #[default]
    Once,
    /// Each of them runs, the oldest first.
    All,
}

/// A job to be made at every tick of a cron expression.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Schedule {
    /// Its name; another schedule of that name takes its place.
    pub name: RecordKey,
    /// When: five fields, six with seconds first, or a nickname such as `@daily`.
    pub cron: String,
    /// In which time zone, such as `Europe/Paris` or `UTC`.
    pub zone: String,
    /// The queue of its jobs.
    pub queue: QueueName,
    /// What its jobs are.
    pub kind: JobKind,
    /// What its jobs work on.
    pub payload: Json,
    /// The lifecycle of its jobs.
    pub lifecycle: LifecycleName,
    /// The priority of its jobs.
    pub priority: i16,
    /// What becomes of missed ticks.
    pub missed: Missed,
    /// From how late on a tick counts as missed.
    pub grace: Duration,
}

impl Schedule {
    /// Begins a schedule on the default queue whose missed ticks run once for all.
    ///
    /// # Errors
    /// `Invalid` for a name over 200 bytes, an expression that cannot be read or that no day ever fits,
    /// an unknown time zone.
    pub fn new(
        name: impl AsRef<str>,
        cron: impl Into<String>,
        zone: impl Into<String>,
        kind: JobKind,
        payload: Json,
    ) -> Result<Self> {
        let (name, cron, zone) = (RecordKey::new(name)?, cron.into(), zone.into());
        let bytes = name.as_str().len();
        if bytes > NAME_BYTES_MAX {
            let why = format!("the name has {bytes} bytes, at most {NAME_BYTES_MAX} are allowed");
            return Err(Error::invalid("schedule", why));
        }
        Calendar::new(&cron, &zone).map_err(|error| error.about(&name))?;
        Ok(Self {
            name,
            cron,
            zone,
            queue: QueueName::default_queue(),
            kind,
            payload,
            lifecycle: LifecycleName::standard(),
            priority: 0,
            missed: Missed::default(),
            grace: Duration::from_secs(60),
        })
    }

    /// Sets the queue of its jobs.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the lifecycle of its jobs.
    #[must_use]
    pub fn lifecycle(mut self, lifecycle: LifecycleName) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// Sets the priority of its jobs.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Sets what becomes of missed ticks.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Sets from how late on a tick counts as missed, in whole seconds.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Duration::from_secs(grace.as_secs());
        self
    }

    pub(super) fn calendar(&self) -> Result<Calendar> {
        Calendar::new(&self.cron, &self.zone)
    }

    /// The job of a tick. Its subject is the schedule's name, with the tick's Unix seconds as version.
    pub(super) fn job(&self, tick: Timestamp) -> Result<NewJob> {
        let seconds = tick.as_micros() / 1_000_000;
        let key = IdempotencyKey::new(format!("{}@{seconds}", self.name))?;
        Ok(NewJob::new(self.kind.clone(), self.payload.clone())
            .queue(self.queue.clone())
            .lifecycle(self.lifecycle.clone())
            .priority(self.priority)
            .scope(Scope::new("leasehold.periodic")?)
            .key(key)
            .key_ttl(KEY_TTL)
            .subject(self.name.as_str(), seconds))
    }
}
