//! Owns the one error type of the project: its kinds, the reasons a fence is lost, and the
//! predicates callers branch on. Knows no driver: each backend maps its own codes to a kind in one
//! file and hands the driver's error over as the source.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::id::{EventId, JobId};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in the terms a caller can act on; the same cause has the same kind everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The claim no longer owns its row. Stop: another worker may be at work.
    FenceLost,
    /// The lifecycle has no such edge. Nothing was written; correct the caller.
    IllegalTransition,
    /// No row of that id exists. Check the id.
    NotFound,
    /// A key or id is taken by another request. Read the job that the error names.
    Conflict,
    /// The input breaks a stated rule. Correct it; a repeat fails the same way.
    Invalid,
    /// The database was locked for longer than the wait. Try again later.
    Busy,
    /// The database could not be reached or ended the call. Try again later.
    Unavailable,
    /// The disk or the database's size limit is full. Free space, then repeat.
    StorageFull,
    /// The reply to a commit was lost. Repeat the same call: a repeat is recognised.
    OutcomeUnknown,
    /// Stored data breaks an invariant. Keep a copy and look before going on.
    Corrupt,
}

impl ErrorKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 10] = [
        Self::FenceLost,
        Self::IllegalTransition,
        Self::NotFound,
        Self::Conflict,
        Self::Invalid,
        Self::Busy,
        Self::Unavailable,
        Self::StorageFull,
        Self::OutcomeUnknown,
        Self::Corrupt,
    ];

    /// The kind in words, lower case.
    pub const fn words(self) -> &'static str {
        match self {
            Self::FenceLost => "fence lost",
            Self::IllegalTransition => "illegal transition",
            Self::NotFound => "not found",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
            Self::StorageFull => "storage full",
            Self::OutcomeUnknown => "outcome unknown",
            Self::Corrupt => "corrupt",
        }
    }

    /// Whether the same call may succeed later without a change by the caller.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Busy | Self::Unavailable | Self::StorageFull | Self::OutcomeUnknown)
    }
}

/// Why a claim does not own its row any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// A newer claim holds or held it. An earlier settle by this claim may have counted.
    TakenOver,
    /// Its lease ran out and the row went back to waiting or to its end.
    Reclaimed,
    /// Its lease ran out; nobody has taken the row yet.
    Expired,
    /// This very claim has already settled it, with another verdict.
    Settled,
    /// It was cancelled.
    Cancelled,
    /// The row is gone and left no tombstone that names this claim.
    Gone,
    /// The store's epoch was raised (a restore, or an operator) after the claim.
    EpochRaised,
}

impl LostReason {
    /// The reason in words, lower case.
    pub const fn words(self) -> &'static str {
        match self {
            Self::TakenOver => "taken over by a newer claim",
            Self::Reclaimed => "reclaimed after its lease ran out",
            Self::Expired => "the lease has run out",
            Self::Settled => "already settled by this claim with another verdict",
            Self::Cancelled => "cancelled",
            Self::Gone => "the row is gone",
            Self::EpochRaised => "the store's epoch was raised after the claim",
        }
    }
}

/// The one error of every Leasehold crate: opaque, cheap to clone, one word wide.
///
/// ```
/// use leasehold_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Invalid, "enqueue", "queue name is empty");
/// assert_eq!(error.to_string(), "enqueue: invalid: queue name is empty");
/// assert!(!error.is_retryable());
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

/// A row that cannot be read.
#[derive(Clone, Copy)]
enum Damaged {
    Job(JobId),
    Event(EventId),
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    subject: Option<String>,
    message: String,
    lost: Option<LostReason>,
    existing: Option<JobId>,
    damaged: Option<Damaged>,
    restart: bool,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Makes an error of a kind, for an operation, with a message in lower case.
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            operation,
            subject: None,
            message: message.into(),
            lost: None,
            existing: None,
            damaged: None,
            restart: false,
            source: None,
        }))
    }

    /// Shorthand for [`ErrorKind::Invalid`].
    pub fn invalid(operation: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, operation, message)
    }

    /// A lost fence, with its reason and the row it was for.
    pub fn lost(operation: &'static str, subject: impl fmt::Display, reason: LostReason) -> Self {
        let error = Self::new(ErrorKind::FenceLost, operation, reason.words()).about(subject);
        error.map(|inner| inner.lost = Some(reason))
    }

    /// A conflict with a job that exists already.
    pub fn conflict(operation: &'static str, existing: JobId, message: impl Into<String>) -> Self {
        let error = Self::new(ErrorKind::Conflict, operation, message);
        error.map(|inner| inner.existing = Some(existing))
    }

    /// Names the row the error is about ("job 0198…").
    #[must_use]
    pub fn about(self, subject: impl fmt::Display) -> Self {
        self.map(|inner| inner.subject = Some(subject.to_string()))
    }

    /// Names the job whose stored row is damaged; of errors of other kinds only the row they are about.
    #[must_use]
    pub fn damaging(self, job: JobId) -> Self {
        self.about(format!("job {job}")).at(Damaged::Job(job))
    }

    /// The same of an event.
    #[must_use]
    pub fn damaging_event(self, event: EventId) -> Self {
        self.about(format!("event {event}")).at(Damaged::Event(event))
    }

    fn at(self, row: Damaged) -> Self {
        let is_damage = self.kind() == ErrorKind::Corrupt;
        self.map(|inner| inner.damaged = is_damage.then_some(row))
    }

    /// Keeps the driver's error as the source.
    #[must_use]
    pub fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.map(|inner| inner.source = Some(Arc::new(source)))
    }

    /// Says that the whole transaction has to be run again, not the call alone.
    #[must_use]
    pub fn restarting(self) -> Self {
        self.map(|inner| inner.restart = true)
    }

    /// The same error under another operation's name.
    #[must_use]
    pub fn during(self, operation: &'static str) -> Self {
        self.map(|inner| inner.operation = operation)
    }

    fn map(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The verb that failed, such as `"settle"`.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The message without kind, operation and row.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Why the fence is lost, where the kind is [`ErrorKind::FenceLost`].
    pub fn lost_reason(&self) -> Option<LostReason> {
        self.0.lost
    }

    /// The job that holds the key or id, where the kind is [`ErrorKind::Conflict`].
    pub fn existing_job(&self) -> Option<JobId> {
        self.0.existing
    }

    /// The job whose stored row cannot be read, where that is known and the kind is [`ErrorKind::Corrupt`].
    pub fn damaged_job(&self) -> Option<JobId> {
        match self.0.damaged? {
            Damaged::Job(job) => Some(job),
            Damaged::Event(_) => None,
        }
    }

    /// The event whose stored row cannot be read, likewise.
    pub fn damaged_event(&self) -> Option<EventId> {
        match self.0.damaged? {
            Damaged::Event(event) => Some(event),
            Damaged::Job(_) => None,
        }
    }

    /// Whether the same call may succeed later without a change by the caller.
    pub fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }

    /// Whether the caller has to run its whole transaction again.
    pub fn is_transaction_restart(&self) -> bool {
        self.0.restart
    }

    /// Whether the claim no longer owns its row.
    pub fn is_fence_lost(&self) -> bool {
        self.0.kind == ErrorKind::FenceLost
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.operation)?;
        if let Some(subject) = &self.0.subject {
            write!(f, " {subject}")?;
        }
        write!(f, ": {}: {}", self.0.kind.words(), self.0.message)?;
        if let Some(existing) = self.0.existing {
            write!(f, " (job {existing})")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.0.kind).field("text", &self.to_string());
        if let Some(source) = &self.0.source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}
