//! Owns the check that no statement does more work when the tables have grown: every verb is run on a
//! small and on a large database, and each statement's steps, full scans and sorts are read off its
//! own counters. `LEASEHOLD_PLAN_ROWS` sets the size: so many waiting, ended and future-dated jobs each.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

use std::collections::BTreeMap;

use leasehold_core::{
    Actor, ClaimRequest, Control, EventClaimRequest, EventFilter, EventId, EventSettlement,
    EventState, EventVerdict, Failure, FailureCode, IdempotencyKey, JobFilter, JobId, JobKind,
    Json, NewEvent, NewJob, OrderKey, Ordering, Paging, Progress, PruneRequest, Query, QueueName,
    QueueSettings, Rate, ReclaimRequest, RenewRequest, Result, Settlement, StartRate, State, Store,
    Topic, Verdict, WorkerId,
};
use leasehold_sqlite::rusqlite::{StatementStatus, Transaction};
use leasehold_sqlite::{SqliteStore, open};

#[path = "growth/book.rs"]
mod book;

const ROWS_SMALL: usize = 5_000;
const ROWS_LARGE: usize = 100_000;

/// Statements that count everything there is: each reads an index and no table.
const COUNTS: [&str; 4] = ["stats_waiting", "stats_ended", "stats_outbox", "stats_delivered"];
/// Statements that sort a few rows: what is leased, which nothing but the workers' slots bounds, or the
/// events of one ordering key, or the jobs about one subject.
const SORTS: [&str; 7] = [
    "claim_again",
    "event_claim_again",
    "expired_jobs",
    "expired_jobs_all",
    "expired_events",
    "find_events_of",
    "find_jobs_about",
];
/// What one statement cost in all its runs.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    runs: i32,
    steps: i32,
    scanned: i32,
    sorts: i32,
}

impl Cost {
    fn each(self) -> i32 {
        self.steps / self.runs.max(1)
    }
}

type Costs = BTreeMap<String, Cost>;

/// Every statement of the crate by its file's name.
fn statements() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql");
    let files = std::fs::read_dir(folder).expect("the statements");
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("a statement"))
    };
    let all = files.map(|file| read(file.expect("a file").path()));
    all.filter(|(name, _)| !name.starts_with("migrate_") && !name.starts_with("lab_")).collect()
}

async fn on_writer<T: Send + 'static>(
    store: &SqliteStore,
    run: impl Fn(&Transaction<'_>) -> T + Send + 'static,
) -> T {
    store.transaction(move |tx| Ok(run(tx))).await.expect("a transaction")
}

/// A database in memory, where reads too are made on the one connection, whose cached statements count.
async fn loaded(rows: usize, analysed: bool) -> SqliteStore {
    let store = open(":memory:").await.expect("new");
    let jobs = include_str!("growth/jobs.sql").replace("ROWS", &rows.to_string());
    on_writer(&store, move |tx| {
        tx.execute_batch(&jobs).expect("jobs");
        tx.execute_batch(include_str!("growth/around.sql")).expect("what surrounds them");
        if analysed {
            tx.execute_batch("analyze").expect("analysed");
        }
        for (_, text) in statements() {
            count(tx, &text, true);
        }
    })
    .await;
    store
}

/// What a cached statement has cost.
fn count(tx: &Transaction<'_>, text: &str, anew: bool) -> Cost {
    let statement = tx.prepare_cached(text).expect("a statement");
    let get =
        |status| if anew { statement.reset_status(status) } else { statement.get_status(status) };
    Cost {
        runs: get(StatementStatus::Run),
        steps: get(StatementStatus::VmStep),
        scanned: get(StatementStatus::FullscanStep),
        sorts: get(StatementStatus::Sort),
    }
}

async fn costs(store: &SqliteStore) -> Costs {
    let look = |tx: &Transaction<'_>| {
        statements().into_iter().map(|(name, text)| (name, count(tx, &text, false))).collect()
    };
    on_writer(store, look).await
}

fn queue() -> QueueName {
    QueueName::default_queue()
}

fn id(number: usize) -> JobId {
    let text = format!("{number:016}");
    JobId::from_uuid(uuid::Uuid::from_slice(text.as_bytes()).expect("16 bytes"))
}

fn jobs(from: usize) -> Result<Vec<NewJob>> {
    let job = |number| {
        let job = NewJob::new(JobKind::new("resize")?, Json::parse(format!("{{\"n\":{number}}}"))?);
        Ok(job.key(IdempotencyKey::new(format!("new {number}"))?).subject("invoice", 1))
    };
    (from..from + 10).map(job).collect()
}

fn event(key: bool) -> Result<NewEvent> {
    let event = NewEvent::new(Topic::new("mail")?, Json::null());
    let order = Ordering::Key(OrderKey::new("customer")?);
    Ok(if key { event.ordering(order) } else { event })
}

/// The claim path: enqueue, claim under limits and without, renew, report, settle in every way.
async fn work(store: &SqliteStore) -> Result<()> {
    let new = jobs(0)?;
    for answer in store.enqueue(new.clone()).await?.into_iter().chain(store.enqueue(new).await?) {
        let _new = answer?;
    }
    let request = ClaimRequest::new(WorkerId::new(), [queue()]).limit(10).repeat();
    let claims = store.claim(request.clone()).await?;
    assert_eq!(store.claim(request).await?.len(), claims.len());
    let set = QueueSettings::new().limit(Some(1_000)).log(Some(true));
    store.control(Control::SetQueue(queue(), set)).await?;
    store.control(Control::SetStoreLimit(Some(1_000))).await?;
    let logged = jobs(200)?;
    let cancel = cancel(logged.first().map(|job| job.id).expect("a job"))?;
    for answer in store.enqueue(logged).await? {
        let _new = answer?;
    }
    store.control(cancel).await?;
    let request = ClaimRequest::new(WorkerId::new(), [queue(), QueueName::new("mail")?]).limit(10);
    let more = store.claim(request).await?;
    assert_eq!((claims.len(), more.len()), (10, 10));
    store.renew(RenewRequest::new(claims.iter().map(|claim| claim.fence))).await?;
    let report = |claim: &leasehold_core::Claim| Progress::new(claim.fence, 1);
    for answer in store.progress(claims.iter().map(report).collect()).await? {
        answer?;
    }
    let failure = || Failure::new(FailureCode::WorkerLost, "gone");
    let verdict = |at| match at % 5 {
        0 => Verdict::Retry { failure: failure(), delay: None },
        1 => Verdict::Fail { failure: failure() },
        2 => Verdict::DeadLetter { failure: failure() },
        3 => Verdict::Cancel { reason: None },
        _ => Verdict::Succeed { result: Some(Json::null()) },
    };
    let mut ends = Vec::new();
    for (at, claim) in claims.iter().chain(&more).enumerate() {
        let end = Settlement::new(claim.fence, verdict(at)).event(event(at == 4)?);
        ends.push(if at == 9 { end.job(jobs(100)?.remove(0)) } else { end });
    }
    for answer in store.settle(ends).await? {
        answer?;
    }
    Ok(())
}

fn cancel(job: JobId) -> Result<Control> {
    Ok(Control::RequestCancel { job, actor: Actor::new("operator")?, reason: Some("no".into()) })
}

/// Jobs of a thousand partitions and of none, with every limit: by heads, by shares, below what is later.
async fn take_turns(store: &SqliteStore) -> Result<()> {
    let name = QueueName::new("shared")?;
    let asked = |limit| ClaimRequest::new(WorkerId::new(), [name.clone()]).limit(limit);
    store.control(Control::SetStoreLimit(None)).await?;
    assert_eq!(store.claim(asked(40)).await?.len(), 40);
    let rate = StartRate::new(Rate::per_hour(1), 2)?;
    let set = QueueSettings::new().partition_limit(Some(3)).partition_rate(Some(rate));
    store.control(Control::SetQueue(name.clone(), set)).await?;
    assert_eq!(store.claim(asked(1_500)).await?.len(), 1_500);
    assert_eq!(store.claim(asked(20)).await?.len(), 20);
    let rate = StartRate::new(Rate::per_hour(1), 3)?;
    let set = QueueSettings::new().partition_rate(Some(rate));
    store.control(Control::SetQueue(name, set)).await.map(|_| ())
}

async fn outbox(store: &SqliteStore) -> Result<()> {
    store.publish(vec![event(true)?, event(true)?, event(false)?]).await?;
    for topics in [None, Some(Topic::new("chat")?), Some(Topic::new("none")?)] {
        let request = EventClaimRequest::new(WorkerId::new()).limit(10).repeat();
        let request = match topics {
            Some(topic) => request.topics([topic]),
            None => request,
        };
        let claims = store.claim_events(request).await?;
        store.renew_events(RenewRequest::new(claims.iter().map(|claim| claim.fence))).await?;
        let done = claims.iter().map(|it| EventSettlement::new(it.fence, EventVerdict::Delivered));
        for answer in store.settle_events(done.collect()).await? {
            answer?;
        }
    }
    Ok(())
}

async fn operate(store: &SqliteStore) -> Result<()> {
    let actor = Actor::new("operator")?;
    assert_eq!(store.reclaim(ReclaimRequest::jobs().limit(5)).await?.total(), 5);
    let print = ReclaimRequest::queues([QueueName::new("print")?]).limit(5);
    assert_eq!(store.reclaim(print).await?.total(), 5);
    store.reclaim(ReclaimRequest::events()).await?;
    store.control(Control::Pause(QueueName::new("print")?)).await?;
    store.control(Control::Resume(QueueName::new("print")?)).await?;
    store.control(cancel(id(300))?).await?;
    let (topic, worker) = (Topic::new("mail")?, WorkerId::new());
    store.control(Control::SetTopic { topic, ordered: true }).await?;
    store.control(Control::Introduce { worker, name: "one".to_owned() }).await?;
    let _ended = store.control(Control::Retry { job: id(679), actor: actor.clone() }).await;
    let event = EventId::from_uuid(id(606).as_uuid());
    store.control(Control::ReplayEvent { event, actor }).await?;
    for _ in 0..2 {
        assert!(store.prune(PruneRequest::new().limit(20)).await?.total() > 60);
    }
    store.stats().await?;
    Ok(())
}

/// Every filter, alone and together, from the first page and from the middle.
async fn look(store: &SqliteStore, rows: usize) -> Result<()> {
    let any = JobFilter::new;
    let kind = || JobKind::new("render").expect("a kind");
    let mut filters = vec![
        any(),
        any().id(id(300)),
        any().key((leasehold_core::Scope::global(), IdempotencyKey::new("new 1")?)),
        any().queue(queue()),
        any().kind(kind()),
        any().queue(queue()).kind(kind()),
        any().kind(JobKind::new("none")?),
        any().subject("invoice"),
    ];
    for state in State::ALL {
        filters.extend([any().state(state), any().state(state).queue(queue())]);
        filters.push(any().state(state).queue(queue()).kind(kind()));
    }
    for after in [0, rows * 3 / 2] {
        let cursor = leasehold_core::Cursor { id: id(after).as_uuid(), sequence: 0 };
        let paging = || Paging::first(20).after(cursor);
        for filter in &filters {
            store.find(Query::Jobs(filter.clone(), paging())).await?;
        }
        for filter in event_filters()? {
            store.find(Query::Events(filter, paging())).await?;
        }
        store.find(Query::DeadLetters(None, paging())).await?;
        store.find(Query::DeadLetters(Some(queue()), paging())).await?;
    }
    store.find(Query::Transitions(id(300), Paging::first(20))).await?;
    store.find(Query::Queues).await?;
    Ok(())
}

fn event_filters() -> Result<Vec<EventFilter>> {
    let any = EventFilter::new;
    let (chat, key) = (Topic::new("chat")?, Ordering::Key(OrderKey::new("customer")?));
    let mut filters = vec![any(), any().topic(chat.clone()), any().ordering(key)];
    filters.push(any().id(EventId::from_uuid(id(300).as_uuid())));
    for state in EventState::ALL {
        filters.extend([any().state(state), any().state(state).topic(chat.clone())]);
    }
    Ok(filters)
}

async fn measured(rows: usize, analysed: bool) -> (SqliteStore, Costs) {
    let store = loaded(rows, analysed).await;
    let run = async {
        work(&store).await?;
        take_turns(&store).await?;
        outbox(&store).await?;
        operate(&store).await?;
        look(&store, rows).await
    };
    run.await.expect("every verb");
    let costs = costs(&store).await;
    for name in ["claim", "insert_job", "expired_jobs", "lock_jobs", "write_job"] {
        let cost = costs.get(name).copied().unwrap_or_default();
        assert!(cost.runs > 0, "{name} was run, and has left the cache of statements");
    }
    (store, costs)
}

/// Proves: WQ-3, QUE-6
#[tokio::test(flavor = "multi_thread")]
async fn no_statement_costs_more_when_the_tables_have_grown() {
    let asked = std::env::var("LEASEHOLD_PLAN_ROWS").ok();
    let rows = asked.map_or(ROWS_LARGE, |rows| rows.parse().expect("a number of rows"));
    for analysed in [false, true] {
        let (_, small) = measured(ROWS_SMALL, analysed).await;
        let (store, large) = measured(rows, analysed).await;
        if analysed {
            book::write_if_wanted(&store, rows, &small, &large).await;
        }
        let mut unfit = Vec::new();
        for (name, cost) in &large {
            let before = small.get(name).copied().unwrap_or_default();
            let counts = COUNTS.contains(&name.as_str());
            let grown =
                cost.each() > before.each() * 5 / 4 + 40 || cost.runs > before.runs * 5 / 4 + 5;
            // Tables of a handful of rows and lists of parameters are read whole.
            if !counts && (grown || cost.scanned > before.scanned + 40) {
                unfit.push(format!("{name}: {before:?} became {cost:?}"));
            }
            if cost.sorts > 0 && !SORTS.contains(&name.as_str()) && !counts {
                unfit.push(format!("{name} sorts: {cost:?}"));
            }
        }
        let ran = large.values().filter(|cost| cost.runs > 0).count();
        let idle: Vec<_> = large.iter().filter(|(_, cost)| cost.runs == 0).map(|it| it.0).collect();
        assert!(ran > 55, "only {ran} statements were run; idle: {idle:?}");
        assert!(unfit.is_empty(), "analysed {analysed}\n{}\nidle: {idle:?}", unfit.join("\n"));
    }
}
