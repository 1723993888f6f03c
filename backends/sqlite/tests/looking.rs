//! Looking at a database without changing it, `mode=ro`: beside a writer, on a file that nobody may write, and
//! past rows that cannot be read.

#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]
#![allow(clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod place;

use std::path::{Path, PathBuf};

use leasehold_core::{
    ClaimRequest, Control, ErrorKind, EventFilter, Found, JobFilter, JobKind, Json, NewEvent,
    NewJob, Paging, PruneRequest, Query, QueueName, Stats, Store, StoreExt, Timestamp, Topic,
    WorkerId,
};
use leasehold_sqlite::rusqlite::{Connection, Transaction};
use leasehold_sqlite::{SqliteStore, open, own_error};
use place::Place;

fn job() -> NewJob {
    NewJob::new(JobKind::new("resize").expect("a kind"), Json::null())
}

async fn look(path: &str) -> leasehold_core::Result<SqliteStore> {
    open(&format!("sqlite:{path}?mode=ro")).await
}

async fn count(store: &SqliteStore) -> usize {
    store.jobs(JobFilter::default(), Paging::first(1_000)).await.expect("a page").items.len()
}

/// Leaves no way to the memory that readers and writers of a log share, for root neither.
fn without_shared_memory(path: &str) -> PathBuf {
    let shared = PathBuf::from(format!("{path}-shm"));
    let _ = std::fs::remove_file(&shared);
    std::os::unix::fs::symlink("nowhere", &shared).expect("a link, which SQLite does not follow");
    shared
}

/// Proves: CLI-1
#[tokio::test(flavor = "multi_thread")]
async fn a_look_beside_a_writer_sees_its_commits_and_writes_nothing() {
    let place = Place::new("look-beside");
    let store = open(&place.url()).await.expect("new");
    let seen = look(&place.url()).await.expect("opened to look");
    for number in 1..=3 {
        let _ = store.enqueue_one(job()).await.expect("enqueued");
        assert_eq!(count(&seen).await, number);
    }
    let error = seen.enqueue_one(job()).await.expect_err("nothing is written");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("may not be written"), "{error}");
    assert_eq!(seen.stats().await.expect("counted").queues.len(), 1);
    store.close().await;
    assert_eq!(count(&seen).await, 3);
    seen.close().await;
}

/// Proves: CLI-1
#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_a_log_is_looked_at_where_nothing_may_be_written() {
    let place = Place::new("look-frozen");
    let store = open(&place.url()).await.expect("new");
    let _ = store.enqueue_one(job()).await.expect("enqueued");
    store.close().await;
    let shared = without_shared_memory(&place.url());
    assert!(open(&place.url()).await.is_err(), "as before: it is no way to write");
    let before = std::fs::read(place.url()).expect("the file");
    let seen = look(&place.url()).await.expect("looked at as it is");
    assert_eq!((count(&seen).await, seen.stats().await.expect("counted").queues.len()), (1, 1));
    seen.close().await;
    assert_eq!(std::fs::read(place.url()).expect("the file"), before);
    std::fs::remove_file(shared).expect("removed");
}

/// Proves: CLI-1
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_a_log_that_cannot_be_read_is_not_passed_over() {
    let place = Place::new("look-log");
    let store = open(&place.url()).await.expect("new");
    let _ = store.enqueue_one(job()).await.expect("enqueued");
    let copy = format!("{}.copy", place.url());
    for end in ["", "-wal"] {
        std::fs::copy(format!("{}{end}", place.url()), format!("{copy}{end}")).expect("copied");
    }
    let shared = without_shared_memory(&copy);
    let error = look(&copy).await.expect_err("the log holds a job");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("the log beside the file holds writes"), "{error}");
    std::fs::remove_file(shared).expect("removed");
    let seen = look(&copy).await.expect("looked at");
    assert_eq!(count(&seen).await, 1);
}

/// Proves: CLI-1, MIG-1
#[tokio::test(flavor = "multi_thread")]
async fn a_look_makes_neither_a_file_nor_a_schema() {
    let place = Place::new("look-none");
    assert!(look(&place.url()).await.is_err());
    assert!(!Path::new(&place.url()).exists());
    let own = Connection::open(place.url()).expect("a database of somebody else's");
    own.execute_batch("create table orders (item text)").expect("made");
    drop(own);
    let before = std::fs::read(place.url()).expect("the file");
    let error = look(&place.url()).await.expect_err("no store");
    assert!(error.to_string().contains("leasehold migrate"), "{error}");
    assert_eq!(std::fs::read(place.url()).expect("the file"), before);
}

/// Proves: CLI-1, MIG-1
#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_an_older_schema_says_how_to_bring_it_up_to_date() {
    let place = Place::new("look-older");
    open(&place.url()).await.expect("new").close().await;
    let beside = Connection::open(place.url()).expect("a connection");
    beside.execute("delete from leasehold_schema", []).expect("as if nothing were applied yet");
    let error = look(&place.url()).await.expect_err("too old");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("the schema is older than this library"), "{error}");
}

/// Ids that somebody made too short, one to nothing at all, and too long: each is listed in its place, and the listing goes on.
///
/// Proves: GLO-1, QUE-6
#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_id_is_none_is_listed_like_any_other_that_cannot_be_read() {
    let place = Place::new("look-ids");
    let store = open(&place.url()).await.expect("new");
    for _ in 0..5 {
        let _ = store.enqueue_one(job()).await.expect("enqueued");
    }
    let event = NewEvent::new(Topic::new("mail").expect("a topic"), Json::null());
    store.publish(vec![event]).await.expect("published");
    let damage = |tx: &Transaction<'_>| {
        let cut = "update leasehold_jobs set id = substr(id, 1, 15) where id in \
                   (select id from leasehold_jobs order by id limit 1 offset 1)";
        let lengthen = "update leasehold_jobs set id = cast(id || x'00' as blob) where id in \
                        (select id from leasehold_jobs order by id limit 1 offset 3)";
        let empty = "update leasehold_jobs set id = x'' where id in \
                     (select id from leasehold_jobs order by id limit 1)";
        let events = "update leasehold_events set id = x''";
        tx.execute_batch(&format!("{cut}; {lengthen}; {empty}; {events}")).map_err(own_error)
    };
    store.transaction(damage).await.expect("damaged");
    let (mut paging, mut read, mut unread) = (Paging::first(1), 0, 0);
    for _ in 0..10 {
        let page = store.find(Query::Jobs(JobFilter::new(), paging)).await.expect("a page");
        for found in &page.items {
            match found {
                Found::Job(_) => read += 1,
                Found::Unreadable(_) => unread += 1,
                other => assert!(matches!(other, Found::Job(_)), "{other:?}"),
            }
        }
        let Some(next) = page.next else { break };
        paging = Paging::first(1).after(next);
    }
    assert_eq!((read, unread), (2, 3));
    let query = Query::Events(EventFilter::new(), Paging::first(1));
    let found = store.find(query).await.expect("a page").items;
    assert!(matches!(found[..], [Found::Unreadable(_)]), "{found:?}");
}

/// A queue whose row cannot be read takes neither the figures nor the settings of the others away, nor their upkeep.
///
/// Proves: GLO-1, QUE-6
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_cannot_be_read_hides_no_other() {
    let place = Place::new("look-queues");
    let store = open(&place.url()).await.expect("new");
    for name in ["a", "b"] {
        let queue = QueueName::new(name).expect("a name");
        let _ = store.enqueue_one(job().queue(queue.clone())).await.expect("enqueued");
        store.control(Control::Pause(queue)).await.expect("paused");
    }
    let damage = |tx: &Transaction<'_>| {
        tx.execute_batch("update leasehold_queues set name = '' where name = 'a'")
            .map_err(own_error)
    };
    store.transaction(damage).await.expect("damaged");
    let stats = store.stats().await.expect("figures");
    let sound = stats.queue(&QueueName::new("b").expect("a name")).expect("b");
    assert!(sound.paused && sound.ready == 1, "{sound:?}");
    assert!(stats.warnings.iter().any(|it| it.contains("a queue whose row")), "{stats:?}");
    let found = store.find(Query::Queues).await.expect("a listing").items;
    assert!(matches!(found[..], [Found::Unreadable(_), Found::Queue(_)]), "{found:?}");
    store.prune(PruneRequest::new()).await.expect("pruned");
}

/// A row whose id is sound and whose kind is none is listed under that id, and the next page begins behind it.
///
/// Proves: GLO-1, QUE-6
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_is_listed_under_its_id() {
    let place = Place::new("look-damaged");
    let store = open(&place.url()).await.expect("new");
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(store.enqueue_one(job()).await.expect("enqueued").job());
    }
    ids.sort_unstable();
    let damaged = ids[1];
    let damage = move |tx: &Transaction<'_>| {
        let text = "update leasehold_jobs set kind = '' where id = ?1";
        tx.execute(text, [damaged.as_bytes().as_slice()]).map_err(own_error)
    };
    assert_eq!(store.transaction(damage).await.expect("damaged"), 1);
    let (mut paging, mut seen) = (Paging::first(1), Vec::new());
    loop {
        let page = store.find(Query::Jobs(JobFilter::new(), paging)).await.expect("a page");
        for found in page.items {
            match found {
                Found::Job(job) => seen.push((job.id.to_string(), true)),
                Found::Unreadable(row) => seen.push((row.id, false)),
                other => assert!(matches!(other, Found::Job(_)), "{other:?}"),
            }
        }
        let Some(next) = page.next else { break };
        paging = Paging::first(1).after(next);
    }
    let expected = ids.iter().map(|id| (id.to_string(), *id != damaged)).collect::<Vec<_>>();
    assert_eq!(seen, expected);
}

/// One row of each sort under a name that is none, then times out of range: the others are counted, and the
/// warnings say what is not.
///
/// Proves: GLO-4, QUE-6
#[tokio::test(flavor = "multi_thread")]
async fn figures_leave_out_what_cannot_be_read_and_say_so() {
    const ROWS: &str = "rows of a queue whose name cannot be read are not counted";
    const TIMES: &str = "a time that cannot be read is left out of the figures";
    let place = Place::new("look-figures");
    let store = open(&place.url()).await.expect("new");
    for _ in 0..7 {
        let _ = store.enqueue_one(job()).await.expect("enqueued");
    }
    let event = NewEvent::new(Topic::new("mail").expect("a topic"), Json::null());
    store.publish(vec![event]).await.expect("published");
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(2);
    let claims = store.claim(request).await.expect("claimed");
    store.succeed(claims[0].fence).await.expect("settled");
    let first =
        "(select id from leasehold_jobs where queue = 'default' and state = 'waiting' limit 1)";
    let damage = format!(
        "update leasehold_jobs set queue = '' where state = 'leased'; \
         update leasehold_jobs set queue = cast(x'ff' as text) where state = 'succeeded'; \
         update leasehold_jobs set queue = printf('%.300c', 'q') where id = {first}; \
         update leasehold_jobs set queue = '', held = 1 where id = {first}"
    );
    let seen = altered(&store, damage).await;
    let figures = &seen.queues[0];
    assert_eq!((seen.queues.len(), figures.ready, figures.leased, figures.succeeded), (1, 3, 0, 0));
    assert!(figures.oldest_ready.is_some() && figures.blocked == 0);
    assert_eq!((warned(&seen, ROWS), warned(&seen, TIMES)), (1, 0));

    let due =
        |time: i64| format!("update leasehold_jobs set run_at = {time} where state = 'waiting'");
    for (time, ready) in [(-1, 3), (i64::MAX, 0)] {
        let seen = altered(&store, due(time)).await;
        let figures = &seen.queues[0];
        assert_eq!((figures.ready, figures.later), (ready, 3 - ready));
        assert_eq!((figures.oldest_ready, figures.first_due), (None, None));
        assert_eq!(warned(&seen, TIMES), 1);
    }
    let legal = due(Timestamp::MAX.as_micros());
    let seen = altered(&store, legal).await;
    assert_eq!((seen.queues[0].first_due, warned(&seen, TIMES)), (Some(Timestamp::MAX), 0));
    let seen = altered(&store, "update leasehold_events set created_at = -1".to_owned()).await;
    assert_eq!((seen.outbox.waiting, seen.outbox.oldest_waiting), (1, None));
    assert_eq!(warned(&seen, TIMES), 1);
}

/// The figures after somebody's SQL.
async fn altered(store: &SqliteStore, text: String) -> Stats {
    let run = move |tx: &Transaction<'_>| tx.execute_batch(&text).map_err(own_error);
    store.transaction(run).await.expect("altered");
    store.stats().await.expect("the others are counted")
}

fn warned(stats: &Stats, of: &str) -> usize {
    stats.warnings.iter().filter(|warning| warning.starts_with(of)).count()
}
