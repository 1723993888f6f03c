//! Owns the verbs that a sweep breaks off at each of their steps, and where each begins. Refuses to know
//! how a step is broken off, and what may be left of it: that is the engine's own test.

use std::time::Duration;

use leasehold_core::lab::{Dump, Ending, LabStore, RecordReply, RecordStep, Reply, Step, TABLES};
use leasehold_core::{
    Actor, ClaimId, ClaimRequest, ClaimVersion, Control, Epoch, EventClaimRequest, EventId,
    Failure, FailureCode, Fence, IdempotencyKey, JobFilter, JobId, JobKind, Json, LeaseLength,
    LetterAct, LifecycleName, NewEvent, NewJob, OnFailure, Once, OrderKey, Ordering, Paging,
    Progress, PruneRequest, PutBlob, QueueName, QueueSettings, ReclaimRequest, RecordId,
    RenewRequest, Replay, RequestHash, Result, Scope, Settlement, StoreExt, Timestamp, Topic,
    Verdict, WorkerId,
};
use uuid::Uuid;

/// The verbs that end where they would have when they are asked for again.
pub const REPEATABLE: [&str; 23] = [
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
    "replay",
    "replay_anew",
    "end_replay",
    "note_letter",
    "set_queue",
    "once",
    "put_blob",
];

/// Verbs that do more when they are asked for again, or that only read.
pub const OTHERS: [&str; 3] = ["bump_epoch", "find", "stats"];

/// Verbs in their most common shape, for which an engine may have a way of its own.
pub const COMMON: [&str; 4] = ["put", "take", "end", "end_two"];

/// The verbs that a caller's own transaction can join.
pub const JOINED: [&str; 12] = [
    "enqueue",
    "publish",
    "progress",
    "succeed",
    "retry",
    "fail",
    "succeed_parent",
    "fail_parent",
    "release",
    "dead_letter",
    "once",
    "put_blob",
];

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

/// A job without a key, whose id has a time.
fn plain_job() -> Result<NewJob> {
    let made = u128::from(start().as_micros().unsigned_abs() / 1_000) << 80;
    let mut plain = job(8)?;
    plain.key = None;
    plain.id = JobId::from_uuid(id(made | 7 << 76 | 2 << 62 | 8));
    Ok(plain)
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
    match verb {
        "prune" => {
            let _done = store.succeed(fence()?).await?;
        }
        "replay" | "replay_anew" | "end_replay" | "note_letter" => dead(store, verb).await?,
        "end_two" => assert_eq!(store.claim(request(83)).await?.len(), 1),
        _ => {}
    }
    Ok(())
}

/// One more job that is a dead letter, in a queue of its own; replayed and claimed where its end is next.
async fn dead(store: &dyn LabStore, verb: &str) -> Result<()> {
    let (queue, mut dead) = (QueueName::new("dead")?, job(41)?.queue(QueueName::new("dead")?));
    let mut verdict =
        Verdict::DeadLetter { failure: Failure::new(FailureCode::SchemaInvalid, "broke") };
    if verb != "replay" {
        dead = dead.lifecycle(LifecycleName::new("work_queue")?);
        verdict = Verdict::Fail { failure: Failure::new(FailureCode::SchemaInvalid, "broke") };
    }
    let _new = store.enqueue_one(dead).await?;
    let request = |claim| {
        let request = ClaimRequest::new(worker(), [queue.clone()]);
        request.claim_id(ClaimId::from_uuid(id(claim)))
    };
    let claims = store.claim(request(81)).await?;
    assert_eq!(claims.len(), 1);
    let _dead = store.settle_one(Settlement::new(claims[0].fence, verdict)).await?;
    if verb == "end_replay" {
        let _replayed = store.control(replay()?).await?;
        assert_eq!(store.claim(request(82)).await?.len(), 1);
    }
    Ok(())
}

fn replay() -> Result<Control> {
    let replay = Replay::new(JobId::from_uuid(id(41)), actor()?).note("mended").safe_to_repeat();
    Ok(Control::Replay(Box::new(replay.new_job(JobId::from_uuid(id(42))))))
}

/// The fence of the claim of a replay by a new job.
fn fence_of_replay() -> Result<Fence> {
    let (job, claim) = (JobId::from_uuid(id(42)), ClaimId::from_uuid(id(82)));
    Ok(Fence::from_parts(job, ClaimVersion::new(1)?, claim, worker(), Epoch::default()))
}

/// The fence of the claim of the fourth job.
fn fence_of_last() -> Result<Fence> {
    let (job, claim) = (JobId::from_uuid(id(4)), ClaimId::from_uuid(id(83)));
    Ok(Fence::from_parts(job, ClaimVersion::new(1)?, claim, worker(), Epoch::default()))
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

fn new_jobs() -> Result<Vec<NewJob>> {
    Ok(vec![job(5)?, job(6)?.after(job(1)?.id, OnFailure::Cancel)])
}

fn new_events() -> Result<Vec<NewEvent>> {
    Ok(vec![event(23)?, event(24)?])
}

fn report() -> Result<Progress> {
    Ok(Progress::new(fence()?, 1).checkpoint(Json::null()).event(event(25)?))
}

fn settlement(verb: &str) -> Result<Settlement> {
    let end = Settlement::new(fence()?, verdict(verb));
    if verb.ends_with("_parent") {
        return Ok(end);
    }
    Ok(end.event(event(26)?).job(job(7)?).checkpoint(Json::null()))
}

fn once() -> Result<Once> {
    let hash = RequestHash::of_job("pay", "default", &Json::null());
    Ok(Once::new(Scope::global(), IdempotencyKey::new("payment-7")?, hash, Json::null()))
}

fn blob() -> Result<PutBlob> {
    Ok(PutBlob::new(RecordId::new("files", "a")?, [7; 99]))
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
            for answer in store.enqueue(new_jobs()?).await? {
                let _new = answer?;
            }
        }
        "publish" => drop(store.publish(new_events()?).await?),
        "claim" => assert_eq!(store.claim(request(79)).await?.len(), 1),
        "claim_events" => {
            let request = EventClaimRequest::new(worker()).claim_id(ClaimId::from_uuid(id(80)));
            assert_eq!(store.claim_events(request.repeat()).await?.len(), 1);
        }
        "renew" => {
            let longer = LeaseLength::from_millis(90_000)?;
            drop(store.renew(RenewRequest::new([fence()?]).lease(longer)).await?);
        }
        "progress" => store.progress_one(report()?).await?,
        "succeed_parent" | "fail_parent" | "succeed" | "retry" | "fail" | "release"
        | "dead_letter" => {
            let _settled = store.settle_one(settlement(verb)?).await?;
        }
        "end_replay" => {
            let done = Verdict::Succeed { result: None };
            let _settled = store.settle_one(Settlement::new(fence_of_replay()?, done)).await?;
        }
        "reclaim" => drop(store.reclaim(ReclaimRequest::jobs()).await?),
        "prune" => {
            let _pruned = store.prune(PruneRequest::new()).await?;
        }
        "put" => {
            let _new = store.enqueue_one(plain_job()?).await?;
        }
        "take" => {
            let request = ClaimRequest::new(worker(), [QueueName::default_queue()]);
            assert_eq!(store.claim(request.claim_id(ClaimId::from_uuid(id(79)))).await?.len(), 1);
        }
        "end" => end(store, &[fence()?]).await?,
        "end_two" => end(store, &[fence()?, fence_of_last()?]).await?,
        "find" => drop(store.jobs(JobFilter::default(), Paging::first(9)).await?),
        "stats" => drop(store.stats().await?),
        _ => return operate(store, verb).await,
    }
    Ok(())
}

/// Settles in one call jobs that are done, and leave nothing.
async fn end(store: &dyn LabStore, fences: &[Fence]) -> Result<()> {
    let done = |fence: &Fence| Settlement::new(*fence, Verdict::Succeed { result: None });
    for answer in store.settle(fences.iter().map(done).collect()).await? {
        let _settled = answer?;
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
        "replay" | "replay_anew" => replay()?,
        "note_letter" => {
            let job = JobId::from_uuid(id(41));
            let note = "by hand".to_owned();
            Control::NoteLetter { act: LetterAct::Resolve, job, actor: actor()?, note }
        }
        "set_queue" => {
            let settings = QueueSettings::new().limit(Some(7));
            Control::SetQueue(QueueName::default_queue(), settings)
        }
        "bump_epoch" => Control::BumpEpoch { actor: actor()? },
        "once" => return store.once(once()?).await.map(|_| ()),
        "put_blob" => return store.put_blob(blob()?).await,
        other => panic!("no verb {other}"),
    };
    let _done = store.control(act).await?;
    Ok(())
}

/// Runs a verb inside a caller's transaction, behind a row of the caller's own, which commits whatever
/// the verb says.
///
/// # Errors
/// What the verb says, or else what the commit says.
///
/// # Panics
/// At a verb that cannot be joined.
pub async fn run_joined(store: &dyn LabStore, verb: &str) -> Result<()> {
    store.clock().expect("a manual clock").set(start().plus(later(verb)));
    let step = match verb {
        "enqueue" => Step::Enqueue(new_jobs()?),
        "publish" => Step::Publish(new_events()?),
        "progress" => Step::Progress(vec![report()?]),
        "once" => Step::Once(once()?),
        "put_blob" => Step::Record(RecordStep::PutBlob(blob()?)),
        verb if JOINED.contains(&verb) => Step::Settle(vec![settlement(verb)?]),
        other => panic!("no joined verb {other}"),
    };
    let script = vec![Step::OwnRow(verb.to_owned()), step];
    match store.play(script, Ending::Commit).await?.pop() {
        Some(Reply::Enqueue(answers)) => answers?.into_iter().try_for_each(|it| it.map(|_| ())),
        Some(Reply::Publish(answers)) => answers.map(|_| ()),
        Some(Reply::Progress(answers)) => answers?.into_iter().collect(),
        Some(Reply::Settle(answers)) => answers?.into_iter().try_for_each(|it| it.map(|_| ())),
        Some(Reply::Once(answer)) => answer.map(|_| ()),
        Some(Reply::Record(RecordReply::PutBlob(answer))) => answer,
        other => panic!("another verb's answer: {other:?}"),
    }
}

/// The rows of a dump, without the ids that a store draws anew for its audit.
pub fn rows(dump: &Dump) -> Vec<String> {
    let mut rows = Vec::new();
    for table in TABLES {
        for row in dump.cells(table) {
            let cells = row.iter().filter(|(name, _)| table != "audit" || *name != "id");
            let cells: Vec<String> = cells.map(|(name, cell)| format!("{name}={cell}")).collect();
            rows.push(format!("{table}: {}", cells.join(" ")));
        }
    }
    rows.sort_unstable();
    rows
}
