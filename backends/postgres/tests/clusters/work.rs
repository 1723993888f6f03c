//! Owns the small steps of these stories: jobs added, claimed and ended, each asked for until there is an answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use leasehold_core::{
    Claim, ClaimRequest, EventFilter, Fence, Found, JobFilter, JobId, JobKind, Json, LeaseLength,
    NewEvent, NewJob, Paging, QueueName, Result, Settled, Settlement, State, Store, StoreExt,
    Topic, Verdict, WorkerId,
};
use leasehold_postgres::PostgresStore;

/// Asks until there is an answer that asking again does not change: connections die with their server.
pub(crate) async fn answer<T>(ask: impl AsyncFn() -> Result<T>) -> Result<T> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match ask().await {
            Err(error) if error.is_retryable() && Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            told => return told,
        }
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a name")
}

/// Jobs of a queue.
pub(crate) fn jobs_of(name: &str, number: usize) -> Vec<NewJob> {
    let kind = JobKind::new("count").expect("a kind");
    let job = |_| NewJob::new(kind.clone(), Json::null()).queue(queue(name)).max_attempts(100);
    (0..number).map(job).collect()
}

/// Adds jobs; how many of them were new.
pub(crate) async fn add(store: &PostgresStore, jobs: &[NewJob]) -> usize {
    let told = answer(async || store.enqueue(jobs.to_vec()).await).await.expect("an answer");
    told.into_iter().filter(|one| one.as_ref().expect("a job").is_new()).count()
}

/// Claims what a queue has, for longer than any test runs.
pub(crate) async fn claim(store: &PostgresStore, name: &str) -> Vec<Claim> {
    let lease = LeaseLength::from_millis(3_600_000).expect("a lease");
    let request = ClaimRequest::new(WorkerId::new(), [queue(name)]).limit(1_000).lease(lease);
    answer(async || store.claim(request.clone()).await).await.expect("claims")
}

/// Ends a claim well, with an event that names the job.
pub(crate) async fn end(store: &PostgresStore, fence: Fence) -> Result<Settled> {
    let topic = Topic::new("ended").expect("a topic");
    let told = Json::parse(format!("\"{}\"", fence.job())).expect("a value");
    let settlement = Settlement::new(fence, Verdict::Succeed { result: None });
    let settlement = settlement.event(NewEvent::new(topic, told));
    answer(async || store.settle_one(settlement.clone()).await).await
}

/// Ends claims, each of which is the owner.
pub(crate) async fn end_all(store: &PostgresStore, claims: &[Claim]) {
    for claim in claims {
        assert!(!end(store, claim.fence).await.expect("its own claim").repeated);
    }
}

/// The jobs of a state.
pub(crate) async fn jobs_in(store: &PostgresStore, state: State) -> Vec<JobId> {
    let filter = JobFilter::new().state(state);
    let found = answer(async || store.jobs(filter.clone(), Paging::first(1_000)).await);
    found.await.expect("jobs").items.into_iter().map(|job| job.id).collect()
}

/// How many events tell of each job's end.
pub(crate) async fn told_of(store: &PostgresStore) -> BTreeMap<String, usize> {
    let query = || leasehold_core::Query::Events(EventFilter::new(), Paging::first(1_000));
    let found = answer(async || store.find(query()).await).await.expect("events");
    assert!(found.next.is_none(), "more events than one page holds");
    let mut told = BTreeMap::new();
    for found in found.items {
        let Found::Event(event) = found else { panic!("an event") };
        *told.entry(event.payload.as_str().trim_matches('"').to_owned()).or_insert(0) += 1;
    }
    told
}
