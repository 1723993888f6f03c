//! Owns where rows are kept: documents of the store, each write a compare-and-set. Refuses to know what
//! a row means.

use std::time::Instant;

use leasehold_core::{
    DeleteDocument, Document, Error, ErrorKind, Expected, IdempotencyKey, Json, ListDocuments,
    Namespace, PutDocument, RecordId, RecordKey, Records, Result, Timestamp,
};

use super::row::Row;
use crate::clock;

/// The namespace of the rows.
const NAMESPACE: &str = "notify.rows";
const PAGE: usize = 100;

/// A row as it was read, and which write of it that was.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) row: Row,
    version: i64,
    now: Timestamp,
    read: Instant,
}

impl Held {
    fn of(document: &Document, now: Timestamp) -> Result<Self> {
        let row: Row = serde_json::from_str(document.body.as_str()).map_err(|error| {
            let why = "the document is no notification";
            Error::new(ErrorKind::Corrupt, "read notification", why).with_source(error)
        })?;
        if row.key() != document.id.key.as_str() {
            let why = "the notification stands under another's name";
            return Err(Error::new(ErrorKind::Corrupt, "read notification", why));
        }
        Ok(Self { row, version: document.version, now, read: clock::now() })
    }

    /// A name for this very state of the row.
    pub(super) fn name(&self) -> Result<IdempotencyKey> {
        IdempotencyKey::new(format!("notify/{}/{}", self.row.key(), self.version))
    }

    /// Now, by the store's clock: what it was when the row was read, and what has passed since.
    pub(super) fn at(&self) -> Timestamp {
        self.now.plus(clock::now().saturating_duration_since(self.read))
    }
}

fn id(key: &str) -> Result<RecordId> {
    RecordId::new(NAMESPACE, key)
}

/// Makes a row where there is none; whether this call made it.
pub(super) async fn make(records: &dyn Records, row: &Row) -> Result<bool> {
    let put = PutDocument::new(id(&row.key())?, Json::of(row)?).expected(Expected::Absent);
    match records.put(put).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a row over the one that was read; `false` when somebody else came first.
pub(super) async fn write(records: &dyn Records, held: &mut Held) -> Result<bool> {
    let put = PutDocument::new(id(&held.row.key())?, Json::of(&held.row)?);
    match records.put(put.expected(Expected::Version(held.version))).await {
        Ok(document) => {
            held.version = document.version;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a row as it was read; `false` when somebody wrote it meanwhile.
pub(super) async fn remove(records: &dyn Records, held: &Held) -> Result<bool> {
    let delete = DeleteDocument::new(id(&held.row.key())?);
    match records.delete(delete.expected(Expected::Version(held.version))).await {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        done => done,
    }
}

/// Reads a row.
pub(super) async fn read(records: &dyn Records, key: &str) -> Result<Option<Held>> {
    let list = ListDocuments::new(Namespace::new(NAMESPACE)?).prefix(key).limit(1);
    let page = records.list(list).await?;
    page.items.first().map(|document| Held::of(document, page.now)).transpose()
}

/// The store's now.
pub(super) async fn now(records: &dyn Records, prefix: &str) -> Result<Timestamp> {
    let list = ListDocuments::new(Namespace::new(NAMESPACE)?).prefix(prefix).limit(1);
    Ok(records.list(list).await?.now)
}

/// Reads every row whose key begins so, by key. One that cannot be read is an error: whoever tells people has to
/// know them all.
pub(super) async fn all(records: &dyn Records, prefix: &str) -> Result<Vec<Held>> {
    let (mut rows, mut list) = (Vec::new(), ListDocuments::new(Namespace::new(NAMESPACE)?));
    list = list.prefix(prefix).limit(PAGE);
    loop {
        let page = records.list(list.clone()).await?;
        for document in &page.items {
            rows.push(Held::of(document, page.now)?);
        }
        match page.next {
            None => return Ok(rows),
            next => list.after = next,
        }
    }
}

/// Reads a page of rows of all sorts. One that cannot be read is passed over and told of in the log: the others
/// have nothing to do with it.
pub(super) async fn page(
    records: &dyn Records,
    after: Option<RecordKey>,
) -> Result<(Vec<Held>, Option<RecordKey>)> {
    let mut list = ListDocuments::new(Namespace::new(NAMESPACE)?).limit(PAGE);
    list.after = after;
    let page = records.list(list).await?;
    let mut rows = Vec::with_capacity(page.items.len());
    for document in &page.items {
        match Held::of(document, page.now) {
            Ok(held) => rows.push(held),
            Err(error) => {
                let key = document.id.key.as_str();
                tracing::warn!(%error, namespace = NAMESPACE, "the row {key} is passed over");
            }
        }
    }
    Ok((rows, page.next))
}
