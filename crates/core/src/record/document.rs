//! Owns versioned documents: how one is put, deleted and listed, and what a reader gets.

use std::time::Duration;

use super::RecordId;
use crate::error::{Error, Result};
use crate::job::Limits;
use crate::json::Json;
use crate::name::{Namespace, RecordKey};
use crate::time::Timestamp;

/// What must be there for a write to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there.
    #[default]
    Any,
    /// Nothing is there.
    Absent,
    /// This version is there.
    Version(i64),
}

/// A document as it is stored. One past its end is never given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// Its name.
    pub id: RecordId,
    /// Rises by one with each put and delete. Never the same again, also when the document went and
    /// came back within the time that tombstones are kept.
    pub version: i64,
    /// What it holds.
    pub body: Json,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was put last.
    pub updated_at: Timestamp,
    /// When it ends; `None`: never.
    pub expires_at: Option<Timestamp>,
}

impl Document {
    /// Puts a document together; for stores.
    pub fn from_parts(
        id: RecordId,
        (version, body): (i64, Json),
        (created_at, updated_at): (Timestamp, Timestamp),
        expires_at: Option<Timestamp>,
    ) -> Self {
        Self { id, version, body, created_at, updated_at, expires_at }
    }
}

/// A document to be put: made, or written over.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PutDocument {
    /// Its name.
    pub id: RecordId,
    /// What it holds.
    pub body: Json,
    /// What must be there; anything unless set.
    pub expected: Expected,
    /// How long it lasts from now; without end unless set.
    pub ttl: Option<Duration>,
}

impl PutDocument {
    /// Begins a put over whatever is there, without end.
    pub fn new(id: RecordId, body: Json) -> Self {
        Self { id, body, expected: Expected::Any, ttl: None }
    }

    /// Sets what must be there; else the put is a `Conflict`.
    #[must_use]
    pub fn expected(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// Lets the document end a while after the put.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` naming the limit.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let (has, max) = (self.body.len(), limits.payload_bytes_max);
        if has <= max {
            return Ok(());
        }
        let why = format!("the document has {has} bytes, at most {max} are allowed");
        Err(Error::invalid("put", why).about(&self.id))
    }
}

/// A document to be deleted. A repeat finds nothing, which is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteDocument {
    /// Its name.
    pub id: RecordId,
    /// What must be there, if something is; anything unless set.
    pub expected: Expected,
}

impl DeleteDocument {
    /// Begins a deletion of whatever is there.
    pub fn new(id: RecordId) -> Self {
        Self { id, expected: Expected::Any }
    }

    /// Sets what must be there; another version is a `Conflict`.
    #[must_use]
    pub fn expected(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }
}

/// Which documents of a namespace to list, by key in the order of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListDocuments {
    /// The namespace.
    pub namespace: Namespace,
    /// How their keys begin; `''` unless set.
    pub prefix: String,
    /// The key at which the page before ended.
    pub after: Option<RecordKey>,
    /// The most documents: 1 to 1,000; 100 unless set.
    pub limit: usize,
}

impl ListDocuments {
    /// Begins a listing of a whole namespace.
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace, prefix: String::new(), after: None, limit: 100 }
    }

    /// Lists only keys that begin so.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Goes on after a key.
    #[must_use]
    pub fn after(mut self, key: RecordKey) -> Self {
        self.after = Some(key);
        self
    }

    /// Sets the most documents.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or above 1,000, and a prefix that no key can have.
    pub fn check(&self) -> Result<()> {
        if !(1..=1_000).contains(&self.limit) {
            let why = format!("a page of {} documents, 1 to 1,000 are allowed", self.limit);
            return Err(Error::invalid("list", why));
        }
        match self.prefix.as_str() {
            "" => Ok(()),
            prefix => RecordKey::new(prefix).map(|_| ()),
        }
    }

    /// The least text that lies behind every key of the prefix.
    pub fn end(&self) -> String {
        let mut text: Vec<char> = self.prefix.chars().collect();
        while let Some(last) = text.pop() {
            let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
            if let Some(next) = next {
                text.push(next);
                return text.into_iter().collect();
            }
        }
        // More bytes than any key may have, none of them smaller.
        std::iter::repeat_n(char::MAX, 64).collect()
    }
}

/// One page of documents.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DocumentPage {
    /// The documents.
    pub items: Vec<Document>,
    /// Where to go on; `None` at the end.
    pub next: Option<RecordKey>,
    /// The store's now, as of which the documents have not ended.
    pub now: Timestamp,
}

impl DocumentPage {
    /// Cuts the one document too many that tells of a next page; for stores.
    pub fn cut(mut items: Vec<Document>, limit: usize, now: Timestamp) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|last| last.id.key.clone());
        Self { items, next, now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: REC-1
    #[test]
    fn end_of_a_prefix_lies_right_behind_its_keys() {
        let end =
            |prefix: &str| ListDocuments::new(Namespace::new("n").unwrap()).prefix(prefix).end();
        assert_eq!(end("ab"), "ac");
        assert_eq!(end("a\u{10FFFF}"), "b");
        assert_eq!(end("\u{D7FF}"), "\u{E000}");
        let longest = "\u{10FFFF}".repeat(63);
        assert!(end("") > longest && end("\u{10FFFF}") > format!("{longest}\u{FFFF}"));
    }
}
