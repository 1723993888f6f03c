//! Owns what happens to a store whose files are taken away, replaced, aliased or blocked by a reader
//! while it is open: nothing acknowledged is lost, nothing is written where nobody can find it.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

mod place;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use leasehold_core::{Error, ErrorKind, JobFilter, JobKind, Json, NewJob, Paging, Store, StoreExt};
use leasehold_sqlite::rusqlite::{Connection, Transaction};
use leasehold_sqlite::{SqliteStore, open};
use place::Place;

/// The documented size from which on the log is emptied as soon as no reader needs it.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

fn job(bytes: usize) -> NewJob {
    let payload = Json::of(&"x".repeat(bytes)).expect("a payload");
    NewJob::new(JobKind::new("resize").expect("a kind"), payload)
}

fn log(place: &Place) -> PathBuf {
    PathBuf::from(format!("{}-wal", place.url()))
}

/// A store with three acknowledged jobs, all of them in the log only.
async fn with_three_jobs(place: &Place) -> SqliteStore {
    let store = open(&place.url()).await.expect("new");
    for _ in 0..3 {
        assert!(store.enqueue_one(job(1)).await.expect("acknowledged").is_new());
    }
    store
}

async fn refused(store: &SqliteStore) -> Error {
    store.enqueue_one(job(1)).await.expect_err("nothing may be written")
}

async fn count(store: &SqliteStore) -> usize {
    let page = store.jobs(JobFilter::default(), Paging::first(1_000)).await.expect("a page");
    page.items.len()
}

/// Writes so many megabytes through the store's log, one a commit.
async fn fill(store: &SqliteStore, megabytes: usize) {
    for _ in 0..megabytes {
        let own = |tx: &Transaction<'_>| {
            let text = "create table if not exists own (bytes blob); delete from own; \
                        insert into own values (randomblob(1000000))";
            tx.execute_batch(text)
                .map_err(|error| Error::new(ErrorKind::Invalid, "fill", error.to_string()))
        };
        store.transaction(own).await.expect("written");
    }
}

/// Proves: ERR-1, GLO-2
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_log_is_written_to_no_more_and_loses_nothing() {
    let place = Place::new("log-deleted");
    let store = with_three_jobs(&place).await;
    std::fs::remove_file(log(&place)).expect("deleted");
    for _ in 0..2 {
        let error = refused(&store).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.operation(), "enqueue");
        assert!(error.message().contains("deleted or moved while it was open"), "{error}");
    }
    let warnings = store.stats().await.map(|stats| stats.warnings);
    let told = warnings.map_or_else(|error| error.to_string(), |warnings| warnings.join(" "));
    assert!(told.contains("deleted or moved"), "{told}");
    store.close().await;
    let store = open(&place.url()).await.expect("again");
    assert_eq!(count(&store).await, 3, "the close brought what was acknowledged into the file");
    assert!(store.enqueue_one(job(1)).await.expect("writable").is_new());
}

/// Proves: ERR-1, GLO-2
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_log_or_file_is_not_written_to() {
    let place = Place::new("log-replaced");
    let store = with_three_jobs(&place).await;
    let aside = log(&place).with_extension("aside");
    std::fs::rename(log(&place), &aside).expect("moved");
    std::fs::write(log(&place), b"").expect("another");
    assert!(refused(&store).await.message().contains("log was replaced"));
    // The writer looks after a log of this size, but not one that is none of its own.
    let foreign = std::fs::File::options().write(true).open(log(&place)).expect("another");
    foreign.set_len(2 * LOG_BYTES_MAX).expect("large");
    for _ in 0..2 {
        assert!(refused(&store).await.message().contains("log was replaced"));
    }
    assert_eq!(foreign.metadata().expect("its size").len(), 2 * LOG_BYTES_MAX);
    std::fs::rename(&aside, log(&place)).expect("moved back");
    assert!(store.enqueue_one(job(1)).await.expect("it is the same log").is_new());

    let main = PathBuf::from(place.url());
    std::fs::rename(&main, &aside).expect("moved");
    assert!(refused(&store).await.message().contains("the database was deleted or moved"));
    std::fs::write(&main, b"").expect("another");
    assert!(refused(&store).await.message().contains("the database was replaced"));
    std::fs::rename(&aside, &main).expect("moved back");
    assert!(store.enqueue_one(job(1)).await.expect("it is the same file").is_new());
    assert_eq!(count(&store).await, 5);
}

/// Neither deleted nor replaced, as far as anybody can see: nothing is written before it can be looked at again.
/// The figures, which a connection that is open already reads, say so.
///
/// Proves: ERR-1, GLO-2
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_looked_at_are_not_written_to() {
    let place = Place::new("unseen");
    let folder = PathBuf::from(format!("{}.folder", place.url()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let store = open(&folder.join("jobs.db").display().to_string()).await.expect("new");
    assert_eq!(count(&store).await, 0);
    let aside = folder.with_extension("aside");
    std::fs::rename(&folder, &aside).expect("moved");
    std::fs::write(&folder, b"a file, through which no path leads").expect("written");
    let error = refused(&store).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("cannot be looked at"), "{error}");
    let warnings = store.stats().await.expect("figures").warnings;
    assert!(warnings.iter().any(|it| it.contains("cannot be looked at")), "{warnings:?}");
    std::fs::remove_file(&folder).expect("removed");
    std::fs::rename(&aside, &folder).expect("moved back");
    assert!(store.enqueue_one(job(1)).await.expect("it is the same file").is_new());
    store.close().await;
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// A second name would get a second log: field case C50.
///
/// Proves: GLO-4
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_second_name_of_a_file_is_refused_and_a_symbolic_link_is_followed() {
    let (place, hard, soft) = (Place::new("names"), Place::new("hard"), Place::new("soft"));
    let store = with_three_jobs(&place).await;
    std::os::unix::fs::symlink(place.url(), soft.url()).expect("a symbolic link");
    let same = open(&soft.url()).await.expect("the same file and log");
    assert!(same.enqueue_one(job(1)).await.expect("written").is_new());
    assert_eq!(count(&store).await, 4);
    drop(same);
    std::fs::hard_link(place.url(), hard.url()).expect("a hard link");
    let error = open(&hard.url()).await.expect_err("a second log");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("more than one name"), "{error}");
    let folder = std::env::temp_dir();
    let error = open(&folder.display().to_string()).await.expect_err("a folder");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("is a folder"), "{error}");
}

/// Every spelling of a database in memory is one connection, or refused: field case C47.
///
/// Proves: GLO-4
#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_memory_is_one_for_all_tasks() {
    for url in [":memory:", "sqlite::memory:", "sqlite:%3Amemory%3A"] {
        let store = open(url).await.expect(url);
        let one = store.clone();
        let id = tokio::spawn(async move { one.enqueue_one(job(1)).await.expect("new").job() });
        let id = id.await.expect("no panic");
        assert!(store.job(id).await.expect("a look").is_some(), "{url}: another task's job");
        assert_eq!(store.stats().await.expect("figures").log_bytes, None);
        drop(store);
        assert_eq!(count(&open(url).await.expect(url)).await, 0, "{url}: gone with its handle");
    }
    for url in ["", "file::memory:", "file:x?mode=memory&cache=shared", "sqlite:x?mode=memory"] {
        assert_eq!(open(url).await.expect_err(url).kind(), ErrorKind::Invalid, "{url}");
    }
}

/// Proves: ERR-1
#[tokio::test(flavor = "multi_thread")]
async fn the_log_grows_under_a_reader_is_told_of_and_shrinks_after_it() {
    let place = Place::new("log-growth");
    let store = open(&format!("sqlite:{}?synchronous=normal", place.url())).await.expect("new");
    let reader = Connection::open(place.url()).expect("a reader");
    let text = "begin; select count(*) from leasehold_jobs";
    reader.execute_batch(text).expect("a snapshot");
    fill(&store, 72).await;
    let stats = store.stats().await.expect("figures");
    assert!(stats.log_bytes > Some(LOG_BYTES_MAX), "{:?}", stats.log_bytes);
    assert!(stats.warnings.iter().any(|it| it.contains("an open reader keeps it")));

    reader.execute_batch("commit").expect("its end");
    let end = Instant::now() + Duration::from_secs(60);
    while store.stats().await.expect("figures").log_bytes > Some(0) && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let stats = store.stats().await.expect("figures");
    assert_eq!(stats.log_bytes, Some(0), "emptied when the writer was idle");
    assert!(!stats.warnings.iter().any(|it| it.contains("write-ahead log")));
    fill(&store, 160).await;
    let bytes = store.stats().await.expect("figures").log_bytes;
    assert!(bytes <= Some(LOG_BYTES_MAX + LOG_BYTES_MAX / 8), "unread, it has {bytes:?} bytes");
    drop(reader);
    let (other, closing) = (store.clone(), tokio::spawn(store.close()));
    assert!(other.enqueue_one(job(1)).await.expect("open for its other handle").is_new());
    drop(other);
    closing.await.expect("closed with the last handle");
    assert!(!log(&place).exists(), "the log is part of the file");
}
