//! Owns a file with three sessions, each a store of its own with threads that wait for a test's leave,
//! and a beginning that the tables go back to.

use std::time::Duration;

use async_trait::async_trait;
use leasehold_conformance::schedule::{Ground, SEATS, Seat, start};
use leasehold_core::failpoint::Session;
use leasehold_core::lab::{Dump, Ending, LabStore, Reply, Step};
use leasehold_core::{Error, ErrorKind, Result};
use leasehold_sqlite::SqliteStore;
use leasehold_sqlite::rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Runtime;

use crate::place::Place;

pub(crate) struct File {
    seats: Vec<Seat>,
    stores: Vec<SqliteStore>,
    /// Looks on, and puts the tables back.
    beside: Mutex<Connection>,
    _runtimes: Vec<Runtime>,
    _place: Place,
}

/// An error of the connection beside.
fn failed(error: leasehold_sqlite::rusqlite::Error) -> Error {
    Error::new(ErrorKind::Corrupt, "ground", "the connection beside failed").with_source(error)
}

/// A runtime whose reads and callers' transactions all run in one thread of the session's.
fn runtime(session: &Session) -> Runtime {
    let build = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .thread_keep_alive(Duration::from_secs(86_400))
        .enable_all()
        .build();
    let runtime = build.expect("a runtime");
    let session = session.clone();
    runtime.block_on(runtime.spawn_blocking(move || session.enter())).expect("no panic");
    runtime
}

impl File {
    pub(crate) fn new(name: &str) -> Self {
        let place = Place::new(&format!("schedule-{name}"));
        let url = format!("sqlite:{}?synchronous=normal", place.url());
        let (mut seats, mut stores, mut runtimes) = (Vec::new(), Vec::new(), Vec::new());
        for seat in 0..SEATS {
            let session = Session::new();
            session.set_free(true);
            let runtime = runtime(&session);
            let first_id = 1_000_000 * (seat as u64 + 1);
            let store = runtime.block_on(SqliteStore::lab_from(&url, start(), first_id));
            let store = store.expect("a store");
            let entered = session.clone();
            // The writer's thread is the session's too.
            runtime
                .block_on(store.transaction(move |_| {
                    entered.enter();
                    Ok(())
                }))
                .expect("entered");
            seats.push(Seat {
                store: Arc::new(store.clone()),
                session,
                runtime: runtime.handle().clone(),
            });
            stores.push(store);
            runtimes.push(runtime);
        }
        let beside = Connection::open(place.url()).expect("the file");
        beside.pragma_update(None, "wal_autocheckpoint", 0).expect("set");
        beside.busy_timeout(Duration::ZERO).expect("set");
        Self { seats, stores, beside: Mutex::new(beside), _runtimes: runtimes, _place: place }
    }

    fn tables(conn: &Connection) -> Result<Vec<String>> {
        let text = "select name from sqlite_schema where type = 'table' and (name = 'lab_rows' or \
                    name glob 'leasehold_*') and name not glob 'leasehold_schema*'";
        let mut found = conn.prepare(text).map_err(failed)?;
        let names = found.query_map([], |row| row.get(0)).map_err(failed)?;
        names.collect::<std::result::Result<_, _>>().map_err(failed)
    }

    /// Runs a text for each table, all in one transaction.
    fn each_table(&self, text: impl Fn(&str) -> String) -> Result<()> {
        let conn = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = String::from("begin immediate;");
        Self::tables(&conn)?.iter().for_each(|table| all.push_str(&text(table)));
        all.push_str("commit;");
        conn.execute_batch(&all).map_err(failed)
    }
}

#[async_trait]
impl Ground for File {
    fn seats(&self) -> &[Seat] {
        &self.seats
    }

    async fn empty(&self) -> Result<()> {
        // What a fresh store holds is not to go.
        let made = self.each_table(|table| {
            format!("create temp table if not exists fresh_{table} as select * from main.{table};")
        });
        made?;
        self.each_table(|table| {
            format!(
                "delete from main.{table}; insert into main.{table} select * from fresh_{table};"
            )
        })
    }

    async fn keep(&self) -> Result<()> {
        self.each_table(|table| {
            format!(
                "drop table if exists kept_{table}; \
                 create temp table kept_{table} as select * from main.{table};"
            )
        })
    }

    async fn restore(&self) -> Result<()> {
        self.each_table(|table| {
            format!(
                "delete from main.{table}; insert into main.{table} select * from kept_{table};"
            )
        })
    }

    async fn hide(&self, job: u8, is_hidden: bool) -> Result<()> {
        let (from, to) = if is_hidden { ("main", "temp") } else { ("temp", "main") };
        let conn = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let made = "create temp table if not exists leasehold_jobs as \
                    select * from main.leasehold_jobs where false";
        conn.execute_batch(made).map_err(failed)?;
        let which = format!("where id = x'{job:032x}'");
        let text = format!(
            "begin immediate; insert into {to}.leasehold_jobs \
             select * from {from}.leasehold_jobs {which}; \
             delete from {from}.leasehold_jobs {which}; commit"
        );
        conn.execute_batch(&text).map_err(failed)
    }

    async fn dump(&self) -> Result<Dump> {
        self.stores[0].dump().await
    }

    async fn waits(&self, seat: usize) -> bool {
        // One that has begun late may hold the lock already; whoever begins then waits for it.
        let conn = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let is_taken = conn.execute_batch("begin immediate; rollback").is_err();
        is_taken && !self.seats[seat].session.is_still()
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    async fn play_loosely(&self, seat: usize, script: Vec<Step>) -> Result<Vec<Reply>> {
        self.stores[seat].play_deferred(script, Ending::Commit).await
    }
}
