//! Owns buckets of rate tokens: their rows, read and written. Decides nothing.

use leasehold_core::row::TokensRow;
use leasehold_core::rules::records;
use leasehold_core::{Result, Take, Taken};
use rusqlite::params;

use crate::joined::Joined;
use crate::load::Facts;
use crate::row::Columns;
use crate::statement::{execute, row, sql};
use crate::write::fresh;

impl Joined<'_> {
    /// Takes rate tokens; they are taken when the transaction commits.
    ///
    /// # Errors
    /// As `Records::take`.
    pub fn take(&self, wish: &Take) -> Result<Taken> {
        self.verb("take", |facts| {
            wish.check()?;
            let read = |row: &rusqlite::Row<'_>| Columns::of(row).tokens(wish.bucket.clone());
            let found = row(self.conn, sql!("tokens_load"), params![wish.bucket.as_str()], read)?;
            let (taken, next) = records::take(facts.now, found.clone(), wish);
            next.map_or(Ok(()), |next| self.keep(facts, &next, found.as_ref()))?;
            Ok(taken)
        })
    }

    fn keep(&self, facts: &Facts, row: &TokensRow, before: Option<&TokensRow>) -> Result<()> {
        self.shared.clock.keep(self.conn, facts.now)?;
        let values = params![
            row.bucket.as_str(),
            row.level,
            row.at.as_micros(),
            row.full_at.as_micros(),
            before.map(|row| row.level),
            before.map(|row| row.at.as_micros()),
        ];
        fresh(execute(self.conn, sql!("tokens_store"), values)?, "a bucket")
    }
}
