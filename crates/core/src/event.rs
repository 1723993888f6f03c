//! Owns outbox events: what is published, what a relay claims, and how a delivery ends.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::fence::EventFence;
use crate::id::{ClaimId, EventId, JobId, WorkerId};
use crate::job::{Limits, check_traceparent};
use crate::json::Json;
use crate::name::{OrderKey, Topic};
use crate::settle::VerdictKind;
use crate::time::{LeaseLength, Timestamp};

/// What an event is ordered by. Jobs and free keys are two namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ordering {
    /// With the other events of this job.
    Job(JobId),
    /// With the other events of this key.
    Key(OrderKey),
    /// With none.
    Unordered,
}

impl Ordering {
    /// The namespace as stored: `job`, `key` or `none`.
    pub const fn namespace(&self) -> &'static str {
        match self {
            Self::Job(_) => "job",
            Self::Key(_) => "key",
            Self::Unordered => "none",
        }
    }

    /// The job it is, where it is one.
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::Job(job) => Some(*job),
            Self::Key(_) | Self::Unordered => None,
        }
    }

    /// The key as stored.
    pub fn key_text(&self) -> Option<String> {
        match self {
            Self::Job(job) => Some(job.to_string()),
            Self::Key(key) => Some(key.as_str().to_owned()),
            Self::Unordered => None,
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn from_stored(namespace: &str, key: Option<&str>) -> Result<Self> {
        match (namespace, key) {
            ("job", Some(key)) => Ok(Self::Job(key.parse()?)),
            ("key", Some(key)) => Ok(Self::Key(OrderKey::new(key)?)),
            ("none", None) => Ok(Self::Unordered),
            _ => Err(Error::new(
                crate::ErrorKind::Corrupt,
                "ordering",
                format!("{namespace:?} with key {key:?} is no ordering"),
            )),
        }
    }
}

/// An event to be published. Its id is made here, so the same value sent twice is one event.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewEvent {
    /// The id, a UUIDv7, the same on every delivery.
    pub id: EventId,
    /// The topic.
    pub topic: Topic,
    /// What it is ordered by; `None`: by the job that publishes it, else unordered.
    pub ordering: Option<Ordering>,
    /// The payload, delivered byte for byte.
    pub payload: Json,
    /// Delivery attempts in place of the default 10.
    pub max_attempts: Option<u16>,
    /// The W3C trace context to carry on.
    pub traceparent: Option<String>,
}

impl NewEvent {
    /// Begins an event.
    pub fn new(topic: Topic, payload: Json) -> Self {
        let id = EventId::new();
        Self { id, topic, ordering: None, payload, max_attempts: None, traceparent: None }
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: EventId) -> Self {
        self.id = id;
        self
    }

    /// Sets what it is ordered by.
    #[must_use]
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.ordering = Some(ordering);
        self
    }

    /// Sets the delivery attempts.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u16) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Sets the W3C trace context to carry on.
    #[must_use]
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` naming the field and the limit.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let refuse =
            |why: String| Err(Error::invalid("publish", why).about(format!("event {}", self.id)));
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
        check_traceparent(self.traceparent.as_deref()).or_else(refuse)
    }
}

/// The answer to one published event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The event.
    pub event: EventId,
    /// Its place within its ordering key, from 1; `None` without a key.
    pub sequence: Option<i64>,
    /// Whether this call made it.
    pub is_new: bool,
}

impl Published {
    /// Puts an answer together; for stores.
    pub fn from_parts(event: EventId, sequence: Option<i64>, is_new: bool) -> Self {
        Self { event, sequence, is_new }
    }
}

/// A request for events to deliver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventClaimRequest {
    /// Who asks.
    pub worker: WorkerId,
    /// The id of this call.
    pub claim: ClaimId,
    /// The topics; `None`: all.
    pub topics: Option<Vec<Topic>>,
    /// The most events to take; 10 unless set.
    pub limit: usize,
    /// The lease; 30 s when `None`.
    pub lease: Option<LeaseLength>,
    /// Whether the reply to an earlier send of this very request was lost.
    pub repeat: bool,
}

impl EventClaimRequest {
    /// Begins a request for up to 10 events of all topics.
    pub fn new(worker: WorkerId) -> Self {
        let claim = ClaimId::new();
        Self { worker, claim, topics: None, limit: 10, lease: None, repeat: false }
    }

    /// Sets the topics.
    #[must_use]
    pub fn topics(mut self, topics: impl IntoIterator<Item = Topic>) -> Self {
        self.topics = Some(topics.into_iter().collect());
        self
    }

    /// Sets the most events to take.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the lease.
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

/// One event in hand.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct EventClaim {
    /// The proof that every later write presents.
    pub fence: EventFence,
    /// What is left of the lease; counted from before the request was sent.
    pub remaining: Duration,
    /// The topic.
    pub topic: Topic,
    /// What it is ordered by.
    pub ordering: Ordering,
    /// Its place within its ordering key.
    pub sequence: Option<i64>,
    /// The payload.
    pub payload: Json,
    /// Which delivery attempt this is, from 1.
    pub attempt: u32,
    /// How many there are.
    pub max_attempts: u32,
    /// The W3C trace context it carries.
    pub traceparent: Option<String>,
    /// When it was published.
    pub created_at: Timestamp,
}

/// How a delivery ends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventVerdict {
    /// It arrived.
    Delivered,
    /// It did not; with budget left and a retryable failure it waits for `delay`, else it ends in
    /// the outbox's dead letters.
    Retry {
        /// What went wrong.
        failure: Failure,
        /// How long to wait; at once when `None`.
        delay: Option<Duration>,
    },
    /// It never will.
    DeadLetter {
        /// What went wrong.
        failure: Failure,
    },
    /// It was not tried; the attempt does not count, the version rises.
    Release {
        /// How long to wait; at once when `None`.
        delay: Option<Duration>,
    },
}

impl EventVerdict {
    /// What went wrong, where something did.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Retry { failure, .. } | Self::DeadLetter { failure } => Some(failure),
            Self::Delivered | Self::Release { .. } => None,
        }
    }

    /// Which verdict this is.
    pub fn kind(&self) -> VerdictKind {
        match self {
            Self::Delivered => VerdictKind::Delivered,
            Self::Retry { .. } => VerdictKind::Retry,
            Self::DeadLetter { .. } => VerdictKind::DeadLetter,
            Self::Release { .. } => VerdictKind::Release,
        }
    }
}

/// One delivery's end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventSettlement {
    /// The claim's proof.
    pub fence: EventFence,
    /// How it ends.
    pub verdict: EventVerdict,
}

impl EventSettlement {
    /// Puts a settlement together.
    pub fn new(fence: EventFence, verdict: EventVerdict) -> Self {
        Self { fence, verdict }
    }
}

/// Where an outbox event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventState {
    /// To be delivered.
    Waiting,
    /// A relay holds it.
    Leased,
    /// Delivered.
    Delivered,
    /// Given up; kept for an operator.
    DeadLetter,
}

impl EventState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Leased, Self::Delivered, Self::DeadLetter];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Leased => "leased",
            Self::Delivered => "delivered",
            Self::DeadLetter => "dead_letter",
        }
    }

    /// How long an event that ended here stays, in seconds; `None` for live states.
    pub const fn keep_seconds(self) -> Option<i64> {
        match self {
            Self::Delivered => Some(24 * 3600),
            Self::DeadLetter => Some(30 * 24 * 3600),
            Self::Waiting | Self::Leased => None,
        }
    }

    /// Reads a stored name.
    ///
    /// # Errors
    /// `Corrupt` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            Error::new(
                crate::ErrorKind::Corrupt,
                "event state",
                format!("{text:?} is not an event state"),
            )
        })
    }
}
