//! Owns the fault sweep: for each verb the first, second, … storage step fails with each code, the
//! commit too, until the verb gets through untouched. Nothing is stored by a verb that fails, the
//! error is of the right kind, and the same store does the verb in the end.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

mod place;

use std::collections::BTreeSet;

use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::sweep::{COMMON, OTHERS, REPEATABLE, prepare, run, start};
use leasehold_core::lab::LabStore;
use leasehold_core::{
    Enqueued, Error, ErrorKind, IdempotencyKey, JobId, JobKind, Json, NewJob, Result, StoreExt,
    failpoint,
};
use leasehold_sqlite::SqliteStore;
use leasehold_sqlite::rusqlite::{Connection, Row, Transaction, ffi};
use place::Place;
use tokio::runtime::Runtime;

/// A code, what it is at a statement and at the commit.
const CODES: [(i32, ErrorKind, ErrorKind); 14] = [
    (ffi::SQLITE_FULL, ErrorKind::StorageFull, ErrorKind::StorageFull),
    (ffi::SQLITE_IOERR, ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
    (ffi::SQLITE_IOERR_READ, ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
    (ffi::SQLITE_IOERR_WRITE, ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
    (ffi::SQLITE_IOERR_FSYNC, ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
    (ffi::SQLITE_BUSY, ErrorKind::Busy, ErrorKind::Busy),
    (ffi::SQLITE_BUSY_SNAPSHOT, ErrorKind::Busy, ErrorKind::Busy),
    (ffi::SQLITE_LOCKED, ErrorKind::Busy, ErrorKind::Busy),
    (ffi::SQLITE_NOMEM, ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
    (ffi::SQLITE_INTERRUPT, ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
    (ffi::SQLITE_READONLY, ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
    (ffi::SQLITE_CORRUPT, ErrorKind::Corrupt, ErrorKind::Corrupt),
    (ffi::SQLITE_NOTADB, ErrorKind::Corrupt, ErrorKind::Corrupt),
    (ffi::SQLITE_PROTOCOL, ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
];

/// Fails one verb at each step with one code; how many points there were.
async fn sweep(verb: &str, code: i32, kinds: [ErrorKind; 2]) -> Result<u64> {
    let store = SqliteStore::lab(":memory:", start()).await?;
    prepare(&store, verb).await?;
    let before = store.dump().await?;
    for step in 1..500 {
        failpoint::arm_fault(step, code);
        let answer = run(&store, verb).await;
        let fired = failpoint::steps() >= step;
        failpoint::arm_fault(0, 0);
        let changes = before.difference(&store.dump().await?);
        if !fired {
            answer?;
            assert_eq!(changes.is_empty(), matches!(verb, "find" | "stats"), "{verb}: {changes}");
            return Ok(step - 1);
        }
        let error = answer.expect_err("a failed step fails the verb");
        assert!(changes.is_empty(), "{verb} failed at {step} with {code}, and left\n{changes}");
        assert!(kinds.contains(&error.kind()), "{verb} at {step} with {code}: {error}");
        assert_ne!(error.operation(), "storage", "{verb} at {step} with {code}: {error}");
    }
    panic!("{verb} never ends");
}

/// Proves: ERR-1, GLO-2, TX-1
fn each_step_that_fails_stores_nothing_and_says_why(runtime: &Runtime) {
    let evidence = Evidence::of("faults of each statement", "sqlite");
    let (mut points, mut verbs) = (0, 0);
    // After damage a call of two settlements tries each by itself, and so may succeed.
    let common = COMMON.into_iter().filter(|verb| *verb != "end_two");
    for verb in REPEATABLE.into_iter().chain(OTHERS).chain(common) {
        let mut of_verb = 0;
        for (code, statement, commit) in CODES {
            for code in [code, -code] {
                let swept = runtime.block_on(sweep(verb, code, [statement, commit]));
                of_verb += swept.unwrap_or_else(|error| panic!("{verb} with {code}: {error}"));
            }
        }
        eprintln!("{verb}: {of_verb} points");
        points += of_verb;
        verbs += 1;
    }
    evidence.count("verbs", verbs).count("points", points).tell();
    assert!(points >= 5_000, "{points} points are too few");
}

/// How many objects a file holds, whose pages are sound.
fn objects(place: &Place) -> u32 {
    let conn = Connection::open(place.url()).expect("the file");
    let text =
        "select (select count(*) from sqlite_schema), (select * from pragma_integrity_check)";
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (objects, sound): (u32, String) = conn.query_row(text, [], row).expect("readable");
    assert_eq!(sound, "ok");
    objects
}

/// A disk that fills up in the middle of making the schema leaves nothing of it, or all.
///
/// Proves: MIG-1, ERR-1
fn a_migration_that_fails_at_any_step_is_all_or_nothing(runtime: &Runtime) {
    let mut left = BTreeSet::new();
    for step in 1..500 {
        let place = Place::new("migration-faults");
        failpoint::arm_fault(step, ffi::SQLITE_FULL);
        let opened = runtime.block_on(leasehold_sqlite::open(&place.url()));
        let fired = failpoint::steps() >= step;
        failpoint::arm_fault(0, 0);
        let Err(error) = opened else {
            assert!(!fired && step > 9, "{step} steps");
            let whole = objects(&place);
            assert!(left.iter().all(|left| [0, whole].contains(left)), "{left:?} of {whole}");
            assert!(left.contains(&0));
            return;
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull, "step {step}: {error}");
        left.insert(objects(&place));
        let again = runtime.block_on(leasehold_sqlite::open(&place.url())).expect("room again");
        runtime.block_on(again.close());
    }
    panic!("the opening never ends");
}

/// Four enqueues in one group of the writer, one step of which fails: what each was answered.
async fn group(store: &SqliteStore, step: u64) -> Vec<(JobId, Result<Enqueued>)> {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let busy = store.clone();
    let busy = tokio::spawn(async move {
        let hold = move |_: &Transaction<'_>| {
            tell.send(()).expect("a listener");
            let _released = released.recv();
            Err::<(), _>(Error::new(ErrorKind::Invalid, "hold", "nothing is to be kept"))
        };
        busy.transaction(hold).await
    });
    tokio::task::spawn_blocking(move || told.recv()).await.expect("no panic").expect("held");
    let enqueue = |number: u64| {
        let kind = JobKind::new("resize").expect("a kind");
        let key = IdempotencyKey::new(format!("key {number}")).expect("a key");
        let (job, store) = (NewJob::new(kind, Json::null()).key(key), store.clone());
        (job.id, Box::pin(async move { store.enqueue_one(job).await }))
    };
    let mut calls: Vec<_> = (0..4).map(enqueue).collect();
    // A call's first step hands its request to the writer, which is held; so all four are one group.
    std::future::poll_fn(|context| {
        for (_, call) in &mut calls {
            assert!(call.as_mut().poll(context).is_pending(), "the writer is held");
        }
        std::task::Poll::Ready(())
    })
    .await;
    failpoint::arm_fault(step, ffi::SQLITE_IOERR_READ);
    release.send(()).expect("the writer waits");
    let _held = busy.await.expect("no panic");
    let mut answers = Vec::new();
    for (id, call) in calls {
        answers.push((id, call.await));
    }
    answers
}

/// A request that fails half done beside others takes nothing of theirs along, and leaves nothing.
///
/// Proves: ERR-1, TX-1
fn a_group_with_a_half_done_request_is_run_again(runtime: &Runtime) {
    let (mut refused, mut again) = (0, 0);
    for step in 1..100 {
        let fired = runtime.block_on(async {
            let store = SqliteStore::lab(":memory:", start()).await.expect("a store");
            let answers = group(&store, step).await;
            let fired = failpoint::steps() >= step;
            failpoint::arm_fault(0, 0);
            let dump = store.dump().await.expect("a dump");
            for (id, answer) in &answers {
                let rows = dump.rows("jobs").iter().filter(|row| row.contains(&id.to_string()));
                assert_eq!(rows.count(), usize::from(answer.is_ok()), "step {step}: {answer:?}");
            }
            assert_eq!(dump.rows("jobs").len(), dump.rows("keys").len(), "step {step}");
            let whole = answers.iter().all(|(_, answer)| answer.is_ok());
            refused += u32::from(fired && !whole);
            again += u32::from(fired && whole);
            fired
        });
        if !fired {
            assert!(refused > 3 && again > 3, "{refused} refused, {again} run again");
            return;
        }
    }
    panic!("the group never ends");
}

/// One after the other: a fault is armed for the whole process.
#[test]
fn every_step_may_fail() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    a_migration_that_fails_at_any_step_is_all_or_nothing(&runtime);
    a_group_with_a_half_done_request_is_run_again(&runtime);
    each_step_that_fails_stores_nothing_and_says_why(&runtime);
}
