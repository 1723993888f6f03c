//! A job and an event that commit or roll back with the caller's own row, on PostgreSQL.
//!
//! ```sh
//! cargo run --example transaction_postgres --features postgres -- postgres://localhost/shop
//! ```
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;

use leasehold::postgres::tokio_postgres::{self, NoTls};
use leasehold::{JobKind, Json, NewEvent, NewJob, StoreExt, Topic};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL of a database")?;
    let sign = if url.contains('?') { '&' } else { '?' };
    let store = leasehold::postgres::open(&format!("{url}{sign}migrate=auto")).await?;

    // The caller's own connection, with the caller's own table, in the same database.
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    let create = "create temporary table orders (number bigserial primary key, item text not null)";
    client.batch_execute(create).await?;

    for (item, commit) in [("a lamp", true), ("a chair", false)] {
        let job = NewJob::new(JobKind::new("ship")?, Json::of(item)?);
        let event = NewEvent::new(Topic::new("ordered")?, Json::of(item)?);
        let id = job.id;

        let tx = client.transaction().await?;
        tx.execute("insert into orders (item) values ($1)", &[&item]).await?;
        let joined = store.join(&tx);
        let enqueued = joined.enqueue(&[job]).await?.remove(0)?;
        joined.publish(&[event]).await?;
        if commit {
            tx.commit().await?;
            enqueued.wake().send(); // without it a worker finds the job at its next poll
        } else {
            tx.rollback().await?;
        }

        let orders: i64 = client.query_one("select count(*) from orders", &[]).await?.get(0);
        let job = store.job(id).await?.map(|job| job.status);
        println!("{item}: committed {commit}, orders {orders}, its job {job:?}");
        assert_eq!(job.is_some(), commit);
    }
    Ok(())
}
