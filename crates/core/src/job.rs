//! Owns what a caller asks for (a new job) and what it is told (new or existing). Knows nothing of
//! rows; the rules turn one into the other.

use std::time::Duration;

use crate::after::After;
use crate::error::{Error, Result};
use crate::hints::Wake;
use crate::id::JobId;
use crate::json::Json;
use crate::lifecycle::State;
use crate::name::{IdempotencyKey, JobKind, LifecycleName, PartitionName, QueueName, Scope};
use crate::request_hash::RequestHash;
use crate::time::{LeaseLength, Timestamp};

/// Priorities; a larger number is claimed first.
pub mod priority {
    /// Before its turn comes last.
    pub const LOW: i16 = -100;
    /// The priority of jobs that name none.
    pub const NORMAL: i16 = 0;
    /// Before its turn comes first.
    pub const HIGH: i16 = 100;
}

/// When a job may be claimed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RunAt {
    /// At once.
    #[default]
    Now,
    /// A while after the store's now.
    After(Duration),
    /// At an instant of the store's clock.
    At(Timestamp),
}

/// A job to be enqueued. Its id is made here, so the same value sent twice is one job.
///
/// ```
/// use leasehold_core::{Json, JobKind, NewJob};
///
/// let job = NewJob::new(JobKind::new("resize")?, Json::parse(r#"{"image": 7}"#)?);
/// # let _ = job;
/// # Ok::<(), leasehold_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewJob {
    /// The id, a UUIDv7 made within a day of the store's clock.
    pub id: JobId,
    /// The queue, `default` unless set.
    pub queue: QueueName,
    /// What the job is.
    pub kind: JobKind,
    /// What the job works on.
    pub payload: Json,
    /// Whose key it is, `''` unless set.
    pub scope: Scope,
    /// The key under which a second request is the same job.
    pub key: Option<IdempotencyKey>,
    /// How long the key lasts, from the enqueue; `None`: without end.
    pub key_ttl: Option<Duration>,
    /// Larger is claimed first; 0 unless set.
    pub priority: i16,
    /// When it may be claimed first.
    pub run_at: RunAt,
    /// The lifecycle, `standard` unless set; the newest registered revision is taken.
    pub lifecycle: LifecycleName,
    /// Attempts in place of the lifecycle's budget.
    pub max_attempts: Option<u16>,
    /// What the job is about, and which version of it.
    pub subject: Option<Subject>,
    /// Whether its subject is to be run anew; see [`NewJob::rerun`].
    pub rerun: bool,
    /// The W3C trace context to carry on.
    pub traceparent: Option<String>,
    /// The jobs it waits for; see [`NewJob::after`].
    pub after: Vec<After>,
    /// Whose share of the queue it belongs to; see [`NewJob::partition`].
    pub partition: Option<PartitionName>,
}

/// What a job is about, and which version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The subject's name.
    pub name: String,
    /// Its version.
    pub version: i64,
}

impl NewJob {
    /// Begins a job of a kind with a payload.
    pub fn new(kind: JobKind, payload: Json) -> Self {
        Self {
            id: JobId::new(),
            queue: QueueName::default_queue(),
            kind,
            payload,
            scope: Scope::global(),
            key: None,
            key_ttl: None,
            priority: priority::NORMAL,
            run_at: RunAt::Now,
            lifecycle: LifecycleName::standard(),
            max_attempts: None,
            subject: None,
            rerun: false,
            traceparent: None,
            after: Vec::new(),
            partition: None,
        }
    }

    /// Sets the id, for callers that must know it before they build the rest.
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.id = id;
        self
    }

    /// Sets the queue.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn key(mut self, key: IdempotencyKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets whose key it is.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Lets the key lapse a while after the enqueue.
    #[must_use]
    pub fn key_ttl(mut self, ttl: Duration) -> Self {
        self.key_ttl = Some(ttl);
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Puts the first claim off for a while.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.run_at = RunAt::After(delay);
        self
    }

    /// Puts the first claim off to an instant of the store's clock.
    #[must_use]
    pub fn run_at(mut self, at: Timestamp) -> Self {
        self.run_at = RunAt::At(at);
        self
    }

    /// Sets the lifecycle.
    #[must_use]
    pub fn lifecycle(mut self, lifecycle: LifecycleName) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// Sets the attempts in place of the lifecycle's budget; the first one counts.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u16) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Sets what the job is about.
    #[must_use]
    pub fn subject(mut self, name: impl Into<String>, version: i64) -> Self {
        self.subject = Some(Subject { name: name.into(), version });
        self
    }

    /// Runs the subject only where this version of it has not been run.
    ///
    /// A version that has succeeded is answered with its job and its result, one that is waiting or
    /// leased with its job; one whose job ended otherwise is run again, and so is a higher version
    /// than any before: as a new job, with new dedupe keys. A lower version is a `Conflict` that
    /// carries the newest job. Payloads are not compared. An idempotency key comes first: give each
    /// version its own, or none.
    #[must_use]
    pub fn rerun(mut self) -> Self {
        self.rerun = true;
        self
    }

    /// Sets the W3C trace context to carry on.
    #[must_use]
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Sets whose share of the queue it belongs to, a tenant's, say; see `docs/partitions.md`.
    #[must_use]
    pub fn partition(mut self, partition: PartitionName) -> Self {
        self.partition = Some(partition);
        self
    }

    /// The hash that tells a repeat of this request from another request.
    pub fn request_hash(&self) -> RequestHash {
        RequestHash::of_job(self.kind.as_str(), self.queue.as_str(), &self.payload)
    }

    /// Checks what an enqueue as statements needs; those cannot look at a subject's earlier runs, or at
    /// the jobs to wait for.
    ///
    /// # Errors
    /// `Invalid` naming the field and the limit.
    pub fn check_as_statements(&self, limits: &Limits) -> Result<()> {
        self.check(limits)?;
        if self.rerun {
            let why = "a rerun needs the store's own enqueue, statements cannot decide it";
            return Err(Error::invalid("enqueue_sql", why).about(format!("job {}", self.id)));
        }
        if !self.after.is_empty() {
            let why = "a job that waits for others needs the store's own enqueue, statements cannot \
                       lock them";
            return Err(Error::invalid("enqueue_sql", why).about(format!("job {}", self.id)));
        }
        Ok(())
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` naming the field and the limit.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let refuse =
            |why: String| Err(Error::invalid("enqueue", why).about(format!("job {}", self.id)));
        if self.payload.len() > limits.payload_bytes_max {
            return refuse(format!(
                "the payload has {} bytes, at most {} are allowed",
                self.payload.len(),
                limits.payload_bytes_max
            ));
        }
        if self.max_attempts == Some(0) {
            return refuse("max_attempts is 0, the first attempt counts as one".to_owned());
        }
        if self.key.is_none() && (self.key_ttl.is_some() || self.scope != Scope::global()) {
            return refuse("scope or key_ttl is set without a key".to_owned());
        }
        if self.after.len() > limits.parents_max {
            return refuse(format!(
                "it waits for {} jobs, at most {} are allowed",
                self.after.len(),
                limits.parents_max
            ));
        }
        if self.rerun && self.subject.is_none() {
            return refuse("a rerun without a subject and its version".to_owned());
        }
        if let Some(subject) = &self.subject {
            let bytes = subject.name.len();
            if bytes == 0 || bytes > 255 || subject.name.chars().any(char::is_control) {
                return refuse(format!(
                    "the subject has {bytes} bytes; 1 to 255 without control characters are allowed"
                ));
            }
            if subject.version < 0 {
                return refuse(format!("the subject's version {} is negative", subject.version));
            }
        }
        check_traceparent(self.traceparent.as_deref()).or_else(refuse)
    }
}

pub(crate) fn check_traceparent(text: Option<&str>) -> Result<(), String> {
    match text {
        Some(text) if text.len() > 255 || !text.bytes().all(|b| b.is_ascii_graphic()) => {
            Err("traceparent is not 1 to 255 printable ASCII characters".to_owned())
        }
        _ => Ok(()),
    }
}

/// The limits a store enforces; the defaults are the documented ones.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest payload, result, checkpoint or event payload, in bytes: 1 MiB.
    pub payload_bytes_max: usize,
    /// The largest blob, in bytes: 16 MiB.
    pub blob_bytes_max: usize,
    /// The most items of one call: 10,000.
    pub batch_max: usize,
    /// The most jobs that one job may wait for: 10,000.
    pub parents_max: usize,
    /// The most waits that one call may add: 50,000.
    pub waits_max: usize,
    /// How far an id's time may lie from the store's clock: 24 h; `None` switches the check off.
    pub id_skew_max: Option<Duration>,
    /// The lease of queues that set none.
    pub lease_default: LeaseLength,
    /// How long tombstones of pruned jobs are kept: 7 days.
    pub tombstone_ttl: Duration,
    /// The delivery attempts of an event that sets none: 10.
    pub event_attempts: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes_max: 1 << 20,
            blob_bytes_max: 16 << 20,
            batch_max: 10_000,
            parents_max: 10_000,
            waits_max: 50_000,
            id_skew_max: Some(Duration::from_secs(24 * 3600)),
            lease_default: LeaseLength::DEFAULT,
            tombstone_ttl: Duration::from_secs(7 * 24 * 3600),
            event_attempts: 10,
        }
    }
}

impl Limits {
    /// Refuses a batch that is too large.
    ///
    /// # Errors
    /// `Invalid` naming the limit.
    pub fn check_batch(&self, operation: &'static str, items: usize) -> Result<()> {
        if items <= self.batch_max {
            return Ok(());
        }
        let why = format!("{items} items, at most {} are allowed in one call", self.batch_max);
        Err(Error::invalid(operation, why))
    }
}

/// The answer to one enqueued item.
#[derive(Clone, Debug)]
#[must_use]
pub struct Enqueued {
    job: JobId,
    is_new: bool,
    state: Option<State>,
    result: Option<Json>,
    wake: Wake,
}

impl Enqueued {
    /// Puts an answer together; for stores.
    pub fn from_parts(job: JobId, is_new: bool, state: Option<State>, wake: Wake) -> Self {
        Self { job, is_new, state, result: None, wake }
    }

    /// Adds the result of a run that has succeeded; for stores.
    pub fn with_result(mut self, result: Option<Json>) -> Self {
        self.result = result;
        self
    }

    /// The job: the new one, or the one that the key or id already names.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// Whether this call made the job.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The job's state; `None` where only its key is left.
    pub fn state(&self) -> Option<State> {
        self.state
    }

    /// The result of the version that was asked for again and has succeeded, while it is kept.
    pub fn result(&self) -> Option<&Json> {
        self.result.as_ref()
    }

    /// The wake-up to send after the caller's own commit; the store's own enqueue has sent it.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }
}
