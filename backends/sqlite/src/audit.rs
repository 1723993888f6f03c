//! Owns the audit log: entries added and listed, never changed.

use leasehold_core::row::AuditRow;
use leasehold_core::{AuditEntry, AuditFilter, AuditId, AuditView, Page, Paging, Result};
use rusqlite::{Connection, params};

use crate::joined::Joined;
use crate::load::bound;
use crate::row::Columns;
use crate::statement::{Sql, execute, rows, sql};

impl Joined<'_> {
    /// Adds an entry to the audit log.
    ///
    /// # Errors
    /// As `Records::append`.
    pub fn append(&self, entry: &AuditEntry) -> Result<AuditId> {
        self.verb("append", |facts| {
            entry.check()?;
            self.shared.clock.keep(self.conn, facts.now)?;
            let row = AuditRow::of(entry, self.shared.ids.next(), facts.now);
            add(self.conn, &row)?;
            Ok(AuditId::from_uuid(row.id))
        })
    }

    /// Lists entries of the audit log.
    ///
    /// # Errors
    /// As `Records::audit`.
    pub fn audit(&self, filter: &AuditFilter, paging: &Paging) -> Result<Page<AuditView>> {
        self.verb("audit", |_| list(self.conn, filter, paging))
    }
}

/// A page of entries.
pub(crate) fn list(
    conn: &Connection,
    filter: &AuditFilter,
    paging: &Paging,
) -> Result<Page<AuditView>> {
    paging.check()?;
    let sql: Sql = match (&filter.target, &filter.actor) {
        (Some(_), _) => sql!("find_audit_about"),
        (None, Some(_)) => sql!("find_audit_by"),
        (None, None) => sql!("find_audit"),
    };
    let after = paging.after.map_or_else(Vec::new, |cursor| cursor.id.as_bytes().to_vec());
    let values = params![
        after,
        filter.actor.as_ref().map(|actor| actor.as_str()),
        filter.action,
        filter.target,
        bound(paging.size + 1),
    ];
    let found = rows(conn, sql, values, |row| Ok(Columns::of(row).audit()?.into()))?;
    Ok(AuditView::page(found, paging))
}

/// Adds an entry to the audit log.
pub(crate) fn add(conn: &Connection, row: &AuditRow) -> Result<()> {
    let values = params![
        row.id.as_bytes().as_slice(),
        row.at.as_micros(),
        row.actor.as_str(),
        row.action,
        row.target,
        row.detail,
    ];
    execute(conn, sql!("insert_audit"), values).map(|_| ())
}
