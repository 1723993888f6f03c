//! Owns what a bench does beside a store, on a connection of its own: a crowd of rows that no run
//! would enqueue in time, and a transaction that somebody left open. It alone writes into the
//! store's tables directly; rows are those that the verbs would have written.

mod postgres;
mod sqlite;

use leasehold::{Error, ErrorKind, JobId, QueueName, Result};

use crate::connect::Opened;

/// Where the rows of a crowd stand in their lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// Due, behind whatever is enqueued before.
    Due,
    /// Succeeded a while ago.
    Done,
    /// Due in a day.
    Future,
}

impl Crowd {
    fn state(self) -> &'static str {
        if self == Self::Done { "succeeded" } else { "waiting" }
    }

    /// Seconds from now to the time when the rows are or were due.
    fn due_in(self) -> i64 {
        if self == Self::Future { 86_400 } else { -60 }
    }
}

/// An open transaction that sees the database as it was; dropping it ends it.
#[derive(Debug)]
pub enum Held {
    Sqlite(sqlite::Reader),
    Postgres(postgres::Snapshot),
}

impl Held {
    /// Ends the transaction; an error where its connection is gone.
    pub async fn end(self) -> Result<()> {
        match self {
            Self::Sqlite(reader) => reader.end(),
            Self::Postgres(snapshot) => snapshot.end().await,
        }
    }
}

/// Adds so many rows to a queue, and lets the planner know.
pub async fn fill(opened: &Opened, queue: &QueueName, crowd: Crowd, rows: usize) -> Result<()> {
    let rows = i64::try_from(rows).map_err(|_| refused("too many rows"))?;
    if opened.engine == "postgres" {
        return postgres::fill(&opened.url, queue, crowd, rows).await;
    }
    let (url, queue) = (opened.url.clone(), queue.clone());
    let filled = tokio::task::spawn_blocking(move || sqlite::fill(&url, &queue, crowd, rows));
    filled.await.map_err(|stopped| failed("fill", stopped))?
}

/// Opens a transaction, reads something, and leaves it.
pub async fn hold(opened: &Opened) -> Result<Held> {
    if opened.engine == "postgres" {
        return Ok(Held::Postgres(postgres::Snapshot::open(&opened.url).await?));
    }
    Ok(Held::Sqlite(sqlite::Reader::open(&opened.url)?))
}

/// The first half of the ids of one crowd, which no other has: sixteen hexadecimal digits.
fn id_prefix() -> String {
    JobId::new().to_string().chars().filter(char::is_ascii_hexdigit).take(16).collect()
}

fn refused(why: &str) -> Error {
    Error::invalid("bench", why)
}

fn failed(what: &'static str, why: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Unavailable, what, why.to_string()).with_source(why)
}
