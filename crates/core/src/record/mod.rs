//! Owns what else a service keeps in the same database: documents, blobs, the audit log, answers to
//! repeated requests, rate tokens. Knows their requests and answers, and no rows; the rules decide.

mod admit;
mod audit;
mod blob;
mod document;
mod once;
mod seam;
mod tokens;

use std::fmt;

pub use admit::{Admission, Admitted};
pub use audit::{AuditEntry, AuditFilter, AuditId, AuditView};
pub use blob::PutBlob;
pub use document::{DeleteDocument, Document, DocumentPage, Expected, ListDocuments, PutDocument};
pub use once::{Once, Remembered};
pub use seam::Records;
pub(crate) use tokens::check_bucket;
pub use tokens::{Rate, Take, Taken};

use crate::error::Result;
use crate::name::{Namespace, RecordKey};

/// The name of a document or a blob: a namespace and a key within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    /// Whose record it is.
    pub namespace: Namespace,
    /// Its key there.
    pub key: RecordKey,
}

impl RecordId {
    /// Checks and takes both parts.
    ///
    /// # Errors
    /// `Invalid` when a part is empty, over 255 bytes, or holds a control character.
    pub fn new(namespace: impl AsRef<str>, key: impl AsRef<str>) -> Result<Self> {
        Ok(Self { namespace: Namespace::new(namespace)?, key: RecordKey::new(key)? })
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.key)
    }
}
