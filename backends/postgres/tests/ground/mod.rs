//! Owns a schema with three sessions, each a store of its own whose statements wait for a test's leave,
//! and a beginning that the tables go back to.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_conformance::schedule::{Ground, SEATS, Seat, start};
use leasehold_core::failpoint::Session;
use leasehold_core::lab::{Dump, Ending, LabStore, Reply, Step, TABLES};
use leasehold_core::{Error, ErrorKind, Result};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, IsolationLevel, NoTls, Statement};
use tokio::runtime::Runtime;

pub(crate) struct Server {
    seats: Vec<Seat>,
    pub(crate) stores: Vec<PostgresStore>,
    schema: String,
    /// Looks on, and puts the tables back.
    beside: Client,
    asks_who_waits: Statement,
    runtime: Runtime,
}

/// An error of the connection beside.
fn failed(error: leasehold_postgres::tokio_postgres::Error) -> Error {
    Error::new(ErrorKind::Corrupt, "ground", "the connection beside failed").with_source(error)
}

fn uuid_of(job: u8) -> String {
    format!("00000000-0000-0000-0000-{job:012x}")
}

/// The tables of a schema: those of a dump, and one that a dump does not show.
fn tables() -> impl Iterator<Item = &'static str> {
    TABLES.into_iter().filter(|table| *table != "requests").chain(["low_water"])
}

impl Server {
    pub(crate) fn new(server: &str, name: &str) -> Self {
        let build =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = build.expect("a runtime");
        let join = if server.contains('?') { '&' } else { '?' };
        let schema = format!("schedule_{name}_{}", std::process::id());
        let (mut seats, mut stores) = (Vec::new(), Vec::new());
        for seat in 0..SEATS {
            let url = format!(
                "{server}{join}pool_size=2&application_name={schema}_{seat}\
                 &options=-c%20deadlock_timeout%3D50ms"
            );
            let store = runtime.block_on(async {
                if seat == 0 {
                    let _first = PostgresStore::lab(&url, &schema, Some(start())).await?;
                }
                let first_id = 1_000_000 * (seat as u64 + 1);
                PostgresStore::lab_from(&url, &schema, Some(start()), first_id).await
            });
            let store = store.expect("a store");
            let session = Session::new();
            session.set_free(true);
            let handle = runtime.handle().clone();
            seats.push(Seat { store: Arc::new(store.clone()), session, runtime: handle });
            stores.push(store);
        }
        let beside = async {
            let (client, connection) =
                leasehold_postgres::tokio_postgres::connect(server, NoTls).await?;
            tokio::spawn(connection);
            let text = "select exists (select 1 from pg_stat_activity \
                        where application_name = $1 and wait_event_type = 'Lock')";
            let asks = client.prepare(text).await?;
            Ok::<_, leasehold_postgres::tokio_postgres::Error>((client, asks))
        };
        let (beside, asks_who_waits) = runtime.block_on(beside).expect("a session");
        Self { seats, stores, schema, beside, asks_who_waits, runtime }
    }

    /// Runs a text for each table, all in one transaction.
    async fn each_table(&self, text: impl Fn(&str) -> String) -> Result<()> {
        let all: String = tables().map(text).collect();
        self.beside.batch_execute(&all).await.map_err(failed)
    }

    /// Makes a function that puts each table back to a copy of it; as a function its plans are kept.
    async fn make_way_back(&self, copy: &str) -> Result<()> {
        let schema = &self.schema;
        let back = |table| {
            format!(
                "delete from {schema}.{table}; \
                 insert into {schema}.{table} select * from {copy}_{table};"
            )
        };
        let all: String = tables().map(back).collect();
        let text = format!(
            "create or replace function pg_temp.back_to_{copy}() returns void language plpgsql as \
             $way$ begin {all} end $way$"
        );
        self.beside.batch_execute(&text).await.map_err(failed)
    }

    async fn back_to(&self, copy: &str) -> Result<()> {
        let text = format!("select pg_temp.back_to_{copy}()");
        self.beside.batch_execute(&text).await.map_err(failed)
    }
}

#[async_trait]
impl Ground for Server {
    fn seats(&self) -> &[Seat] {
        &self.seats
    }

    async fn empty(&self) -> Result<()> {
        let schema = &self.schema;
        // What a fresh store holds is not to go.
        self.each_table(|table| {
            format!(
                "create temp table if not exists fresh_{table} as select * from {schema}.{table};"
            )
        })
        .await?;
        self.make_way_back("fresh").await?;
        self.back_to("fresh").await
    }

    async fn keep(&self) -> Result<()> {
        let schema = &self.schema;
        self.each_table(|table| {
            format!(
                "drop table if exists kept_{table}; \
                 create temp table kept_{table} as select * from {schema}.{table};"
            )
        })
        .await?;
        self.make_way_back("kept").await
    }

    async fn restore(&self) -> Result<()> {
        self.back_to("kept").await
    }

    async fn hide(&self, job: u8, is_hidden: bool) -> Result<()> {
        let jobs = format!("{}.jobs", self.schema);
        let (from, to) = if is_hidden { (&*jobs, "hidden_jobs") } else { ("hidden_jobs", &*jobs) };
        let which = format!("where id = '{}'", uuid_of(job));
        let text = format!(
            "create temp table if not exists hidden_jobs as select * from {jobs} where false; \
             insert into {to} select * from {from} {which}; delete from {from} {which}"
        );
        self.beside.batch_execute(&text).await.map_err(failed)
    }

    async fn dump(&self) -> Result<Dump> {
        // Not the first, whose connections a test may have ended.
        let store = self.stores[SEATS - 1].clone();
        let dumped = self.runtime.spawn(async move { store.dump().await });
        dumped.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))
    }

    async fn waits(&self, seat: usize) -> bool {
        let name = format!("{}_{seat}", self.schema);
        let row = self.beside.query_one(&self.asks_who_waits, &[&name]).await;
        row.expect("an answer").get(0)
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    async fn play_loosely(&self, seat: usize, script: Vec<Step>) -> Result<Vec<Reply>> {
        self.stores[seat].play_at(script, Ending::Commit, IsolationLevel::RepeatableRead).await
    }
}
