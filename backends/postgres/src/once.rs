//! Owns idempotency records: one answer for each scope and key while it lasts.

use async_trait::async_trait;
use leasehold_core::rules::records;
use leasehold_core::{Once, Remembered, Result};

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
}

#[async_trait]
impl Verb for Once {
    const NAME: &'static str = "once";
    type Answer = Remembered;

    async fn on(&self, tx: &Joined<'_>) -> Result<Remembered> {
        let facts = tx.facts().await?;
        self.check(&tx.shared.limits)?;
        let name = Params::new().one(self.scope.as_str()).one(self.key.as_str());
        let slot = (self.scope.clone(), self.key.clone());
        let read = |row: &tokio_postgres::Row| Columns::of(row).record(slot.clone());
        let found = tx.db.row(sql!("once_load"), name, read).await?;
        let (answer, next) = records::once(facts.now, found, self)?;
        let Some(next) = next else { return Ok(answer) };
        let values = Params::new()
            .one(next.scope.as_str())
            .one(next.key.as_str())
            .one(&next.hash)
            .one(next.response.as_ref())
            .one(next.created_at)
            .one(next.expires_at);
        match tx.db.execute(sql!("once_store"), values).await? {
            1 => Ok(answer),
            _ => Err(came_first()),
        }
    }
}
