//! Owns idempotency records: one answer for each scope and key while it lasts.

use leasehold_core::{Error, ErrorKind, Once, Remembered, Result};

use crate::bind::Params;
use crate::error::came_first;
use crate::load::{Facts, Shared};
use crate::row::Columns;
use crate::statement::{Db, sql};

/// Gives the stored answer, or stores this one.
pub(crate) async fn once(
    db: &Db<'_>,
    shared: &Shared,
    facts: &Facts,
    request: &Once,
) -> Result<Remembered> {
    request.check(&shared.limits)?;
    let key = || Params::new().one(request.scope.as_str()).one(request.key.as_str());
    let found = db.row(sql!("once_load"), key(), |row| {
        let mut columns = Columns::of(row);
        Ok((columns.hash()?, columns.json()?, columns.time()?))
    });
    match found.await? {
        Some((hash, response, expires_at)) if expires_at > facts.now => {
            if hash == request.hash {
                return Ok(Remembered::Stored(response));
            }
            let why = format!("key {:?} is taken by another request", request.key.as_str());
            return Err(Error::new(ErrorKind::Conflict, "once", why));
        }
        _ => {}
    }
    let values = key()
        .one(&request.hash)
        .one(&request.response)
        .one(facts.now)
        .one(facts.now.plus(request.ttl));
    match db.execute(sql!("once_store"), values).await? {
        1 => Ok(Remembered::New),
        _ => Err(came_first()),
    }
}
