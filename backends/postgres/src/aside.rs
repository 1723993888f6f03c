//! Owns what becomes of a job or an event whose row cannot be read: it is put to rest, so that no other waits
//! for it, and the log and the audit log name it. Mends nothing.

use async_trait::async_trait;
use leasehold_core::rules::aside::{self, ASIDE_MAX};
use leasehold_core::{
    AuditEntry, Claim, ClaimId, ClaimRequest, Error, EventClaim, EventClaimRequest, EventId, JobId,
    Json, ReclaimRequest, Reclaimed, Result, Timestamp,
};

use crate::bind::Params;
use crate::joined::{Joined, Verb};
use crate::pool::Lane;
use crate::statement::sql;
use crate::store::PostgresStore;

struct SetAside {
    job: JobId,
    claim: Option<ClaimId>,
    entry: AuditEntry,
}

#[async_trait]
impl Verb for SetAside {
    const NAME: &'static str = "set aside";
    type Answer = bool;

    async fn on(&self, tx: &Joined<'_>) -> Result<bool> {
        let now = tx.facts().await?.now;
        let values = Params::new().one(self.job).one(now).one(self.claim).one(Timestamp::MAX);
        let is_there = tx.db.execute(sql!("set_aside"), values).await? > 0;
        if is_there {
            self.entry.on(tx).await?;
        }
        Ok(is_there)
    }
}

struct SetEventAside {
    event: EventId,
    claim: Option<ClaimId>,
    told: (AuditEntry, Json),
}

#[async_trait]
impl Verb for SetEventAside {
    const NAME: &'static str = "set aside";
    type Answer = bool;

    async fn on(&self, tx: &Joined<'_>) -> Result<bool> {
        let (now, (entry, why)) = (tx.facts().await?.now, &self.told);
        let values = Params::new().one(self.event).one(now).one(self.claim).one(why);
        let is_there = tx.db.execute(sql!("set_aside_event"), values).await? > 0;
        if is_there {
            entry.on(tx).await?;
        }
        Ok(is_there)
    }
}

impl PostgresStore {
    /// Claims, past jobs whose rows cannot be read. What a claim had taken when it met one it finds again.
    pub(crate) async fn claim_past(&self, mut request: ClaimRequest) -> Result<Vec<Claim>> {
        for _ in 0..ASIDE_MAX {
            match self.claim_once(&request).await {
                Err(error) => self.set_aside(error, Some(request.claim)).await?,
                claims => return claims,
            }
            request = request.repeat();
        }
        self.claim_once(&request).await
    }

    async fn claim_once(&self, request: &ClaimRequest) -> Result<Vec<Claim>> {
        let claims = match self.take(request).await? {
            Some(claims) => claims,
            None => self.run(Lane::Shared, request).await?,
        };
        self.keep_marks(&request.queues, &claims);
        Ok(claims)
    }

    /// Claims events, past those whose rows cannot be read.
    pub(crate) async fn claim_events_past(
        &self,
        request: EventClaimRequest,
    ) -> Result<Vec<EventClaim>> {
        for _ in 0..ASIDE_MAX {
            match self.run(Lane::Shared, &request).await {
                Err(error) => self.set_aside(error, Some(request.claim)).await?,
                claims => return claims,
            }
        }
        self.run(Lane::Shared, &request).await
    }

    /// Reclaims, past jobs and events whose rows cannot be read.
    pub(crate) async fn reclaim_past(&self, request: ReclaimRequest) -> Result<Reclaimed> {
        for _ in 0..ASIDE_MAX {
            match self.run(Lane::Shared, &request).await {
                Err(error) => self.set_aside(error, None).await?,
                done => return done,
            }
        }
        self.run(Lane::Shared, &request).await
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
        if !self.run(Lane::Shared, &SetAside { job, claim, entry }).await? {
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
        if !self.run(Lane::Shared, &SetEventAside { event, claim, told }).await? {
            return Err(error);
        }
        tracing::error!(
            %error,
            "event {event} cannot be read and is not delivered until its row is mended and it is replayed"
        );
        Ok(())
    }
}
