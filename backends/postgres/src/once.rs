//! Owns idempotency records: one answer for each scope and key while it lasts.

use async_trait::async_trait;
use leasehold_core::{Error, ErrorKind, Once, Remembered, Result};

use crate::bind::Params;
use crate::error::came_first;
use crate::joined::{Joined, Verb};
use crate::load::Facts;
use crate::row::Columns;
use crate::statement::sql;

#[async_trait]
impl Verb for Once {
    const NAME: &'static str = "once";
    type Answer = Remembered;

    async fn on(&self, tx: &Joined<'_>, facts: Facts) -> Result<Remembered> {
        self.check(&tx.shared.limits)?;
        let key = || Params::new().one(self.scope.as_str()).one(self.key.as_str());
        let found = tx.db.row(sql!("once_load"), key(), |row| {
            let mut columns = Columns::of(row);
            Ok((columns.hash()?, columns.json()?, columns.time()?))
        });
        match found.await? {
            Some((hash, response, expires_at)) if expires_at > facts.now => {
                if hash == self.hash {
                    return Ok(Remembered::Stored(response));
                }
                let why = format!("key {:?} is taken by another request", self.key.as_str());
                return Err(Error::new(ErrorKind::Conflict, Self::NAME, why));
            }
            _ => {}
        }
        let values =
            key().one(&self.hash).one(&self.response).one(facts.now).one(facts.now.plus(self.ttl));
        match tx.db.execute(sql!("once_store"), values).await? {
            1 => Ok(Remembered::New),
            _ => Err(came_first()),
        }
    }
}
