//! Owns what becomes of a job or an event whose row cannot be read: it is put to rest, so that no other waits
//! for it, and the log and the audit log name it. Mends nothing.

use leasehold_core::row::AuditRow;
use leasehold_core::rules::aside::{self, ASIDE_MAX};
use leasehold_core::{
    AuditEntry, Claim, ClaimId, ClaimRequest, Error, ErrorKind, EventClaim, EventClaimRequest,
    EventId, JobId, Json, PartitionName, ReclaimRequest, Reclaimed, Result, Timestamp,
};
use rusqlite::params;
use uuid::Uuid;

use crate::audit;
use crate::joined::Joined;
use crate::row::Columns;
use crate::statement::{execute, rows, sql};
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

    /// Holds back the rows whose id or partition is none; what they have for an id.
    fn hold_odd(&self, error: &Error) -> Result<Vec<String>> {
        self.verb("set aside", |facts| {
            let mut odd = Vec::new();
            rows(self.conn, sql!("load_odd"), params![facts.now.as_micros()], |row| {
                let mut columns = Columns::of(row);
                let (id, partition): (Vec<u8>, Option<Vec<u8>>) = (columns.raw()?, columns.raw()?);
                if !is_sound(&id, partition.as_deref()) {
                    odd.push(id);
                }
                Ok(())
            })?;
            let mut held = Vec::new();
            for id in odd {
                let is_there = execute(self.conn, sql!("hold_odd"), params![id])? > 0;
                let shown = shown(&id);
                self.enter(facts.now, &aside::set_odd_aside(&shown, error)?, is_there)?;
                held.extend(is_there.then_some(shown));
            }
            Ok(held)
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

/// Whether a row can be named, and found among those of its partition.
fn is_sound(id: &[u8], partition: Option<&[u8]>) -> bool {
    let is_name = |bytes| std::str::from_utf8(bytes).is_ok_and(|it| PartitionName::new(it).is_ok());
    id.len() == 16 && partition.is_none_or(is_name)
}

/// An id as people read it; what is none in SQLite's own writing.
fn shown(id: &[u8]) -> String {
    match Uuid::from_slice(id) {
        Ok(id) => id.to_string(),
        Err(_) => format!("x'{}'", id.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
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
        let Some(job) = error.damaged_job() else { return self.hold_odd(error).await };
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

    /// Holds back what has no id to be put to rest by, or stands under a partition that is none.
    async fn hold_odd(&self, error: Error) -> Result<()> {
        if error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        let met = error.clone();
        let held = self.verb("set aside", move |tx| tx.hold_odd(&met)).await?;
        if held.is_empty() {
            return Err(error);
        }
        for job in held {
            tracing::error!(%error, "the stored job {job} has no id or partition and is held back until its row is mended");
        }
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
