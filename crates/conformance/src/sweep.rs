//! Owns the verbs that a sweep breaks off at each of their steps, and where each begins. Refuses to know
//! how a step is broken off, and what may be left of it: that is the engine's own test.

use std::time::Duration;

use leasehold_core::lab::LabStore;
use leasehold_core::{
    Actor, ClaimId, ClaimRequest, ClaimVersion, Control, Epoch, EventClaimRequest, EventId,
    Failure, FailureCode, Fence, IdempotencyKey, JobFilter, JobId, JobKind, Json, LeaseLength,
    NewEvent, NewJob, OnFailure, Once, OrderKey, Ordering, Paging, Progress, PruneRequest, PutBlob,
    QueueName, QueueSettings, ReclaimRequest, RecordId, RenewRequest, RequestHash, Result, Scope,
    Settlement, StoreExt, Timestamp, Topic, Verdict, WorkerId,
};
use uuid::Uuid;

/// The verbs that end where they would have when they are asked for again.
pub const REPEATABLE: [&str; 19] = [
    "enqueue",
    "publish",
    "claim",
    "claim_events",
    "renew",
    "progress",
    "succeed",
    "retry",
    "fail",
    "succeed_parent",
    "fail_parent",
    "release",
    "dead_letter",
    "reclaim",
    "prune",
    "cancel",
    "set_queue",
    "once",
    "put_blob",
];

/// Verbs that do more when they are asked for again, or that only read.
pub const OTHERS: [&str; 3] = ["bump_epoch", "find", "stats"];

/// When the stores of a sweep begin.
pub fn start() -> Timestamp {
    Timestamp::saturating(1_800_000_000_000_000)
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
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

fn worker() -> WorkerId {
    WorkerId::from_uuid(id(77))
}

fn request(claim: u128) -> ClaimRequest {
    let request = ClaimRequest::new(worker(), [QueueName::default_queue()]);
    request.claim_id(ClaimId::from_uuid(id(claim))).repeat()
}

fn fence() -> Result<Fence> {
    let (job, claim) = (JobId::from_uuid(id(1)), ClaimId::from_uuid(id(78)));
    Ok(Fence::from_parts(job, ClaimVersion::new(1)?, claim, worker(), Epoch::default()))
}

fn actor() -> Result<Actor> {
    Actor::new("operator-7")
}

/// One that waits for the first job alone and two behind it, one that waits for a second one too, and
/// one that runs after any end.
fn children() -> Result<Vec<NewJob>> {
    let first = job(1)?.id;
    let row = [job(31)?.after(first, OnFailure::Cancel), job(32)?, job(33)?];
    let mut children = NewJob::chain(row, OnFailure::Cancel);
    children.push(job(34)?.after(first, OnFailure::Cancel).after(job(2)?.id, OnFailure::Wait));
    children.push(job(35)?.after(first, OnFailure::Run));
    Ok(children)
}

/// Brings a fresh store to where a verb begins: three of four jobs claimed, two events waiting.
///
/// # Errors
/// What the store says.
pub async fn prepare(store: &dyn LabStore, verb: &str) -> Result<()> {
    for answer in store.enqueue(vec![job(1)?, job(2)?, job(3)?, job(4)?]).await? {
        let _new = answer?;
    }
    store.publish(vec![event(21)?, event(22)?]).await?;
    assert_eq!(store.claim(request(78).limit(3)).await?.len(), 3);
    if verb.ends_with("_parent") {
        for answer in store.enqueue(children()?).await? {
            let _new = answer?;
        }
    }
    if verb == "prune" {
        store.succeed(fence()?).await?;
    }
    Ok(())
}

/// How long after its beginning a verb runs.
fn later(verb: &str) -> Duration {
    Duration::from_secs(match verb {
        "renew" => 10,
        "reclaim" => 60,
        "prune" => 2 * 86_400,
        _ => 0,
    })
}

fn verdict(verb: &str) -> Verdict {
    let failure = || Failure::new(FailureCode::WorkerLost, "gone for a while");
    match verb {
        "succeed" | "succeed_parent" => Verdict::Succeed { result: Some(Json::null()) },
        "retry" => Verdict::Retry { failure: failure(), delay: None },
        "fail" | "fail_parent" => Verdict::Fail { failure: failure() },
        "release" => Verdict::Release { delay: None },
        _ => Verdict::DeadLetter { failure: failure() },
    }
}

/// Runs a verb; always at the same time, whenever it is asked for.
///
/// # Errors
/// What the store says.
///
/// # Panics
/// At a verb that is in neither list.
pub async fn run(store: &dyn LabStore, verb: &str) -> Result<()> {
    store.clock().expect("a manual clock").set(start().plus(later(verb)));
    match verb {
        "enqueue" => {
            let waits = job(6)?.after(job(1)?.id, OnFailure::Cancel);
            for answer in store.enqueue(vec![job(5)?, waits]).await? {
                let _new = answer?;
            }
        }
        "publish" => drop(store.publish(vec![event(23)?, event(24)?]).await?),
        "claim" => assert_eq!(store.claim(request(79)).await?.len(), 1),
        "claim_events" => {
            let request = EventClaimRequest::new(worker()).claim_id(ClaimId::from_uuid(id(80)));
            assert_eq!(store.claim_events(request.repeat()).await?.len(), 1);
        }
        "renew" => {
            let longer = LeaseLength::from_millis(90_000)?;
            drop(store.renew(RenewRequest::new([fence()?]).lease(longer)).await?);
        }
        "progress" => {
            let report = Progress::new(fence()?, 1).checkpoint(Json::null()).event(event(25)?);
            store.progress_one(report).await?;
        }
        "succeed_parent" | "fail_parent" => {
            let _settled = store.settle_one(Settlement::new(fence()?, verdict(verb))).await?;
        }
        "succeed" | "retry" | "fail" | "release" | "dead_letter" => {
            let done = Settlement::new(fence()?, verdict(verb)).event(event(26)?).job(job(7)?);
            let _settled = store.settle_one(done.checkpoint(Json::null())).await?;
        }
        "reclaim" => drop(store.reclaim(ReclaimRequest::jobs()).await?),
        "prune" => {
            let _pruned = store.prune(PruneRequest::new()).await?;
        }
        "find" => drop(store.jobs(JobFilter::default(), Paging::first(9)).await?),
        "stats" => drop(store.stats().await?),
        _ => return operate(store, verb).await,
    }
    Ok(())
}

/// The verbs of operators, and those of records.
async fn operate(store: &dyn LabStore, verb: &str) -> Result<()> {
    let act = match verb {
        "cancel" => {
            let job = JobId::from_uuid(id(4));
            Control::RequestCancel { job, actor: actor()?, reason: None }
        }
        "set_queue" => {
            let settings = QueueSettings::new().limit(Some(7));
            Control::SetQueue(QueueName::default_queue(), settings)
        }
        "bump_epoch" => Control::BumpEpoch { actor: actor()? },
        "once" => {
            let hash = RequestHash::of_job("pay", "default", &Json::null());
            let key = IdempotencyKey::new("payment-7")?;
            let _said = store.once(Once::new(Scope::global(), key, hash, Json::null())).await?;
            return Ok(());
        }
        "put_blob" => {
            return store.put_blob(PutBlob::new(RecordId::new("files", "a")?, [7; 99])).await;
        }
        other => panic!("no verb {other}"),
    };
    let _done = store.control(act).await?;
    Ok(())
}
