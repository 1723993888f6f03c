//! Handlers that settle their job inside their own transaction, on a real worker and a real database.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use leasehold::sqlite::{SettleFor, SqliteStore};
use leasehold::{
    Context, Error, ErrorKind, Handled, HandlerError, JobKind, Json, NewEvent, NewJob, Query,
    Result, RetryPolicy, State, Store, StoreExt, Topic, Verdict, Worker,
};

fn failed(error: leasehold::sqlite::rusqlite::Error) -> Error {
    Error::new(ErrorKind::Invalid, "payments", "the row was not written").with_source(error)
}

async fn store() -> SqliteStore {
    let store = leasehold::sqlite::open(":memory:").await.unwrap();
    let create = "create table payments (number integer primary key)";
    store.transaction(move |tx| tx.execute_batch(create).map_err(failed)).await.unwrap();
    store
}

async fn payments(store: &SqliteStore) -> i64 {
    let count = "select count(*) from payments";
    store
        .transaction(move |tx| tx.query_row(count, [], |row| row.get(0)).map_err(failed))
        .await
        .unwrap()
}

/// Writes a payment and settles the job with it; fails after both on the first `failures` attempts.
async fn pay(store: SqliteStore, context: Context, failures: u32) -> Result<Handled, HandlerError> {
    context.publish(NewEvent::new(Topic::new("paid")?, Json::null()));
    let joining = store.clone();
    let handled = store
        .transaction(move |tx| {
            tx.execute("insert into payments default values", []).map_err(failed)?;
            let verdict = Verdict::Succeed { result: None };
            let handled = joining.join(tx).settle_for(&context, verdict)?;
            match context.job().attempt > failures {
                true => Ok(handled),
                false => Err(Error::new(ErrorKind::Unavailable, "payments", "gone for a moment")),
            }
        })
        .await?;
    Ok(handled)
}

async fn run(store: &SqliteStore, failures: u32) -> leasehold::JobView {
    let kind = JobKind::new("pay").unwrap();
    let job = NewJob::new(kind.clone(), Json::null());
    let id = store.enqueue_one(job).await.unwrap().job();
    let inner = store.clone();
    let worker = Worker::builder(Arc::new(store.clone()))
        .handler(kind, move |context, (): ()| pay(inner.clone(), context, failures))
        .retry(RetryPolicy::new(std::time::Duration::ZERO, std::time::Duration::ZERO).unwrap())
        .build();
    worker.run_until_idle().await.unwrap();
    store.job(id).await.unwrap().unwrap()
}

async fn events(store: &SqliteStore) -> usize {
    let query = Query::Events(leasehold::EventFilter::new(), leasehold::Paging::first(10));
    store.find(query).await.unwrap().items.len()
}

/// Proves: TX-2, TX-1
#[tokio::test]
async fn the_row_the_event_and_the_settlement_commit_together() {
    let store = store().await;
    let job = run(&store, 0).await;
    assert_eq!((job.state, job.executions), (State::Succeeded, 1));
    assert_eq!((payments(&store).await, events(&store).await), (1, 1));
}

/// Proves: TX-2
#[tokio::test]
async fn a_rolled_back_settlement_is_a_failed_attempt_and_leaves_no_row() {
    let store = store().await;
    let job = run(&store, 2).await;
    assert_eq!((job.state, job.executions), (State::Succeeded, 3));
    assert_eq!((payments(&store).await, events(&store).await), (1, 1));
}
