//! What stores are built of, part by part: listings and figures past what cannot be read, what is known of a
//! subject, and decisions about rows that an engine does not load.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test fails"
)]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use leasehold_core::figures::Figures;
use leasehold_core::listing::{Listed, listed, page_past};
use leasehold_core::query::{Cursor, Found, Paging};
use leasehold_core::row::{EventRow, JobRow, QueueRow};
use leasehold_core::rules::{Ids, KnownRun, KnownSubject, Lifecycles, Work};
use leasehold_core::{
    Epoch, Error, ErrorKind, Hints, JobId, JobKind, Json, Limits, MemoryStore, NewEvent, NewJob,
    QueueName, Result, State, Stats, StoreExt, Timestamp, Topic,
};
use uuid::Uuid;

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "read", "as it happens")
}

/// Proves: GLO-1, QUE-6
#[test]
fn damage_keeps_its_place_in_a_listing_and_nothing_else_is_taken_for_it() {
    let at = |sequence| Ok(Cursor { id: Uuid::from_u128(7), sequence });
    let refused = listed::<()>(Err(error(ErrorKind::Unavailable)), || at(0));
    assert_eq!(refused.expect_err("no damage").kind(), ErrorKind::Unavailable);
    let unplaced = listed::<()>(Err(error(ErrorKind::Corrupt)), || Err(error(ErrorKind::Busy)));
    assert_eq!(unplaced.expect_err("without a place").kind(), ErrorKind::Busy);

    let row = |sequence| listed::<()>(Err(error(ErrorKind::Corrupt)), || at(sequence));
    let found: Vec<Listed<()>> = [row(0), row(3), row(4)].map(|it| it.expect("placed")).into();
    let cursor = |(): &()| Cursor { id: Uuid::nil(), sequence: 0 };
    let wrap = |()| -> Found { unreachable!("no row can be read") };
    let page = page_past(found, &Paging::first(2), cursor, wrap);
    let shown = |found: &Found| match found {
        Found::Unreadable(row) => (row.id.clone(), row.why.clone()),
        other => (format!("{other:?}"), String::new()),
    };
    let (id, why) = (Uuid::from_u128(7), "as it happens".to_owned());
    let expected = [(id.to_string(), why.clone()), (format!("{id} 3"), why)];
    assert_eq!(page.items.iter().map(shown).collect::<Vec<_>>(), expected);
    assert_eq!(page.next, Some(Cursor { id, sequence: 3 }));
}

/// Proves: GLO-4, QUE-6
#[test]
fn figures_leave_out_damage_and_stop_at_anything_else() {
    let name = QueueName::default_queue();
    let mut figures = Figures::of([QueueRow::new(name.clone(), Timestamp::MIN)]);
    let refused = figures.queue(Err(error(ErrorKind::Unavailable)));
    assert_eq!(refused.expect_err("no damage").kind(), ErrorKind::Unavailable);
    let refused = figures.time::<()>(Err(error(ErrorKind::Busy)));
    assert_eq!(refused.expect_err("no damage").kind(), ErrorKind::Busy);
    let mut stats = Stats::new(Timestamp::MIN, Epoch::default(), "none");
    figures.queue(Ok(name)).expect("readable").expect("known").leased = 3;
    assert!(figures.queue(Err(error(ErrorKind::Corrupt))).expect("left out").is_none());
    figures.enter(&mut stats);
    assert_eq!((stats.queues[0].leased, stats.warnings.len()), (3, 1));
    stats.tell_of_wake_ups(true);
    assert_eq!((stats.wake_ups_heard, stats.warnings.len()), (Some(true), 1));
    stats.tell_of_wake_ups(false);
    assert_eq!(stats.wake_ups_heard, Some(false));
    assert!(stats.warnings[1].contains("wake-ups of other processes are not heard"));
}

/// A job that is met twice, once with its result, is one job with that result.
///
/// Proves: REC-1
#[test]
fn a_run_of_a_subject_is_known_once() {
    let job = |number| JobId::from_uuid(Uuid::from_u128(number));
    let run = |number, result: Option<Json>| KnownRun {
        version: 1,
        job: job(number),
        state: State::Succeeded,
        result,
    };
    let mut known = KnownSubject::default();
    for (number, result) in
        [(2, None), (1, None), (2, Some(Json::null())), (2, None), (3, Some(Json::null()))]
    {
        known.add(run(number, result));
    }
    let seen: Vec<_> = known.runs.iter().map(|run| (run.job, run.result.is_some())).collect();
    assert_eq!(seen, [(job(1), false), (job(2), true), (job(3), true)]);
}

/// About the time of the ids that are made here.
fn now() -> Timestamp {
    Timestamp::from_system_time(SystemTime::now()).expect("a time")
}

fn work(now: Timestamp) -> Work {
    let lifecycles = Arc::new(Lifecycles::shipped());
    Work::new(now, Epoch::default(), Limits::default(), lifecycles, Ids::random())
}

fn waiting(now: Timestamp) -> (JobRow, EventRow) {
    let mut work = work(now);
    let job = NewJob::new(JobKind::new("resize").expect("a kind"), Json::null());
    work.enqueue(&[job], &Hints::new()).expect("decided");
    let event = NewEvent::new(Topic::new("mail").expect("a topic"), Json::null());
    work.publish(&[event]).expect("decided");
    let mut changes = work.into_changes();
    (changes.jobs_new.remove(0).0, changes.events_new.remove(0))
}

/// Only what is leased, and no longer, is taken back; nothing is written otherwise.
///
/// Proves: WQ-7
#[test]
fn nothing_is_taken_back_that_no_lapsed_lease_holds() {
    let now = now();
    let (job, event) = waiting(now);
    let (id, event_id) = (job.id, event.id);
    let mut work = work(now);
    assert!(work.reclaim(id).expect("decided").is_none(), "not loaded");
    assert!(work.reclaim_event(event_id).is_none(), "not loaded");
    work.load_jobs([job]);
    work.load_events([event]);
    assert!(work.reclaim(id).expect("decided").is_none(), "not leased");
    assert!(work.reclaim_event(event_id).is_none(), "not leased");
    assert!(work.into_changes().is_empty());
}

/// Proves: GLO-2
#[test]
fn a_claimed_row_without_a_lease_is_damaged() {
    let now = now();
    let mut begun = work(now);
    let job = NewJob::new(JobKind::new("resize").expect("a kind"), Json::null());
    begun.enqueue(&[job], &Hints::new()).expect("decided");
    let (row, request) = begun.into_changes().jobs_new.remove(0);
    let error = work(now).claim_of(&row, request.into(), None).expect_err("no lease");
    assert_eq!((error.kind(), error.damaged_job()), (ErrorKind::Corrupt, Some(row.id)), "{error}");
}

/// An id that tells no time cannot be checked against the clock, and is refused where that is asked for.
///
/// Proves: IDM-4
#[tokio::test]
async fn an_id_without_a_time_is_refused_unless_the_check_is_off() -> Result<()> {
    let mut limits = Limits::default();
    let job = || {
        let job = NewJob::new(JobKind::new("resize").expect("a kind"), Json::null());
        job.id(JobId::from_uuid(Uuid::from_u128(0x1234_5678_1234_4234_8234_1234_5678_1234)))
    };
    let store = MemoryStore::with_limits(limits.clone());
    let error = store.enqueue_one(job()).await.expect_err("no UUIDv7");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("not a UUIDv7"), "{error}");
    limits.id_skew_max = None;
    assert!(MemoryStore::with_limits(limits.clone()).enqueue_one(job()).await?.is_new());
    limits.id_skew_max = Some(Duration::from_secs(60));
    assert!(MemoryStore::with_limits(limits).enqueue_one(job()).await.is_err());
    Ok(())
}
