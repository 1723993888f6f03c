//! Owns buckets of rate tokens: their rows, locked, read and written. Decides nothing.

use async_trait::async_trait;
use leasehold_core::rules::records;
use leasehold_core::{Result, Take, Taken};

use crate::bind::Params;
use crate::error::came_first;
use crate::joined::{Joined, Verb};
use crate::row::Columns;
use crate::statement::sql;

impl Joined<'_> {
    /// Takes rate tokens. Others who want some of the bucket wait until the transaction ends.
    ///
    /// # Errors
    /// As `Records::take`.
    pub async fn take(&self, wish: &Take) -> Result<Taken> {
        self.run(wish).await
    }
}

#[async_trait]
impl Verb for Take {
    const NAME: &'static str = "take";
    type Answer = Taken;

    async fn on(&self, tx: &Joined<'_>) -> Result<Taken> {
        let facts = tx.facts().await?;
        self.check()?;
        let values = Params::new().one(self.bucket.as_str()).one(tx.shared.manual_now());
        let found = tx.db.row(sql!("tokens_load"), values, |row| {
            let mut columns = Columns::of(row);
            Ok((columns.tokens(self.bucket.clone())?, columns.time()?))
        });
        let found = found.await?;
        let now = found.as_ref().map_or(facts.now, |(_, now)| *now);
        let found = found.map(|(row, _)| row);
        let (taken, next) = records::take(now, found.clone(), self);
        let Some(next) = next else { return Ok(taken) };
        let values = Params::new()
            .one(next.bucket.as_str())
            .one(next.level)
            .one(next.at)
            .one(next.full_at)
            .one(found.as_ref().map(|row| row.level))
            .one(found.as_ref().map(|row| row.at));
        match tx.db.execute(sql!("tokens_store"), values).await? {
            1 => Ok(taken),
            _ => Err(came_first()),
        }
    }
}
