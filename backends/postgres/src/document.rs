//! Owns versioned documents: their rows, locked, read and written. Decides nothing.

use async_trait::async_trait;
use leasehold_core::row::DocumentRow;
use leasehold_core::rules::records;
use leasehold_core::{
    DeleteDocument, Document, DocumentPage, ListDocuments, PutDocument, RecordId, Result,
};

use crate::bind::Params;
use crate::error::came_first;
use crate::joined::{Joined, Verb};
use crate::load::Facts;
use crate::row::Columns;
use crate::statement::sql;

impl Joined<'_> {
    /// Makes a document or writes over it.
    ///
    /// # Errors
    /// As `Records::put`.
    pub async fn put(&self, document: &PutDocument) -> Result<Document> {
        self.run(document).await
    }

    /// Reads a document.
    ///
    /// # Errors
    /// As `Records::get`.
    pub async fn get(&self, id: &RecordId) -> Result<Option<Document>> {
        self.run(&Get(id)).await
    }

    /// Deletes a document; whether there was one.
    ///
    /// # Errors
    /// As `Records::delete`.
    pub async fn delete(&self, document: &DeleteDocument) -> Result<bool> {
        self.run(document).await
    }

    /// Lists documents of a namespace, by key.
    ///
    /// # Errors
    /// As `Records::list`.
    pub async fn list(&self, documents: &ListDocuments) -> Result<DocumentPage> {
        self.run(documents).await
    }

    /// The row of a document, locked; the time goes on to after the wait.
    async fn lock_document(&self, facts: &mut Facts, id: &RecordId) -> Result<Option<DocumentRow>> {
        let values = named(id).one(self.shared.manual_now());
        let found = self.db.row(sql!("document_lock"), values, |row| {
            let mut columns = Columns::of(row);
            Ok((columns.document()?, columns.time()?))
        });
        let found = found.await?;
        facts.now = found.as_ref().map_or(facts.now, |(_, now)| facts.now.max(*now));
        Ok(found.map(|(row, _)| row))
    }

    async fn store_document(&self, row: &DocumentRow, before: Option<i64>) -> Result<()> {
        let values = named(&row.id)
            .one(row.version)
            .one(row.body.as_ref())
            .one(row.created_at)
            .one(row.updated_at)
            .one(row.expires_at)
            .one(before);
        match self.db.execute(sql!("document_store"), values).await? {
            1 => Ok(()),
            _ => Err(came_first()),
        }
    }
}

/// The two parts of a record's name as parameters.
pub(crate) fn named(id: &RecordId) -> Params {
    Params::new().one(id.namespace.as_str()).one(id.key.as_str())
}

#[async_trait]
impl Verb for PutDocument {
    const NAME: &'static str = "put";
    type Answer = Document;

    async fn on(&self, tx: &Joined<'_>) -> Result<Document> {
        let mut facts = tx.facts().await?;
        self.check(&tx.shared.limits)?;
        let found = tx.lock_document(&mut facts, &self.id).await?;
        let before = found.as_ref().map(|row| row.version);
        let row = records::put_document(facts.now, found, self)?;
        tx.store_document(&row, before).await?;
        Ok(records::stored(&row, &self.body))
    }
}

#[async_trait]
impl Verb for DeleteDocument {
    const NAME: &'static str = "delete";
    type Answer = bool;

    async fn on(&self, tx: &Joined<'_>) -> Result<bool> {
        let mut facts = tx.facts().await?;
        let found = tx.lock_document(&mut facts, &self.id).await?;
        let before = found.as_ref().map(|row| row.version);
        let keep = tx.shared.limits.tombstone_ttl;
        match records::delete_document(facts.now, keep, found, self)? {
            Some(row) => tx.store_document(&row, before).await.map(|()| true),
            None => Ok(false),
        }
    }
}

/// A document to be read.
#[derive(Debug)]
pub(crate) struct Get<'a>(pub(crate) &'a RecordId);

#[async_trait]
impl Verb for Get<'_> {
    const NAME: &'static str = "get";
    type Answer = Option<Document>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        let facts = tx.facts().await?;
        let read = |row: &tokio_postgres::Row| Columns::of(row).document();
        let found = tx.db.row(sql!("document_load"), named(self.0), read).await?;
        Ok(found.and_then(|row| records::document(row, facts.now)))
    }
}

#[async_trait]
impl Verb for ListDocuments {
    const NAME: &'static str = "list";
    type Answer = DocumentPage;

    async fn on(&self, tx: &Joined<'_>) -> Result<DocumentPage> {
        let facts = tx.facts().await?;
        self.check()?;
        let values = Params::new()
            .one(self.namespace.as_str())
            .one(self.prefix.as_str())
            .one(self.after.as_ref().map_or("", |key| key.as_str()))
            .one(self.end())
            .one(facts.now)
            .one(self.limit + 1);
        let read = |row: &tokio_postgres::Row| Columns::of(row).document();
        let found = tx.db.rows(sql!("document_list"), values, read).await?;
        let live = found.into_iter().filter_map(|row| records::document(row, facts.now));
        Ok(DocumentPage::cut(live.collect(), self.limit, facts.now))
    }
}
