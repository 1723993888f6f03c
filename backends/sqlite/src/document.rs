//! Owns versioned documents: their rows, read and written. Decides nothing.

use leasehold_core::row::DocumentRow;
use leasehold_core::rules::records;
use leasehold_core::{
    DeleteDocument, Document, DocumentPage, ListDocuments, PutDocument, RecordId, Result, Timestamp,
};
use rusqlite::{Connection, params};

use crate::joined::Joined;
use crate::load::{Facts, bound};
use crate::row::{Columns, micros};
use crate::statement::{execute, row, rows, sql};
use crate::write::fresh;

impl Joined<'_> {
    /// Makes a document or writes over it.
    ///
    /// # Errors
    /// As `Records::put`.
    pub fn put(&self, document: &PutDocument) -> Result<Document> {
        self.verb("put", |facts| {
            document.check(&self.shared.limits)?;
            let found = load(self.conn, &document.id)?;
            let before = found.as_ref().map(|row| row.version);
            let row = records::put_document(facts.now, found, document)?;
            self.store(facts, &row, before)?;
            Ok(records::stored(&row, &document.body))
        })
    }

    /// Reads a document.
    ///
    /// # Errors
    /// As `Records::get`.
    pub fn get(&self, id: &RecordId) -> Result<Option<Document>> {
        self.verb("get", |facts| get(self.conn, facts.now, id))
    }

    /// Deletes a document; whether there was one.
    ///
    /// # Errors
    /// As `Records::delete`.
    pub fn delete(&self, document: &DeleteDocument) -> Result<bool> {
        self.verb("delete", |facts| {
            let found = load(self.conn, &document.id)?;
            let before = found.as_ref().map(|row| row.version);
            let keep = self.shared.limits.tombstone_ttl;
            match records::delete_document(facts.now, keep, found, document)? {
                Some(row) => self.store(facts, &row, before).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// Lists documents of a namespace, by key.
    ///
    /// # Errors
    /// As `Records::list`.
    pub fn list(&self, documents: &ListDocuments) -> Result<DocumentPage> {
        self.verb("list", |facts| list(self.conn, facts.now, documents))
    }

    fn store(&self, facts: &Facts, row: &DocumentRow, before: Option<i64>) -> Result<()> {
        self.shared.clock.keep(self.conn, facts.now)?;
        let values = params![
            row.id.namespace.as_str(),
            row.id.key.as_str(),
            row.version,
            row.body.as_ref().map(|json| json.as_str()),
            row.created_at.as_micros(),
            row.updated_at.as_micros(),
            micros(row.expires_at),
            before,
        ];
        fresh(execute(self.conn, sql!("document_store"), values)?, "a document")
    }
}

fn load(conn: &Connection, id: &RecordId) -> Result<Option<DocumentRow>> {
    let name = params![id.namespace.as_str(), id.key.as_str()];
    row(conn, sql!("document_load"), name, |row| Columns::of(row).document())
}

/// One document.
pub(crate) fn get(conn: &Connection, now: Timestamp, id: &RecordId) -> Result<Option<Document>> {
    Ok(load(conn, id)?.and_then(|row| records::document(row, now)))
}

/// A page of documents.
pub(crate) fn list(
    conn: &Connection,
    now: Timestamp,
    list: &ListDocuments,
) -> Result<DocumentPage> {
    list.check()?;
    let values = params![
        list.namespace.as_str(),
        list.prefix,
        list.after.as_ref().map_or("", |key| key.as_str()),
        list.end(),
        now.as_micros(),
        bound(list.limit + 1),
    ];
    let found = rows(conn, sql!("document_list"), values, |row| Columns::of(row).document())?;
    let live = found.into_iter().filter_map(|row| records::document(row, now));
    Ok(DocumentPage::cut(live.collect(), list.limit, now))
}
