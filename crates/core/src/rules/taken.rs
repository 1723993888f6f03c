//! Owns what a claim is told of a job that was taken for it. Refuses to know how it was taken.

use super::Work;
use super::lease::{ClaimOrder, order_of};
use crate::claim::{Claim, ClaimedJob};
use crate::error::{Error, ErrorKind, Result};
use crate::fence::{ClaimVersion, Fence};
use crate::id::{ClaimId, JobId, WorkerId};
use crate::job::Subject;
use crate::json::Json;
use crate::name::{JobKind, LifecycleName, PartitionName, QueueName};
use crate::row::{JobRow, RequestRow};
use crate::time::Timestamp;

/// A job that a claim took: those columns of its row that the claim tells.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct Taken {
    pub id: JobId,
    pub version: ClaimVersion,
    pub claim: ClaimId,
    pub worker: WorkerId,
    pub expires_at: Timestamp,
    pub queue: QueueName,
    pub kind: JobKind,
    pub lifecycle: LifecycleName,
    pub revision: u32,
    pub stage: u8,
    pub priority: i16,
    pub run_at: Timestamp,
    pub attempts: u32,
    pub attempts_max: u32,
    pub executions: u32,
    pub created_at: Timestamp,
    pub partition: Option<PartitionName>,
    pub payload: Json,
    pub subject: Option<Subject>,
    pub traceparent: Option<String>,
    pub checkpoint: Option<Json>,
}

/// Of what was asked for with a job, that which its claim tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are columns")]
pub struct ClaimedRequest {
    pub payload: Json,
    pub subject: Option<Subject>,
    pub traceparent: Option<String>,
}

impl From<RequestRow> for ClaimedRequest {
    fn from(row: RequestRow) -> Self {
        Self { payload: row.payload, subject: row.subject, traceparent: row.traceparent }
    }
}

impl Taken {
    /// Its place in the claim order.
    pub fn order(&self) -> ClaimOrder {
        order_of(self.priority, self.run_at, self.id)
    }
}

impl Work {
    /// The claim that a leased row is, for its worker.
    ///
    /// # Errors
    /// `Corrupt` for a row without a lease or of a lifecycle that is not registered.
    pub fn claim_of(
        &self,
        row: &JobRow,
        request: ClaimedRequest,
        checkpoint: Option<Json>,
    ) -> Result<Claim> {
        let (Some(lease), Some(claim)) = (&row.lease, row.claim) else {
            let why = "a claimed row has no lease";
            return Err(Error::new(ErrorKind::Corrupt, "claim", why).damaging(row.id));
        };
        self.claim_taken(Taken {
            id: row.id,
            version: row.version,
            claim,
            worker: lease.worker,
            expires_at: lease.expires_at,
            queue: row.queue.clone(),
            kind: row.kind.clone(),
            lifecycle: row.lifecycle.clone(),
            revision: row.revision,
            stage: row.stage,
            priority: row.priority,
            run_at: row.run_at,
            attempts: row.attempts,
            attempts_max: row.attempts_max,
            executions: row.executions,
            created_at: row.created_at,
            partition: row.partition.clone(),
            payload: request.payload,
            subject: request.subject,
            traceparent: request.traceparent,
            checkpoint,
        })
    }

    /// The claim of a job whose statement told no more than a claim needs.
    ///
    /// # Errors
    /// `Corrupt` for a lifecycle that is not registered or has no such stage.
    pub fn claim_taken(&self, it: Taken) -> Result<Claim> {
        let lifecycle = self.registered(it.id, &it.lifecycle, it.revision)?;
        let stage = lifecycle.stage_name(it.stage).cloned().ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "claim", "the stage does not exist").damaging(it.id)
        })?;
        Ok(Claim {
            fence: Fence::from_parts(it.id, it.version, it.claim, it.worker, self.epoch),
            remaining: it.expires_at.since(self.now),
            lease_expires_at: it.expires_at,
            job: ClaimedJob {
                id: it.id,
                queue: it.queue,
                kind: it.kind,
                payload: it.payload,
                checkpoint: it.checkpoint,
                lifecycle: it.lifecycle,
                stage,
                attempt: it.attempts,
                max_attempts: it.attempts_max,
                executions: it.executions,
                priority: it.priority,
                subject: it.subject,
                traceparent: it.traceparent,
                partition: it.partition,
                created_at: it.created_at,
                run_at: it.run_at,
            },
        })
    }
}
