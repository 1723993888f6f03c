//! Owns what tests need of this engine: a store on a manual clock, dumps of every table, and scripts
//! on a caller's connection. Compiled only with the feature `lab`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use leasehold_core::lab::{
    Cell, Dump, Ending, LabStore, ManualClock, RecordReply, RecordStep, Reply, Step, TABLES,
};
use leasehold_core::rules::Ids;
use leasehold_core::{Error, ErrorKind, Limits, Result, Timestamp};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use uuid::Uuid;

use crate::clock::Clock;
use crate::error::{corrupt, engine, named};
use crate::joined::Joined;
use crate::open::{Place, Target};
use crate::statement::{self, batch, execute, sql};
use crate::store::{Origin, SqliteStore};

impl SqliteStore {
    /// Opens a store under test: its clock is manual, its ids are numbered, ids may lie at any time.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn lab(url: &str, start: Timestamp) -> Result<Self> {
        Self::lab_from(url, start, 1).await
    }

    /// As [`Self::lab`], whose own ids begin at a number.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn lab_from(url: &str, start: Timestamp, first_id: u64) -> Result<Self> {
        let mut limits = Limits::default();
        limits.id_skew_max = None;
        let clock = Some(Clock::Manual(ManualClock::at(start)));
        let origin = Origin { limits, ids: Ids::numbered_from(first_id), clock };
        let store = Self::start(Target::parse(url)?, origin).await?;
        store.call("lab", |tx| execute(tx, sql!("lab_table"), []).map(|_| ())).await?;
        Ok(store)
    }

    /// The file that a URL names; none for a database in memory.
    ///
    /// # Errors
    /// `Invalid` for a URL that is none.
    pub fn lab_file(url: &str) -> Result<Option<PathBuf>> {
        Ok(match Target::parse(url)?.place {
            Place::File(path) => Some(path),
            Place::Memory => None,
        })
    }

    fn joined<'a>(&'a self, tx: &'a Transaction<'_>) -> Joined<'a> {
        Joined { conn: tx, shared: self.shared(), guarded: true }
    }

    /// Plays a script on a connection of the caller's own.
    fn play_beside(
        &self,
        script: Vec<Step>,
        ending: Ending,
        behavior: TransactionBehavior,
    ) -> Result<Vec<Reply>> {
        let Place::File(path) = &self.target().place else {
            return Err(corrupt("a database in memory has one connection"));
        };
        let conn = Connection::open(path).map_err(engine)?;
        self.prepare_connection(&conn)?;
        let immediate = matches!(behavior, TransactionBehavior::Immediate);
        let name = if immediate { "begin" } else { "begin deferred" };
        let tx = statement::begin_as(&conn, name, behavior)?;
        let replies = self.play_steps(&tx, script)?;
        match ending {
            Ending::Commit => statement::commit(tx)?,
            Ending::RollBack => tx.rollback().map_err(engine)?,
            Ending::Drop => drop(tx),
        }
        Ok(replies)
    }

    fn play_steps(&self, tx: &Transaction<'_>, script: Vec<Step>) -> Result<Vec<Reply>> {
        let joined = self.joined(tx);
        let mut depth: u32 = 0;
        let mut replies = Vec::with_capacity(script.len());
        for step in script {
            replies.push(match step {
                Step::OwnRow(text) => {
                    execute(tx, sql!("lab_row"), params![text])?;
                    Reply::Done
                }
                Step::Enqueue(jobs) => Reply::Enqueue(joined.enqueue(&jobs)),
                Step::Publish(events) => Reply::Publish(joined.publish(&events)),
                Step::Progress(reports) => Reply::Progress(joined.progress(&reports)),
                Step::Settle(settlements) => Reply::Settle(joined.settle(&settlements)),
                Step::Once(once) => Reply::Once(joined.once(&once)),
                Step::Admit(wanted) => Reply::Admit(joined.admit(&wanted)),
                Step::Record(step) => Reply::Record(record(&joined, step)),
                Step::Savepoint => {
                    depth += 1;
                    batch(tx, "savepoint", &format!("savepoint lab_{depth}"))?;
                    Reply::Done
                }
                Step::RollbackToSavepoint => {
                    let back = format!("rollback to lab_{depth}; release lab_{depth}");
                    batch(tx, "rollback", &back)?;
                    depth = depth.saturating_sub(1);
                    Reply::Done
                }
                Step::ReleaseSavepoint => {
                    batch(tx, "release", &format!("release lab_{depth}"))?;
                    depth = depth.saturating_sub(1);
                    Reply::Done
                }
            });
        }
        Ok(replies)
    }

    /// As [`LabStore::play`] on a file, in a transaction that takes the write lock when it first writes.
    ///
    /// # Errors
    /// As there.
    pub async fn play_deferred(&self, script: Vec<Step>, ending: Ending) -> Result<Vec<Reply>> {
        self.play_as(script, ending, TransactionBehavior::Deferred).await
    }

    async fn play_as(
        &self,
        script: Vec<Step>,
        ending: Ending,
        behavior: TransactionBehavior,
    ) -> Result<Vec<Reply>> {
        let store = self.clone();
        let play = move || store.play_beside(script, ending, behavior);
        let task = tokio::task::spawn_blocking(play);
        let ended = |error| {
            Error::new(ErrorKind::Unavailable, "play", "the playing task ended").with_source(error)
        };
        task.await.map_err(ended)?.map_err(|error| named(error, "play"))
    }

    /// Plays a script on the only connection there is.
    async fn play_inside(&self, script: Vec<Step>, ending: Ending) -> Result<Vec<Reply>> {
        let played = Arc::new(Mutex::new(None));
        let (store, kept) = (self.clone(), Arc::clone(&played));
        let rolled_back = || Error::new(ErrorKind::Invalid, "play", "rolled back as asked");
        let ended = self
            .transaction(move |tx| {
                let replies = store.play_steps(tx, script.clone())?;
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(replies);
                if ending == Ending::Commit { Ok(()) } else { Err(rolled_back()) }
            })
            .await;
        let replies = played.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (ended, replies) {
            (Ok(()), Some(replies)) => Ok(replies),
            (Err(_), Some(replies)) if ending != Ending::Commit => Ok(replies),
            (Err(error), _) => Err(error),
            (Ok(()), None) => Err(corrupt("the script gave no replies")),
        }
    }
}

fn record(joined: &Joined<'_>, step: RecordStep) -> RecordReply {
    match step {
        RecordStep::Put(put) => RecordReply::Put(joined.put(&put)),
        RecordStep::Get(id) => RecordReply::Get(joined.get(&id)),
        RecordStep::Delete(delete) => RecordReply::Delete(joined.delete(&delete)),
        RecordStep::List(list) => RecordReply::List(joined.list(&list)),
        RecordStep::PutBlob(blob) => RecordReply::PutBlob(joined.put_blob(&blob)),
        RecordStep::GetBlob(id) => RecordReply::GetBlob(joined.get_blob(&id)),
        RecordStep::DeleteBlob(id) => RecordReply::DeleteBlob(joined.delete_blob(&id)),
        RecordStep::Append(entry) => RecordReply::Append(joined.append(&entry)),
        RecordStep::Audit(filter, paging) => RecordReply::Audit(joined.audit(&filter, &paging)),
        RecordStep::Take(wish) => RecordReply::Take(joined.take(&wish)),
    }
}

#[async_trait]
impl LabStore for SqliteStore {
    fn clock(&self) -> Option<ManualClock> {
        self.shared().clock.manual()
    }

    async fn dump(&self) -> Result<Dump> {
        self.call("dump", |tx| dump(tx)).await
    }

    async fn play(&self, script: Vec<Step>, ending: Ending) -> Result<Vec<Reply>> {
        if self.target().place == Place::Memory {
            return self.play_inside(script, ending).await;
        }
        self.play_as(script, ending, TransactionBehavior::Immediate).await
    }
}

fn dump(conn: &Connection) -> Result<Dump> {
    let mut dump = Dump::default();
    for table in TABLES {
        let text = match table {
            "jobs" => sql!("lab_jobs").text.to_owned(),
            "requests" => sql!("lab_requests").text.to_owned(),
            "lab_rows" => "select * from lab_rows".to_owned(),
            _ => format!("select * from leasehold_{table}"),
        };
        let mut statement = conn.prepare(&text).map_err(engine)?;
        let columns = 0..statement.column_count();
        let name = |at| statement.column_name(at).map(str::to_owned).map_err(engine);
        let names = columns.map(name).collect::<Result<Vec<String>>>()?;
        let mut rows = statement.query([]).map_err(engine)?;
        while let Some(row) = rows.next().map_err(engine)? {
            dump.add(table, cells(row, &names)?);
        }
    }
    Ok(dump)
}

fn cells(row: &Row<'_>, names: &[String]) -> Result<Vec<(String, Cell)>> {
    let cell = |(at, name): (usize, &String)| {
        let cell = match row.get_ref(at).map_err(engine)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Int(number),
            ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) if name == "bytes" => Cell::Bytes(bytes.to_vec()),
            ValueRef::Blob(bytes) => match Uuid::from_slice(bytes) {
                Ok(id) => Cell::Id(id),
                Err(_) => Cell::Bytes(bytes.to_vec()),
            },
            ValueRef::Real(_) => return Err(corrupt("a real number is stored")),
        };
        Ok((name.clone(), cell))
    };
    names.iter().enumerate().map(cell).collect()
}
