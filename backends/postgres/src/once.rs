//! Owns idempotency records: one answer for each scope and key while it lasts.

use async_trait::async_trait;
use leasehold_core::row::RecordRow;
use leasehold_core::rules::records;
use leasehold_core::{Once, Remembered, Result, Timestamp};

use crate::bind::Params;
use crate::error::came_first;
use crate::joined::{Joined, Verb};
use crate::row::Columns;
use crate::statement::sql;

impl Joined<'_> {
    /// Answers a request once.
    ///
    /// # Errors
    /// As `Records::once`.
    pub async fn once(&self, request: &Once) -> Result<Remembered> {
        self.run(request).await
    }

    /// The answer to a request, and what is to be kept for it.
    pub(crate) async fn look_once(
        &self,
        now: Timestamp,
        request: &Once,
    ) -> Result<(Remembered, Option<RecordRow>)> {
        let name = Params::new().one(request.scope.as_str()).one(request.key.as_str());
        let slot = (request.scope.clone(), request.key.clone());
        let read = |row: &tokio_postgres::Row| Columns::of(row).record(slot.clone());
        let found = self.db.row(sql!("once_load"), name, read).await?;
        records::once(now, found, request)
    }

    pub(crate) async fn keep_once(&self, next: &RecordRow) -> Result<()> {
        let values = Params::new()
            .one(next.scope.as_str())
            .one(next.key.as_str())
            .one(&next.hash)
            .one(next.response.as_ref())
            .one(next.created_at)
            .one(next.expires_at);
        match self.db.execute(sql!("once_store"), values).await? {
            1 => Ok(()),
            _ => Err(came_first()),
        }
    }
}

#[async_trait]
impl Verb for Once {
    const NAME: &'static str = "once";
    type Answer = Remembered;

    async fn on(&self, tx: &Joined<'_>) -> Result<Remembered> {
        let facts = tx.facts().await?;
        self.check(&tx.shared.limits)?;
        let (answer, next) = tx.look_once(facts.now, self).await?;
        if let Some(next) = next {
            tx.keep_once(&next).await?;
        }
        Ok(answer)
    }
}
