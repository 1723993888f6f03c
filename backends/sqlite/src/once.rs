//! Owns idempotency records: one answer for each scope and key while it lasts.

use leasehold_core::row::RecordRow;
use leasehold_core::rules::records;
use leasehold_core::{Once, Remembered, Result};
use rusqlite::params;

use crate::joined::Joined;
use crate::load::Facts;
use crate::row::Columns;
use crate::statement::{execute, row, sql};
use crate::write::fresh;

impl Joined<'_> {
    /// Answers a request once.
    ///
    /// # Errors
    /// As `Records::once`.
    pub fn once(&self, request: &Once) -> Result<Remembered> {
        self.verb("once", |facts| {
            request.check(&self.shared.limits)?;
            let (answer, next) = self.look_once(facts, request)?;
            if let Some(next) = next {
                self.keep_once(facts, &next)?;
            }
            Ok(answer)
        })
    }

    /// The answer to a request, and what is to be kept for it.
    pub(crate) fn look_once(
        &self,
        facts: &Facts,
        request: &Once,
    ) -> Result<(Remembered, Option<RecordRow>)> {
        let slot = (request.scope.clone(), request.key.clone());
        let read = |row: &rusqlite::Row<'_>| Columns::of(row).record(slot.clone());
        let name = params![slot.0.as_str(), slot.1.as_str()];
        let found = row(self.conn, sql!("once_load"), name, read)?;
        records::once(facts.now, found, request)
    }

    pub(crate) fn keep_once(&self, facts: &Facts, next: &RecordRow) -> Result<()> {
        self.shared.clock.keep(self.conn, facts.now)?;
        let values = params![
            next.scope.as_str(),
            next.key.as_str(),
            next.hash.as_bytes().as_slice(),
            next.response.as_ref().map(|json| json.as_str()),
            next.created_at.as_micros(),
            next.expires_at.as_micros(),
        ];
        fresh(execute(self.conn, sql!("once_store"), values)?, "a record")
    }
}
