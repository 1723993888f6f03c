//! Owns idempotency records: one answer for each scope and key while it lasts.

use leasehold_core::{Error, ErrorKind, Once, Remembered, Result};
use rusqlite::{Connection, params};

use crate::error::corrupt;
use crate::load::{Facts, Shared};
use crate::row::Columns;
use crate::statement::{execute, row, sql};

/// Gives the stored answer, or stores this one.
pub(crate) fn once(
    conn: &Connection,
    shared: &Shared,
    facts: &Facts,
    request: &Once,
) -> Result<Remembered> {
    request.check(&shared.limits)?;
    let (scope, key) = (request.scope.as_str(), request.key.as_str());
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.hash()?, columns.json()?, columns.time()?))
    };
    match row(conn, sql!("once_load"), params![scope, key], read)? {
        Some((hash, response, expires_at)) if expires_at > facts.now => {
            if hash == request.hash {
                return Ok(Remembered::Stored(response));
            }
            let why = format!("key {key:?} is taken by another request");
            return Err(Error::new(ErrorKind::Conflict, "once", why));
        }
        _ => {}
    }
    shared.clock.keep(conn, facts.now)?;
    let values = params![
        scope,
        key,
        request.hash.as_bytes().as_slice(),
        request.response.as_str(),
        facts.now.as_micros(),
        facts.now.plus(request.ttl).as_micros(),
    ];
    match execute(conn, sql!("once_store"), values)? {
        1 => Ok(Remembered::New),
        _ => Err(corrupt("a record changed under the write lock")),
    }
}
