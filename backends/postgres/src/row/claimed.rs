//! Owns the translation of what a claim's statement tells of the rows it took.

use leasehold_core::row::{JobRow, Lease};
use leasehold_core::rules::{ClaimedRequest, Taken};
use leasehold_core::{
    ClaimId, ClaimRequest, JobId, JobKind, LifecycleName, PartitionName, QueueName, Result, State,
};

use super::Columns;

/// What a claim decides of each row that it takes.
pub(crate) struct ClaimedBy<'a> {
    pub(crate) queue: &'a QueueName,
    pub(crate) claim: ClaimId,
    pub(crate) lease: Lease,
}

impl Columns<'_> {
    /// What a claim took, less what its statement itself decided; and what was asked for.
    pub(crate) fn claimed(&mut self, by: &ClaimedBy<'_>) -> Result<(JobRow, ClaimedRequest)> {
        let id = JobId::from_uuid(self.id()?);
        self.claimed_of(id, by).map_err(|error| error.damaging(id))
    }

    fn claimed_of(&mut self, id: JobId, by: &ClaimedBy<'_>) -> Result<(JobRow, ClaimedRequest)> {
        let row = JobRow {
            id,
            queue: by.queue.clone(),
            state: State::Leased,
            held: false,
            claim: Some(by.claim),
            last_verdict: None,
            lease: Some(by.lease),
            step: 0,
            started_at: Some(by.lease.heartbeat_at),
            finished_at: None,
            kind: self.text(|text| JobKind::new(text))?,
            lifecycle: self.text(|text| LifecycleName::new(text))?,
            revision: self.number()?,
            stage: self.small()?,
            priority: self.raw()?,
            run_at: self.time()?,
            again: self.raw()?,
            log: self.raw()?,
            attempts: self.number()?,
            attempts_max: self.number()?,
            executions: self.number()?,
            version: self.version()?,
            cancel_requested: self.raw()?,
            transition_seq: self.raw()?,
            event_seq: self.raw()?,
            created_at: self.time()?,
            updated_at: self.time()?,
            partition: self.maybe(|text| PartitionName::new(text))?,
        };
        Ok((row, self.asked()?))
    }

    /// What a claim tells of what was asked for.
    pub(crate) fn asked(&mut self) -> Result<ClaimedRequest> {
        let (payload, subject) = (self.json()?, self.subject()?);
        Ok(ClaimedRequest { payload, subject, traceparent: self.raw()? })
    }

    /// What a claim by claim_alone.sql took: a job of no partition, at its first stage.
    pub(crate) fn taken(&mut self, request: &ClaimRequest, queue: &QueueName) -> Result<Taken> {
        let id = JobId::from_uuid(self.id()?);
        self.taken_of(id, request, queue).map_err(|error| error.damaging(id))
    }

    fn taken_of(&mut self, id: JobId, request: &ClaimRequest, queue: &QueueName) -> Result<Taken> {
        Ok(Taken {
            id,
            claim: request.claim,
            worker: request.worker,
            queue: queue.clone(),
            stage: 0,
            partition: None,
            kind: self.text(|text| JobKind::new(text))?,
            lifecycle: self.text(|text| LifecycleName::new(text))?,
            revision: self.number()?,
            priority: self.raw()?,
            run_at: self.time()?,
            attempts: self.number()?,
            attempts_max: self.number()?,
            executions: self.number()?,
            version: self.version()?,
            expires_at: self.time()?,
            created_at: self.time()?,
            payload: self.json()?,
            subject: self.subject()?,
            traceparent: self.raw()?,
            checkpoint: self.maybe_json()?,
        })
    }
}
