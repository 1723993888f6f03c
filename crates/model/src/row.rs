//! Owns the words of the model: rows, fences, workers and what they are doing. Decides nothing.

/// Where a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the states")]
pub enum Ended {
    #[default]
    Waiting,
    Leased,
    Succeeded,
    Failed,
    Dead,
    Cancelled,
}

/// How a claim ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the verdicts")]
pub enum Verdict {
    Succeed = 1,
    Fail = 2,
    Retry = 3,
    Release = 4,
}

/// What becomes of the second job when the first, which it waits for, does not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the policies")]
pub enum OnFailure {
    Cancel,
    Run,
    Wait,
}

/// Why a fence is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the reasons")]
pub enum Lost {
    TakenOver,
    Reclaimed,
    Expired,
    Settled,
    EpochRaised,
}

/// What a claim hands out, and the ghost that stands for this one claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Fence {
    pub job: u8,
    pub version: u8,
    pub claim: u8,
    pub worker: u8,
    pub epoch: u8,
    pub ghost: u8,
}

impl Fence {
    /// What the outside compares.
    pub fn token(&self) -> u16 {
        (u16::from(self.epoch) << 8) | u16::from(self.version)
    }
}

/// A job as the store keeps it; the last five are ghosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Row {
    pub state: Ended,
    pub version: u8,
    /// The last claim's id; 0 before the first.
    pub claim: u8,
    pub worker: u8,
    pub verdict: Option<Verdict>,
    /// Whether the lease still runs.
    pub live: bool,
    pub attempts: u8,
    /// Whether it waits for another job.
    pub held: bool,
    /// Whose job it is.
    pub owner: u8,
    /// What each claim was settled with, four bits a claim.
    pub said: u32,
    /// How many claims counted against the budget.
    pub tries: u8,
    /// Whether it has ever ended well, and whether otherwise.
    pub well: bool,
    pub badly: bool,
}

impl Row {
    /// The verdict code that a ghost's claim was settled with; 0 for none.
    pub fn said_by(said: u32, ghost: u8) -> u32 {
        (said >> (4 * u32::from(ghost & 7))) & 0xf
    }

    /// Adds a ghost's verdict.
    pub fn note(said: &mut u32, ghost: u8, verdict: Verdict) {
        *said |= (verdict as u32) << (4 * u32::from(ghost & 7));
    }

    /// Whether it may be claimed only after an operator's act, or never.
    pub fn is_over(&self) -> bool {
        matches!(self.state, Ended::Succeeded | Ended::Failed | Ended::Dead | Ended::Cancelled)
    }
}

/// What a worker is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Phase {
    #[default]
    Idle,
    /// It asked, and does not know what came of it.
    Asking {
        claim: u8,
    },
    Holding(Fence),
    /// It settled, and does not know what came of it.
    Settling(Fence, Verdict),
}

impl Phase {
    /// The fence in the worker's hand.
    pub fn fence(self) -> Option<Fence> {
        match self {
            Self::Holding(fence) | Self::Settling(fence, _) => Some(fence),
            Self::Idle | Self::Asking { .. } => None,
        }
    }
}

/// A worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Worker {
    pub phase: Phase,
}
