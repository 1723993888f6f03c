//! Owns admissions: requests taken once, together with the jobs that they ask for.

use async_trait::async_trait;
use leasehold_core::{Admission, Admitted, Once, Remembered, Result, Timestamp};

use crate::joined::{Joined, Verb, enqueue};

impl Joined<'_> {
    /// Takes requests once, and enqueues what they ask for. Others who bring one of the requests wait
    /// until the transaction ends.
    ///
    /// # Errors
    /// As `Records::admit`.
    pub async fn admit(&self, admission: &Admission) -> Result<Admitted> {
        self.run(admission).await
    }
}

#[async_trait]
impl Verb for Admission {
    const NAME: &'static str = "admit";
    type Answer = Admitted;

    async fn on(&self, tx: &Joined<'_>) -> Result<Admitted> {
        let facts = tx.facts().await?;
        self.check(&tx.shared.limits)?;
        let mut rows = Vec::with_capacity(self.requests.len());
        for (at, request) in self.requests.iter().enumerate() {
            let (answer, row) = tx.look_once(facts.now, request).await?;
            if answer != Remembered::New {
                // Another may have been admitted since the earlier ones were looked at, with all of its own.
                let earlier =
                    first_known(tx, facts.now, self.requests.get(..at).unwrap_or_default());
                return Ok(earlier.await?.unwrap_or(Admitted::Known { at, answer }));
            }
            rows.extend(row);
        }
        for row in &rows {
            tx.keep_once(row).await?;
        }
        match self.jobs.as_slice() {
            [] => Ok(Admitted::New(Vec::new())),
            // A refused job takes all back, so the commit may not go along with the writes.
            jobs => Admitted::all_of(enqueue(tx, jobs, false).await?),
        }
    }
}

/// The first of these requests that is known by now.
async fn first_known(
    tx: &Joined<'_>,
    now: Timestamp,
    requests: &[Once],
) -> Result<Option<Admitted>> {
    for (at, request) in requests.iter().enumerate() {
        let (answer, _) = tx.look_once(now, request).await?;
        if answer != Remembered::New {
            return Ok(Some(Admitted::Known { at, answer }));
        }
    }
    Ok(None)
}
