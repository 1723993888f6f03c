//! Owns what operators do with the dead letters of jobs: where a letter stands, which are listed, and
//! what a replay asks for. What each act does to rows is a rule; outbox events have acts of their own.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::fence::ClaimVersion;
use crate::id::JobId;
use crate::name::{Actor, JobKind, QueueName};

/// The longest note on a dead letter, in bytes.
pub const NOTE_BYTES_MAX: usize = 1024;

/// Where a dead letter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LetterState {
    /// Waits for an operator.
    Open,
    /// A replay is under way; what becomes of that job decides.
    Replaying,
    /// Its replay failed too; the letter of that failure stands in its place.
    Superseded,
    /// Closed: its replay succeeded, or an operator closed it by hand.
    Resolved,
    /// Wants more than a replay: one has failed in the same final way, or an operator says so.
    Escalated,
}

impl LetterState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Open, Self::Replaying, Self::Superseded, Self::Resolved, Self::Escalated];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Replaying => "replaying",
            Self::Superseded => "superseded",
            Self::Resolved => "resolved",
            Self::Escalated => "escalated",
        }
    }

    /// Reads a stored name.
    ///
    /// # Errors
    /// `Corrupt` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| {
            let why = format!("{text:?} is not the state of a dead letter");
            Error::new(ErrorKind::Corrupt, "dead letter", why)
        })
    }

    /// Whether it waits for an operator.
    pub const fn wants_attention(self) -> bool {
        matches!(self, Self::Open | Self::Escalated)
    }
}

impl fmt::Display for LetterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which dead letters of jobs; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LetterFilter {
    /// Of this job.
    pub job: Option<JobId>,
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// Of this kind.
    pub kind: Option<JobKind>,
    /// At this state.
    pub state: Option<LetterState>,
    /// Of this stable failure id, such as `NETWORK_TIMEOUT`.
    pub error_class: Option<String>,
}

impl LetterFilter {
    /// Every letter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only of this job.
    #[must_use]
    pub fn job(mut self, job: JobId) -> Self {
        self.job = Some(job);
        self
    }

    /// Only of this queue.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Only of this kind.
    #[must_use]
    pub fn kind(mut self, kind: JobKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Only at this state.
    #[must_use]
    pub fn state(mut self, state: LetterState) -> Self {
        self.state = Some(state);
        self
    }

    /// Only of this stable failure id.
    #[must_use]
    pub fn error_class(mut self, id: impl Into<String>) -> Self {
        self.error_class = Some(id.into());
        self
    }
}

/// Where a replay begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReplayFrom {
    /// Where a retry would: at the stage that failed with its checkpoint, where the lifecycle resumes
    /// there, else at the first stage with the checkpoint.
    #[default]
    FailedStage,
    /// At the first stage, without the checkpoint.
    Start,
}

/// A request to run a dead-lettered job again, with a fresh budget.
///
/// A lifecycle that lists the edge `replay` from the dead letters runs the same job again. Elsewhere a
/// new job takes its place: same queue, kind, payload, key and partition, and `replay_of` names the old.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Replay {
    /// The dead-lettered job.
    pub job: JobId,
    /// Who asks.
    pub actor: Actor,
    /// Which of its letters; `None`: the newest. Name it, and a late repeat can start nothing.
    pub letter: Option<ClaimVersion>,
    /// Where it begins.
    pub from: ReplayFrom,
    /// What was done about the cause; must not be blank.
    pub note: String,
    /// Whether the caller vouches that what the job did so far may happen again.
    pub safe_to_repeat: bool,
    /// The id of the new job, where there is one; made here, so that a retry names the same.
    pub new_job: JobId,
}

impl Replay {
    /// Asks for a replay of a job's newest letter from the failed stage; still without a note and
    /// without the word that repeating is safe, both of which it needs.
    pub fn new(job: JobId, actor: Actor) -> Self {
        Self {
            job,
            actor,
            letter: None,
            from: ReplayFrom::default(),
            note: String::new(),
            safe_to_repeat: false,
            new_job: JobId::new(),
        }
    }

    /// Says what was done about the cause.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Vouches that what the job did so far may happen again.
    #[must_use]
    pub fn safe_to_repeat(mut self) -> Self {
        self.safe_to_repeat = true;
        self
    }

    /// Begins at the first stage, without the checkpoint.
    #[must_use]
    pub fn from_start(mut self) -> Self {
        self.from = ReplayFrom::Start;
        self
    }

    /// Means the letter of this claim version and no other.
    #[must_use]
    pub fn letter(mut self, version: ClaimVersion) -> Self {
        self.letter = Some(version);
        self
    }

    /// Sets the id of the new job, where there is one.
    #[must_use]
    pub fn new_job(mut self, id: JobId) -> Self {
        self.new_job = id;
        self
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` without a note, with one over 1,024 bytes, or without the word that repeating is safe.
    pub fn check(&self) -> Result<()> {
        check_note("replay", self.job, &self.note)?;
        if self.safe_to_repeat {
            return Ok(());
        }
        let why = "a replay repeats what the job did; say that this is safe (safe_to_repeat)";
        Err(Error::invalid("replay", why).about(format!("job {}", self.job)))
    }
}

/// What an operator says of a job's newest dead letter, without a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LetterAct {
    /// Leaves a note; the state stays.
    Annotate,
    /// Closes it by hand.
    Resolve,
    /// Marks it as one that wants more than a replay.
    Escalate,
}

impl LetterAct {
    /// The name of the act in the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Annotate => "annotate",
            Self::Resolve => "resolve",
            Self::Escalate => "escalate",
        }
    }
}

/// Refuses a blank or overlong note.
pub(crate) fn check_note(operation: &'static str, job: JobId, note: &str) -> Result<()> {
    let refuse = |why: String| Err(Error::invalid(operation, why).about(format!("job {job}")));
    if note.trim().is_empty() {
        return refuse("a note on what was done about the cause is missing".to_owned());
    }
    if note.len() > NOTE_BYTES_MAX {
        return refuse(format!(
            "a note of {} bytes, at most {NOTE_BYTES_MAX} are allowed",
            note.len()
        ));
    }
    Ok(())
}
