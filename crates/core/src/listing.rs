//! Owns the page of a listing as an engine has read it: the one row too many, and the rows that cannot be read,
//! which keep their places. Refuses to know how a row was damaged. For stores.

use crate::error::{Error, ErrorKind, Result};
use crate::query::{Cursor, Found, Page, Paging};

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
    /// A row of a listing without a cursor, by the name that stands in it, as far as that can be read.
    #[must_use]
    pub fn named(name: &str, error: &Error) -> Self {
        Self { id: name.to_owned(), why: error.message().to_owned() }
    }

    /// A row by its place in the listing, and what reading it said.
    fn new(at: Cursor, error: &Error) -> Self {
        let number = if at.sequence == 0 { String::new() } else { format!(" {}", at.sequence) };
        Self { id: format!("{}{number}", at.id), why: error.message().to_owned() }
    }
}

/// A row of a listing, or where one stands that cannot be read, and why.
pub type Listed<T> = std::result::Result<T, (Cursor, Error)>;

/// What reading a row of a listing gave, with its place where it is damaged.
///
/// # Errors
/// Whatever else reading it said, and what looking for its place says.
pub fn listed<T>(read: Result<T>, place: impl FnOnce() -> Result<Cursor>) -> Result<Listed<T>> {
    match read {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Err((place()?, error))),
        said => said.map(Ok),
    }
}

/// What reading the row of a queue gave, by its name where it is damaged.
///
/// # Errors
/// Whatever else reading it said.
pub fn named<T>(read: Result<T>, name: Result<String>) -> Result<Result<T, UnreadableView>> {
    match read {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            Ok(Err(UnreadableView::named(&name.unwrap_or_default(), &error)))
        }
        said => said.map(Ok),
    }
}

/// Cuts the one row too many that was asked for, which tells that there is a next page.
pub fn page<T>(
    mut found: Vec<T>,
    paging: &Paging,
    cursor: impl Fn(&T) -> Cursor,
    wrap: impl Fn(T) -> Found,
) -> Page<Found> {
    let more = found.len() > paging.size;
    found.truncate(paging.size);
    let next = found.last().filter(|_| more).map(cursor);
    Page::from_parts(found.into_iter().map(wrap).collect(), next)
}

/// The same of rows of which some cannot be read; those are in their places all the same.
pub fn page_past<T>(
    found: Vec<Listed<T>>,
    paging: &Paging,
    cursor: impl Fn(&T) -> Cursor,
    wrap: impl Fn(T) -> Found,
) -> Page<Found> {
    let at = |listed: &Listed<T>| listed.as_ref().map_or_else(|(at, _)| *at, &cursor);
    let shown = |listed: Listed<T>| match listed {
        Ok(row) => wrap(row),
        Err((at, error)) => Found::Unreadable(UnreadableView::new(at, &error)),
    };
    page(found, paging, at, shown)
}
