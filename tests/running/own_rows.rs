//! Handlers that settle their job inside their own transaction on PostgreSQL; SQLite's are in
//! `tests/own_transaction.rs`, since only there a transaction is a closure.

use std::sync::Arc;
use std::time::Duration;

use leasehold::postgres::tokio_postgres::{self, Client, NoTls};
use leasehold::postgres::{PostgresStore, SettleFor};
use leasehold::{
    Context, Handled, HandlerError, JobFilter, Json, NewEvent, NewJob, Paging, State, Store,
    StoreExt, Topic, Verdict,
};

use crate::engine::Engine;
use crate::{Told, add, kind, runtime, view, worker};

pub(crate) const NAME: &str = "handlers_settle_inside_their_own_transactions";

/// Proves: TX-2, TX-1, WQ-5, WQ-18
pub(crate) fn handlers_settle_inside_their_own_transactions(engine: &Engine) -> Told {
    runtime().block_on(async {
        // As many connections as slots, and every handler holds one of its own past its lease.
        let store = leasehold::postgres::open(&format!("{}&pool_size=4", engine.url())).await?;
        // The server without the store's own parameters, which end with the schema's name.
        let (server, schema) = engine.url().split_once("migrate=auto").expect("a fresh schema");
        let server = server.trim_end_matches(['?', '&']).to_owned();
        let table = schema.trim_start_matches("&schema=").to_owned();
        let place = Place { store, server, table };
        let client = place.client().await?;
        let create = format!("create table {}.payments (attempt integer)", place.table);
        client.batch_execute(&create).await?;

        let all: Arc<dyn Store> = Arc::new(place.store.clone());
        let mut ids = Vec::new();
        for _ in 0..8 {
            ids.push(add(&all, NewJob::new(kind("pay"), Json::null())).await?);
        }
        let handling = place.clone();
        let built = worker(&all).slots(4).handler(kind("pay"), move |context, (): ()| {
            let place = handling.clone();
            async move { place.pay(context).await }
        });
        let built = built.handler(kind("child"), async |_: Context, (): ()| Ok(Handled::done()));
        let built = built.build();
        assert_eq!(built.warnings().len(), 1, "as many slots as connections are warned about");
        built.run_until_idle().await?;

        for id in ids {
            let job = view(&all, id).await?;
            assert_eq!((job.state, job.executions), (State::Succeeded, 2));
        }
        let rows = format!("select attempt from {}.payments", place.table);
        let rows = client.query(&rows, &[]).await?;
        let attempts: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(attempts, [2; 8], "what was rolled back left no row");
        assert_eq!(all.stats().await?.outbox.waiting, 8);
        let children = JobFilter::new().kind(kind("child"));
        let children = all.jobs(children, Paging::first(100)).await?.items;
        assert_eq!(children.len(), 32, "two for each attempt");
        for job in children {
            assert_eq!((job.state, job.executions), (State::Succeeded, 1));
        }
        Ok(())
    })
}

#[derive(Clone, Debug)]
struct Place {
    store: PostgresStore,
    server: String,
    table: String,
}

impl Place {
    async fn client(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Pays and settles in one transaction, held open past the lease; the first attempt rolls back.
    async fn pay(&self, context: Context) -> Result<Handled, HandlerError> {
        context.publish(NewEvent::new(Topic::new("paid")?, Json::null()));
        let attempt = i32::try_from(context.job().attempt)?;
        let mut client = self.client().await?;
        let tx = client.transaction().await?;
        let insert = format!("insert into {}.payments values ($1)", self.table);
        tx.execute(&insert, &[&attempt]).await?;
        for _ in 0..2 {
            let _child = self.store.enqueue_one(NewJob::new(kind("child"), Json::null())).await?;
        }
        let verdict = Verdict::Succeed { result: None };
        let handled = self.store.join(&tx).settle_for(&context, verdict).await?;
        if attempt == 1 {
            tx.rollback().await?;
            return Err(std::io::Error::other("changed its mind").into());
        }
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        tx.commit().await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(handled)
    }
}
