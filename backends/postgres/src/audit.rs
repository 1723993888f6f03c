//! Owns the audit log: entries added and listed, never changed.

use async_trait::async_trait;
use leasehold_core::row::AuditRow;
use leasehold_core::{AuditEntry, AuditFilter, AuditId, AuditView, Page, Paging, Result};
use uuid::Uuid;

use crate::bind::Params;
use crate::joined::{Joined, Verb};
use crate::row::Columns;
use crate::statement::{Db, Sql, sql};

impl Joined<'_> {
    /// Adds an entry to the audit log.
    ///
    /// # Errors
    /// As `Records::append`.
    pub async fn append(&self, entry: &AuditEntry) -> Result<AuditId> {
        self.run(entry).await
    }

    /// Lists entries of the audit log.
    ///
    /// # Errors
    /// As `Records::audit`.
    pub async fn audit(&self, filter: &AuditFilter, paging: &Paging) -> Result<Page<AuditView>> {
        self.run(&Listing(filter, paging)).await
    }
}

#[async_trait]
impl Verb for AuditEntry {
    const NAME: &'static str = "append";
    type Answer = AuditId;

    async fn on(&self, tx: &Joined<'_>) -> Result<AuditId> {
        let facts = tx.facts().await?;
        self.check()?;
        let row = AuditRow::of(self, tx.shared.ids.next(), facts.now);
        add(&tx.db, std::slice::from_ref(&row)).await?;
        Ok(AuditId::from_uuid(row.id))
    }
}

/// A page to be read.
#[derive(Debug)]
pub(crate) struct Listing<'a>(pub(crate) &'a AuditFilter, pub(crate) &'a Paging);

#[async_trait]
impl Verb for Listing<'_> {
    const NAME: &'static str = "audit";
    type Answer = Page<AuditView>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        tx.facts().await?;
        let Self(filter, paging) = self;
        paging.check()?;
        let sql: Sql = match (&filter.target, &filter.actor) {
            (Some(_), _) => sql!("find_audit_about"),
            (None, Some(_)) => sql!("find_audit_by"),
            (None, None) => sql!("find_audit"),
        };
        let values = Params::new()
            .one(paging.after.map_or(Uuid::nil(), |cursor| cursor.id))
            .one(filter.actor.as_ref().map(|actor| actor.as_str()))
            .one(filter.action.as_deref())
            .one(filter.target.as_deref())
            .one(paging.size + 1);
        let found = tx.db.rows(sql, values, |row| Ok(Columns::of(row).audit()?.into())).await?;
        Ok(AuditView::page(found, paging))
    }
}

/// Adds entries to the audit log.
pub(crate) async fn add(db: &Db<'_>, rows: &[AuditRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = Params::new()
        .many(rows.iter().map(|row| row.id))
        .many(rows.iter().map(|row| row.at))
        .many(rows.iter().map(|row| row.actor.as_str()))
        .many(rows.iter().map(|row| row.action.as_str()))
        .many(rows.iter().map(|row| row.target.as_str()))
        .many(rows.iter().map(|row| row.detail.as_deref()));
    db.execute(sql!("insert_audit"), values).await.map(|_| ())
}
