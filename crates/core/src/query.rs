//! Owns reads: what can be asked, the views that come back, and keyset paging. Every listing is
//! ordered by id (or sequence), so a page neither skips nor repeats under concurrent writes.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::event::{EventState, Ordering};
use crate::fence::ClaimVersion;
use crate::id::{EventId, JobId, WorkerId};
use crate::job::Subject;
use crate::json::Json;
use crate::letter::{LetterFilter, LetterState};
use crate::lifecycle::{State, Verb};
use crate::name::{
    Actor, IdempotencyKey, JobKind, LifecycleName, PartitionName, QueueName, Scope, StageName,
    Topic,
};
use crate::settle::VerdictKind;
use crate::time::Timestamp;
use crate::wait_view::{ParentCounts, WaitView};

/// What to list.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Query {
    /// Jobs.
    Jobs(JobFilter, Paging),
    /// Outbox events.
    Events(EventFilter, Paging),
    /// Dead letters of jobs, by job.
    DeadLetters(Option<QueueName>, Paging),
    /// Dead letters of jobs that fit a filter, by job.
    Letters(LetterFilter, Paging),
    /// The transition log of one job.
    Transitions(JobId, Paging),
    /// Queues and their settings, by name; paging does not apply.
    Queues,
    /// What one job waits for or has waited for, by parent.
    Parents(JobId, Paging),
    /// What waits for one job or has waited for it, by child.
    Children(JobId, Paging),
    /// How many of a job's parents are where; paging does not apply.
    ParentCounts(JobId),
    /// What is left of one job that was pruned; paging does not apply.
    Tombstone(JobId),
}

/// Which jobs; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JobFilter {
    /// This job.
    pub id: Option<JobId>,
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// At this state.
    pub state: Option<State>,
    /// Of this kind.
    pub kind: Option<JobKind>,
    /// Holding this key.
    pub key: Option<(Scope, IdempotencyKey)>,
    /// About this subject (any version).
    pub subject: Option<String>,
    /// Of this partition, in any queue.
    pub partition: Option<PartitionName>,
}

impl JobFilter {
    /// Every row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only this job.
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Only of this queue.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Only at this state.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// Only of this kind.
    #[must_use]
    pub fn kind(mut self, kind: JobKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Only the holder of this key.
    #[must_use]
    pub fn key(mut self, key: (Scope, IdempotencyKey)) -> Self {
        self.key = Some(key);
        self
    }

    /// Only about this subject, in any version.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Only of this partition, in any queue.
    #[must_use]
    pub fn partition(mut self, partition: PartitionName) -> Self {
        self.partition = Some(partition);
        self
    }
}

/// Which events; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EventFilter {
    /// This event.
    pub id: Option<EventId>,
    /// Of this topic.
    pub topic: Option<Topic>,
    /// At this state.
    pub state: Option<EventState>,
    /// Ordered by this job or key.
    pub ordering: Option<Ordering>,
}

impl EventFilter {
    /// Every row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only this event.
    #[must_use]
    pub fn id(mut self, id: EventId) -> Self {
        self.id = Some(id);
        self
    }

    /// Only of this topic.
    #[must_use]
    pub fn topic(mut self, topic: Topic) -> Self {
        self.topic = Some(topic);
        self
    }

    /// Only at this state.
    #[must_use]
    pub fn state(mut self, state: EventState) -> Self {
        self.state = Some(state);
        self
    }

    /// Only ordered by this job or key.
    #[must_use]
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.ordering = Some(ordering);
        self
    }
}

/// Which part of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Paging {
    /// The most rows: 1 to 1,000; 100 unless set.
    pub size: usize,
    /// Where the page before ended.
    pub after: Option<Cursor>,
}

impl Default for Paging {
    fn default() -> Self {
        Self { size: 100, after: None }
    }
}

impl Paging {
    /// The first page of a size.
    pub fn first(size: usize) -> Self {
        Self { size, after: None }
    }

    /// The page after a cursor.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Refuses a size out of range.
    ///
    /// # Errors
    /// `Invalid` naming the limit.
    pub fn check(&self) -> Result<()> {
        if (1..=1000).contains(&self.size) {
            return Ok(());
        }
        Err(Error::invalid("find", format!("a page of {} rows, 1 to 1,000 are allowed", self.size)))
    }
}

/// Where a page ended; text for URLs and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The last row's id.
    pub id: uuid::Uuid,
    /// The last row's sequence or version, 0 where the listing has none.
    pub sequence: i64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.id.as_simple(), self.sequence)
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (id, sequence) = text.split_once('.')?;
            let sequence: i64 = sequence.parse().ok().filter(|n| *n >= 0)?;
            Some(Self { id: uuid::Uuid::try_parse(id).ok()?, sequence })
        };
        parse().ok_or_else(|| Error::invalid("find", format!("{text:?} is not a cursor")))
    }
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// Puts a page together; for stores.
    pub fn from_parts(items: Vec<T>, next: Option<Cursor>) -> Self {
        Self { items, next }
    }
}

/// One row of a listing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Found {
    /// A job.
    Job(Box<JobView>),
    /// An event.
    Event(Box<EventView>),
    /// A dead letter.
    DeadLetter(Box<DeadLetterView>),
    /// A logged transition.
    Transition(TransitionView),
    /// A queue.
    Queue(QueueView),
    /// A wait.
    Wait(WaitView),
    /// How many of a job's parents are where.
    ParentCounts(ParentCounts),
    /// What is left of a pruned job.
    Tombstone(crate::tombstone_view::TombstoneView),
    /// A row of the listing that cannot be read; the others are there.
    Unreadable(crate::listing::UnreadableView),
}

/// A job as a reader sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the job's columns; contract.md describes them")]
pub struct JobView {
    pub id: JobId,
    pub queue: QueueName,
    pub kind: JobKind,
    pub lifecycle: LifecycleName,
    pub state: State,
    /// The state's public name in its lifecycle.
    pub status: String,
    pub stage: StageName,
    pub priority: i16,
    pub run_at: Timestamp,
    /// Attempts of the present budget that are used.
    pub attempts: u32,
    pub max_attempts: u32,
    /// How often the job was begun in all.
    pub executions: u32,
    pub claim_version: ClaimVersion,
    pub worker: Option<WorkerId>,
    pub lease_expires_at: Option<Timestamp>,
    pub last_verdict: Option<VerdictKind>,
    pub cancel_requested: bool,
    /// Waiting, and not to be claimed while jobs it waits for are not over.
    pub blocked: bool,
    pub scope: Scope,
    pub key: Option<IdempotencyKey>,
    pub subject: Option<Subject>,
    pub payload: Json,
    pub result: Option<Json>,
    pub checkpoint: Option<Json>,
    /// The last failure, in its stored form.
    pub failure: Option<Json>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub partition: Option<PartitionName>,
    pub replay_of: Option<JobId>,
}

/// An outbox event as a reader sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the event's columns; contract.md describes them")]
pub struct EventView {
    pub id: EventId,
    pub topic: Topic,
    pub ordering: Ordering,
    pub sequence: Option<i64>,
    pub payload: Json,
    pub state: EventState,
    pub attempts: u32,
    pub max_attempts: u32,
    pub claim_version: ClaimVersion,
    pub failure: Option<Json>,
    pub created_at: Timestamp,
    pub run_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// A dead letter as a reader sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the letter's columns; contract.md describes them")]
pub struct DeadLetterView {
    pub job: JobId,
    pub claim_version: ClaimVersion,
    pub queue: QueueName,
    pub kind: JobKind,
    pub stage: StageName,
    /// The stable failure id, such as `NETWORK_TIMEOUT`.
    pub error_class: String,
    /// The failure: class, message, redacted stack, sanitized context.
    pub failure: Json,
    pub attempts: u32,
    pub first_failure_at: Timestamp,
    pub last_failure_at: Timestamp,
    pub state: LetterState,
    pub replay_job: Option<JobId>,
    pub changed_at: Option<Timestamp>,
    pub changed_by: Option<Actor>,
    pub note: Option<String>,
}

/// One logged transition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the transition's columns")]
pub struct TransitionView {
    pub job: JobId,
    pub sequence: i64,
    pub at: Timestamp,
    pub verb: Verb,
    /// Public name before.
    pub from: String,
    /// Public name after.
    pub to: String,
    pub claim_version: ClaimVersion,
    pub worker: Option<WorkerId>,
    pub actor: Option<Actor>,
}

/// A queue and its settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the queue's settings; see QueueSettings")]
pub struct QueueView {
    pub name: QueueName,
    pub paused: bool,
    pub limit: Option<u32>,
    pub lease: Option<crate::time::LeaseLength>,
    pub log: Option<bool>,
    pub partition_limit: Option<u32>,
    pub partition_rate: Option<crate::control::StartRate>,
}
