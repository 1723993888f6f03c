//! The contract of Leasehold: the vocabulary, the [`Store`] seam, the lifecycles and the rules that
//! every engine shares.
//!
//! - [`Store`], [`Records`]: what an engine implements; [`StoreExt`]: short forms for callers.
//! - [`NewJob`], [`ClaimRequest`], [`Settlement`], [`NewEvent`] …: what the verbs take and give.
//! - [`Fence`]: the proof that a write comes from the claim that owns the row.
//! - [`Lifecycle`]: which verb moves a job from where to where, as data.
//! - [`rules`]: every decision, pure; engines load rows, ask, and write.
//!
//! It does no I/O, holds no SQL and starts no task.

pub mod after;
pub mod claim;
pub mod control;
pub mod error;
pub mod event;
#[cfg(feature = "failpoints")]
pub mod failpoint;
pub mod failure;
pub mod fence;
pub mod figures;
pub mod hints;
pub mod id;
pub mod job;
pub mod json;
#[cfg(feature = "lab")]
pub mod lab;
pub mod letter;
pub mod lifecycle;
pub mod listing;
pub mod memory;
pub mod name;
pub mod query;
pub mod record;
pub mod replay_batch;
pub mod request_hash;
pub mod retry;
pub mod row;
pub mod rules;
pub mod sanitize;
pub mod settle;
pub mod statement;
pub mod store;
pub mod time;
pub mod tombstone_view;
pub mod upkeep;
pub mod wait_view;

pub use after::{After, OnFailure};
pub use claim::{
    Claim, ClaimRequest, ClaimedJob, ReclaimRequest, Reclaimable, Reclaimed, RenewRequest, Renewal,
};
pub use control::{Control, Controlled, QueueSettings, StartRate};
pub use error::{Error, ErrorKind, LostReason, Result};
pub use event::{
    EventClaim, EventClaimRequest, EventSettlement, EventState, EventVerdict, NewEvent, Ordering,
    Published,
};
pub use failure::{Failure, FailureClass, FailureCode};
pub use fence::{ClaimVersion, Epoch, EventFence, Fence};
pub use hints::{HintKind, Hints, Listener, Wake};
pub use id::{ClaimId, EventId, JobId, WorkerId};
pub use job::{Enqueued, Limits, NewJob, RunAt, Subject, priority};
pub use json::{Json, JsonLimits};
pub use letter::{LetterAct, LetterFilter, LetterState, Replay, ReplayFrom};
pub use lifecycle::{
    Budget, BudgetScope, Edge, Lifecycle, LifecycleBuilder, Place, PublicNames, ResumeAt, State,
    Verb,
};
pub use listing::UnreadableView;
pub use memory::MemoryStore;
pub use name::{
    Actor, BucketName, IdempotencyKey, JobKind, LifecycleName, Namespace, OrderKey, PartitionName,
    QueueName, RecordKey, Scope, StageName, Topic,
};
pub use query::{
    Cursor, DeadLetterView, EventFilter, EventView, Found, JobFilter, JobView, Page, Paging, Query,
    QueueView, TransitionView,
};
pub use record::{
    Admission, Admitted, AuditEntry, AuditFilter, AuditId, AuditView, DeleteDocument, Document,
    DocumentPage, Expected, ListDocuments, Once, PutBlob, PutDocument, Rate, RecordId, Records,
    Remembered, Take, Taken,
};
pub use replay_batch::{ReplayBatch, ReplayOutcome, ReplayReport, ReplayedRow};
pub use request_hash::RequestHash;
pub use retry::RetryPolicy;
pub use settle::{Progress, Settled, Settlement, Verdict, VerdictKind};
pub use statement::{Statement, Value};
pub use store::{Store, StoreExt};
pub use time::{LeaseLength, Timestamp};
pub use tombstone_view::TombstoneView;
pub use upkeep::{OutboxStats, PruneRequest, Pruned, QueueStats, Stats, StatsScope};
pub use wait_view::{ParentCounts, WaitView};
