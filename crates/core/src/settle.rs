//! Owns how a claim reports: progress under the lease, and the one verdict that ends it.

use std::fmt;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::event::NewEvent;
use crate::failure::Failure;
use crate::fence::Fence;
use crate::job::NewJob;
use crate::json::Json;
use crate::lifecycle::Place;
use crate::name::StageName;

/// How a claim ends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// The job is done.
    Succeed {
        /// What it made.
        result: Option<Json>,
    },
    /// The attempt failed. With budget left and a retryable failure the job waits again for
    /// `delay`; else it ends where its lifecycle sends spent budgets.
    Retry {
        /// What went wrong.
        failure: Failure,
        /// How long to wait; at once when `None`.
        delay: Option<Duration>,
    },
    /// The job is put off; the attempt does not count.
    Snooze {
        /// How long to wait.
        delay: Duration,
    },
    /// The job rests: nobody claims it until somebody wakes it by [`Control::Wake`]. The attempt does
    /// not count, whatever the failure and whatever budget is left. Woken during this very claim, it
    /// waits and is due. Stored and told as a retry.
    ///
    /// [`Control::Wake`]: crate::Control::Wake
    Rest {
        /// What somebody has to mend.
        failure: Failure,
    },
    /// The job is given back unbegun or at shutdown; the attempt does not count, the version rises.
    Release {
        /// How long to wait; at once when `None`.
        delay: Option<Duration>,
    },
    /// The job failed for good.
    Fail {
        /// What went wrong.
        failure: Failure,
    },
    /// The job is given up, whatever budget is left.
    DeadLetter {
        /// What went wrong.
        failure: Failure,
    },
    /// The job is called off by its worker.
    Cancel {
        /// Why.
        reason: Option<String>,
    },
}

impl Verdict {
    /// Which verdict this is, as stored beside the ended claim.
    pub fn kind(&self) -> VerdictKind {
        match self {
            Self::Succeed { .. } => VerdictKind::Succeed,
            Self::Retry { .. } | Self::Rest { .. } => VerdictKind::Retry,
            Self::Snooze { .. } => VerdictKind::Snooze,
            Self::Release { .. } => VerdictKind::Release,
            Self::Fail { .. } => VerdictKind::Fail,
            Self::DeadLetter { .. } => VerdictKind::DeadLetter,
            Self::Cancel { .. } => VerdictKind::Cancel,
        }
    }

    /// The failure it reports, where it does.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Retry { failure, .. }
            | Self::Rest { failure }
            | Self::Fail { failure }
            | Self::DeadLetter { failure } => Some(failure),
            _ => None,
        }
    }
}

/// A verdict without its data; kept beside the ended claim, so that a repeat is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerdictKind {
    /// See [`Verdict::Succeed`].
    Succeed,
    /// See [`Verdict::Retry`] and [`Verdict::Rest`].
    Retry,
    /// See [`Verdict::Snooze`].
    Snooze,
    /// See [`Verdict::Release`].
    Release,
    /// See [`Verdict::Fail`].
    Fail,
    /// See [`Verdict::DeadLetter`].
    DeadLetter,
    /// See [`Verdict::Cancel`].
    Cancel,
    /// An outbox event's end; see [`crate::EventVerdict::Delivered`].
    Delivered,
}

impl VerdictKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Succeed,
        Self::Retry,
        Self::Snooze,
        Self::Release,
        Self::Fail,
        Self::DeadLetter,
        Self::Cancel,
        Self::Delivered,
    ];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeed => "succeed",
            Self::Retry => "retry",
            Self::Snooze => "snooze",
            Self::Release => "release",
            Self::Fail => "fail",
            Self::DeadLetter => "dead_letter",
            Self::Cancel => "cancel",
            Self::Delivered => "delivered",
        }
    }

    /// Reads a stored name.
    ///
    /// # Errors
    /// `Corrupt` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "verdict", format!("{text:?} is not a verdict"))
        })
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One claim's end: the verdict, and what lands together with it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settlement {
    /// The claim's proof.
    pub fence: Fence,
    /// How it ends.
    pub verdict: Verdict,
    /// A last checkpoint, for the next execution.
    pub checkpoint: Option<Json>,
    /// Events to publish with it.
    pub events: Vec<NewEvent>,
    /// Follow-on jobs to enqueue with it.
    pub jobs: Vec<NewJob>,
}

impl Settlement {
    /// Begins a settlement.
    pub fn new(fence: Fence, verdict: Verdict) -> Self {
        Self { fence, verdict, checkpoint: None, events: Vec::new(), jobs: Vec::new() }
    }

    /// Adds a last checkpoint.
    #[must_use]
    pub fn checkpoint(mut self, checkpoint: Json) -> Self {
        self.checkpoint = Some(checkpoint);
        self
    }

    /// Adds an event.
    #[must_use]
    pub fn event(mut self, event: NewEvent) -> Self {
        self.events.push(event);
        self
    }

    /// Adds a follow-on job.
    #[must_use]
    pub fn job(mut self, job: NewJob) -> Self {
        self.jobs.push(job);
        self
    }
}

/// The answer to a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// Where the job is now.
    pub place: Place,
    /// Whether this very claim had settled it so before, and nothing was written.
    pub repeated: bool,
}

impl Settled {
    /// Puts an answer together; for stores.
    pub fn from_parts(place: Place, repeated: bool) -> Self {
        Self { place, repeated }
    }
}

/// Progress under the lease, numbered within the claim so that a repeat is recognised.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The claim's proof.
    pub fence: Fence,
    /// The number of this report within the claim, from 1, without gaps.
    pub step: u32,
    /// What a later execution should find.
    pub checkpoint: Option<Json>,
    /// The stage to go on to.
    pub advance: Option<StageName>,
    /// Events to publish with it.
    pub events: Vec<NewEvent>,
}

impl Progress {
    /// Begins report number `step` of a claim.
    pub fn new(fence: Fence, step: u32) -> Self {
        Self { fence, step, checkpoint: None, advance: None, events: Vec::new() }
    }

    /// Sets the checkpoint.
    #[must_use]
    pub fn checkpoint(mut self, checkpoint: Json) -> Self {
        self.checkpoint = Some(checkpoint);
        self
    }

    /// Goes on to the next stage.
    #[must_use]
    pub fn advance(mut self, stage: StageName) -> Self {
        self.advance = Some(stage);
        self
    }

    /// Adds an event.
    #[must_use]
    pub fn event(mut self, event: NewEvent) -> Self {
        self.events.push(event);
        self
    }
}
