//! Owns what a listing shows in the place of a row that cannot be read. Refuses to know how it was damaged.

use crate::error::Error;
use crate::query::Cursor;

/// A stored row that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableView {
    /// The row's own id, as its listing shows ids.
    pub id: String,
    /// What is wrong with it.
    pub why: String,
}

impl UnreadableView {
    /// A row by its place in the listing, and what reading it said.
    pub fn new(at: Cursor, error: &Error) -> Self {
        let number = if at.sequence == 0 { String::new() } else { format!(" {}", at.sequence) };
        Self { id: format!("{}{number}", at.id), why: error.message().to_owned() }
    }
}
