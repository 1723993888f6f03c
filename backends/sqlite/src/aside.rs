//! Owns what becomes of a job whose row cannot be read: it is put to rest, so that no other job waits for
//! it, and the log and the audit log name it. Mends nothing.

use leasehold_core::{
    Actor, AuditEntry, ClaimId, ClaimRequest, Error, JobId, ReclaimRequest, Reclaimed, Records,
    Result, Timestamp,
};
use rusqlite::params;

use crate::joined::Joined;
use crate::statement::{execute, sql};
use crate::store::SqliteStore;

/// The most damaged rows that one call passes over.
const ASIDE_MAX: usize = 1_000;

impl Joined<'_> {
    fn set_aside(&self, job: JobId, claim: Option<ClaimId>) -> Result<bool> {
        self.verb("set aside", |facts| {
            let values = params![
                job.as_bytes().as_slice(),
                facts.now.as_micros(),
                claim.as_ref().map(|claim| claim.as_bytes().as_slice()),
                Timestamp::MAX.as_micros(),
            ];
            Ok(execute(self.conn, sql!("set_aside"), values)? > 0)
        })
    }
}

impl SqliteStore {
    /// Claims, past jobs whose rows cannot be read.
    pub(crate) async fn claim_past(
        &self,
        request: ClaimRequest,
    ) -> Result<Vec<leasehold_core::Claim>> {
        let claim = Some(request.claim);
        for _ in 0..ASIDE_MAX {
            let request = request.clone();
            match self.verb("claim", move |tx| tx.claim(&request)).await {
                Err(error) => self.set_aside(error, claim).await?,
                claims => return claims,
            }
        }
        self.verb("claim", move |tx| tx.claim(&request)).await
    }

    /// Reclaims, past jobs whose rows cannot be read.
    pub(crate) async fn reclaim_past(&self, request: ReclaimRequest) -> Result<Reclaimed> {
        for _ in 0..ASIDE_MAX {
            let request = request.clone();
            match self.verb("reclaim", move |tx| tx.reclaim(&request)).await {
                Err(error) => self.set_aside(error, None).await?,
                done => return done,
            }
        }
        self.verb("reclaim", move |tx| tx.reclaim(&request)).await
    }

    /// Puts the job that an error names to rest.
    ///
    /// # Errors
    /// The error itself where it names none, or one that is not there to be put to rest.
    async fn set_aside(&self, error: Error, claim: Option<ClaimId>) -> Result<()> {
        let Some(job) = error.damaged_job() else { return Err(error) };
        if !self.verb("set aside", move |tx| tx.set_aside(job, claim)).await? {
            return Err(error);
        }
        tracing::error!(
            %job, %error,
            "a stored job cannot be read and rests until its row is mended and it is woken"
        );
        let entry =
            AuditEntry::new(Actor::new("leasehold")?, "job.set_aside", format!("job {job}"));
        self.append(entry.detail(error.message())).await.map(|_| ())
    }
}
