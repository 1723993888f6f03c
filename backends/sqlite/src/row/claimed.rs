//! Owns the translation of what a claim reads of the rows it may take.

use leasehold_core::row::JobRow;
use leasehold_core::rules::ClaimedRequest;
use leasehold_core::{JobId, PartitionName, QueueName, Result, State};

use super::Columns;

impl Columns<'_, '_> {
    /// A row that waits, less what a claim decides; and what was asked for.
    pub(crate) fn waiting(&mut self, queue: &QueueName) -> Result<(JobRow, ClaimedRequest)> {
        let id = JobId::from_uuid(self.id()?);
        self.waiting_of(id, queue).map_err(|error| error.damaging(id))
    }

    fn waiting_of(&mut self, id: JobId, queue: &QueueName) -> Result<(JobRow, ClaimedRequest)> {
        let row = JobRow {
            id,
            queue: queue.clone(),
            state: State::Waiting,
            held: false,
            claim: None,
            last_verdict: None,
            lease: None,
            step: 0,
            started_at: None,
            finished_at: None,
            kind: self.kind()?,
            lifecycle: self.lifecycle()?,
            revision: self.raw()?,
            stage: self.raw()?,
            priority: self.raw()?,
            run_at: self.time()?,
            again: self.raw()?,
            log: self.raw()?,
            attempts: self.raw()?,
            attempts_max: self.raw()?,
            executions: self.raw()?,
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
}
