//! Owns blobs: bytes under a name, read and written.

use leasehold_core::{PutBlob, RecordId, Result, Timestamp};
use rusqlite::{Connection, params};

use crate::joined::Joined;
use crate::row::{Columns, micros};
use crate::statement::{execute, row, sql};

impl Joined<'_> {
    /// Keeps bytes under a name, in place of what is there.
    ///
    /// # Errors
    /// As `Records::put_blob`.
    pub fn put_blob(&self, blob: &PutBlob) -> Result<()> {
        self.verb("put blob", |facts| {
            blob.check(&self.shared.limits)?;
            self.shared.clock.keep(self.conn, facts.now)?;
            let values = params![
                blob.id.namespace.as_str(),
                blob.id.key.as_str(),
                blob.bytes,
                facts.now.as_micros(),
                micros(blob.ttl.map(|ttl| facts.now.plus(ttl))),
            ];
            execute(self.conn, sql!("blob_store"), values).map(|_| ())
        })
    }

    /// Reads a blob.
    ///
    /// # Errors
    /// As `Records::get_blob`.
    pub fn get_blob(&self, id: &RecordId) -> Result<Option<Vec<u8>>> {
        self.verb("get blob", |facts| get(self.conn, facts.now, id))
    }

    /// Deletes a blob; whether there was one.
    ///
    /// # Errors
    /// As `Records::delete_blob`.
    pub fn delete_blob(&self, id: &RecordId) -> Result<bool> {
        self.verb("delete blob", |facts| {
            let name = params![id.namespace.as_str(), id.key.as_str(), facts.now.as_micros()];
            let found = row(self.conn, sql!("blob_delete"), name, |row| Columns::of(row).raw())?;
            if found.is_some() {
                self.shared.clock.keep(self.conn, facts.now)?;
            }
            Ok(found.unwrap_or(false))
        })
    }
}

/// The bytes of one blob.
pub(crate) fn get(conn: &Connection, now: Timestamp, id: &RecordId) -> Result<Option<Vec<u8>>> {
    let name = params![id.namespace.as_str(), id.key.as_str(), now.as_micros()];
    row(conn, sql!("blob_load"), name, |row| Columns::of(row).raw())
}
