//! Owns the second connection to a SQLite file.

use std::path::PathBuf;
use std::time::Duration;

use leasehold::sqlite::rusqlite::{Connection, named_params};
use leasehold::{QueueName, Result};

use super::{Crowd, failed, id_prefix, refused};

const PATIENCE: Duration = Duration::from_secs(60);
/// Rows of one transaction.
const STEP: i64 = 100_000;

/// A reader that stays open until it is told to end.
#[derive(Debug)]
pub struct Reader(Connection);

impl Reader {
    pub fn open(url: &str) -> Result<Self> {
        let conn = connect(url)?;
        conn.execute_batch(include_str!("sqlite_hold.sql")).map_err(|e| failed("hold", e))?;
        Ok(Self(conn))
    }

    pub fn end(self) -> Result<()> {
        self.0.close().map_err(|(_, error)| failed("hold", error))
    }
}

pub(super) fn fill(url: &str, queue: &QueueName, crowd: Crowd, rows: i64) -> Result<()> {
    let prefix = id_prefix();
    let mut conn = connect(url)?;
    let mut go = || {
        for first in (0..rows).step_by(usize::try_from(STEP).unwrap_or(1)) {
            let tx = conn.transaction()?;
            let values = named_params! {
                ":first": first, ":rows": STEP.min(rows - first), ":queue": queue.as_str(),
                ":state": crowd.state(), ":due_in": crowd.due_in(),
                ":prefix": prefix,
            };
            tx.prepare_cached(include_str!("sqlite_jobs.sql"))?.execute(values)?;
            tx.commit()?;
        }
        conn.execute_batch(include_str!("sqlite_analyze.sql"))
    };
    go().map_err(|error| failed("fill", error))
}

fn connect(url: &str) -> Result<Connection> {
    let path = path(url);
    if path.as_os_str() == ":memory:" {
        return Err(refused(
            "w5 and w7 need a second connection, which a database in memory lacks",
        ));
    }
    let conn = Connection::open(path).map_err(|error| failed("bench", error))?;
    conn.busy_timeout(PATIENCE).map_err(|error| failed("bench", error))?;
    Ok(conn)
}

/// The file of a URL that the store has opened already.
fn path(url: &str) -> PathBuf {
    let Some(rest) = url.strip_prefix("sqlite:") else { return PathBuf::from(url) };
    let path = rest.split_once('?').map_or(rest, |(path, _)| path);
    PathBuf::from(path.strip_prefix("//").unwrap_or(path).replace("%20", " "))
}
