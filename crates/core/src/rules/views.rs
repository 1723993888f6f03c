//! Owns what readers see of stored rows: the views that listings give. One translation for every
//! engine; decides nothing.

use super::Lifecycles;
use crate::error::{Error, ErrorKind, Result};
use crate::query::{DeadLetterView, EventView, JobView, QueueView, TransitionView};
use crate::row::{
    DeadLetterRow, EventRow, JobRow, OutcomeRow, QueueRow, RequestRow, TransitionRow,
};
use crate::time::Timestamp;

impl JobView {
    /// Puts a view together from a job's three rows.
    ///
    /// # Errors
    /// `Corrupt` for a lifecycle that is not registered or has no such stage.
    pub fn from_rows(
        lifecycles: &Lifecycles,
        job: JobRow,
        request: RequestRow,
        outcome: OutcomeRow,
    ) -> Result<Self> {
        let corrupt = |why: String| Error::new(ErrorKind::Corrupt, "find", why).damaging(job.id);
        let lifecycle = lifecycles.get(&job.lifecycle, job.revision).ok_or_else(|| {
            corrupt(format!(
                "lifecycle {} revision {} is not registered",
                job.lifecycle, job.revision
            ))
        })?;
        let stage = lifecycle.stage_name(job.stage).cloned();
        Ok(Self {
            status: lifecycle.public_name(job.place(), job.again).to_owned(),
            stage: stage.ok_or_else(|| corrupt(format!("stage {} does not exist", job.stage)))?,
            id: job.id,
            queue: job.queue,
            kind: job.kind,
            lifecycle: job.lifecycle,
            state: job.state,
            priority: job.priority,
            run_at: job.run_at,
            attempts: job.attempts,
            max_attempts: job.attempts_max,
            executions: job.executions,
            claim_version: job.version,
            worker: job.lease.map(|lease| lease.worker),
            lease_expires_at: job.lease.map(|lease| lease.expires_at),
            last_verdict: job.last_verdict,
            cancel_requested: job.cancel_requested,
            blocked: job.held,
            scope: request.scope,
            key: request.key,
            subject: request.subject,
            payload: request.payload,
            result: outcome.result,
            checkpoint: outcome.checkpoint,
            failure: outcome.failure,
            created_at: job.created_at,
            updated_at: job.updated_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            partition: job.partition,
            replay_of: None,
        })
    }
}

impl From<EventRow> for EventView {
    fn from(row: EventRow) -> Self {
        Self {
            id: row.id,
            topic: row.topic,
            ordering: row.ordering,
            sequence: row.sequence,
            payload: row.payload,
            state: row.state,
            attempts: row.attempts,
            max_attempts: row.attempts_max,
            claim_version: row.version,
            failure: row.failure,
            created_at: row.created_at,
            run_at: row.run_at,
            finished_at: row.finished_at,
        }
    }
}

impl DeadLetterView {
    /// Puts a view together from a letter and when its job first failed.
    pub fn from_row(row: DeadLetterRow, first_failure_at: Timestamp) -> Self {
        Self {
            job: row.job,
            claim_version: row.version,
            queue: row.queue,
            kind: row.kind,
            stage: row.stage,
            error_class: row.error_class,
            failure: row.failure,
            attempts: row.attempts,
            first_failure_at,
            last_failure_at: row.last_failure_at,
            state: row.state,
            replay_job: row.replay_job,
            changed_at: row.changed_at,
            changed_by: row.changed_by,
            note: row.note,
        }
    }
}

impl From<TransitionRow> for TransitionView {
    fn from(row: TransitionRow) -> Self {
        Self {
            job: row.job,
            sequence: row.sequence,
            at: row.at,
            verb: row.verb,
            from: row.from,
            to: row.to,
            claim_version: row.version,
            worker: row.worker,
            actor: row.actor,
        }
    }
}

impl From<QueueRow> for QueueView {
    fn from(row: QueueRow) -> Self {
        Self {
            name: row.name,
            paused: row.paused,
            limit: row.limit,
            lease: row.lease,
            log: row.log,
            partition_limit: row.partition_limit,
            partition_rate: row.partition_rate,
        }
    }
}
