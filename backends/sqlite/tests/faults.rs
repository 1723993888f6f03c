//! Owns the fault sweep: for each verb the first, second, … storage step fails with each code, the
//! commit too, until the verb gets through untouched. Nothing is stored by a verb that fails, the
//! error is of the right kind, and the same store does the verb in the end.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

use std::time::Duration;

use leasehold_core::lab::LabStore;
use leasehold_core::{
    Actor, ClaimId, ClaimRequest, ClaimVersion, Control, Epoch, ErrorKind, EventClaimRequest,
    EventId, Failure, FailureCode, Fence, IdempotencyKey, JobFilter, JobId, JobKind, Json,
    NewEvent, NewJob, OrderKey, Ordering, Paging, Progress, PruneRequest, QueueName, QueueSettings,
    ReclaimRequest, RenewRequest, Result, Settlement, Store, StoreExt, Timestamp, Topic, Verdict,
    WorkerId, failpoint,
};
use leasehold_sqlite::SqliteStore;
use leasehold_sqlite::rusqlite::ffi;

/// Which verbs fail; those after the first two begin with claimed jobs.
const VERBS: [&str; 18] = [
    "enqueue",
    "publish",
    "claim",
    "renew",
    "progress",
    "succeed",
    "retry",
    "fail",
    "release",
    "dead letter",
    "reclaim",
    "prune",
    "cancel",
    "set queue",
    "bump epoch",
    "claim events",
    "find",
    "stats",
];

/// A code, what it is at a statement and at the commit.
const CODES: [(i32, ErrorKind, ErrorKind); 12] = [
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
];

fn start() -> Timestamp {
    Timestamp::saturating(1_800_000_000_000_000)
}

fn id(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

fn job(number: u128) -> Result<NewJob> {
    let kind = JobKind::new("resize")?;
    let mut job = NewJob::new(kind, Json::parse(format!("{{\"number\":{number}}}"))?);
    job.id = JobId::from_uuid(id(number));
    job.key = Some(IdempotencyKey::new(format!("key {number}"))?);
    Ok(job)
}

fn event(number: u128) -> Result<NewEvent> {
    let event = NewEvent::new(Topic::new("mail")?, Json::null());
    let event = event.ordering(Ordering::Key(OrderKey::new("customer")?));
    Ok(event.id(EventId::from_uuid(id(number))))
}

fn request(claim: u128) -> ClaimRequest {
    let request = ClaimRequest::new(WorkerId::from_uuid(id(77)), [QueueName::default_queue()]);
    request.claim_id(ClaimId::from_uuid(id(claim)))
}

fn fence() -> Result<Fence> {
    let (job, claim) = (JobId::from_uuid(id(1)), ClaimId::from_uuid(id(78)));
    let worker = WorkerId::from_uuid(id(77));
    Ok(Fence::from_parts(job, ClaimVersion::new(1)?, claim, worker, Epoch::default()))
}

fn actor() -> Result<Actor> {
    Actor::new("operator-7")
}

/// A fresh store where a verb begins: two of three jobs claimed, an ended one, an event waiting.
async fn prepare(verb: &str) -> Result<SqliteStore> {
    let store = SqliteStore::lab(":memory:", start()).await?;
    for answer in store.enqueue(vec![job(1)?, job(2)?, job(3)?, job(4)?]).await? {
        let _new = answer?;
    }
    store.publish(vec![event(21)?, event(22)?]).await?;
    assert_eq!(store.claim(request(78).limit(3)).await?.len(), 3);
    let clock = store.clock().expect("a manual clock");
    if verb == "reclaim" {
        clock.advance(Duration::from_secs(60));
    }
    if verb == "prune" {
        store.succeed(fence()?).await?;
        clock.advance(Duration::from_secs(90 * 86_400));
    }
    Ok(store)
}

fn verdict(verb: &str) -> Verdict {
    let failure = || Failure::new(FailureCode::WorkerLost, "gone for a while");
    match verb {
        "succeed" => Verdict::Succeed { result: Some(Json::null()) },
        "retry" => Verdict::Retry { failure: failure(), delay: None },
        "fail" => Verdict::Fail { failure: failure() },
        "release" => Verdict::Release { delay: None },
        _ => Verdict::DeadLetter { failure: failure() },
    }
}

async fn run(store: &SqliteStore, verb: &str) -> Result<()> {
    match verb {
        "enqueue" => drop(store.enqueue_one(job(5)?).await?),
        "publish" => drop(store.publish(vec![event(23)?, event(24)?]).await?),
        "claim" => drop(store.claim(request(79)).await?),
        "renew" => {
            let longer = leasehold_core::LeaseLength::from_millis(90_000)?;
            store.renew(RenewRequest::new([fence()?]).lease(longer)).await.map(drop)?;
        }
        "progress" => {
            let report = Progress::new(fence()?, 1).checkpoint(Json::null()).event(event(25)?);
            store.progress_one(report).await?;
        }
        "succeed" | "retry" | "fail" | "release" | "dead letter" => {
            let done = Settlement::new(fence()?, verdict(verb)).event(event(26)?).job(job(6)?);
            store.settle_one(done.checkpoint(Json::null())).await.map(drop)?;
        }
        "reclaim" => drop(store.reclaim(ReclaimRequest::jobs()).await?),
        "prune" => store.prune(PruneRequest::new()).await.map(drop)?,
        "cancel" => {
            let job = JobId::from_uuid(id(4));
            let act = Control::RequestCancel { job, actor: actor()?, reason: None };
            store.control(act).await.map(drop)?;
        }
        "set queue" => {
            let settings = QueueSettings::new().limit(Some(7));
            let act = Control::SetQueue(QueueName::default_queue(), settings);
            store.control(act).await.map(drop)?;
        }
        "bump epoch" => store.control(Control::BumpEpoch { actor: actor()? }).await.map(drop)?,
        "claim events" => {
            let request = EventClaimRequest::new(WorkerId::from_uuid(id(77)));
            drop(store.claim_events(request).await?);
        }
        "find" => drop(store.jobs(JobFilter::default(), Paging::first(9)).await?),
        "stats" => drop(store.stats().await?),
        other => panic!("no verb {other}"),
    }
    Ok(())
}

/// Fails one verb at each step with one code; how many points there were.
async fn sweep(verb: &str, code: i32, kinds: [ErrorKind; 2]) -> Result<u64> {
    let store = prepare(verb).await?;
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
#[test]
fn each_step_that_fails_stores_nothing_and_says_why() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut points = 0;
    for verb in VERBS {
        let mut of_verb = 0;
        for (code, statement, commit) in CODES {
            for code in [code, -code] {
                let swept = runtime.block_on(sweep(verb, code, [statement, commit]));
                of_verb += swept.unwrap_or_else(|error| panic!("{verb} with {code}: {error}"));
            }
        }
        eprintln!("{verb}: {of_verb} points");
        points += of_verb;
    }
    eprintln!("{points} points");
    assert!(points >= 5_000, "{points} points are too few");
}
