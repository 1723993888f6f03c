//! Owns what the writer's thread promises: what was acknowledged is stored and nothing else is, also
//! when the disk fills, a closure panics, or other processes write the same file.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

mod place;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use leasehold_core::{
    Claim, ClaimRequest, Error, ErrorKind, HintKind, JobFilter, JobId, JobKind, Json, NewJob,
    Paging, QueueName, Renewal, Result, Settlement, Store, StoreExt, Verdict, WorkerId,
};
use leasehold_sqlite::rusqlite::{Connection, Transaction, TransactionBehavior};
use leasehold_sqlite::{SqliteStore, open, own_error};
use place::Place;

fn job(bytes: usize) -> NewJob {
    let payload = Json::of(&"x".repeat(bytes)).expect("a payload");
    NewJob::new(JobKind::new("resize").expect("a kind"), payload)
}

async fn stored(store: &SqliteStore) -> BTreeSet<JobId> {
    let mut found = BTreeSet::new();
    let mut paging = Paging::first(1000);
    loop {
        let page = store.jobs(JobFilter::default(), paging).await.expect("a page");
        found.extend(page.items.iter().map(|job| job.id));
        match page.next {
            Some(cursor) => paging = Paging::first(1000).after(cursor),
            None => return found,
        }
    }
}

/// Proves: ERR-1, GLO-2
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let place = Place::new("full");
    let store = open(&place.url()).await.expect("new");
    let pages = |tx: &Transaction<'_>| {
        let limit = tx.pragma_update_and_check(None, "max_page_count", 400, |_| Ok(()));
        limit.map_err(|e| Error::new(ErrorKind::Invalid, "test", e.to_string()))
    };
    store.transaction(pages).await.expect("a limit");
    let mut asked = Vec::new();
    for number in 0..200 {
        let store = store.clone();
        let new = job(if number % 3 == 0 { 60_000 } else { 10 });
        asked.push(tokio::spawn(async move {
            let id = new.id;
            (id, store.enqueue_one(new).await.map(|answer| answer.job()))
        }));
    }
    let (mut acknowledged, mut full) = (BTreeSet::new(), 0);
    for task in asked {
        match task.await.expect("no panic") {
            (id, Ok(job)) => {
                assert_eq!(id, job);
                acknowledged.insert(id);
            }
            (_, Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
                full += 1;
            }
        }
    }
    assert!(full > 0 && acknowledged.len() > 20, "{full} full, {} stored", acknowledged.len());
    assert_eq!(stored(&store).await, acknowledged);
}

async fn pages_max(store: &SqliteStore, more: i64) {
    let set = move |tx: &Transaction<'_>| {
        let now = tx.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0));
        let limit = now.and_then(|now| {
            tx.pragma_update_and_check(None, "max_page_count", now + more, |_| Ok(()))
        });
        limit.map_err(|e| Error::new(ErrorKind::Invalid, "test", e.to_string()))
    };
    store.transaction(set).await.expect("a limit");
}

/// A settlement that finds no room is refused by that name, and goes through once there is room again:
/// field case C46.
///
/// Proves: ERR-1
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_in_hand_settles_once_a_full_disk_has_room_again() {
    let place = Place::new("full-settle");
    let store = open(&place.url()).await.expect("new");
    let _new = store.enqueue_one(job(1)).await.expect("enqueued");
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let claim = store.claim(request).await.expect("claimed").pop().expect("a claim");
    pages_max(&store, 2).await;
    let result = Json::of(&"x".repeat(60_000)).expect("a result");
    let done = Settlement::new(claim.fence, Verdict::Succeed { result: Some(result) });
    for _ in 0..3 {
        let refused = store.settle(vec![done.clone()]).await.expect_err("no room");
        assert_eq!(refused.kind(), ErrorKind::StorageFull, "{refused}");
    }
    let renewal = store.renew_one(claim.fence).await.expect("a renewal needs no room");
    assert!(matches!(renewal, Renewal::Renewed { .. }), "{renewal:?}");
    pages_max(&store, 1_000).await;
    assert!(!store.settle_one(done.clone()).await.expect("room").repeated);
    assert!(store.settle_one(done).await.expect("known").repeated);
    let conn = Connection::open(place.url()).expect("a connection");
    let sound = conn.query_row("pragma integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(sound.expect("a check"), "ok");
}

/// Proves: ERR-1, TX-2
#[tokio::test(flavor = "multi_thread")]
async fn errors_of_own_statements_keep_their_cause_and_roll_back() {
    let place = Place::new("own-statements");
    let store = open(&place.url()).await.expect("new");
    let texts = [
        ("create table own (n integer primary key); insert into own values (1)", None),
        ("insert into own values (2); insert into own values (1)", Some(ErrorKind::Conflict)),
        ("no such words", Some(ErrorKind::Corrupt)),
    ];
    for (text, kind) in texts {
        let done = store.transaction(move |tx| tx.execute_batch(text).map_err(own_error)).await;
        assert_eq!(done.as_ref().err().map(Error::kind), kind, "{text}: {done:?}");
        let cause = done.as_ref().err().and_then(std::error::Error::source);
        assert_eq!(cause.is_some(), kind.is_some(), "{text}");
    }
    let two = |tx: &Transaction<'_>| {
        tx.query_row("select n from own where n = 2", [], |row| row.get::<_, i64>(0))
            .map_err(own_error)
    };
    let none = store.transaction(two).await.expect_err("rolled back");
    assert_eq!(none.kind(), ErrorKind::NotFound, "{none}");
}

/// Proves: TX-2
#[tokio::test(flavor = "multi_thread")]
async fn a_closure_that_errs_or_panics_leaves_nothing() {
    let place = Place::new("closure");
    let store = open(&place.url()).await.expect("new");
    let (inner, new) = (store.clone(), job(1));
    let refused = store
        .transaction(move |tx| {
            inner.join(tx).enqueue(std::slice::from_ref(&new))?;
            Err::<(), _>(Error::new(ErrorKind::Invalid, "test", "no"))
        })
        .await;
    assert_eq!(refused.expect_err("the closure's own").message(), "no");
    let (inner, outer) = (store.clone(), store.clone());
    let panicking = tokio::spawn(async move {
        let run = move |tx: &Transaction<'_>| -> Result<()> {
            inner.join(tx).enqueue(&[job(1)])?;
            panic!("the closure's own")
        };
        outer.transaction(run).await
    });
    assert!(panicking.await.expect_err("a panic").is_panic());
    assert!(stored(&store).await.is_empty());
    let (inner, new) = (store.clone(), job(1));
    let id = new.id;
    store
        .transaction(move |tx| inner.join(tx).enqueue(std::slice::from_ref(&new)).map(|_| ()))
        .await
        .expect("kept");
    assert_eq!(stored(&store).await, BTreeSet::from([id]));
}

/// Proves: WQ-10
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_fails_its_own_settlement_only() {
    let place = Place::new("damaged");
    let store = open(&place.url()).await.expect("new");
    for answer in store.enqueue(vec![job(1), job(1), job(1)]).await.expect("enqueued") {
        assert!(answer.expect("new").is_new());
    }
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(3);
    let claims = store.claim(request).await.expect("claimed");
    let bad = claims[1].job.id;
    let conn = Connection::open(place.url()).expect("a connection");
    let damage = "update leasehold_jobs set lifecycle = '' where id = ?1";
    assert_eq!(conn.execute(damage, [bad.as_bytes().as_slice()]).expect("damage"), 1);
    let done = |claim: &Claim| Settlement::new(claim.fence, Verdict::Succeed { result: None });
    let answers = store.settle(claims.iter().map(done).collect()).await.expect("answers");
    let kinds: Vec<_> = answers.iter().map(|it| it.as_ref().err().map(Error::kind)).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::Corrupt), None]);
}

/// Proves: TX-2
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_commit_wakes_and_a_rollback_does_not() {
    let place = Place::new("foreign");
    let store = open(&place.url()).await.expect("new");
    let mut listener = store.hints().listen(HintKind::Jobs);
    tokio::time::sleep(Duration::from_millis(400)).await;
    let id = tokio::task::spawn_blocking({
        let (store, path) = (store.clone(), place.url());
        move || {
            let mut conn = Connection::open(path).expect("a connection");
            store.prepare_connection(&conn).expect("fit");
            conn.execute_batch("create table own (text)").expect("a table");
            let begin = TransactionBehavior::Immediate;
            let tx = conn.transaction_with_behavior(begin).expect("a transaction");
            tx.execute("insert into own values (1)", []).expect("a row");
            store.join(&tx).enqueue(&[job(1)]).expect("joined");
            drop(tx);
            let mut tx = conn.transaction_with_behavior(begin).expect("a transaction");
            let point = tx.savepoint().expect("a savepoint");
            store.join(&point).enqueue(&[job(1)]).expect("joined");
            drop(point);
            let new = job(1);
            store.join(&tx).enqueue(std::slice::from_ref(&new)).expect("joined");
            tx.commit().expect("a commit");
            new.id
        }
    })
    .await
    .expect("no panic");
    tokio::time::timeout(Duration::from_secs(5), listener.heard()).await.expect("woken");
    assert_eq!(stored(&store).await, BTreeSet::from([id]));
}

/// Somebody's trigger ends the whole transaction: nothing of it is acknowledged, and what joins it later is told.
///
/// Proves: ERR-1, GLO-2
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_the_database_ends_is_no_success() {
    let place = Place::new("ended");
    let store = open(&place.url()).await.expect("new");
    let mut conn = Connection::open(place.url()).expect("a connection");
    store.prepare_connection(&conn).expect("fit");
    let text = "create trigger ends before insert on leasehold_jobs when new.priority = 7 \
                begin select raise(rollback, 'no'); end";
    conn.execute_batch(text).expect("a trigger");
    let poison = || job(1).priority(7);
    let good = job(1);
    let (one, other) = (store.clone(), store.clone());
    let both = tokio::join!(one.enqueue_one(poison()), other.enqueue_one(good.clone()));
    assert!(both.0.is_err() && both.1.is_ok(), "{both:?}");
    assert!(store.enqueue_one(poison()).await.is_err());
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).expect("begun");
    store.join(&tx).enqueue(&[job(1)]).expect("joined");
    store.join(&tx).enqueue(&[poison()]).expect_err("ended");
    let error = store.join(&tx).enqueue(&[job(1)]).expect_err("there is none any more");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("the transaction has ended"), "{error}");
    drop(tx);
    assert_eq!(stored(&store).await, BTreeSet::from([good.id]));
}

/// Proves: ERR-1
#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_transaction_with_a_stale_view_is_told_to_restart() {
    let place = Place::new("stale");
    let store = open(&place.url()).await.expect("new");
    let mut conn = Connection::open(place.url()).expect("a connection");
    store.prepare_connection(&conn).expect("fit");
    let tx = conn.transaction().expect("a deferred transaction");
    let count: i64 =
        tx.query_row("select count(*) from leasehold_jobs", [], |row| row.get(0)).expect("a read");
    assert_eq!(count, 0);
    let _first = store.enqueue_one(job(1)).await.expect("another writer");
    let error = store.join(&tx).enqueue(&[job(1)]).expect_err("stale");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.is_transaction_restart(), "{error}");
}

/// Proves: ERR-1, GLO-6
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_stores_on_one_file_are_never_busy_and_share_one_clock() {
    let place = Place::new("eight");
    drop(open(&place.url()).await.expect("new"));
    let conn = Connection::open(place.url()).expect("a connection");
    let noted = "create table noted (at integer); create trigger noting after insert on leasehold_jobs \
                 begin insert into noted values (new.created_at); end";
    conn.execute_batch(noted).expect("a note of each insert");
    let end = Instant::now() + Duration::from_secs(3);
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let store = open(&place.url()).await.expect("opened");
        tasks.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            while Instant::now() < end {
                ids.push(store.enqueue_one(job(1)).await.expect("never busy").job());
            }
            ids
        }));
    }
    let mut all = BTreeSet::new();
    for task in tasks {
        let ids = task.await.expect("no panic");
        assert!(ids.len() > 5, "one store got only {} turns", ids.len());
        all.extend(ids);
    }
    let store = open(&place.url()).await.expect("opened");
    assert_eq!(stored(&store).await, all);
    let text = "select count(*) from (select at, lag(at) over (order by rowid) before from noted) \
                where at < before";
    let back: i64 = conn.query_row(text, [], |row| row.get(0)).expect("a count");
    assert_eq!(back, 0, "the clock went back");
}

/// Two stores on one file are as two processes to each other.
///
/// Proves: IDM-2, IDM-4, REC-1
#[tokio::test(flavor = "multi_thread")]
async fn records_have_one_winner() {
    let place = Place::new("contest");
    let one = open(&place.url()).await.expect("a store");
    let other = open(&place.url()).await.expect("a second store");
    let stores: [std::sync::Arc<dyn Store>; 2] =
        [std::sync::Arc::new(one), std::sync::Arc::new(other)];
    leasehold_conformance::contest::run(&stores).await.expect("only foreseen answers");
}
