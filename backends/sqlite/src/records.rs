//! Owns the store's own verbs on records: each is begin, join, verb, commit; reads go to connections
//! of their own.

use async_trait::async_trait;
use leasehold_core::{
    Admission, Admitted, AuditEntry, AuditFilter, AuditId, AuditView, DeleteDocument, Document,
    DocumentPage, ListDocuments, Once, Page, Paging, PutBlob, PutDocument, RecordId, Records,
    Remembered, Result, Take, Taken,
};

use crate::store::SqliteStore;
use crate::{audit, blob, document};

#[async_trait]
impl Records for SqliteStore {
    async fn put(&self, document: PutDocument) -> Result<Document> {
        self.verb("put", move |tx| tx.put(&document)).await
    }

    async fn get(&self, id: RecordId) -> Result<Option<Document>> {
        let get = move |conn: &_, shared: &crate::load::Shared| {
            document::get(conn, shared.clock.now(conn)?, &id)
        };
        self.read("get", get).await
    }

    async fn delete(&self, document: DeleteDocument) -> Result<bool> {
        self.verb("delete", move |tx| tx.delete(&document)).await
    }

    async fn list(&self, documents: ListDocuments) -> Result<DocumentPage> {
        let list = move |conn: &_, shared: &crate::load::Shared| {
            document::list(conn, shared.clock.now(conn)?, &documents)
        };
        self.read("list", list).await
    }

    async fn put_blob(&self, blob: PutBlob) -> Result<()> {
        self.verb("put blob", move |tx| tx.put_blob(&blob)).await
    }

    async fn get_blob(&self, id: RecordId) -> Result<Option<Vec<u8>>> {
        let get = move |conn: &_, shared: &crate::load::Shared| {
            blob::get(conn, shared.clock.now(conn)?, &id)
        };
        self.read("get blob", get).await
    }

    async fn delete_blob(&self, id: RecordId) -> Result<bool> {
        self.verb("delete blob", move |tx| tx.delete_blob(&id)).await
    }

    async fn append(&self, entry: AuditEntry) -> Result<AuditId> {
        self.verb("append", move |tx| tx.append(&entry)).await
    }

    async fn audit(&self, filter: AuditFilter, paging: Paging) -> Result<Page<AuditView>> {
        self.read("audit", move |conn, _| audit::list(conn, &filter, &paging)).await
    }

    async fn once(&self, request: Once) -> Result<Remembered> {
        self.verb("once", move |tx| tx.once(&request)).await
    }

    async fn admit(&self, admission: Admission) -> Result<Admitted> {
        self.verb("admit", move |tx| tx.admit(&admission)).await
    }

    async fn take(&self, wish: Take) -> Result<Taken> {
        self.verb("take", move |tx| tx.take(&wish)).await
    }
}
