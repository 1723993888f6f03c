//! Owns the proof that an enqueue by statements equals the store's own on this engine.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod place;

use async_trait::async_trait;
use leasehold_conformance::statements::{RunsStatements, equal_enqueue};
use leasehold_core::lab::LabStore;
use leasehold_core::{JobId, NewJob, Result, Statement, Timestamp, Value};
use leasehold_sqlite::SqliteStore;
use leasehold_sqlite::rusqlite::types::Value as Sent;
use leasehold_sqlite::rusqlite::{Connection, Row, Transaction, TransactionBehavior};
use place::Place;

struct Beside {
    store: SqliteStore,
    path: String,
}

fn sent(value: Value) -> Sent {
    match value {
        Value::Int(it) => it.into(),
        Value::Text(it) => it.into(),
        Value::Bytes(it) => it.into(),
        Value::Uuid(_) => panic!("ids are bytes on SQLite"),
    }
}

fn answer(row: &Row<'_>) -> leasehold_sqlite::rusqlite::Result<(String, JobId, Option<String>)> {
    let id: Vec<u8> = row.get("job")?;
    let id = JobId::from_uuid(uuid::Uuid::from_slice(&id).unwrap());
    Ok((row.get("outcome")?, id, row.get("state")?))
}

#[async_trait]
impl RunsStatements for Beside {
    fn store(&self) -> &dyn LabStore {
        &self.store
    }

    fn enqueue_sql(&self, job: &NewJob) -> Result<Vec<Statement>> {
        self.store.enqueue_sql(job)
    }

    async fn run(&self, statements: Vec<Statement>) -> (String, JobId, Option<String>) {
        let conn = Connection::open(&self.path).unwrap();
        self.store.prepare_connection(&conn).unwrap();
        let tx = Transaction::new_unchecked(&conn, TransactionBehavior::Immediate).unwrap();
        let mut answers = Vec::new();
        for statement in statements {
            let mut prepared = tx.prepare(&statement.sql).unwrap();
            let values: Vec<Sent> = statement.params.into_iter().map(sent).collect();
            let values = leasehold_sqlite::rusqlite::params_from_iter(values);
            if statement.answers {
                answers.push(prepared.query_row(values, answer).unwrap());
            } else {
                prepared.execute(values).unwrap();
            }
        }
        tx.commit().unwrap();
        assert_eq!(answers.len(), 1, "exactly one statement answers");
        answers.remove(0)
    }
}

/// Proves: TX-8, IDM-1
#[tokio::test]
async fn equal_the_stores_own_enqueue() {
    let start = Timestamp::saturating(1_800_000_000_000_000);
    for seed in 0..3 {
        let (mine, theirs) = (Place::new("statements"), Place::new("statements-own"));
        let store = SqliteStore::lab(&mine.url(), start).await.unwrap();
        let own = SqliteStore::lab(&theirs.url(), start).await.unwrap();
        equal_enqueue(&Beside { store, path: mine.url() }, &own, seed).await.unwrap();
    }
}

/// Proves: TX-8, GLO-6
#[tokio::test]
async fn follow_the_stores_clock() {
    let place = Place::new("statements-clock");
    let store = leasehold_sqlite::open(&place.url()).await.unwrap();
    let by = |job: &NewJob| store.enqueue_sql(job).unwrap();
    let job = NewJob::new(leasehold_core::JobKind::new("k").unwrap(), leasehold_core::Json::null());
    let run = Beside { store: store.clone(), path: place.url() };
    assert_eq!(run.run(by(&job)).await.0, "new");
    assert_eq!(run.run(by(&job)).await.0, "existing");
    let seen = leasehold_core::StoreExt::job(&store, job.id).await.unwrap().unwrap();
    let made = job.id.unix_ms().unwrap() * 1000;
    assert!((seen.created_at.as_micros() - made).abs() < 60_000_000, "{seen:?}");
    let ancient = uuid::Uuid::from_u64_pair(0x0000_0000_0001_7000, 0x8000_0000_0000_0001);
    assert_eq!(run.run(by(&job.id(JobId::from_uuid(ancient)))).await.0, "invalid");
}

/// Proves: TX-8, GLO-6
#[tokio::test]
async fn keep_the_stores_clock_while_a_lease_runs() {
    let place = Place::new("statements-lease");
    let store = leasehold_sqlite::open(&place.url()).await.unwrap();
    let new =
        || NewJob::new(leasehold_core::JobKind::new("k").unwrap(), leasehold_core::Json::null());
    let run = Beside { store: store.clone(), path: place.url() };
    run.run(store.enqueue_sql(&new()).unwrap()).await;
    let queue = leasehold_core::QueueName::default_queue();
    let asked = leasehold_core::ClaimRequest::new(leasehold_core::WorkerId::new(), [queue]);
    let claims = leasehold_core::Store::claim(&store, asked).await.unwrap();
    assert_eq!(claims.len(), 1);
    // The machine's clock is an hour ahead of the store's.
    let conn = Connection::open(place.url()).unwrap();
    conn.execute("update leasehold_clock set now_us = now_us - 3600000000", []).unwrap();
    let clock = || -> i64 {
        conn.query_row("select now_us from leasehold_clock", [], |row| row.get(0)).unwrap()
    };
    let before = clock();
    run.run(store.enqueue_sql(&new()).unwrap()).await;
    assert_eq!(clock(), before + 1, "a step would cut the lease short");
}
