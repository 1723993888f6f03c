//! Owns blobs: bytes under a name, read and written.

use async_trait::async_trait;
use leasehold_core::{PutBlob, RecordId, Result};

use crate::document::named;
use crate::joined::{Joined, Verb};
use crate::row::Columns;
use crate::statement::sql;

impl Joined<'_> {
    /// Keeps bytes under a name, in place of what is there.
    ///
    /// # Errors
    /// As `Records::put_blob`.
    pub async fn put_blob(&self, blob: &PutBlob) -> Result<()> {
        self.run(blob).await
    }

    /// Reads a blob.
    ///
    /// # Errors
    /// As `Records::get_blob`.
    pub async fn get_blob(&self, id: &RecordId) -> Result<Option<Vec<u8>>> {
        self.run(&GetBlob(id)).await
    }

    /// Deletes a blob; whether there was one.
    ///
    /// # Errors
    /// As `Records::delete_blob`.
    pub async fn delete_blob(&self, id: &RecordId) -> Result<bool> {
        self.run(&DeleteBlob(id)).await
    }
}

#[async_trait]
impl Verb for PutBlob {
    const NAME: &'static str = "put blob";
    type Answer = ();

    async fn on(&self, tx: &Joined<'_>) -> Result<()> {
        let facts = tx.facts().await?;
        self.check(&tx.shared.limits)?;
        let end = self.ttl.map(|ttl| facts.now.plus(ttl));
        let values = named(&self.id).one(self.bytes.as_slice()).one(facts.now).one(end);
        tx.db.execute(sql!("blob_store"), values).await.map(|_| ())
    }
}

/// A blob to be read.
#[derive(Debug)]
pub(crate) struct GetBlob<'a>(pub(crate) &'a RecordId);

#[async_trait]
impl Verb for GetBlob<'_> {
    const NAME: &'static str = "get blob";
    type Answer = Option<Vec<u8>>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        let facts = tx.facts().await?;
        let values = named(self.0).one(facts.now);
        tx.db.row(sql!("blob_load"), values, |row| Columns::of(row).raw()).await
    }
}

/// A blob to be deleted.
#[derive(Debug)]
pub(crate) struct DeleteBlob<'a>(pub(crate) &'a RecordId);

#[async_trait]
impl Verb for DeleteBlob<'_> {
    const NAME: &'static str = "delete blob";
    type Answer = bool;

    async fn on(&self, tx: &Joined<'_>) -> Result<bool> {
        let facts = tx.facts().await?;
        let values = named(self.0).one(facts.now);
        let found = tx.db.row(sql!("blob_delete"), values, |row| Columns::of(row).raw()).await?;
        Ok(found.unwrap_or(false))
    }
}
