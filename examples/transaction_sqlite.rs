//! A job and an event that commit or roll back with the caller's own row, on SQLite. Runs in CI.
//!
//! ```sh
//! cargo run --example transaction_sqlite
//! ```
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;

use leasehold::sqlite::rusqlite::{Connection, TransactionBehavior};
use leasehold::{JobKind, Json, NewEvent, NewJob, StoreExt, Topic};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = std::env::temp_dir().join(format!("leasehold-example-{}.db", std::process::id()));
    let store = leasehold::sqlite::open(&place.display().to_string()).await?;

    // The caller's own connection, with the caller's own table, on the same file.
    let mut conn = Connection::open(&place)?;
    store.prepare_connection(&conn)?;
    conn.execute_batch("create table orders (number integer primary key, item text not null)")?;

    for (item, commit) in [("a lamp", true), ("a chair", false)] {
        let job = NewJob::new(JobKind::new("ship")?, Json::of(item)?);
        let event = NewEvent::new(Topic::new("ordered")?, Json::of(item)?);
        let id = job.id;

        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute("insert into orders (item) values (?1)", [item])?;
        let joined = store.join(&tx);
        let enqueued = joined.enqueue(&[job])?.remove(0)?;
        joined.publish(&[event])?;
        if commit {
            tx.commit()?;
            enqueued.wake().send(); // without it a worker finds the job at its next poll
        } else {
            tx.rollback()?;
        }

        let orders: i64 = conn.query_row("select count(*) from orders", [], |row| row.get(0))?;
        let job = store.job(id).await?.map(|job| job.status);
        println!("{item}: committed {commit}, orders {orders}, its job {job:?}");
        assert_eq!(job.is_some(), commit);
    }
    drop((conn, store));
    std::fs::remove_file(place)?;
    Ok(())
}
