//! Owns the one table from SQLite's result codes to the project's error kinds. Nothing else in this
//! crate looks at a code.

use leasehold_core::{Error, ErrorKind};
use rusqlite::ffi;

/// The operation of an error until the verb that met it gives its own name.
pub(crate) const UNNAMED: &str = "storage";

/// What a driver error is in the project's terms.
pub(crate) fn engine(error: rusqlite::Error) -> Error {
    let Some(code) = error.sqlite_error().map(|e| e.extended_code) else {
        return Error::new(ErrorKind::Corrupt, UNNAMED, "a row could not be read")
            .with_source(error);
    };
    let (kind, why) = match &error {
        rusqlite::Error::SqliteFailure(_, Some(text))
            if text.starts_with("no such table: leasehold_") =>
        {
            let why = "the database lacks the tables of the library; open it as a store once";
            (ErrorKind::Unavailable, why)
        }
        _ => kind_of(code),
    };
    let mapped = Error::new(kind, UNNAMED, why).with_source(error);
    if code == ffi::SQLITE_BUSY_SNAPSHOT { mapped.restarting() } else { mapped }
}

/// Says in Leasehold's terms what an error of a statement of your own is, for closures that
/// [`SqliteStore::transaction`](crate::SqliteStore::transaction) runs.
///
/// A broken constraint is a `Conflict`, a row that is not there `NotFound`; the others are what the
/// store's own statements give: `Busy`, `StorageFull`, `Unavailable`, `Invalid`, `Corrupt`.
///
/// ```
/// use leasehold_core::{JobKind, Json, NewJob};
/// use leasehold_sqlite::own_error;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let store = leasehold_sqlite::open(":memory:").await?;
/// let (own, ship) = (store.clone(), NewJob::new(JobKind::new("ship")?, Json::null()));
/// let enqueued = store
///     .transaction(move |tx| {
///         tx.execute("create table orders (item text)", []).map_err(own_error)?;
///         tx.execute("insert into orders values ('a lamp')", []).map_err(own_error)?;
///         own.join(tx).enqueue(std::slice::from_ref(&ship))?.remove(0)
///     })
///     .await?;
/// assert!(enqueued.is_new());
/// # Ok::<(), leasehold_core::Error>(())
/// # }).unwrap();
/// ```
pub fn own_error(error: rusqlite::Error) -> Error {
    let own = |kind, why| Error::new(kind, "own statement", why);
    if matches!(error, rusqlite::Error::QueryReturnedNoRows) {
        return own(ErrorKind::NotFound, "the query gives no row").with_source(error);
    }
    let code = error.sqlite_error_code();
    if code == Some(rusqlite::ErrorCode::ConstraintViolation) {
        return own(ErrorKind::Conflict, "a constraint of the table is broken").with_source(error);
    }
    named(engine(error), "own statement")
}

fn kind_of(extended: i32) -> (ErrorKind, &'static str) {
    match extended & 0xff {
        ffi::SQLITE_FULL => (ErrorKind::StorageFull, "the disk or the database is full"),
        ffi::SQLITE_BUSY if extended == ffi::SQLITE_BUSY_SNAPSHOT => {
            (ErrorKind::Busy, "another writer came between; begin immediate transactions")
        }
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => {
            (ErrorKind::Busy, "the database was locked for longer than the wait")
        }
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB | ffi::SQLITE_FORMAT => {
            (ErrorKind::Corrupt, "the file is damaged or no database")
        }
        ffi::SQLITE_IOERR => (ErrorKind::Unavailable, "reading or writing the file failed"),
        ffi::SQLITE_CANTOPEN | ffi::SQLITE_NOLFS => {
            (ErrorKind::Unavailable, "the file cannot be opened")
        }
        ffi::SQLITE_PERM | ffi::SQLITE_READONLY | ffi::SQLITE_AUTH => {
            (ErrorKind::Unavailable, "the file may not be written")
        }
        ffi::SQLITE_NOMEM
        | ffi::SQLITE_INTERRUPT
        | ffi::SQLITE_ABORT
        | ffi::SQLITE_PROTOCOL
        | ffi::SQLITE_SCHEMA => (ErrorKind::Unavailable, "the database ended the call"),
        ffi::SQLITE_TOOBIG => (ErrorKind::Invalid, "a value is over the database's size limit"),
        _ => (ErrorKind::Corrupt, "the database refused a statement"),
    }
}

/// Gives an engine error the name of the verb that met it.
pub(crate) fn named(error: Error, operation: &'static str) -> Error {
    if error.operation() == UNNAMED { error.during(operation) } else { error }
}

/// A stored value that is not what was written.
pub(crate) fn corrupt(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, UNNAMED, why)
}

/// The error of a commit that may have reached the disk or not.
pub(crate) fn unknown(error: Error) -> Error {
    let why = "the commit failed on its way to the disk; repeat the call";
    Error::new(ErrorKind::OutcomeUnknown, UNNAMED, why).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(extended: i32) -> Error {
        engine(rusqlite::Error::SqliteFailure(ffi::Error::new(extended), None))
    }

    /// Proves: ERR-1
    #[test]
    fn each_code_has_its_kind() {
        let table = [
            (ffi::SQLITE_FULL, ErrorKind::StorageFull),
            (ffi::SQLITE_BUSY, ErrorKind::Busy),
            (ffi::SQLITE_BUSY_RECOVERY, ErrorKind::Busy),
            (ffi::SQLITE_BUSY_SNAPSHOT, ErrorKind::Busy),
            (ffi::SQLITE_LOCKED, ErrorKind::Busy),
            (ffi::SQLITE_CORRUPT, ErrorKind::Corrupt),
            (ffi::SQLITE_NOTADB, ErrorKind::Corrupt),
            (ffi::SQLITE_IOERR_FSYNC, ErrorKind::Unavailable),
            (ffi::SQLITE_IOERR_WRITE, ErrorKind::Unavailable),
            (ffi::SQLITE_CANTOPEN, ErrorKind::Unavailable),
            (ffi::SQLITE_READONLY, ErrorKind::Unavailable),
            (ffi::SQLITE_NOMEM, ErrorKind::Unavailable),
            (ffi::SQLITE_TOOBIG, ErrorKind::Invalid),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, ErrorKind::Corrupt),
        ];
        for (code, kind) in table {
            assert_eq!(mapped(code).kind(), kind, "code {code}");
        }
    }

    /// Proves: ERR-1
    #[test]
    fn only_a_stale_snapshot_restarts_the_transaction() {
        assert!(mapped(ffi::SQLITE_BUSY_SNAPSHOT).is_transaction_restart());
        assert!(!mapped(ffi::SQLITE_BUSY).is_transaction_restart());
        assert_eq!(named(mapped(ffi::SQLITE_BUSY), "claim").operation(), "claim");
    }
}
