//! The store on the machine's clock, and the orders it keeps beside its rows.

use std::time::Duration;

use super::MemoryStore;
use super::order::Orders;
use crate::{
    Actor, Claim, ClaimRequest, Control, ErrorKind, EventClaim, EventClaimRequest, EventSettlement,
    EventVerdict, Failure, FailureCode, HintKind, IdempotencyKey, JobFilter, JobId, JobKind, Json,
    Limits, Listener, NewEvent, NewJob, Once, OrderKey, Ordering, Paging, Query, QueueName,
    QueueSettings, Records, Remembered, RequestHash, Scope, Settlement, State, Store, StoreExt,
    Topic, Verdict, WorkerId,
};

pub(super) fn job() -> NewJob {
    NewJob::new(JobKind::new("resize").unwrap(), Json::parse(r#"{"image":7}"#).unwrap())
}

pub(super) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(super) fn actor() -> Actor {
    Actor::new("operator").unwrap()
}

pub(super) fn failure() -> Failure {
    Failure::new(FailureCode::NetworkTimeout, "no answer")
}

pub(super) async fn add(store: &MemoryStore, job: NewJob) -> JobId {
    store.enqueue_one(job).await.unwrap().job()
}

pub(super) async fn take(store: &MemoryStore, limit: usize) -> Vec<Claim> {
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    store.claim(request.limit(limit)).await.unwrap()
}

/// The orders follow from the rows, whatever has happened to them.
pub(super) fn assert_orders_follow_rows(store: &MemoryStore) {
    let state = store.lock();
    assert_eq!(state.orders, Orders::of(&state));
}

fn event(topic: &str, key: &str) -> NewEvent {
    let topic = Topic::new(topic).unwrap();
    let key = Ordering::Key(OrderKey::new(key).unwrap());
    NewEvent::new(topic, Json::null()).ordering(key)
}

async fn take_events(store: &MemoryStore, limit: usize) -> Vec<EventClaim> {
    store.claim_events(EventClaimRequest::new(WorkerId::new()).limit(limit)).await.unwrap()
}

/// Whether a hint has come since the last look.
async fn heard(listener: &mut Listener) -> bool {
    tokio::select! {
        biased;
        () = listener.heard() => true,
        () = std::future::ready(()) => false,
    }
}

#[tokio::test]
async fn clones_share_their_rows_and_stores_do_not() {
    let (store, other) = (MemoryStore::new(), MemoryStore::new());
    let id = add(&store.clone(), job()).await;
    assert_eq!(store.job(id).await.unwrap().unwrap().state, State::Waiting);
    assert!(other.job(id).await.unwrap().is_none());
}

#[tokio::test]
async fn clock_goes_on_and_never_back() {
    let store = MemoryStore::new();
    let first = store.stats().await.unwrap().now;
    let mut last = first;
    for _ in 0..100_000 {
        let now = store.stats().await.unwrap().now;
        assert!(now >= last);
        last = now;
    }
    assert!(last > first);
}

/// Proves: PAR-4
#[tokio::test]
async fn own_limits_hold_and_leave_nothing() {
    let limits = Limits { payload_bytes_max: 12, batch_max: 2, ..Limits::default() };
    let store = MemoryStore::with_limits(limits);
    let fits = add(&store, job()).await;

    let large = NewJob::new(JobKind::new("resize").unwrap(), Json::parse("[1234567890]").unwrap());
    assert!(store.enqueue_one(large).await.unwrap().is_new(), "12 bytes are allowed");
    let larger =
        NewJob::new(JobKind::new("resize").unwrap(), Json::parse("[12345678901]").unwrap());
    let refused = store.enqueue(vec![job(), larger]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let refused = store.enqueue(vec![job(), job(), job()]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);

    let all = store.jobs(JobFilter::new(), Paging::default()).await.unwrap().items;
    assert_eq!((all.len(), all[0].id), (2, fits));
}

#[tokio::test]
async fn id_from_another_day_is_refused() {
    let store = MemoryStore::new();
    let old = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse().unwrap();
    let refused = store.enqueue_one(job().id(old)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(store.job(old).await.unwrap().is_none());
}

/// Proves: WQ-3
#[tokio::test]
async fn queues_are_filled_from_in_order_and_paused_ones_passed_over() {
    let store = MemoryStore::new();
    for (name, priority) in [("a", 0), ("a", 5), ("b", 9), ("c", 100)] {
        add(&store, job().queue(queue(name)).priority(priority)).await;
    }
    add(&store, job().queue(queue("b")).delay(Duration::from_secs(60))).await;
    store.control(Control::Pause(queue("c"))).await.unwrap();

    let request = ClaimRequest::new(WorkerId::new(), ["c", "b", "a", "b", "none"].map(queue));
    let claims = store.claim(request.limit(10)).await.unwrap();
    let taken: Vec<_> =
        claims.iter().map(|it| (it.job.queue.as_str().to_owned(), it.job.priority)).collect();
    assert_eq!(taken, [("b".to_owned(), 9), ("a".to_owned(), 5), ("a".to_owned(), 0)]);
    assert_orders_follow_rows(&store);
}

/// Proves: WQ-9
#[tokio::test]
async fn limits_of_store_and_queue_count_what_this_call_took() {
    let store = MemoryStore::new();
    for name in ["a", "a", "a", "b", "b", "b"] {
        add(&store, job().queue(queue(name))).await;
    }
    let two = QueueSettings::new().limit(Some(2));
    store.control(Control::SetQueue(queue("a"), two)).await.unwrap();
    store.control(Control::SetStoreLimit(Some(3))).await.unwrap();

    let request = || ClaimRequest::new(WorkerId::new(), ["a", "b"].map(queue)).limit(6);
    let claims = store.claim(request()).await.unwrap();
    let taken: Vec<&str> = claims.iter().map(|it| it.job.queue.as_str()).collect();
    assert_eq!(taken, ["a", "a", "b"]);
    assert!(store.claim(request()).await.unwrap().is_empty());

    store.succeed(claims[2].fence).await.unwrap();
    let next = store.claim(request()).await.unwrap();
    assert_eq!(next.iter().map(|it| it.job.queue.as_str()).collect::<Vec<_>>(), ["b"]);
}

/// Proves: GLO-2, WQ-3
#[tokio::test]
async fn repeated_claim_gives_what_the_first_one_took() {
    let store = MemoryStore::new();
    store.enqueue(vec![job(), job(), job()]).await.unwrap();
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(2);
    let first = store.claim(request.clone()).await.unwrap();
    let again = store.claim(request.clone().repeat()).await.unwrap();
    let fences = |claims: &[Claim]| claims.iter().map(|it| it.fence).collect::<Vec<_>>();
    assert_eq!(fences(&first), fences(&again));
    let more = store.claim(request.limit(3).repeat()).await.unwrap();
    assert_eq!(fences(&more)[..2], fences(&first)[..]);
    assert_eq!(more.len(), 3);
}

/// Proves: TX-9
#[tokio::test]
async fn events_go_out_one_by_one_under_each_key() {
    let store = MemoryStore::new();
    let events = ["a", "b", "a"].map(|key| event("done", key));
    let numbers = store.publish(events.to_vec()).await.unwrap();
    assert_eq!(numbers.iter().map(|it| it.sequence).collect::<Vec<_>>(), [1, 1, 2].map(Some));

    let first = take_events(&store, 10).await;
    let ids: Vec<_> = first.iter().map(|it| it.fence.event()).collect();
    assert_eq!(ids, [events[0].id, events[1].id]);
    assert!(take_events(&store, 10).await.is_empty(), "the second of its key waits");
    assert_orders_follow_rows(&store);

    let give_up = EventVerdict::DeadLetter { failure: failure() };
    store.settle_event(EventSettlement::new(first[0].fence, give_up)).await.unwrap();
    let next = take_events(&store, 10).await;
    assert_eq!(next[0].fence.event(), events[2].id);
    assert_orders_follow_rows(&store);

    // Back before its successor, which is out already; a release puts the successor behind it.
    store.control(Control::ReplayEvent { event: ids[0], actor: actor() }).await.unwrap();
    let release = EventVerdict::Release { delay: None };
    store.settle_event(EventSettlement::new(next[0].fence, release)).await.unwrap();
    let again = take_events(&store, 10).await;
    assert_eq!(again.iter().map(|it| it.fence.event()).collect::<Vec<_>>(), [events[0].id]);
    assert_orders_follow_rows(&store);
}

/// Proves: TX-9
#[tokio::test]
async fn topic_without_order_gives_all_at_once() {
    let store = MemoryStore::new();
    let topic = Topic::new("done").unwrap();
    store.control(Control::SetTopic { topic, ordered: false }).await.unwrap();
    let events = [event("done", "a"), event("done", "a"), event("kept", "a")];
    store.publish(events.to_vec()).await.unwrap();
    // The ordered one waits for no event of a topic that does without order.
    assert_eq!(take_events(&store, 10).await.len(), 3);
    assert_orders_follow_rows(&store);
}

#[tokio::test]
async fn wake_ups_follow_only_what_is_news() {
    let store = MemoryStore::new();
    let mut jobs = store.hints().listen(HintKind::Jobs);
    let mut events = store.hints().listen(HintKind::Events);
    let later = job().delay(Duration::from_secs(60));
    add(&store, later.clone()).await;
    store.enqueue_one(job().max_attempts(0)).await.unwrap_err();
    assert!(!heard(&mut jobs).await, "neither is due");

    add(&store, job()).await;
    assert!(heard(&mut jobs).await);
    assert!(!heard(&mut events).await);

    let claim = take(&store, 1).await.remove(0);
    assert!(!heard(&mut jobs).await);
    let settlement = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    store.settle_one(settlement.event(event("done", "a"))).await.unwrap();
    assert!(heard(&mut events).await);
    assert!(!heard(&mut jobs).await);
}

/// Proves: IDM-2
#[tokio::test]
async fn answer_is_given_once() {
    let store = MemoryStore::new();
    let key = IdempotencyKey::new("order-7").unwrap();
    let once = |body: &str, answer: &str| {
        let hash = RequestHash::of_http("POST", "/orders", &Json::parse(body).unwrap());
        Once::new(Scope::global(), key.clone(), hash, Json::parse(answer).unwrap())
    };
    assert_eq!(store.once(once("1", "\"a\"")).await.unwrap(), Remembered::New);
    let stored = store.once(once("1", "\"b\"")).await.unwrap();
    assert_eq!(stored, Remembered::Stored(Json::parse("\"a\"").unwrap()));
    assert_eq!(store.once(once("2", "\"b\"")).await.unwrap_err().kind(), ErrorKind::Conflict);
}

/// Proves: QUE-6
#[tokio::test]
async fn next_page_is_named_only_when_there_is_one() {
    let store = MemoryStore::new();
    let ids = (0..4).map(|_| job()).collect::<Vec<_>>();
    store.enqueue(ids.clone()).await.unwrap();
    let page = store.jobs(JobFilter::new(), Paging::first(2)).await.unwrap();
    let rest = Paging::first(2).after(page.next.unwrap());
    let rest = store.jobs(JobFilter::new(), rest).await.unwrap();
    assert!(rest.next.is_none(), "a full last page has none after it");
    let found: Vec<JobId> = page.items.iter().chain(&rest.items).map(|it| it.id).collect();
    let mut expected: Vec<JobId> = ids.iter().map(|it| it.id).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);

    let too_large = store.find(Query::Jobs(JobFilter::new(), Paging::first(1_001))).await;
    assert_eq!(too_large.unwrap_err().kind(), ErrorKind::Invalid);
}

/// Proves: WQ-8, WQ-10
#[tokio::test]
async fn every_way_out_of_a_claim_keeps_the_orders() {
    let store = MemoryStore::new();
    let (long, none) = (Duration::from_secs(60), None);
    let verdicts = [
        Verdict::Succeed { result: None },
        Verdict::Retry { failure: failure(), delay: Some(long) },
        Verdict::Retry { failure: failure(), delay: none },
        Verdict::Snooze { delay: long },
        Verdict::Release { delay: none },
        Verdict::Fail { failure: failure() },
        Verdict::DeadLetter { failure: failure() },
        Verdict::Cancel { reason: None },
    ];
    for verdict in verdicts {
        add(&store, job().priority(7)).await;
        let claim = take(&store, 1).await.remove(0);
        assert_orders_follow_rows(&store);
        store.settle_one(Settlement::new(claim.fence, verdict.clone())).await.unwrap();
        assert_orders_follow_rows(&store);
        let row = store.job(claim.fence.job()).await.unwrap().unwrap();
        assert!(row.claim_version >= claim.fence.version(), "{verdict:?}");
        assert_eq!((row.last_verdict, row.worker), (Some(verdict.kind()), None));
        let act = Control::RequestCancel { job: row.id, actor: actor(), reason: None };
        let done = store.control(act).await;
        assert_eq!(done.is_ok(), matches!(row.state, State::Waiting | State::Cancelled));
        assert_orders_follow_rows(&store);
    }
    assert!(take(&store, 10).await.is_empty());
}
