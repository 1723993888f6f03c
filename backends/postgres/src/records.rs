//! Owns the store's own verbs on records: each is begin, join, verb, commit.

use async_trait::async_trait;
use leasehold_core::{
    Admission, Admitted, AuditEntry, AuditFilter, AuditId, AuditView, DeleteDocument, Document,
    DocumentPage, ListDocuments, Once, Page, Paging, PutBlob, PutDocument, RecordId, Records,
    Remembered, Result, Take, Taken,
};

use crate::audit::Listing;
use crate::blob::{DeleteBlob, GetBlob};
use crate::document::Get;
use crate::pool::Lane;
use crate::store::PostgresStore;

#[async_trait]
impl Records for PostgresStore {
    async fn put(&self, document: PutDocument) -> Result<Document> {
        self.run(Lane::Shared, &document).await
    }

    async fn get(&self, id: RecordId) -> Result<Option<Document>> {
        self.run(Lane::Shared, &Get(&id)).await
    }

    async fn delete(&self, document: DeleteDocument) -> Result<bool> {
        self.run(Lane::Shared, &document).await
    }

    async fn list(&self, documents: ListDocuments) -> Result<DocumentPage> {
        self.run(Lane::Shared, &documents).await
    }

    async fn put_blob(&self, blob: PutBlob) -> Result<()> {
        self.run(Lane::Shared, &blob).await
    }

    async fn get_blob(&self, id: RecordId) -> Result<Option<Vec<u8>>> {
        self.run(Lane::Shared, &GetBlob(&id)).await
    }

    async fn delete_blob(&self, id: RecordId) -> Result<bool> {
        self.run(Lane::Shared, &DeleteBlob(&id)).await
    }

    async fn append(&self, entry: AuditEntry) -> Result<AuditId> {
        self.run(Lane::Shared, &entry).await
    }

    async fn audit(&self, filter: AuditFilter, paging: Paging) -> Result<Page<AuditView>> {
        self.run(Lane::Shared, &Listing(&filter, &paging)).await
    }

    async fn once(&self, request: Once) -> Result<Remembered> {
        self.run(Lane::Shared, &request).await
    }

    async fn admit(&self, admission: Admission) -> Result<Admitted> {
        self.run(Lane::Shared, &admission).await
    }

    async fn take(&self, wish: Take) -> Result<Taken> {
        self.run(Lane::Shared, &wish).await
    }
}
