//! Owns the shape of stored rows, one struct a table, as every engine keeps them. The rules change
//! these; a backend only reads and writes them.

use crate::after::OnFailure;
use crate::control::StartRate;
use crate::event::{EventState, Ordering};
use crate::fence::ClaimVersion;
use crate::id::{ClaimId, EventId, JobId, WorkerId};
use crate::job::Subject;
use crate::json::Json;
use crate::letter::LetterState;
use crate::lifecycle::{Place, State, Verb};
use crate::name::{
    Actor, BucketName, IdempotencyKey, JobKind, LifecycleName, OrderKey, PartitionName, QueueName,
    Scope, StageName, Topic,
};
use crate::record::{AuditEntry, RecordId};
use crate::request_hash::RequestHash;
use crate::settle::VerdictKind;
use crate::time::{LeaseLength, Timestamp};

/// A lease as a leased row holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct Lease {
    pub worker: WorkerId,
    pub expires_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub length: LeaseLength,
}

/// The narrow row of a job (table `jobs`).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct JobRow {
    pub id: JobId,
    pub queue: QueueName,
    pub kind: JobKind,
    pub lifecycle: LifecycleName,
    pub revision: u32,
    pub state: State,
    /// Ordinal of the stage it is at, or would be claimed at.
    pub stage: u8,
    pub priority: i16,
    pub run_at: Timestamp,
    /// Waiting for other jobs: nobody may claim it (see [`WaitRow`]).
    pub held: bool,
    /// Waiting after a failure.
    pub again: bool,
    /// Whether its transitions are logged.
    pub log: bool,
    /// Attempts used of the present budget (the job's, or the stage's).
    pub attempts: u32,
    pub attempts_max: u32,
    /// How often it was begun in all.
    pub executions: u32,
    pub version: ClaimVersion,
    /// The latest claim, kept after its end.
    pub claim: Option<ClaimId>,
    /// How the latest claim ended; `None` while it runs, and when its lease lapsed.
    pub last_verdict: Option<VerdictKind>,
    /// Exactly when leased.
    pub lease: Option<Lease>,
    /// The last progress report of the latest claim.
    pub step: u32,
    pub cancel_requested: bool,
    /// The last transition's number.
    pub transition_seq: i64,
    /// The last event's number under this job's ordering key.
    pub event_seq: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// Whose share of the queue it belongs to.
    pub partition: Option<PartitionName>,
}

impl JobRow {
    /// Where the job is.
    pub fn place(&self) -> Place {
        Place::of(self.state, self.stage)
    }
}

/// What was asked for (the last columns of table `jobs`); never changes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct RequestRow {
    pub job: JobId,
    pub payload: Json,
    pub hash: RequestHash,
    pub scope: Scope,
    pub key: Option<IdempotencyKey>,
    pub subject: Option<Subject>,
    pub traceparent: Option<String>,
}

/// One job's wait for another (table `waits`); goes with the job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitRow {
    /// The job that waits.
    pub job: JobId,
    /// The job it waits for.
    pub parent: JobId,
    /// What becomes of it when that one does not end well.
    pub on_failure: OnFailure,
    /// Whether it still waits; an open wait keeps a waiting job from being claimed.
    pub open: bool,
    /// How the parent had ended when that was looked at last.
    pub outcome: Option<State>,
}

/// A change of what executions left (table `outcomes`); what is `None` stays as it is.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct OutcomePatch {
    pub job: JobId,
    pub checkpoint: Option<Json>,
    pub result: Option<Json>,
    pub failure: Option<Json>,
    /// Sets `last_failure_at`, and `first_failure_at` where that is not set.
    pub failed_at: Option<Timestamp>,
}

/// What executions left (table `outcomes`), as it is read.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct OutcomeRow {
    pub checkpoint: Option<Json>,
    pub result: Option<Json>,
    pub failure: Option<Json>,
}

/// The latest rerun of a subject (table `subjects`); outlasts its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectRow {
    /// The subject's name.
    pub name: String,
    /// The version that was run.
    pub version: i64,
    /// The job that ran it.
    pub job: JobId,
    /// What stood there when it was looked at; no column.
    pub before: Option<(i64, JobId)>,
}

/// An idempotency key (table `keys`); outlasts its job.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct KeyRow {
    pub scope: Scope,
    pub key: IdempotencyKey,
    pub job: JobId,
    pub hash: RequestHash,
    pub expires_at: Option<Timestamp>,
}

/// A logged transition (table `transitions`).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct TransitionRow {
    pub job: JobId,
    pub sequence: i64,
    pub at: Timestamp,
    pub verb: Verb,
    /// Public name before.
    pub from: String,
    /// Public name after.
    pub to: String,
    pub version: ClaimVersion,
    pub worker: Option<WorkerId>,
    pub actor: Option<Actor>,
}

/// An outbox event (table `events`).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct EventRow {
    pub id: EventId,
    pub topic: Topic,
    pub ordering: Ordering,
    pub sequence: Option<i64>,
    pub payload: Json,
    pub traceparent: Option<String>,
    pub state: EventState,
    /// Whether it waits for the earlier events of its key; a store sets it false at insert where
    /// the topic's order is off.
    pub ordered: bool,
    pub run_at: Timestamp,
    pub attempts: u32,
    pub attempts_max: u32,
    pub version: ClaimVersion,
    pub claim: Option<ClaimId>,
    pub last_verdict: Option<VerdictKind>,
    pub lease: Option<Lease>,
    pub failure: Option<Json>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// A dead letter (table `dead_letters`).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct DeadLetterRow {
    pub job: JobId,
    pub version: ClaimVersion,
    pub queue: QueueName,
    pub kind: JobKind,
    pub stage: StageName,
    pub error_class: String,
    pub failure: Json,
    pub attempts: u32,
    /// The store takes `first_failure_at` from the job's outcome row.
    pub last_failure_at: Timestamp,
    pub state: LetterState,
    /// The job that replays it: itself, or the new one.
    pub replay_job: Option<JobId>,
    /// When an act or a replay's end last changed it.
    pub changed_at: Option<Timestamp>,
    /// Who last acted on it.
    pub changed_by: Option<Actor>,
    /// What they noted, sanitized.
    pub note: Option<String>,
}

/// A new job that replays another (column `replay_of` of table `jobs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct ReplayRow {
    pub job: JobId,
    pub replay_of: JobId,
}

/// What is left of a pruned job (table `tombstones`).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct TombstoneRow {
    pub job: JobId,
    pub scope: Scope,
    pub key: Option<IdempotencyKey>,
    pub queue: QueueName,
    pub subject: Option<Subject>,
    pub hash: RequestHash,
    pub outcome: State,
    pub version: ClaimVersion,
    pub claim: Option<ClaimId>,
    pub last_verdict: Option<VerdictKind>,
    pub pruned_at: Timestamp,
}

/// A document (table `documents`).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct DocumentRow {
    pub id: RecordId,
    pub version: i64,
    /// `None` once it is deleted or its end has been tidied up: only the version is kept.
    pub body: Option<Json>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// A stored answer, or the mark of one to come (table `records`).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct RecordRow {
    pub scope: Scope,
    pub key: IdempotencyKey,
    pub hash: RequestHash,
    pub response: Option<Json>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A bucket of rate tokens (table `tokens`).
#[derive(Clone, Debug, PartialEq)]
pub struct TokensRow {
    /// The bucket.
    pub bucket: BucketName,
    /// What it held, in units: see the rule.
    pub level: i64,
    /// When it held that.
    pub at: Timestamp,
    /// When it is full again, and the row says nothing any more.
    pub full_at: Timestamp,
}

/// One act (table `audit`); append-only.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct AuditRow {
    pub id: uuid::Uuid,
    pub at: Timestamp,
    pub actor: Actor,
    pub action: String,
    pub target: String,
    pub detail: Option<String>,
}

impl AuditRow {
    /// The row of a new entry.
    pub fn of(entry: &AuditEntry, id: uuid::Uuid, at: Timestamp) -> Self {
        let AuditEntry { actor, action, target, detail } = entry.clone();
        Self { id, at, actor, action, target, detail }
    }
}

/// A queue (table `queues`); made by its first enqueue.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns; see QueueSettings")]
pub struct QueueRow {
    pub name: QueueName,
    pub paused: bool,
    pub limit: Option<u32>,
    pub lease: Option<LeaseLength>,
    pub log: Option<bool>,
    pub keep_succeeded_s: i64,
    pub keep_failed_s: i64,
    pub keep_dead_s: i64,
    pub created_at: Timestamp,
    pub partition_limit: Option<u32>,
    pub partition_rate: Option<StartRate>,
}

impl QueueRow {
    /// A queue as its first enqueue makes it.
    pub fn new(name: QueueName, now: Timestamp) -> Self {
        Self {
            name,
            paused: false,
            limit: None,
            lease: None,
            log: None,
            keep_succeeded_s: 24 * 3600,
            keep_failed_s: 7 * 24 * 3600,
            keep_dead_s: 30 * 24 * 3600,
            created_at: now,
            partition_limit: None,
            partition_rate: None,
        }
    }
}

/// Which partition of a queue had its turn last (table `turns`); each turn is a row in place of the
/// one before, so that the newest is found at once however many dead ones lie behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRow {
    /// The queue.
    pub queue: QueueName,
    /// Counts the turns, from 1.
    pub turn: i64,
    /// The partition; `None`: the jobs without one.
    pub partition: Option<PartitionName>,
}

/// A bucket of starts (table `starts`): what a partition may begin at its queue's rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartsRow {
    /// The queue.
    pub queue: QueueName,
    /// The partition.
    pub partition: PartitionName,
    /// What it held, in the units of rate tokens.
    pub level: i64,
    /// When it held that.
    pub at: Timestamp,
    /// When it holds a whole start (again).
    pub open_at: Timestamp,
    /// When it is full again, and the row says nothing any more.
    pub full_at: Timestamp,
}

/// A free ordering key's last sequence number (table `sequences`).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct SequenceRow {
    pub key: OrderKey,
    pub last: i64,
}
