//! Owns what is stored of subjects that are run again: what is known of one, and its mark.

use leasehold_core::row::SubjectRow;
use leasehold_core::rules::{KnownRun, KnownSubject};
use leasehold_core::{JobId, Result, State};
use rusqlite::{Connection, params};

use crate::row::Columns;
use crate::statement::{execute, rows, sql};
use crate::write::fresh;

/// Adds what is known of a subject in view of one version.
pub(crate) fn load(
    conn: &Connection,
    known: &mut KnownSubject,
    (name, version): (&str, i64),
) -> Result<()> {
    let found = rows(conn, sql!("load_subject"), params![name, version], |row| {
        let mut columns = Columns::of(row);
        let (version, job) = (columns.raw()?, JobId::from_uuid(columns.id()?));
        let state = columns.maybe(State::parse)?;
        Ok(((version, job), state, columns.maybe_json()?))
    });
    for ((version, job), state, result) in found? {
        match state {
            Some(state) => known.add(KnownRun { version, job, state, result }),
            None => known.mark = Some((version, job)), // the only one that has no state
        }
    }
    Ok(())
}

/// Sets the mark of a subject.
pub(crate) fn mark(conn: &Connection, row: &SubjectRow) -> Result<()> {
    let before = row.before.as_ref();
    let values = params![
        row.name,
        row.version,
        row.job.as_bytes().as_slice(),
        before.map(|(version, _)| *version),
        before.map(|(_, job)| job.as_bytes().as_slice()),
    ];
    fresh(execute(conn, sql!("mark_subject"), values)?, "a subject")
}
