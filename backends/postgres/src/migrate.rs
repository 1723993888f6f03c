//! Owns the schema's versions: what has been applied, whether it is what this library knows, and the
//! application of what is missing, by one process at a time and only where the URL allows it.

use leasehold_core::{Error, ErrorKind, Lifecycle, Result};
use sha2::{Digest, Sha256};
use tokio_postgres::IsolationLevel;

use crate::bind::Params;
use crate::control::register;
use crate::error::named;
use crate::open::Target;
use crate::pool::{Lane, Pools};
use crate::row::Columns;
use crate::schema::sent;
use crate::statement::{self, Db, sql};

/// One numbered change of the schema.
#[derive(Clone, Copy, Debug)]
struct Migration {
    version: i64,
    text: &'static str,
    /// The schema version that a library must know at least to go on after this.
    min_reader: i64,
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

/// Brings a schema up to date, or says what is missing; harmless with many processes at once.
pub(crate) async fn migrate(target: &Target, pools: &Pools) -> Result<()> {
    apply(target, pools, MIGRATIONS).await.map_err(|error| named(error, "open"))
}

async fn apply(target: &Target, pools: &Pools, known: &[Migration]) -> Result<()> {
    let schema = &*target.schema;
    let mut client = pools.take(Lane::Shared).await?;
    // Whatever a role or database has as its default: what is missing is asked again after the lock.
    let committed = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
    let begun = committed.start().await.map_err(crate::error::engine)?;
    let db = Db::caller(&begun, schema);
    let mut todo = missing(&db, known).await?;
    if todo.is_empty() && is_registered(&db).await? {
        return statement::commit(begun).await;
    }
    if !todo.is_empty() && !target.migrates {
        return Err(refusal(&todo, schema.name()));
    }
    db.rows(sql!("migrate_lock"), Params::new().one(schema.name()), |_| Ok(())).await?;
    if !todo.is_empty() {
        if !is_there(&db).await?.0 {
            db.batch("schema", &format!("create schema {}", schema.quoted())).await?;
        }
        db.execute(sql!("migrate_table"), Params::new()).await?;
        todo = missing(&db, known).await?;
    }
    for migration in todo {
        db.batch("migration", &schema.rewrite(sent("tables", migration.text))).await?;
        let checksum = migration.checksum();
        let values =
            Params::new().one(migration.version).one(checksum.as_slice()).one(migration.min_reader);
        db.execute(sql!("migrate_note"), values).await?;
    }
    for lifecycle in Lifecycle::shipped() {
        register(&db, &lifecycle).await?;
    }
    statement::commit(begun).await
}

fn refusal(todo: &[&Migration], schema: &str) -> Error {
    let numbers: Vec<String> = todo.iter().map(|it| format!("{:04}", it.version)).collect();
    let why = format!(
        "schema {schema:?} lacks migration {}; open once with migrate=auto by a role that may create \
         there, and give this role USAGE on the schema and SELECT, INSERT, UPDATE, DELETE on its tables",
        numbers.join(", ")
    );
    Error::new(ErrorKind::Unavailable, "open", why)
}

/// Whether the schema is there, and the table of applied migrations.
async fn is_there(db: &Db<'_>) -> Result<(bool, bool)> {
    let name = Params::new().one(db.schema.name());
    let there = db.row(sql!("migrate_exists"), name, |row| {
        let mut columns = Columns::of(row);
        Ok((columns.raw()?, columns.raw()?))
    });
    Ok(there.await?.unwrap_or((false, false)))
}

async fn is_registered(db: &Db<'_>) -> Result<bool> {
    for lifecycle in Lifecycle::shipped() {
        let values = Params::new().one(lifecycle.name().as_str()).one(lifecycle.revision());
        let known: Option<Vec<u8>> =
            db.row(sql!("control_registered"), values, |row| Columns::of(row).raw()).await?;
        if known.as_deref() != Some(lifecycle.hash()?.as_slice()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is still to be applied; refuses a schema that this library must not touch.
async fn missing<'m>(db: &Db<'_>, known: &'m [Migration]) -> Result<Vec<&'m Migration>> {
    if !is_there(db).await?.1 {
        return Ok(known.iter().collect());
    }
    let applied: Vec<(i64, Vec<u8>, i64)> = db
        .rows(sql!("migrate_applied"), Params::new(), |row| {
            let mut columns = Columns::of(row);
            Ok((columns.raw()?, columns.raw()?, columns.raw()?))
        })
        .await?;
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
