//! Owns what readers see of jobs that wait for others: each wait with the states of its two jobs, and
//! counts. Decides nothing.

use crate::after::OnFailure;
use crate::error::{Error, ErrorKind, Result};
use crate::id::JobId;
use crate::lifecycle::State;
use crate::row::WaitRow;

/// One job's wait for another, as a reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitView {
    /// The job that waits or has waited.
    pub job: JobId,
    /// The state of that job.
    pub job_state: State,
    /// The job it waits for.
    pub parent: JobId,
    /// The state of the parent; how it had ended, where it is pruned.
    pub parent_state: State,
    /// What becomes of the job when the parent does not end well.
    pub on_failure: OnFailure,
    /// Whether it still waits for this parent.
    pub open: bool,
}

impl WaitView {
    /// Puts a view together from a wait and the states of its two jobs; for stores.
    ///
    /// # Errors
    /// `Corrupt` for a wait that knows nothing of its parent.
    pub fn from_row(row: &WaitRow, job: State, parent: Option<State>) -> Result<Self> {
        let unknown = || {
            let why = "nobody knows how the parent has ended";
            Error::new(ErrorKind::Corrupt, "find", why).about(format!("job {}", row.parent))
        };
        Ok(Self {
            job: row.job,
            job_state: job,
            parent: row.parent,
            parent_state: parent.or(row.outcome).ok_or_else(unknown)?,
            on_failure: row.on_failure,
            open: row.open,
        })
    }
}

/// How many of the jobs that one job waits for are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParentCounts {
    /// All of them.
    pub total: u64,
    /// How many are still waited for.
    pub open: u64,
    /// Waiting.
    pub waiting: u64,
    /// Leased.
    pub leased: u64,
    /// Succeeded.
    pub succeeded: u64,
    /// Failed.
    pub failed: u64,
    /// Dead-lettered.
    pub dead_letter: u64,
    /// Cancelled.
    pub cancelled: u64,
}

impl ParentCounts {
    /// Adds some parents at one state; for stores.
    pub fn add(&mut self, state: State, open: bool, parents: u64) {
        self.total += parents;
        self.open += if open { parents } else { 0 };
        *match state {
            State::Waiting => &mut self.waiting,
            State::Leased => &mut self.leased,
            State::Succeeded => &mut self.succeeded,
            State::Failed => &mut self.failed,
            State::DeadLetter => &mut self.dead_letter,
            State::Cancelled => &mut self.cancelled,
        } += parents;
    }

    /// How many have ended, well or not.
    pub fn ended(&self) -> u64 {
        self.total - self.waiting - self.leased
    }
}
