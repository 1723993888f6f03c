//! Owns the schema's versions: what has been applied, whether it is what this library knows, and the
//! application of what is missing, by one process at a time. `application_id` and `user_version`
//! belong to the user: never read, never written.

use leasehold_core::{Error, ErrorKind, Lifecycle, Result};
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::clock::wall_us;
use crate::control::register;
use crate::error::named;
use crate::open::Access;
use crate::row::Columns;
use crate::statement::{self, batch, execute, row, rows, sql};

/// One numbered change of the schema.
#[derive(Clone, Copy, Debug)]
struct Migration {
    version: u32,
    text: &'static str,
    /// The schema version that a library must know at least to go on after this.
    min_reader: u32,
}

impl Migration {
    fn checksum(&self) -> [u8; 32] {
        Sha256::digest(self.text.as_bytes()).into()
    }
}

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    text: include_str!("../migrations/0001_initial.sql"),
    min_reader: 1,
}];

/// Brings a file up to date; harmless with many processes at once.
fn migrate(conn: &Connection) -> Result<()> {
    apply(conn, MIGRATIONS).map_err(|error| named(error, "open"))
}

/// Brings a file up to date that is to be written; one that is looked at has to be so.
pub(crate) fn settle(conn: &Connection, access: Access) -> Result<()> {
    if access == Access::Write { migrate(conn) } else { check(conn) }
}

/// Refuses a file whose schema is not the one that this library reads; changes nothing.
fn check(conn: &Connection) -> Result<()> {
    let refuse = |why: &str| Err(Error::new(ErrorKind::Unavailable, "open", why));
    if !table_exists(conn).map_err(|error| named(error, "open"))? {
        return refuse("the file holds no store yet; `leasehold migrate` makes one");
    }
    if !missing(conn, MIGRATIONS).map_err(|error| named(error, "open"))?.is_empty() {
        return refuse(
            "the schema is older than this library; `leasehold migrate` brings it up to date",
        );
    }
    Ok(())
}

fn apply(conn: &Connection, known: &[Migration]) -> Result<()> {
    if table_exists(conn)? && missing(conn, known)?.is_empty() && is_registered(conn)? {
        return Ok(());
    }
    let tx = statement::begin(conn)?;
    execute(&tx, sql!("migrate_table"), [])?;
    for migration in missing(&tx, known)? {
        batch(&tx, "migration", migration.text)?;
        let checksum = migration.checksum();
        let values =
            params![migration.version, checksum.as_slice(), wall_us(), migration.min_reader];
        execute(&tx, sql!("migrate_note"), values)?;
    }
    for lifecycle in Lifecycle::shipped() {
        register(&tx, &lifecycle)?;
    }
    statement::commit(tx)
}

fn table_exists(conn: &Connection) -> Result<bool> {
    let there = row(conn, sql!("migrate_exists"), [], |row| Columns::of(row).raw())?;
    Ok(there.unwrap_or(false))
}

fn is_registered(conn: &Connection) -> Result<bool> {
    for lifecycle in Lifecycle::shipped() {
        let values = params![lifecycle.name().as_str(), lifecycle.revision()];
        let known: Option<Vec<u8>> =
            row(conn, sql!("control_registered"), values, |row| Columns::of(row).raw())?;
        if known.as_deref() != Some(lifecycle.hash()?.as_slice()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is still to be applied; refuses a file that this library must not touch.
fn missing<'m>(conn: &Connection, known: &'m [Migration]) -> Result<Vec<&'m Migration>> {
    let applied: Vec<(u32, Vec<u8>, u32)> = rows(conn, sql!("migrate_applied"), [], |row| {
        let mut columns = Columns::of(row);
        Ok((columns.raw()?, columns.raw()?, columns.raw()?))
    })?;
    let newest = known.iter().map(|migration| migration.version).max().unwrap_or(0);
    for (version, checksum, min_reader) in &applied {
        if *min_reader > newest {
            let why = format!(
                "schema {version} is for libraries that know schema {min_reader}, this one knows {newest}"
            );
            return Err(Error::new(ErrorKind::Invalid, "open", why));
        }
        let ours = known.iter().find(|migration| migration.version == *version);
        if ours.is_some_and(|ours| ours.checksum().as_slice() != checksum.as_slice()) {
            let why = format!("migration {version} was applied with another text");
            return Err(Error::new(ErrorKind::Corrupt, "open", why));
        }
    }
    let is_applied = |version| applied.iter().any(|(applied, ..)| *applied == version);
    Ok(known.iter().filter(|migration| !is_applied(migration.version)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(conn: &Connection) -> Vec<String> {
        let mut all = conn
            .prepare("select name from sqlite_schema where name like 'later%' order by name")
            .expect("SQL");
        let names = all.query_map([], |row| row.get(0)).expect("rows");
        names.map(|name| name.expect("a name")).collect()
    }

    /// A file of an older library: only what is missing is applied, once, and none of it where a part fails.
    ///
    /// Proves: GLO-4
    #[test]
    fn what_a_newer_library_brings_is_added_once() {
        let conn = Connection::open_in_memory().expect("a connection");
        apply(&conn, MIGRATIONS).expect("made");
        let with = |later: &[&'static str]| -> Vec<Migration> {
            let later =
                (2..).zip(later).map(|(version, text)| Migration { version, text, min_reader: 1 });
            MIGRATIONS.iter().copied().chain(later).collect()
        };
        let broken = with(&["create view later_one as select 1 as n", "no such words"]);
        assert!(apply(&conn, &broken).is_err());
        assert!(added(&conn).is_empty());
        let two = with(&[
            "create view later_one as select 1 as n",
            "create view later_two as select 2 as n",
        ]);
        apply(&conn, two.get(..2).expect("two")).expect("brought up to date");
        assert_eq!(added(&conn), ["later_one"]);
        apply(&conn, &two).expect("brought up to date");
        apply(&conn, &two).expect("nothing is missing");
        assert_eq!(added(&conn), ["later_one", "later_two"]);
        check(&conn).expect("an older library reads on");
    }
}
