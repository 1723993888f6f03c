//! Handlers that settle their job inside their own transaction, on a real worker and a real database.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use leasehold::sqlite::{SettleFor, SqliteStore};
use leasehold::{
    Context, Error, ErrorKind, Handled, HandlerError, JobKind, Json, LeaseLength, NewEvent, NewJob,
    Query, Result, RetryPolicy, State, Store, StoreExt, Topic, Verdict, Worker,
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

fn kind(name: &str) -> JobKind {
    JobKind::new(name).unwrap()
}

async fn run(store: &SqliteStore, failures: u32) -> leasehold::JobView {
    let job = NewJob::new(kind("pay"), Json::null());
    let id = store.enqueue_one(job).await.unwrap().job();
    let inner = store.clone();
    let worker = Worker::builder(Arc::new(store.clone()))
        .handler(kind("pay"), move |context, (): ()| pay(inner.clone(), context, failures))
        .retry(RetryPolicy::new(Duration::ZERO, Duration::ZERO).unwrap())
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

/// Proves: TX-2, WQ-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_goes_on_after_its_own_commit() {
    let store = store().await;
    let id = store.enqueue_one(NewJob::new(kind("pay"), Json::null())).await.unwrap().job();
    let (inner, (sender, mut told)) = (store.clone(), tokio::sync::mpsc::unbounded_channel());
    let worker = Worker::builder(Arc::new(store.clone())).lease(LeaseLength::MIN);
    let worker = worker.handler(kind("pay"), move |context: Context, (): ()| {
        let (store, sender) = (inner.clone(), sender.clone());
        async move {
            let handled = pay(store, context.clone(), 0).await?;
            // By now every renewal finds the job settled.
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            sender.send(context.cancellation().is_cancelled())?;
            Ok(handled)
        }
    });
    worker.build().run_until_idle().await.unwrap();
    assert_eq!(told.recv().await, Some(false), "it was neither stopped nor told to stop");
    assert_eq!(store.job(id).await.unwrap().unwrap().state, State::Succeeded);
}

/// Proves: WQ-2
#[tokio::test]
async fn the_end_of_another_claim_ends_nothing() {
    let store = store().await;
    let mut ids = Vec::new();
    for n in 0..2 {
        let job = NewJob::new(kind("pay"), Json::of(&n).unwrap());
        ids.push(store.enqueue_one(job).await.unwrap().job());
    }
    let (inner, (sender, receiver)) = (store.clone(), tokio::sync::mpsc::unbounded_channel());
    let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
    let worker = Worker::builder(Arc::new(store.clone())).slots(2);
    let worker = worker.handler(kind("pay"), move |context: Context, n: u32| {
        let (store, sender, receiver) = (inner.clone(), sender.clone(), receiver.clone());
        async move {
            if n == 0 {
                sender.send(context.clone())?;
                tokio::time::sleep(Duration::from_millis(300)).await;
                return Ok(Handled::done());
            }
            let other =
                receiver.lock().await.recv().await.ok_or(std::io::Error::other("nobody sent"))?;
            pay(store, other, 0).await
        }
    });
    worker.build().run_until_idle().await.unwrap();
    let states = [store.job(ids[0]).await, store.job(ids[1]).await].map(|job| {
        let job = job.unwrap().unwrap();
        (job.state, job.failure.map_or(String::new(), |it| it.as_str().to_owned()))
    });
    assert_eq!(states[0].0, State::Succeeded);
    assert_eq!(states[1].0, State::DeadLetter);
    assert!(states[1].1.contains("INVARIANT_BROKEN"), "{}", states[1].1);
}
