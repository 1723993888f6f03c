//! Owns what tests need of a store and users never do: a clock set by hand, canonical dumps, and
//! scripts played inside one caller's transaction. Compiled only with the feature `lab`.

pub mod altered;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering as Memory};
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::Result;
use crate::event::{NewEvent, Published};
use crate::job::{Enqueued, NewJob};
use crate::query::{Page, Paging};
use crate::record::{
    Admission, Admitted, AuditEntry, AuditFilter, AuditId, AuditView, DeleteDocument, Document,
    DocumentPage, ListDocuments, Once, PutBlob, PutDocument, RecordId, Records, Remembered, Take,
    Taken,
};
use crate::settle::{Progress, Settled, Settlement};
use crate::store::Store;
use crate::time::{Timestamp, micros};

/// A clock that stands still until it is moved; clones share it.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock standing at an instant.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.as_micros())))
    }

    /// The instant it stands at.
    pub fn now(&self) -> Timestamp {
        Timestamp::saturating(self.0.load(Memory::SeqCst))
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(micros(by), Memory::SeqCst);
    }

    /// Sets it, back too.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Memory::SeqCst);
    }
}

/// One stored value in its canonical form; booleans are 0 and 1, times whole microseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
    Id(Uuid),
    Bytes(Vec<u8>),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("-"),
            Self::Int(n) => write!(f, "{n}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Id(id) => write!(f, "{id}"),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// The tables a dump holds, by the name they have in the contract. `requests` are columns of `jobs` where
/// an engine keeps them there; `lab_rows` are the caller's own.
pub const TABLES: [&str; 24] = [
    "store",
    "queues",
    "topics",
    "lifecycles",
    "workers",
    "jobs",
    "requests",
    "waits",
    "outcomes",
    "keys",
    "subjects",
    "transitions",
    "sequences",
    "events",
    "dead_letters",
    "tombstones",
    "records",
    "documents",
    "blobs",
    "tokens",
    "turns",
    "starts",
    "audit",
    "lab_rows",
];

/// One row of a dump: its values by the names of the columns.
pub type Cells = BTreeMap<String, Cell>;

/// Every row of every table as canonical text, the same on every engine.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Dump {
    tables: BTreeMap<String, Vec<String>>,
    cells: BTreeMap<String, Vec<Cells>>,
}

impl Dump {
    /// Adds a row, by column names without order.
    pub fn add(&mut self, table: &str, row: impl IntoIterator<Item = (String, Cell)>) {
        let cells: Cells = row.into_iter().collect();
        let text: Vec<String> = cells.iter().map(|(name, cell)| format!("{name}={cell}")).collect();
        let rows = self.tables.entry(table.to_owned()).or_default();
        let text = text.join(" ");
        let at = rows.partition_point(|other| *other < text);
        rows.insert(at, text);
        self.cells.entry(table.to_owned()).or_default().insert(at, cells);
    }

    /// The values of a table's rows, in the order of [`Dump::rows`].
    pub fn cells(&self, table: &str) -> &[Cells] {
        self.cells.get(table).map_or(&[], Vec::as_slice)
    }

    /// The rows of a table, in the order of their text.
    pub fn rows(&self, table: &str) -> &[String] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }

    /// What differs from another dump, a line a row; empty when equal.
    pub fn difference(&self, other: &Self) -> String {
        let mut out = String::new();
        for table in TABLES {
            for row in self.rows(table).iter().filter(|row| !other.rows(table).contains(row)) {
                out.push_str(&format!("- {table}: {row}\n"));
            }
            for row in other.rows(table).iter().filter(|row| !self.rows(table).contains(row)) {
                out.push_str(&format!("+ {table}: {row}\n"));
            }
        }
        out
    }
}

impl fmt::Debug for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (table, rows) in &self.tables {
            writeln!(f, "{table}:")?;
            rows.iter().try_for_each(|row| writeln!(f, "  {row}"))?;
        }
        Ok(())
    }
}

/// One step of a script inside a caller's transaction.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are the verbs")]
pub enum Step {
    /// Writes a row into the caller's own table `lab_rows`.
    OwnRow(String),
    Enqueue(Vec<NewJob>),
    Publish(Vec<NewEvent>),
    Progress(Vec<Progress>),
    Settle(Vec<Settlement>),
    Once(Once),
    /// Takes requests once, with their jobs.
    Admit(Admission),
    Record(RecordStep),
    /// Opens a savepoint (nested ones stack).
    Savepoint,
    /// Rolls back to the latest savepoint and forgets it.
    RollbackToSavepoint,
    /// Forgets the latest savepoint and keeps what came after it.
    ReleaseSavepoint,
}

/// What a step answered.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are the steps")]
pub enum Reply {
    Done,
    Enqueue(Result<Vec<Result<Enqueued>>>),
    Publish(Result<Vec<Published>>),
    Progress(Result<Vec<Result<()>>>),
    Settle(Result<Vec<Result<Settled>>>),
    Once(Result<Remembered>),
    /// To [`Step::Admit`].
    Admit(Result<Admitted>),
    Record(RecordReply),
}

/// One verb on records; see [`Records`].
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are the verbs")]
pub enum RecordStep {
    Put(PutDocument),
    Get(RecordId),
    Delete(DeleteDocument),
    List(ListDocuments),
    PutBlob(PutBlob),
    GetBlob(RecordId),
    DeleteBlob(RecordId),
    Append(AuditEntry),
    Audit(AuditFilter, Paging),
    Take(Take),
}

/// What a verb on records answered.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are the verbs")]
pub enum RecordReply {
    Put(Result<Document>),
    Get(Result<Option<Document>>),
    Delete(Result<bool>),
    List(Result<DocumentPage>),
    PutBlob(Result<()>),
    GetBlob(Result<Option<Vec<u8>>>),
    DeleteBlob(Result<bool>),
    Append(Result<AuditId>),
    Audit(Result<Page<AuditView>>),
    Take(Result<Taken>),
}

impl RecordStep {
    /// Plays it as a verb of a store, in a transaction of its own.
    pub async fn play(self, store: &dyn Records) -> RecordReply {
        match self {
            Self::Put(put) => RecordReply::Put(store.put(put).await),
            Self::Get(id) => RecordReply::Get(store.get(id).await),
            Self::Delete(delete) => RecordReply::Delete(store.delete(delete).await),
            Self::List(list) => RecordReply::List(store.list(list).await),
            Self::PutBlob(blob) => RecordReply::PutBlob(store.put_blob(blob).await),
            Self::GetBlob(id) => RecordReply::GetBlob(store.get_blob(id).await),
            Self::DeleteBlob(id) => RecordReply::DeleteBlob(store.delete_blob(id).await),
            Self::Append(entry) => RecordReply::Append(store.append(entry).await),
            Self::Audit(filter, paging) => RecordReply::Audit(store.audit(filter, paging).await),
            Self::Take(wish) => RecordReply::Take(store.take(wish).await),
        }
    }
}

/// How a script ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The caller commits.
    Commit,
    /// The caller rolls back.
    RollBack,
    /// The caller drops its transaction without a word.
    Drop,
}

/// A store under test. Its clock is manual, its ids are numbered, its id-time check is off.
#[async_trait]
pub trait LabStore: Store + Records {
    /// The clock; `None` when this store runs on its engine's own.
    fn clock(&self) -> Option<ManualClock>;

    /// Every row of every table.
    async fn dump(&self) -> Result<Dump>;

    /// An empty store in place of this one, which nobody uses any more, its clock at `start`; `None` where a fresh
    /// one is as cheap.
    ///
    /// # Errors
    /// Engine errors.
    async fn anew(&self, _start: Timestamp) -> Result<Option<Arc<dyn LabStore>>> {
        Ok(None)
    }

    /// Plays a script inside one transaction of a caller, on a connection of the caller's own.
    /// Steps go on after a failed one. Sends no wake-up.
    ///
    /// # Errors
    /// What the engine says of begin, savepoints, own rows and the ending.
    async fn play(&self, script: Vec<Step>, ending: Ending) -> Result<Vec<Reply>>;
}
