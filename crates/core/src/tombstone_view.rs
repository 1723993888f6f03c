//! Owns what readers see of a job that was pruned, for as long as anything is left of it.

use crate::id::JobId;
use crate::lifecycle::State;
use crate::name::{QueueName, Scope};
use crate::row::TombstoneRow;
use crate::time::Timestamp;

/// What is left of a pruned job, as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TombstoneView {
    /// The job that was.
    pub job: JobId,
    /// Whose it was.
    pub scope: Scope,
    /// Where it ran.
    pub queue: QueueName,
    /// How it had ended.
    pub outcome: State,
    /// When it was pruned.
    pub pruned_at: Timestamp,
}

impl From<TombstoneRow> for TombstoneView {
    fn from(row: TombstoneRow) -> Self {
        let TombstoneRow { job, scope, queue, outcome, pruned_at, .. } = row;
        Self { job, scope, queue, outcome, pruned_at }
    }
}
