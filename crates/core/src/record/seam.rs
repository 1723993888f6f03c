//! Owns the seam for what else a service keeps beside its jobs; each verb is one transaction, and a
//! verb that errs has written nothing. Reach it by [`Store::records`](crate::Store::records).

use std::fmt;

use async_trait::async_trait;

use super::{
    Admission, Admitted, AuditEntry, AuditFilter, AuditId, AuditView, DeleteDocument, Document,
    DocumentPage, ListDocuments, Once, PutBlob, PutDocument, RecordId, Remembered, Take, Taken,
};
use crate::error::Result;
use crate::query::{Page, Paging};

/// What else a service has to keep, in the same database and by the same clock.
///
/// What is past its end is as absent at once; `prune` lets go of it later.
///
/// ```
/// use std::sync::Arc;
/// use leasehold_core::{Expected, Json, PutDocument, RecordId, Store, memory::MemoryStore};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let id = RecordId::new("settings", "theme")?;
/// let first = PutDocument::new(id.clone(), Json::parse("\"dark\"")?).expected(Expected::Absent);
/// let version = store.records().put(first).await?.version;
///
/// let next = PutDocument::new(id, Json::parse("\"light\"")?).expected(Expected::Version(version));
/// store.records().put(next.clone()).await?;
/// assert!(store.records().put(next).await.is_err()); // somebody (we) came first
/// # Ok::<(), leasehold_core::Error>(())
/// # }).unwrap();
/// ```
#[async_trait]
pub trait Records: fmt::Debug + Send + Sync + 'static {
    /// Makes a document or writes over it.
    ///
    /// # Errors
    /// `Conflict` when something else is there than was expected; `Invalid` for a document over the
    /// limit; engine errors. After `OutcomeUnknown` read it again: a repeat may conflict with itself.
    async fn put(&self, document: PutDocument) -> Result<Document>;

    /// Reads a document.
    ///
    /// # Errors
    /// Engine errors only.
    async fn get(&self, id: RecordId) -> Result<Option<Document>>;

    /// Deletes a document; whether there was one.
    ///
    /// # Errors
    /// `Conflict` when something else is there than was expected; engine errors.
    async fn delete(&self, document: DeleteDocument) -> Result<bool>;

    /// Lists documents of a namespace, by key.
    ///
    /// # Errors
    /// `Invalid` for a page size out of range or a prefix that no key can have; engine errors.
    async fn list(&self, documents: ListDocuments) -> Result<DocumentPage>;

    /// Keeps bytes under a name, in place of what is there.
    ///
    /// # Errors
    /// `Invalid` for a blob over the limit; engine errors.
    async fn put_blob(&self, blob: PutBlob) -> Result<()>;

    /// Reads a blob.
    ///
    /// # Errors
    /// Engine errors only.
    async fn get_blob(&self, id: RecordId) -> Result<Option<Vec<u8>>>;

    /// Deletes a blob; whether there was one.
    ///
    /// # Errors
    /// Engine errors only.
    async fn delete_blob(&self, id: RecordId) -> Result<bool>;

    /// Adds an entry to the audit log.
    ///
    /// # Errors
    /// `Invalid` naming the limit; engine errors.
    async fn append(&self, entry: AuditEntry) -> Result<AuditId>;

    /// Lists entries of the audit log by id, which is about the order of their times.
    ///
    /// # Errors
    /// `Invalid` for a page size out of range; engine errors.
    async fn audit(&self, filter: AuditFilter, paging: Paging) -> Result<Page<AuditView>>;

    /// Answers a request once: stores the response, or gives the stored one.
    ///
    /// # Errors
    /// `Conflict` when the key holds another request; `Invalid` for a response over the limit;
    /// engine errors.
    async fn once(&self, request: Once) -> Result<Remembered>;

    /// Takes requests once, and enqueues what they ask for in the same transaction.
    ///
    /// # Errors
    /// `Conflict` when a key holds another request, or as `Store::enqueue` per job: then nothing is
    /// kept and the keys stay free. `Invalid` as [`Admission::check`]; engine errors.
    async fn admit(&self, admission: Admission) -> Result<Admitted>;

    /// Takes rate tokens that all processes of the store share, by the store's clock.
    ///
    /// # Errors
    /// `Invalid` for a wish that can never be granted; engine errors.
    async fn take(&self, wish: Take) -> Result<Taken>;
}
