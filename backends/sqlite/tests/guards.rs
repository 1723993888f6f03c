//! Owns the check that statements which write what was looked at before refuse by themselves what is not so: the
//! write lock keeps that from happening, and they are the second line behind it; and what becomes of rows that
//! cannot be read.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test fails"
)]

mod place;

use std::time::Duration;

use leasehold_conformance::sweep;
use leasehold_core::lab::{LabStore, altered};
use leasehold_core::{
    ClaimRequest, ErrorKind, EventClaimRequest, IdempotencyKey, JobKind, Json, NewEvent, NewJob,
    OrderKey, Ordering, PartitionName, QueueName, Result, Store, StoreExt, Topic, WorkerId,
};
use leasehold_sqlite::rusqlite::types::Value;
use leasehold_sqlite::rusqlite::{Connection, Params, params, params_from_iter};
use leasehold_sqlite::{SqliteStore, open};
use place::Place;

/// A store with a job that holds a key, and a connection beside it.
struct Ground {
    store: SqliteStore,
    beside: Connection,
    job: [u8; 16],
    _place: Place,
}

async fn ground(name: &str) -> Result<Ground> {
    let place = Place::new(name);
    let store = open(&place.url()).await?;
    let job = NewJob::new(JobKind::new("resize")?, Json::null());
    let job = job.key(IdempotencyKey::new("order-7")?).key_ttl(Duration::from_secs(60));
    let job = *store.enqueue_one(job).await?.job().as_bytes();
    let beside = Connection::open(place.url()).expect("a connection");
    Ok(Ground { store, beside, job, _place: place })
}

/// A statement as the store sends it.
fn statement(name: &str) -> String {
    let path = format!("{}/src/sql/{name}.sql", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a statement");
    altered::text(name, &text).to_owned()
}

impl Ground {
    /// How many rows a statement writes.
    fn write(&self, name: &str, values: impl Params) -> usize {
        self.beside.execute(&statement(name), values).expect("a statement that runs")
    }

    fn states(&self) -> Vec<(String, i64)> {
        let mut all =
            self.beside.prepare("select state, claim_version from leasehold_jobs").expect("SQL");
        let read = |row: &leasehold_sqlite::rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        all.query_map([], read).expect("rows").map(|row| row.expect("a row")).collect()
    }
}

/// Proves: IDM-1
#[tokio::test]
async fn a_key_that_another_job_holds_is_not_taken() {
    let ground = ground("guard-key").await.expect("a store");
    let other = [7_u8; 16];
    let take = |scope: &str, now: i64| {
        let values = params![scope, "order-7", other, [0_u8; 32], i64::MAX, now];
        ground.write("take_key", values)
    };
    assert_eq!((take("", 0), take("another", 0)), (0, 1));
    assert_eq!(take("", i64::MAX), 1, "a lapsed one is free");
}

/// Proves: GLO-2
#[tokio::test]
async fn a_job_whose_id_is_known_is_not_written_over() {
    let ground = ground("guard-id").await.expect("a store");
    let text = statement("insert_job");
    let columns = text.split(['(', ')']).nth(1).expect("columns").replace('\n', " ");
    let read = format!("select {columns} from leasehold_jobs");
    let mut row: Vec<Value> = ground
        .beside
        .query_row(&read, [], |row| {
            (0..row.as_ref().column_count()).map(|at| row.get(at)).collect()
        })
        .expect("the job");
    let kind = columns.split(',').position(|column| column.trim() == "kind").expect("a kind");
    row[kind] = Value::from("rotate".to_owned());
    assert_eq!(ground.write("insert_job", params_from_iter(row.clone())), 0);
    row[0] = Value::from(vec![7_u8; 16]);
    assert_eq!(ground.write("insert_job", params_from_iter(row)), 1);
}

/// Proves: GLO-2
#[tokio::test]
async fn an_answer_is_not_put_over_another() {
    let ground = ground("guard-once").await.expect("a store");
    let store = |response: Option<&str>, now: i64| {
        ground.write("once_store", params!["pay", "order-7", [0_u8; 32], response, now, 100])
    };
    assert_eq!(store(None, 1), 1, "a mark");
    assert_eq!(store(Some("1"), 2), 1, "an answer over its mark");
    assert_eq!(store(Some("2"), 3), 0, "another over that");
    assert_eq!(store(Some("2"), 100), 1, "past its end");
}

/// Proves: WQ-3
#[tokio::test]
async fn a_job_is_claimed_while_it_waits_and_ended_while_it_is_leased() {
    let ground = ground("guard-state").await.expect("a store");
    let (claim, worker) = ([1_u8; 16], [2_u8; 16]);
    let end = || ground.write("end_jobs", params![ground.job, "succeeded", "succeed", 5]);
    let take = || ground.write("claim_jobs", params![ground.job, claim, worker, 9, 1, 8]);
    assert_eq!(end(), 0, "nobody has claimed it");
    let asked = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    assert_eq!(ground.store.claim(asked).await.expect("claimed").len(), 1);
    assert_eq!((take(), ground.states()), (0, vec![("leased".to_owned(), 1)]));
    assert_eq!(end(), 1);
    assert_eq!((end(), take(), ground.states()), (0, 0, vec![("succeeded".to_owned(), 1)]));
}

/// Who met a row may have waited: what another has claimed meanwhile is no longer his to put to rest, unless
/// that lease has lapsed.
///
/// Proves: WQ-4
#[tokio::test]
async fn live_leases_of_others_are_left_alone() {
    let ground = ground("guard-aside").await.expect("a store");
    let asked = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let claim = ground.store.claim(asked).await.expect("claimed").remove(0).fence.claim();
    let (other, own) = ([7_u8; 16], *claim.as_bytes());
    let job =
        |now: i64, claim| ground.write("set_aside", params![ground.job, now, claim, i64::MAX]);
    assert_eq!((job(0, other), job(0, own)), (0, 1), "who met it puts it to rest");
    ground.beside.execute("update leasehold_jobs set run_at = 0", []).expect("woken");
    let asked = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    assert_eq!(ground.store.claim(asked).await.expect("claimed").len(), 1);
    assert_eq!((job(0, other), job(i64::MAX, other)), (0, 1), "its lease has lapsed");

    let new = NewEvent::new(Topic::new("mail").expect("a topic"), Json::null());
    let id = *new.id.as_bytes();
    ground.store.publish(vec![new]).await.expect("published");
    let asked = EventClaimRequest::new(WorkerId::new());
    let claim = ground.store.claim_events(asked).await.expect("claimed").remove(0).fence.claim();
    let event = |claim| ground.write("set_aside_event", params![id, 0, claim, "{}"]);
    assert_eq!((event(other), event(*claim.as_bytes())), (0, 1));
    assert_eq!(event(*claim.as_bytes()), 0, "it has ended");
}

/// A job and the oldest event of a key: those beside and behind them go on, and neither is met again.
///
/// Proves: GLO-1, WQ-3, TX-9
#[tokio::test]
async fn what_cannot_be_read_rests_and_holds_up_nothing_else() {
    let ground = ground("guard-rest").await.expect("a store");
    let (store, count) = (&ground.store, |rows: &str| -> i64 {
        let text = format!("select count(*) from {rows}");
        ground.beside.query_row(&text, [], |row| row.get(0)).expect("a count")
    });
    let damage = |text: &str, id: [u8; 16]| ground.beside.execute(text, [id]).expect("damaged");
    damage("update leasehold_jobs set kind = '' where id = ?1", ground.job);
    let _other =
        store.enqueue_one(NewJob::new(JobKind::new("resize").expect("a kind"), Json::null())).await;
    let jobs = || ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(9);
    assert_eq!(store.claim(jobs()).await.expect("claimed").len(), 1);
    assert_eq!(store.claim(jobs()).await.expect("claimed").len(), 0);
    assert_eq!(count("leasehold_audit where action = 'job.set_aside'"), 1);

    let new = || {
        let key = OrderKey::new("a").expect("a key");
        let topic = Topic::new("mail").expect("a topic");
        NewEvent::new(topic, Json::null()).ordering(Ordering::Key(key))
    };
    let all = vec![new(), new()];
    let (first, second) = (all[0].id, all[1].id);
    store.publish(all).await.expect("published");
    let text = "update leasehold_events set payload = '{\"broken' where id = ?1";
    damage(text, *first.as_bytes());
    let asked = || EventClaimRequest::new(WorkerId::new()).limit(9);
    let claims = store.claim_events(asked()).await.expect("claimed");
    assert_eq!(claims.iter().map(|it| it.fence.event()).collect::<Vec<_>>(), [second]);
    let dead = "leasehold_events where state = 'dead_letter' and finished_at is not null";
    assert_eq!((count(dead), store.claim_events(asked()).await.expect("claimed").len()), (1, 0));
}

/// Rows that cannot be named, and one in a partition that is no text, are held back; the others go on, and a mended
/// one comes back.
///
/// Proves: GLO-1, WQ-3
#[tokio::test]
async fn what_has_no_id_or_partition_is_held_back() {
    let ground = ground("guard-odd").await.expect("a store");
    let (store, beside) = (&ground.store, &ground.beside);
    let count = |rows: &str| -> i64 {
        let text = format!("select count(*) from {rows}");
        beside.query_row(&text, [], |row| row.get(0)).expect("a count")
    };
    let new = || NewJob::new(JobKind::new("resize").expect("a kind"), Json::null());
    let of = |name: &str| new().partition(PartitionName::new(name).expect("a name"));
    let jobs = || ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(9);
    let _first = store.enqueue_one(new()).await.expect("enqueued");
    assert_eq!(store.claim(jobs()).await.expect("claimed").len(), 2, "with the one of the ground");
    let all = vec![new(), new(), of("a"), of("b"), of("c")];
    let _others = store.enqueue(all).await.expect("enqueued");
    // One lease has run out and one goes on.
    let damage = "update leasehold_jobs set id = x'01', lease_expires_at = heartbeat_at where id in \
           (select id from leasehold_jobs where state = 'leased' limit 1); \
         update leasehold_jobs set partition = cast(x'ff' as text) \
           where state = 'leased' and length(id) = 16; \
         update leasehold_jobs set id = x'' where id in \
           (select id from leasehold_jobs where state = 'waiting' and partition is null limit 1); \
         update leasehold_jobs set id = x'0203' where partition = 'b'; \
         update leasehold_jobs set partition = cast(x'ff' as text) where partition = 'a'";
    beside.execute_batch(damage).expect("damaged");
    assert_eq!(store.claim(jobs()).await.expect("claimed").len(), 2);
    assert_eq!(count("leasehold_jobs where held = 1 and state = 'waiting'"), 4);
    assert_eq!(count("leasehold_jobs where state = 'leased'"), 3, "two and the one that goes on");
    assert_eq!(count("leasehold_audit where action = 'job.set_aside'"), 4);
    assert_eq!(
        count("leasehold_audit where target in ('job x''''', 'job x''01''', 'job x''0203''')"),
        3
    );
    assert_eq!(store.claim(jobs()).await.expect("claimed").len(), 0);
    assert!(store.stats().await.is_ok());

    let mend =
        "update leasehold_jobs set partition = null, held = 0 where length(id) = 16 and held = 1";
    beside.execute_batch(mend).expect("mended");
    assert_eq!(store.claim(jobs()).await.expect("claimed").len(), 1);
}

/// What cannot be read and cannot be put to rest either, for somebody's trigger keeps it: whoever meets it is told,
/// each time, and nothing tells that it rests.
///
/// Proves: ERR-1, GLO-1
#[tokio::test]
async fn what_cannot_be_put_to_rest_is_told_each_time() {
    let ground = ground("guard-restless").await.expect("a store");
    let new = NewEvent::new(Topic::new("mail").expect("a topic"), Json::null());
    ground.store.publish(vec![new]).await.expect("published");
    let text = "update leasehold_jobs set kind = ''; \
                update leasehold_events set payload = '{\"broken'; \
                create trigger keeps_jobs before update on leasehold_jobs \
                begin select raise(ignore); end; \
                create trigger keeps_events before update on leasehold_events \
                begin select raise(ignore); end";
    ground.beside.execute_batch(text).expect("damaged");
    for _ in 0..2 {
        let asked = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
        let error = ground.store.claim(asked).await.expect_err("damaged");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(error.damaged_job().map(|job| *job.as_bytes()), Some(ground.job));
        let asked = EventClaimRequest::new(WorkerId::new());
        let error = ground.store.claim_events(asked).await.expect_err("damaged");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.damaged_event().is_some(), "{error}");
    }
    let entries = "select count(*) from leasehold_audit";
    let entries = ground.beside.query_row(entries, [], |row| row.get::<_, i64>(0));
    assert_eq!(entries.expect("a count"), 0);
}

/// Somebody's trigger throws away what a verb writes: the verb fails, and leaves nothing.
///
/// Proves: ERR-1, GLO-2
#[tokio::test]
async fn a_write_that_is_thrown_away_is_no_success() {
    let jobs =
        ["claim", "end", "end_two", "succeed", "retry", "fail", "release", "reclaim", "cancel"];
    let of_jobs = jobs.map(|verb| (verb, "jobs"));
    let others = [
        ("claim_events", "events"),
        ("succeed_parent", "waits"),
        ("note_letter", "dead_letters"),
        ("replay", "dead_letters"),
    ];
    for (verb, table) in of_jobs.into_iter().chain(others) {
        let place = Place::new("guard-thrown");
        let store = SqliteStore::lab(&place.url(), sweep::start()).await.expect("a store");
        sweep::prepare(&store, verb).await.expect("prepared");
        let before = store.dump().await.expect("dumped");
        let beside = Connection::open(place.url()).expect("a connection");
        let trigger = format!(
            "create trigger away before update on leasehold_{table} begin select raise(ignore); end"
        );
        beside.execute_batch(&trigger).expect("a trigger");
        let error = sweep::run(&store, verb).await.expect_err(verb);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{verb}: {error}");
        let left = before.difference(&store.dump().await.expect("dumped"));
        assert!(left.is_empty(), "{verb} left {left}");
    }
}
