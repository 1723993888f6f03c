//! Owns the six engine states, the places a job can be at, and the verbs that move it. Public
//! names are a lifecycle's business.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// What an engine knows of a job; lifecycles give these their public names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody holds it; claimable once due.
    Waiting,
    /// A worker holds a lease on it.
    Leased,
    /// Ended well.
    Succeeded,
    /// Ended by a terminal failure.
    Failed,
    /// Given up; kept for an operator.
    DeadLetter,
    /// Called off.
    Cancelled,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Leased,
        Self::Succeeded,
        Self::Failed,
        Self::DeadLetter,
        Self::Cancelled,
    ];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Leased => "leased",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::DeadLetter => "dead_letter",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads a stored name.
    ///
    /// # Errors
    /// `Corrupt` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "state", format!("{text:?} is not a state"))
        })
    }

    /// Whether a job at this state has ended.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Waiting | Self::Leased)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a job is: a state, and for a leased one the ordinal of its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Nobody holds it.
    Waiting,
    /// Held, at this stage (0 is the first).
    Leased(u8),
    /// Ended well.
    Succeeded,
    /// Ended by a terminal failure.
    Failed,
    /// Given up.
    DeadLetter,
    /// Called off.
    Cancelled,
}

impl Place {
    /// The place of a state at a stage.
    pub const fn of(state: State, stage: u8) -> Self {
        match state {
            State::Waiting => Self::Waiting,
            State::Leased => Self::Leased(stage),
            State::Succeeded => Self::Succeeded,
            State::Failed => Self::Failed,
            State::DeadLetter => Self::DeadLetter,
            State::Cancelled => Self::Cancelled,
        }
    }

    /// The state at this place.
    pub const fn state(self) -> State {
        match self {
            Self::Waiting => State::Waiting,
            Self::Leased(_) => State::Leased,
            Self::Succeeded => State::Succeeded,
            Self::Failed => State::Failed,
            Self::DeadLetter => State::DeadLetter,
            Self::Cancelled => State::Cancelled,
        }
    }
}

/// What moves a job from one place to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// A worker takes it.
    Claim,
    /// Its worker goes on to the next stage, under the same lease.
    Advance,
    /// Its worker is done.
    Succeed,
    /// Its worker failed and budget is left.
    Retry,
    /// Its worker puts it off; not counted.
    Snooze,
    /// Its worker gives it back unbegun or at shutdown; not counted.
    Release,
    /// Its lease ran out and budget is left.
    Reclaim,
    /// It failed (by a report or a lapsed lease) and the budget is gone or the failure is final.
    Exhaust,
    /// Its worker fails it for good.
    Fail,
    /// Its worker gives it up.
    DeadLetter,
    /// A failed job goes on to the dead letters, as a transition of its own.
    Bury,
    /// Its worker agrees to a cancel, or a flagged lease ran out.
    Cancel,
    /// An operator or caller calls it off.
    RequestCancel,
    /// An operator or policy takes a failed job back while budget lasts.
    Reopen,
    /// An operator replays a dead letter in place.
    Replay,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 15] = [
        Self::Claim,
        Self::Advance,
        Self::Succeed,
        Self::Retry,
        Self::Snooze,
        Self::Release,
        Self::Reclaim,
        Self::Exhaust,
        Self::Fail,
        Self::DeadLetter,
        Self::Bury,
        Self::Cancel,
        Self::RequestCancel,
        Self::Reopen,
        Self::Replay,
    ];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Advance => "advance",
            Self::Succeed => "succeed",
            Self::Retry => "retry",
            Self::Snooze => "snooze",
            Self::Release => "release",
            Self::Reclaim => "reclaim",
            Self::Exhaust => "exhaust",
            Self::Fail => "fail",
            Self::DeadLetter => "dead_letter",
            Self::Bury => "bury",
            Self::Cancel => "cancel",
            Self::RequestCancel => "request_cancel",
            Self::Reopen => "reopen",
            Self::Replay => "replay",
        }
    }

    /// Whether this verb raises the claim version; no verb ever lowers it.
    pub const fn raises_version(self) -> bool {
        matches!(self, Self::Claim | Self::Reclaim | Self::Release)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
