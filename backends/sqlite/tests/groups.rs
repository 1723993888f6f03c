//! Owns what requests that wait for the writer together mean to each other, which is nothing: each is kept, refused
//! or undone by itself, and one too many is told that there is no room.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

mod place;

use std::sync::mpsc;

use leasehold_core::{
    Error, ErrorKind, JobFilter, JobId, JobKind, Json, NewJob, Paging, Result, StoreExt,
};
use leasehold_sqlite::rusqlite::Transaction;
use leasehold_sqlite::{SqliteStore, open, own_error};
use place::Place;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

/// How many requests may wait for the writer.
const WAITING_MAX: i64 = 1_024;

fn job() -> NewJob {
    NewJob::new(JobKind::new("resize").expect("a kind"), Json::null())
}

async fn stored(store: &SqliteStore) -> usize {
    let page = store.jobs(JobFilter::default(), Paging::first(1_000)).await.expect("a page");
    page.items.len()
}

/// A request that occupies the writer until it is told to end: whatever comes meanwhile waits as one group.
async fn occupied(store: &SqliteStore) -> (JoinHandle<Result<()>>, mpsc::Sender<()>) {
    let (begun, beginning) = oneshot::channel();
    let (end, ending) = mpsc::channel();
    let (store, mut begun) = (store.clone(), Some(begun));
    let wait = move |_: &Transaction<'_>| {
        if let Some(begun) = begun.take() {
            begun.send(()).expect("somebody waits for it");
        }
        ending.recv().map_err(|error| Error::new(ErrorKind::Invalid, "wait", error.to_string()))
    };
    let task = tokio::spawn(async move { store.transaction(wait).await });
    beginning.await.expect("begun");
    (task, end)
}

/// A caller's closure that runs some SQL in a group.
fn closure(store: &SqliteStore, sql: &'static str, keep: bool) -> JoinHandle<Result<()>> {
    let store = store.clone();
    let run = move |tx: &Transaction<'_>| {
        tx.execute_batch(sql).map_err(own_error)?;
        if keep { Ok(()) } else { Err(Error::new(ErrorKind::Invalid, "test", "no")) }
    };
    tokio::spawn(async move { store.transaction(run).await })
}

fn enqueue(store: &SqliteStore) -> JoinHandle<Result<JobId>> {
    let store = store.clone();
    tokio::spawn(async move { store.enqueue_one(job()).await.map(|answer| answer.job()) })
}

/// Lets every task that was spawned hand its request over, on the one thread that runs them.
async fn handed_over() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

/// Proves: TX-2
#[tokio::test]
async fn one_of_a_group_that_errs_undoes_its_own_writes_alone() {
    let place = Place::new("group-errs");
    let store = open(&place.url()).await.expect("new");
    closure(&store, "create table own (n)", true).await.expect("no panic").expect("made");
    let (writer, end) = occupied(&store).await;
    let first = closure(&store, "insert into own values (1)", true);
    let refused = closure(&store, "insert into own values (2)", false);
    let verb = enqueue(&store);
    let last = closure(&store, "insert into own values (3)", true);
    handed_over().await;
    end.send(()).expect("it waits");
    writer.await.expect("no panic").expect("done");
    let error = refused.await.expect("no panic").expect_err("the closure's own");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, "no"));
    for kept in [first, last] {
        kept.await.expect("no panic").expect("kept");
    }
    verb.await.expect("no panic").expect("kept");
    let sum = |tx: &Transaction<'_>| {
        tx.query_row("select sum(n) from own", [], |row| row.get::<_, i64>(0)).map_err(own_error)
    };
    assert_eq!((store.transaction(sum).await.expect("a sum"), stored(&store).await), (4, 1));
}

/// A closure must not end the transaction; one that does is told so, and takes nobody with it.
///
/// Proves: ERR-1, TX-2
#[tokio::test]
async fn one_of_a_group_that_ends_the_transaction_is_refused_alone() {
    let place = Place::new("group-ends");
    let store = open(&place.url()).await.expect("new");
    let (writer, end) = occupied(&store).await;
    let before = enqueue(&store);
    let ends = closure(&store, "rollback", true);
    let after = enqueue(&store);
    handed_over().await;
    end.send(()).expect("it waits");
    writer.await.expect("no panic").expect("done");
    let error = ends.await.expect("no panic").expect_err("there is no transaction any more");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("ended the transaction"), "{error}");
    before.await.expect("no panic").expect("kept");
    after.await.expect("no panic").expect("kept");
    assert_eq!(stored(&store).await, 2);
}

/// As many as there is room for are done once the writer goes on; the others were told after the longest wait.
///
/// Proves: ERR-1
#[tokio::test(start_paused = true)]
async fn a_request_without_room_before_the_writer_is_told_that_it_is_busy() {
    let place = Place::new("group-full");
    let store = open(&place.url()).await.expect("new");
    let (writer, end) = occupied(&store).await;
    let mut asked = JoinSet::new();
    for _ in 0..WAITING_MAX + 2 {
        let store = store.clone();
        asked.spawn(async move { store.enqueue_one(job()).await });
    }
    for _ in 0..2 {
        let answer = asked.join_next().await.expect("all but these wait").expect("no panic");
        let error = answer.expect_err("no room");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Busy, true), "{error}");
        assert!(error.message().contains("too many requests wait"), "{error}");
    }
    end.send(()).expect("it waits");
    writer.await.expect("no panic").expect("done");
    while let Some(answer) = asked.join_next().await {
        assert!(answer.expect("no panic").expect("there was room").is_new());
    }
    let count = |tx: &Transaction<'_>| {
        let text = "select count(*) from leasehold_jobs";
        tx.query_row(text, [], |row| row.get::<_, i64>(0)).map_err(own_error)
    };
    assert_eq!(store.transaction(count).await.expect("a count"), WAITING_MAX);
}
