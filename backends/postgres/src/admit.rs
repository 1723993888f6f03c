//! Owns admissions: requests taken once, together with the jobs that they ask for.

use async_trait::async_trait;
use leasehold_core::{Admission, Admitted, Remembered, Result};

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
                return Ok(Admitted::Known { at, answer });
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
