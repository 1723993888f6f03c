//! Owns the audit log: who did what to what. Entries are added and read, never changed; the acts of
//! operators on jobs stand in the same log.

use std::fmt;

use uuid::Uuid;

use crate::error::{Error, Result};
use crate::name::Actor;
use crate::query::{Cursor, Page, Paging};
use crate::row::AuditRow;
use crate::time::Timestamp;

/// The longest action or target, in bytes.
const TEXT_BYTES_MAX: usize = 255;
/// The longest detail, in bytes.
const DETAIL_BYTES_MAX: usize = 16 * 1024;

/// The id of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuditId(Uuid);

impl AuditId {
    /// Takes a stored id.
    pub const fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }

    /// The id as a UUID.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One act to be added to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEntry {
    /// Who acted.
    pub actor: Actor,
    /// What was done, such as `allow_list.change`.
    pub action: String,
    /// What it was done to, such as `job 0198…`.
    pub target: String,
    /// More, for people or as JSON text; keep secrets out of it.
    pub detail: Option<String>,
}

impl AuditEntry {
    /// Begins an entry.
    pub fn new(actor: Actor, action: impl Into<String>, target: impl Into<String>) -> Self {
        Self { actor, action: action.into(), target: target.into(), detail: None }
    }

    /// Adds more.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` for an empty or overlong action or target, a detail over 16 KiB, a raw U+0000.
    pub fn check(&self) -> Result<()> {
        let texts = [("action", self.action.as_str()), ("target", self.target.as_str())];
        for (what, text) in texts {
            let bytes = text.len();
            if bytes == 0 || bytes > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
                let why = format!(
                    "the {what} has {bytes} bytes; 1 to 255 without control characters are allowed"
                );
                return Err(Error::invalid("append", why));
            }
        }
        let detail = self.detail.as_deref().unwrap_or_default();
        if detail.len() > DETAIL_BYTES_MAX || detail.contains('\0') {
            let why = format!(
                "the detail has {} bytes; at most 16,384 without U+0000 are allowed",
                detail.len()
            );
            return Err(Error::invalid("append", why));
        }
        Ok(())
    }
}

/// Which entries; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditFilter {
    /// By this actor.
    pub actor: Option<Actor>,
    /// Of this action.
    pub action: Option<String>,
    /// About this target.
    pub target: Option<String>,
}

impl AuditFilter {
    /// Every entry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only by this actor.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Only of this action.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Only about this target.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Whether an entry is let through.
    pub fn lets(&self, row: &AuditRow) -> bool {
        self.actor.as_ref().is_none_or(|actor| *actor == row.actor)
            && self.action.as_ref().is_none_or(|action| *action == row.action)
            && self.target.as_ref().is_none_or(|target| *target == row.target)
    }
}

/// An entry as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the entry's; see AuditEntry")]
pub struct AuditView {
    pub id: AuditId,
    pub at: Timestamp,
    pub actor: Actor,
    pub action: String,
    pub target: String,
    pub detail: Option<String>,
}

impl From<AuditRow> for AuditView {
    fn from(row: AuditRow) -> Self {
        let AuditRow { id, at, actor, action, target, detail } = row;
        Self { id: AuditId(id), at, actor, action, target, detail }
    }
}

impl AuditView {
    /// Cuts the one entry too many that tells of a next page; for stores.
    pub fn page(mut found: Vec<Self>, paging: &Paging) -> Page<Self> {
        let more = found.len() > paging.size;
        found.truncate(paging.size);
        let cursor = |last: &Self| Cursor { id: last.id.as_uuid(), sequence: 0 };
        let next = found.last().filter(|_| more).map(cursor);
        Page::from_parts(found, next)
    }
}
