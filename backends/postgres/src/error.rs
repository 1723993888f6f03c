//! Owns the one table from PostgreSQL's SQLSTATE codes to the project's error kinds. Nothing else in
//! this crate looks at a code.

use std::error::Error as _;

use deadpool_postgres::{PoolError, TimeoutType};
use leasehold_core::{Error, ErrorKind};

/// The operation of an error until the verb that met it gives its own name.
const UNNAMED: &str = "storage";
/// What the error of a lost race says.
const CAME_FIRST: &str = "another transaction came first; run the transaction again";

/// What a driver error is in the project's terms.
pub(crate) fn engine(error: tokio_postgres::Error) -> Error {
    let Some(code) = error.code().map(|state| state.code().to_owned()) else {
        return beyond_the_server(error);
    };
    let (kind, why) = kind_of(&code);
    let mapped = Error::new(kind, UNNAMED, why).with_source(Told(error));
    if matches!(code.as_str(), "40001" | "40P01" | "25P02") { mapped.restarting() } else { mapped }
}

/// An error with the server's own words or the cause, which the driver leaves out.
#[derive(Debug)]
struct Told(tokio_postgres::Error);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_db_error() {
            Some(told) => write!(f, "{} (SQLSTATE {})", told.message(), told.code().code()),
            None => {
                self.0.fmt(f)?;
                self.0.source().map_or(Ok(()), |why| write!(f, ": {why}"))
            }
        }
    }
}

impl std::error::Error for Told {}

/// Errors that no server told of: the wire, or a value that does not fit.
fn beyond_the_server(error: tokio_postgres::Error) -> Error {
    let text = error.to_string();
    let wire = error.is_closed()
        || error.source().is_some_and(|source| source.is::<std::io::Error>())
        || text.starts_with("timeout");
    let (kind, why) = if text.starts_with("error performing TLS") {
        let why = "no TLS with the server: its certificate, sslmode or sslrootcert does not fit";
        (ErrorKind::Unavailable, why)
    } else if wire {
        (ErrorKind::Unavailable, "the server cannot be reached")
    } else if text.starts_with("authentication error") || text.starts_with("invalid configuration")
    {
        (ErrorKind::Unavailable, "the server cannot be logged in to")
    } else {
        (ErrorKind::Corrupt, "a row could not be read")
    };
    Error::new(kind, UNNAMED, why).with_source(Told(error))
}

fn kind_of(code: &str) -> (ErrorKind, &'static str) {
    let class = code.get(..2).unwrap_or(code);
    match code {
        "53100" => (ErrorKind::StorageFull, "the disk is full"),
        "40001" => (ErrorKind::Busy, "another transaction came between; run the transaction again"),
        "40P01" => (ErrorKind::Busy, "two transactions waited for each other; run this one again"),
        "55P03" => (ErrorKind::Busy, "a row was locked for longer than the wait"),
        "57014" => (ErrorKind::Busy, "the statement was cancelled or took longer than allowed"),
        "25P02" => (ErrorKind::Unavailable, "the transaction has failed already; run it again"),
        "25006" => (ErrorKind::Unavailable, "the server only reads; it may be a standby"),
        "25P03" => (ErrorKind::Unavailable, "the server ended the idle transaction"),
        "26000" => {
            let why = "a prepared statement is gone: behind a transaction-mode pooler the URL needs pooler=transaction";
            (ErrorKind::Unavailable, why)
        }
        "42501" => {
            let why = "the role lacks a right: it needs USAGE on the schema and SELECT, INSERT, UPDATE, DELETE on its tables";
            (ErrorKind::Unavailable, why)
        }
        "42P01" | "3F000" => {
            (ErrorKind::Unavailable, "the schema or a table is missing; open with migrate=auto")
        }
        "54000" | "22001" => (ErrorKind::Invalid, "a value is over the database's size limit"),
        _ => match class {
            "08" | "57" | "58" | "53" => {
                (ErrorKind::Unavailable, "the server ended the call or cannot be reached")
            }
            "3D" => (ErrorKind::Unavailable, "the server has no database of that name"),
            "28" => (ErrorKind::Unavailable, "the server cannot be logged in to"),
            _ => (ErrorKind::Corrupt, "the database refused a statement"),
        },
    }
}

/// What the error of an insert of new rows is: one that is there came first.
pub(crate) fn insert(error: tokio_postgres::Error) -> Error {
    if error.code() == Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION) {
        return came_first().with_source(Told(error));
    }
    engine(error)
}

/// What the error of a commit is: unless the server said that it did not happen, nobody knows.
pub(crate) fn commit(error: tokio_postgres::Error) -> Error {
    let class = error.code().map(|state| state.code().get(..2).unwrap_or("").to_owned());
    match class.as_deref() {
        None | Some("08" | "57") => {
            let why = "the reply to the commit was lost; repeat the call";
            Error::new(ErrorKind::OutcomeUnknown, UNNAMED, why).with_source(Told(error))
        }
        Some(_) => engine(error),
    }
}

/// What the error of a statement is that is a transaction by itself.
pub(crate) fn alone(error: tokio_postgres::Error) -> Error {
    if error.code() == Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION) {
        return insert(error);
    }
    commit(error)
}

/// What an error of the pool is.
pub(crate) fn pool(error: PoolError) -> Error {
    match error {
        PoolError::Backend(error) => engine(error),
        PoolError::Timeout(TimeoutType::Wait) => {
            Error::new(ErrorKind::Busy, UNNAMED, "no connection became free within the wait")
        }
        error => Error::new(ErrorKind::Unavailable, UNNAMED, "the pool gave no connection")
            .with_source(error),
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

/// A key or id was taken between the look and the write: nothing may stay written.
pub(crate) fn came_first() -> Error {
    Error::new(ErrorKind::Busy, UNNAMED, CAME_FIRST).restarting()
}

/// Whether an error is the one of [`came_first`].
pub(crate) fn is_lost_race(error: &Error) -> bool {
    error.message() == CAME_FIRST
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: ERR-1
    #[test]
    fn each_code_has_its_kind() {
        let table = [
            ("53100", ErrorKind::StorageFull),
            ("53300", ErrorKind::Unavailable),
            ("40001", ErrorKind::Busy),
            ("40P01", ErrorKind::Busy),
            ("55P03", ErrorKind::Busy),
            ("57014", ErrorKind::Busy),
            ("57P01", ErrorKind::Unavailable),
            ("08006", ErrorKind::Unavailable),
            ("25006", ErrorKind::Unavailable),
            ("26000", ErrorKind::Unavailable),
            ("42501", ErrorKind::Unavailable),
            ("28P01", ErrorKind::Unavailable),
            ("3D000", ErrorKind::Unavailable),
            ("25P02", ErrorKind::Unavailable),
            ("54000", ErrorKind::Invalid),
            ("23505", ErrorKind::Corrupt),
            ("XX001", ErrorKind::Corrupt),
        ];
        for (code, kind) in table {
            assert_eq!(kind_of(code).0, kind, "SQLSTATE {code}");
        }
        assert!(kind_of("26000").1.contains("pooler=transaction"));
        assert!(kind_of("42501").1.contains("USAGE"));
        assert!(kind_of("3D000").1.contains("no database"));
    }

    /// Proves: ERR-1
    #[test]
    fn a_lost_race_restarts_the_transaction() {
        assert!(came_first().is_transaction_restart());
        assert!(is_lost_race(&named(came_first(), "enqueue")));
        assert_eq!(named(came_first(), "enqueue").operation(), "enqueue");
    }
}
