//! Owns how a statement runs: from its file, prepared once, every row drained, a crash hook on both
//! sides. Refuses to know what any statement means.

use leasehold_core::Result;
use rusqlite::{CachedStatement, Connection, Params, Row, Transaction, TransactionBehavior};

use crate::error::engine;

/// One statement, as its file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// Names the statement of a file under `sql/`.
macro_rules! sql {
    ($name:literal) => {
        $crate::statement::Sql { name: $name, text: include_str!(concat!("sql/", $name, ".sql")) }
    };
}
pub(crate) use sql;

impl Sql {
    /// What is sent.
    pub(crate) fn sent(self) -> &'static str {
        sent(self.name, self.text)
    }
}

/// A text of that name, unless a test has altered it; the command has `lab`, and must not let anyone.
fn sent<'t>(_name: &str, text: &'t str) -> &'t str {
    #[cfg(all(feature = "lab", feature = "failpoints"))]
    let text = leasehold_core::lab::altered::text(_name, text);
    text
}

/// A storage step under way: a crash hook on both sides, and with the feature `failpoints` it waits
/// first for a test's leave.
pub(crate) struct Step {
    #[cfg(feature = "failpoints")]
    name: &'static str,
    #[cfg(feature = "failpoints")]
    _leave: Option<leasehold_core::failpoint::Step>,
}

impl Step {
    pub(crate) fn begin(_name: &'static str) -> Self {
        #[cfg(feature = "failpoints")]
        {
            let leave = leasehold_core::failpoint::Step::begin(_name);
            leave.iter().for_each(leasehold_core::failpoint::Step::block);
            leasehold_core::failpoint::hit(_name);
            Self { name: _name, _leave: leave }
        }
        #[cfg(not(feature = "failpoints"))]
        Self {}
    }

    pub(crate) fn end(self) {
        #[cfg(feature = "failpoints")]
        leasehold_core::failpoint::hit(self.name);
    }
}

/// Fails the step where a test wants it to; compiled away without the feature `failpoints`. A code
/// below zero ends the transaction too, as SQLite does by itself after some errors.
fn step(_conn: &Connection) -> rusqlite::Result<()> {
    #[cfg(feature = "failpoints")]
    if let Some(code) = leasehold_core::failpoint::fault() {
        if code < 0 && !_conn.is_autocommit() {
            _conn.execute_batch("rollback")?;
        }
        let error = rusqlite::ffi::Error::new(code.abs());
        return Err(rusqlite::Error::SqliteFailure(error, None));
    }
    Ok(())
}

/// Runs a statement that gives no rows; how many it changed.
pub(crate) fn execute(conn: &Connection, sql: Sql, params: impl Params) -> Result<usize> {
    let begun = Step::begin(sql.name);
    let prepared = step(conn).and_then(|()| conn.prepare_cached(sql.sent()));
    let changed = prepared.and_then(|mut it| it.execute(params));
    begun.end();
    changed.map_err(engine)
}

/// A statement that runs for many rows: looked up once.
pub(crate) struct Prepared<'c> {
    conn: &'c Connection,
    name: &'static str,
    statement: CachedStatement<'c>,
}

impl<'c> Prepared<'c> {
    pub(crate) fn new(conn: &'c Connection, sql: Sql) -> Result<Self> {
        let statement = conn.prepare_cached(sql.sent()).map_err(engine)?;
        Ok(Self { conn, name: sql.name, statement })
    }

    /// Runs it once; how many rows it changed.
    pub(crate) fn execute(&mut self, params: impl Params) -> Result<usize> {
        let begun = Step::begin(self.name);
        let changed = step(self.conn).and_then(|()| self.statement.execute(params));
        begun.end();
        changed.map_err(engine)
    }
}

/// Runs a statement to its last row.
pub(crate) fn rows<T>(
    conn: &Connection,
    sql: Sql,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let begun = Step::begin(sql.name);
    let mut out = Vec::new();
    step(conn).map_err(engine)?;
    {
        let mut statement = conn.prepare_cached(sql.sent()).map_err(engine)?;
        let mut found = statement.query(params).map_err(engine)?;
        while let Some(row) = found.next().map_err(engine)? {
            out.push(read(row)?);
        }
    }
    begun.end();
    Ok(out)
}

/// Runs a statement of at most one row.
pub(crate) fn row<T>(
    conn: &Connection,
    sql: Sql,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    Ok(rows(conn, sql, params, read)?.into_iter().next())
}

/// Ids one after the other in one blob, as statements take lists of them.
pub(crate) fn id_list<'a>(ids: impl Iterator<Item = &'a [u8; 16]>) -> Vec<u8> {
    ids.flatten().copied().collect()
}

/// Runs plain text: savepoints, pragmas, a whole migration.
pub(crate) fn batch(conn: &Connection, name: &'static str, text: &str) -> Result<()> {
    let begun = Step::begin(name);
    let done = step(conn).and_then(|()| conn.execute_batch(sent(name, text)));
    begun.end();
    done.map_err(engine)
}

/// Begins a transaction that holds the write lock from the start.
pub(crate) fn begin(conn: &Connection) -> Result<Transaction<'_>> {
    begin_as(conn, "begin", TransactionBehavior::Immediate)
}

/// Begins a transaction of some sort.
pub(crate) fn begin_as<'c>(
    conn: &'c Connection,
    name: &'static str,
    behavior: TransactionBehavior,
) -> Result<Transaction<'c>> {
    let begun = Step::begin(name);
    let tx = step(conn).and_then(|()| Transaction::new_unchecked(conn, behavior));
    begun.end();
    tx.map_err(engine)
}

/// Commits; an error leaves no transaction open.
pub(crate) fn commit(tx: Transaction<'_>) -> Result<()> {
    let begun = Step::begin("commit");
    let done = step(&tx).and_then(|()| tx.commit());
    begun.end();
    done.map_err(engine)
}
