//! Owns what becomes of a job or an event whose row cannot be read: it is put to rest, so that no other waits
//! for it, and the log and the audit log name it. Mends nothing.

use leasehold_core::row::AuditRow;
use leasehold_core::rules::aside::{self, ASIDE_MAX};
use leasehold_core::{
    AuditEntry, Claim, ClaimId, ClaimRequest, Error, EventClaim, EventClaimRequest, EventId, JobId,
    Json, ReclaimRequest, Reclaimed, Result, Timestamp,
};
use rusqlite::params;

use crate::audit;
use crate::joined::Joined;
use crate::statement::{execute, sql};
use crate::store::SqliteStore;

impl Joined<'_> {
    fn set_aside(&self, job: JobId, claim: Option<ClaimId>, entry: &AuditEntry) -> Result<bool> {
        self.verb("set aside", |facts| {
            let values = params![
                job.as_bytes().as_slice(),
                facts.now.as_micros(),
                claim.as_ref().map(|claim| claim.as_bytes().as_slice()),
                Timestamp::MAX.as_micros(),
            ];
            let is_there = execute(self.conn, sql!("set_aside"), values)? > 0;
            self.enter(facts.now, entry, is_there)
        })
    }

    fn set_aside_event(
        &self,
        event: EventId,
        claim: Option<ClaimId>,
        (entry, why): &(AuditEntry, Json),
    ) -> Result<bool> {
        self.verb("set aside", |facts| {
            let values = params![
                event.as_bytes().as_slice(),
                facts.now.as_micros(),
                claim.as_ref().map(|claim| claim.as_bytes().as_slice()),
                why.as_str(),
            ];
            let is_there = execute(self.conn, sql!("set_aside_event"), values)? > 0;
            self.enter(facts.now, entry, is_there)
        })
    }

    fn enter(&self, now: Timestamp, entry: &AuditEntry, is_there: bool) -> Result<bool> {
        if is_there {
            self.shared.clock.keep(self.conn, now)?;
            let row = AuditRow::of(entry, self.shared.ids.next(), now);
            audit::add(self.conn, &row)?;
        }
        Ok(is_there)
    }
}

impl SqliteStore {
    /// Claims, past jobs whose rows cannot be read.
    pub(crate) async fn claim_past(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
        let claim = Some(request.claim);
        self.past("claim", claim, move |tx| tx.claim(&request)).await
    }

    /// Claims events, past those whose rows cannot be read.
    pub(crate) async fn claim_events_past(
        &self,
        request: EventClaimRequest,
    ) -> Result<Vec<EventClaim>> {
        let claim = Some(request.claim);
        self.past("claim events", claim, move |tx| tx.claim_events(&request)).await
    }

    /// Reclaims, past jobs and events whose rows cannot be read.
    pub(crate) async fn reclaim_past(&self, request: ReclaimRequest) -> Result<Reclaimed> {
        self.past("reclaim", None, move |tx| tx.reclaim(&request)).await
    }

    async fn past<T: Send + 'static>(
        &self,
        operation: &'static str,
        claim: Option<ClaimId>,
        act: impl Fn(&Joined<'_>) -> Result<T> + Clone + Send + 'static,
    ) -> Result<T> {
        for _ in 0..ASIDE_MAX {
            match self.verb(operation, act.clone()).await {
                Err(error) => self.set_aside(error, claim).await?,
                done => return done,
            }
        }
        self.verb(operation, act).await
    }

    /// Puts the job or event that an error names to rest.
    ///
    /// # Errors
    /// The error itself where it names none, or one that is not there to be put to rest.
    async fn set_aside(&self, error: Error, claim: Option<ClaimId>) -> Result<()> {
        if let Some(event) = error.damaged_event() {
            return self.set_event_aside(event, error, claim).await;
        }
        let Some(job) = error.damaged_job() else { return Err(error) };
        let entry = aside::set_aside(job, &error)?;
        if !self.verb("set aside", move |tx| tx.set_aside(job, claim, &entry)).await? {
            return Err(error);
        }
        tracing::error!(
            %job, %error,
            "a stored job cannot be read and rests until its row is mended and it is woken"
        );
        Ok(())
    }

    async fn set_event_aside(
        &self,
        event: EventId,
        error: Error,
        claim: Option<ClaimId>,
    ) -> Result<()> {
        let told = aside::set_aside_event(event, &error)?;
        let end = move |tx: &Joined<'_>| tx.set_aside_event(event, claim, &told);
        if !self.verb("set aside", end).await? {
            return Err(error);
        }
        tracing::error!(
            %error,
            "event {event} cannot be read and is not delivered until its row is mended and it is replayed"
        );
        Ok(())
    }
}
