//! Owns what opening promises: the schema is made once by however many come, what does not fit is
//! refused, and the user's own numbers stay.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

mod place;

use leasehold_core::{ErrorKind, JobKind, Json, NewJob, StoreExt};
use leasehold_sqlite::open;
use leasehold_sqlite::rusqlite::Connection;
use place::Place;

fn job() -> NewJob {
    NewJob::new(JobKind::new("resize").expect("a kind"), Json::null())
}

fn tamper(place: &Place, sql: &str) {
    Connection::open(place.url()).and_then(|conn| conn.execute_batch(sql)).expect("a statement");
}

/// Proves: GLO-2
#[tokio::test(flavor = "multi_thread")]
async fn sixteen_open_a_new_file_at_once() {
    let place = Place::new("sixteen");
    let opening: Vec<_> = (0..16)
        .map(|_| {
            let url = place.url();
            tokio::spawn(async move { open(&url).await?.enqueue_one(job()).await })
        })
        .collect();
    for task in opening {
        assert!(task.await.expect("no panic").expect("opened and enqueued").is_new());
    }
    let conn = Connection::open(place.url()).expect("a connection");
    let count = |table: &str| {
        let text = format!("select count(*) from {table}");
        conn.query_row(&text, [], |row| row.get::<_, i64>(0)).expect("a count")
    };
    assert_eq!((count("leasehold_schema"), count("leasehold_jobs")), (1, 16));
}

/// Proves: ERR-1
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named() {
    let place = Place::new("missing");
    let error = open(&format!("{}-none/deep/jobs.db", place.url())).await.expect_err("no folder");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("-none/deep does not exist"), "{error}");
    let store = open(&place.url()).await.expect("new");
    let mut foreign = Connection::open_in_memory().expect("a connection");
    let tx = foreign.transaction().expect("a transaction");
    let error = store.join(&tx).enqueue(&[job()]).expect_err("a database without our tables");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("lacks the tables"), "{error}");
}

/// Proves: GLO-4
#[tokio::test(flavor = "multi_thread")]
async fn an_edited_migration_is_refused() {
    let place = Place::new("edited");
    drop(open(&place.url()).await.expect("new"));
    open(&place.url()).await.expect("twice is once");
    tamper(&place, "update leasehold_schema set checksum = zeroblob(32)");
    assert_eq!(open(&place.url()).await.expect_err("edited").kind(), ErrorKind::Corrupt);
}

/// Proves: GLO-4
#[tokio::test(flavor = "multi_thread")]
async fn a_shipped_lifecycle_that_is_missing_comes_back_and_a_changed_one_is_refused() {
    let place = Place::new("lifecycles");
    drop(open(&place.url()).await.expect("new"));
    tamper(&place, "delete from leasehold_lifecycles where name = 'standard'");
    let store = open(&place.url()).await.expect("made whole");
    assert!(store.enqueue_one(job()).await.expect("its lifecycle is known").is_new());
    store.close().await;
    tamper(&place, "update leasehold_lifecycles set hash = zeroblob(32) where name = 'standard'");
    assert!(open(&place.url()).await.is_err(), "one revision has one meaning");
}

/// Proves: GLO-4
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_read_on_as_far_as_it_allows() {
    let place = Place::new("newer");
    drop(open(&place.url()).await.expect("new"));
    tamper(&place, "insert into leasehold_schema values (2, x'00', 0, 1)");
    drop(open(&place.url()).await.expect("readable"));
    tamper(&place, "insert into leasehold_schema values (3, x'00', 0, 2)");
    assert_eq!(open(&place.url()).await.expect_err("too new").kind(), ErrorKind::Invalid);
}

/// Proves: GLO-4
#[tokio::test(flavor = "multi_thread")]
async fn the_users_own_numbers_are_left_alone() {
    let place = Place::new("numbers");
    tamper(&place, "pragma application_id = 77; pragma user_version = 9");
    drop(open(&place.url()).await.expect("new"));
    let conn = Connection::open(place.url()).expect("a connection");
    let number = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    assert_eq!(number("application_id").expect("a number"), 77);
    assert_eq!(number("user_version").expect("a number"), 9);
}
