//! Each rule, broken by hand in a view that keeps all others.

use leasehold::memory::MemoryStore;
use leasehold::{
    ClaimRequest, Failure, FailureCode, JobKind, JobView, Json, LetterFilter, NewEvent, NewJob,
    Ordering, Paging, QueueName, Settlement, StoreExt, Timestamp, Topic, Verdict, WorkerId,
};

use super::*;

async fn life(store: &MemoryStore, verdict: Option<Verdict>) -> JobView {
    let job = NewJob::new(JobKind::new("k").unwrap(), Json::parse("1").unwrap());
    let id = store.enqueue_one(job).await.unwrap().job();
    if let Some(verdict) = verdict {
        let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
        let claim = store.claim(request).await.unwrap().pop().unwrap();
        store.settle_one(Settlement::new(claim.fence, verdict)).await.unwrap();
    }
    store.job(id).await.unwrap().unwrap()
}

fn fail() -> Verdict {
    Verdict::DeadLetter { failure: Failure::new(FailureCode::SchemaInvalid, "no") }
}

/// Proves: GLO-1
#[tokio::test]
async fn each_rule_of_a_job_is_told_when_it_is_broken() {
    let store = MemoryStore::new();
    let done = life(&store, Some(Verdict::Succeed { result: None })).await;
    assert_eq!(job::alone(&done), [""; 0]);
    type Break = fn(&mut JobView);
    let breaks: [(Break, &str); 9] = [
        (|job| job.finished_at = None, "an end against its state"),
        (|job| job.lease_expires_at = Some(job.created_at), "a lease against its state"),
        (|job| job.worker = Some(WorkerId::new()), "a worker holds it, or not, against its state"),
        (|job| job.max_attempts = 0, "a budget of no attempts"),
        (|job| job.executions = 2, "begun more often than claimed"),
        (|job| job.attempts = 2, "more attempts than executions"),
        (|job| job.blocked = true, "waits for others, but does not wait"),
        (|job| job.started_at = Some(Timestamp::MIN), "begun before it was made"),
        (|job| job.updated_at = Timestamp::MIN, "changed before it was made"),
    ];
    for (change, wanted) in breaks {
        let mut broken = done.clone();
        change(&mut broken);
        let said = job::alone(&broken);
        assert!(said.iter().any(|why| why == wanted), "{wanted}: {said:?}");
    }
}

/// Proves: GLO-1
#[tokio::test]
async fn each_rule_of_an_event_and_of_a_letter_is_told_when_it_is_broken() {
    let store = MemoryStore::new();
    let dead = life(&store, Some(fail())).await;
    let topic = Topic::new("t").unwrap();
    let event = NewEvent::new(topic, Json::parse("1").unwrap()).ordering(Ordering::Job(dead.id));
    store.publish_one(event).await.unwrap();
    let query = Query::Events(EventFilter::new(), Paging::first(9));
    let Some(Found::Event(seen)) = store.find(query).await.unwrap().items.pop() else {
        panic!("no event")
    };
    assert_eq!(event::alone(&seen), [""; 0]);
    let mut broken = seen.clone();
    (broken.sequence, broken.attempts) = (None, 3);
    assert_eq!(event::alone(&broken), ["tried more often than claimed", "a place in no order"]);
    let query = Query::Letters(LetterFilter::new(), Paging::first(9));
    let Some(Found::DeadLetter(seen)) = store.find(query).await.unwrap().items.pop() else {
        panic!("no letter")
    };
    assert_eq!(letter::alone(&seen), [""; 0]);
    let mut broken = seen.clone();
    broken.state = leasehold::LetterState::Replaying;
    assert_eq!(letter::alone(&broken), ["replayed by no job"]);
    broken.replay_job = Some(dead.id);
    broken.note = None;
    assert_eq!(letter::alone(&broken), ["replayed, and nobody says why"]);
}

/// Proves: GLO-1
#[tokio::test]
async fn a_store_that_keeps_its_rules_passes_at_every_stage_of_a_job() {
    let store = MemoryStore::new();
    let failure = Failure::new(FailureCode::NetworkTimeout, "later");
    let retry = Verdict::Retry { failure, delay: None };
    for verdict in [
        None,
        Some(Verdict::Succeed { result: None }),
        Some(fail()),
        Some(retry),
        Some(Verdict::Cancel { reason: None }),
        Some(Verdict::Release { delay: None }),
        Some(Verdict::Snooze { delay: std::time::Duration::from_secs(60) }),
    ] {
        life(&store, verdict).await;
    }
    let store: Arc<dyn Store> = Arc::new(store);
    let (_, broken) = check(&store, Scope { quick: false, most: 10 }).await.unwrap();
    assert_eq!(broken, 0);
}
