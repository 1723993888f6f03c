//! Owns the end of a process at each storage step of a verb in turn: what is left is all of the verb
//! or nothing, and the verb asked again ends where it would have. The child is this program again.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use leasehold_core::lab::{Dump, LabStore};
use leasehold_core::{
    ClaimId, ClaimRequest, ClaimVersion, Epoch, EventId, Failure, FailureCode, Fence,
    IdempotencyKey, JobId, JobKind, Json, NewEvent, NewJob, OrderKey, Ordering, PruneRequest,
    QueueName, ReclaimRequest, RenewRequest, Result, Settlement, Store, StoreExt, Timestamp, Topic,
    Verdict, WorkerId, failpoint,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, NoTls};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

const VERBS: [&str; 8] =
    ["enqueue", "claim", "renew", "succeed", "retry", "reclaim", "publish", "prune"];
const CHILD: &str = "LEASEHOLD_CRASH_CHILD";

fn server() -> Option<String> {
    std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok()
}

/// Opens the child's or the parent's store; `anew` makes the schema fresh.
async fn open(schema: &str, anew: bool) -> Result<PostgresStore> {
    let server = format!("{}&pool_size=2", server().expect("a server"));
    if anew {
        let child = format!("{server}&application_name={schema}");
        return PostgresStore::lab(&child, schema, Some(start())).await;
    }
    PostgresStore::lab_again(&server, schema, Some(start())).await
}

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
    Ok(event.id(EventId::from_uuid(id(number))))
}

fn request() -> ClaimRequest {
    let worker = WorkerId::from_uuid(id(77));
    let claim = ClaimId::from_uuid(id(78));
    ClaimRequest::new(worker, [QueueName::default_queue()]).claim_id(claim).limit(2).repeat()
}

fn fence() -> Result<Fence> {
    let (job, claim) = (JobId::from_uuid(id(1)), ClaimId::from_uuid(id(78)));
    Ok(Fence::from_parts(job, ClaimVersion::new(1)?, claim, request().worker, Epoch::default()))
}

fn success() -> Result<Settlement> {
    let verdict = Verdict::Succeed { result: Some(Json::null()) };
    let done = Settlement::new(fence()?, verdict).event(event(4)?).job(job(5)?);
    Ok(done.checkpoint(Json::null()))
}

/// Brings a fresh store to where the verb begins.
async fn prepare(store: &PostgresStore, verb: &str) -> Result<()> {
    if matches!(verb, "enqueue" | "publish") {
        return Ok(());
    }
    for answer in store.enqueue(vec![job(1)?, job(2)?, job(3)?]).await? {
        let _new = answer?;
    }
    if verb != "claim" {
        assert_eq!(store.claim(request()).await?.len(), 2);
    }
    if verb == "prune" {
        store.settle_one(success()?).await?;
    }
    Ok(())
}

async fn run(store: &PostgresStore, verb: &str) -> Result<()> {
    let clock = store.clock().expect("a manual clock");
    match verb {
        "enqueue" => {
            for answer in store.enqueue(vec![job(1)?, job(2)?]).await? {
                let _new = answer?;
            }
        }
        "claim" => assert_eq!(store.claim(request()).await?.len(), 2),
        "renew" => {
            clock.set(start().plus(Duration::from_secs(10)));
            store.renew(RenewRequest::new([fence()?])).await?;
        }
        "succeed" => {
            store.settle_one(success()?).await?;
        }
        "retry" => {
            let failure = Failure::new(FailureCode::WorkerLost, "gone for a while");
            let verdict = Verdict::Retry { failure, delay: None };
            store.settle_one(Settlement::new(fence()?, verdict)).await?;
        }
        "reclaim" => {
            clock.set(start().plus(Duration::from_secs(60)));
            store.reclaim(ReclaimRequest::jobs()).await?;
        }
        "publish" => {
            let key = Ordering::Key(OrderKey::new("customer")?);
            let events = vec![event(1)?.ordering(key.clone()), event(2)?.ordering(key)];
            store.publish(events).await?;
        }
        "prune" => {
            clock.set(start().plus(Duration::from_secs(2 * 86_400)));
            store.prune(PruneRequest::new()).await?;
        }
        other => panic!("no verb {other}"),
    }
    Ok(())
}

/// The child: prepares, arms the hook, runs the verb.
fn child(task: &str) -> Result<()> {
    let [schema, number, verb] = task.splitn(3, '|').collect::<Vec<_>>()[..] else {
        panic!("a task is schema, number, verb: {task}")
    };
    runtime().block_on(async {
        let store = open(schema, true).await?;
        prepare(&store, verb).await?;
        failpoint::arm(number.parse().expect("a number"));
        run(&store, verb).await
    })
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

async fn session() -> Client {
    let server = server().expect("a server");
    let (client, connection) =
        leasehold_postgres::tokio_postgres::connect(&server, NoTls).await.expect("a session");
    tokio::spawn(connection);
    client
}

/// Waits until the server has noticed that a child's sessions are gone, and rolled them back.
async fn until_gone(watcher: &Client, child: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    let text = "select count(*) from pg_stat_activity where application_name = $1";
    while watcher.query_one(text, &[&child]).await.expect("counted").get::<_, i64>(0) > 0 {
        assert!(Instant::now() < end, "the sessions of {child} stay");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The store before the verb and after it, where nothing crashes.
async fn clean(verb: &str) -> Result<(Dump, Dump)> {
    let store = open(&format!("crash_clean_{verb}_{}", std::process::id()), true).await?;
    prepare(&store, verb).await?;
    let before = store.dump().await?;
    run(&store, verb).await?;
    Ok((before, store.dump().await?))
}

/// Proves: WQ-11, GLO-2, TX-1
fn ended_at_each_step_it_is_all_or_nothing(verb: &'static str) -> Result<()> {
    let runtime = runtime();
    let (before, after) = runtime.block_on(clean(verb))?;
    assert!(!before.difference(&after).is_empty(), "{verb} changes nothing");
    let program = std::env::current_exe().expect("this program");
    let schema = format!("crash_{verb}_{}", std::process::id());
    let watcher = runtime.block_on(session());
    let (mut nothing, mut whole) = (0, 0);
    for step in 1..500 {
        let task = format!("{schema}|{step}|{verb}");
        let status = Command::new(&program).env(CHILD, task).stderr(Stdio::null()).status();
        let survived = status.expect("a child").success();
        runtime.block_on(async {
            until_gone(&watcher, &schema).await;
            let store = open(&schema, false).await?;
            let found = store.dump().await?;
            let (undone, done) = (found.difference(&before), found.difference(&after));
            assert!(done.is_empty() || (undone.is_empty() && !survived), "{verb} {step}:\n{done}");
            if !survived && done.is_empty() {
                whole += 1;
            } else if !survived {
                nothing += 1;
            }
            run(&store, verb).await?;
            let again = store.dump().await?.difference(&after);
            assert!(again.is_empty(), "{verb} asked again after a crash at {step}:\n{again}");
            Ok::<_, leasehold_core::Error>(())
        })?;
        if survived {
            let met = format!("{verb} was met undone {nothing} times and done {whole} times");
            assert!(nothing > 6 && whole > 0, "{met}");
            return Ok(());
        }
    }
    panic!("{verb} never ends");
}

fn main() {
    if let Ok(task) = std::env::var(CHILD) {
        child(&task).expect("a survivor's verb");
        return;
    }
    let absent = server().is_none();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let trials = VERBS.map(|verb| {
        let name = format!("ended_at_each_step_it_is_all_or_nothing::{verb}");
        let crash = move || {
            if absent {
                return Err(Failed::from("LEASEHOLD_TEST_POSTGRES_URL names no server"));
            }
            ended_at_each_step_it_is_all_or_nothing(verb).map_err(Failed::from)
        };
        Trial::test(name, crash).with_ignored_flag(absent && !required)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}
