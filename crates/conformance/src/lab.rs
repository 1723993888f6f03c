//! Owns the words scenarios are written in: a store, its clock, and jobs in known positions.
//! Refuses to know any rule; it only sets the stage.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::lab::{Dump, LabStore, ManualClock};
use leasehold_core::{
    Actor, Claim, ClaimRequest, Control, Controlled, DeadLetterView, Error, ErrorKind, EventClaim,
    EventClaimRequest, EventFence, EventFilter, EventSettlement, EventVerdict, EventView, Failure,
    FailureCode, Fence, Found, IdempotencyKey, JobId, JobKind, JobView, Json, JsonLimits,
    Lifecycle, LostReason, NewEvent, NewJob, Paging, ParentCounts, PartitionName, Query, QueueName,
    QueueSettings, Result, Settled, Settlement, StoreExt, Topic, Verdict, WorkerId,
};

/// A fresh store and its clock; every verb of the store is the lab's too.
#[derive(Debug)]
pub struct Lab {
    store: Arc<dyn LabStore>,
    clock: ManualClock,
}

impl Deref for Lab {
    type Target = dyn LabStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl Lab {
    pub(crate) fn new(store: Arc<dyn LabStore>) -> Result<Self> {
        let missing = || Error::new(ErrorKind::Invalid, "conformance", "the clock is not manual");
        let clock = store.clock().ok_or_else(missing)?;
        Ok(Self { store, clock })
    }

    /// The store, for what takes one.
    pub(crate) fn store(&self) -> &dyn leasehold_core::Store {
        &*self.store
    }

    /// Moves the store's clock on by whole seconds.
    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Enqueues a job and answers with its id.
    pub(crate) async fn add(&self, job: NewJob) -> Result<JobId> {
        Ok(self.enqueue_one(job).await?.job())
    }

    /// Claims up to `limit` jobs of the default queue.
    pub(crate) async fn take(&self, limit: usize) -> Result<Vec<Claim>> {
        self.claim(request(WorkerId::new()).limit(limit)).await
    }

    /// Claims the one job that is due.
    pub(crate) async fn take_one(&self) -> Result<Claim> {
        self.take_by(WorkerId::new()).await
    }

    /// Claims the one job that is due, for a worker.
    pub(crate) async fn take_by(&self, worker: WorkerId) -> Result<Claim> {
        let mut claims = self.claim(request(worker)).await?;
        assert_eq!(claims.len(), 1, "exactly one job is due");
        Ok(claims.remove(0))
    }

    /// Enqueues one job and claims it.
    pub(crate) async fn claimed(&self) -> Result<Claim> {
        self.add(job(1)).await?;
        self.take_one().await
    }

    /// Claims up to `limit` events of every topic.
    pub(crate) async fn take_events(&self, limit: usize) -> Result<Vec<EventClaim>> {
        self.claim_events(EventClaimRequest::new(WorkerId::new()).limit(limit)).await
    }

    /// Claims the one event that is due.
    pub(crate) async fn take_event(&self) -> Result<EventClaim> {
        let mut claims = self.take_events(9).await?;
        assert_eq!(claims.len(), 1, "exactly one event is due");
        Ok(claims.remove(0))
    }

    /// Ends a claim by a verdict.
    pub(crate) async fn end(&self, fence: Fence, verdict: Verdict) -> Result<Settled> {
        self.settle_one(Settlement::new(fence, verdict)).await
    }

    /// Ends a delivery by a verdict.
    pub(crate) async fn end_event(&self, fence: EventFence, verdict: EventVerdict) -> Result<()> {
        self.settle_event(EventSettlement::new(fence, verdict)).await
    }

    /// Calls a job off.
    pub(crate) async fn cancel(&self, job: JobId) -> Result<Controlled> {
        let reason = Some("the customer left".to_owned());
        self.control(Control::RequestCancel { job, actor: actor(), reason }).await
    }

    /// Takes a failed job back to waiting.
    pub(crate) async fn reopen(&self, job: JobId) -> Result<Controlled> {
        self.control(Control::Retry { job, actor: actor() }).await
    }

    /// Changes the settings of the default queue.
    pub(crate) async fn set(&self, settings: QueueSettings) -> Result<Controlled> {
        self.control(Control::SetQueue(QueueName::default_queue(), settings)).await
    }

    /// The events that a filter lets through, as a reader sees them.
    pub(crate) async fn events(&self, filter: EventFilter) -> Result<Vec<EventView>> {
        let page = self.find(Query::Events(filter, Paging::first(100))).await?;
        let items = page.items.into_iter().map(|found| match found {
            Found::Event(event) => *event,
            other => panic!("not an event: {other:?}"),
        });
        Ok(items.collect())
    }

    /// How many of a job's parents are where.
    pub(crate) async fn parent_counts(&self, id: JobId) -> Result<ParentCounts> {
        match self.find(Query::ParentCounts(id)).await?.items.pop() {
            Some(Found::ParentCounts(counts)) => Ok(counts),
            other => panic!("not counts: {other:?}"),
        }
    }

    /// The dead letters of every queue.
    pub(crate) async fn letters(&self) -> Result<Vec<DeadLetterView>> {
        let page = self.find(Query::DeadLetters(None, Paging::first(100))).await?;
        let items = page.items.into_iter().map(|found| match found {
            Found::DeadLetter(letter) => *letter,
            other => panic!("not a dead letter: {other:?}"),
        });
        Ok(items.collect())
    }

    /// The job as a reader sees it.
    pub(crate) async fn row(&self, id: JobId) -> Result<JobView> {
        let missing = || Error::new(ErrorKind::NotFound, "conformance", format!("no job {id}"));
        self.job(id).await?.ok_or_else(missing)
    }

    /// Fails unless the store is as it was.
    pub(crate) async fn assert_unchanged(&self, before: &Dump) -> Result<()> {
        let changes = before.difference(&self.dump().await?);
        assert!(changes.is_empty(), "the store changed:\n{changes}");
        Ok(())
    }
}

/// A request for one job of the default queue.
pub(crate) fn request(worker: WorkerId) -> ClaimRequest {
    ClaimRequest::new(worker, [QueueName::default_queue()])
}

/// A job whose payload carries a number.
pub(crate) fn job(number: i64) -> NewJob {
    let kind = JobKind::new("resize").expect("a kind");
    NewJob::new(kind, json(number))
}

/// An event whose payload carries a number.
pub(crate) fn event(number: i64) -> NewEvent {
    NewEvent::new(Topic::new("mail").expect("a topic"), json(number))
}

/// A JSON text of this many bytes, over any limit of its own.
pub(crate) fn json_of(bytes: usize) -> Json {
    let limits = JsonLimits { bytes_max: usize::MAX, ..JsonLimits::default() };
    Json::parse_with(format!("\"{}\"", "x".repeat(bytes - 2)), &limits).expect("JSON")
}

pub(crate) fn json(number: i64) -> Json {
    Json::parse(format!("{{\"number\":{number}}}")).expect("JSON")
}

/// A filter for events, with what `set` sets.
pub(crate) fn events_with(set: impl FnOnce(&mut EventFilter)) -> EventFilter {
    let mut filter = EventFilter::default();
    set(&mut filter);
    filter
}

/// Seconds as a duration.
pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a queue")
}

/// A job of a partition.
pub(crate) fn job_in(partition: &str, number: i64) -> NewJob {
    job(number).partition(PartitionName::new(partition).expect("a partition"))
}

/// The partitions of claims, in their order; `-` for none.
pub(crate) fn partitions(claims: &[Claim]) -> Vec<String> {
    let name =
        |claim: &Claim| claim.job.partition.as_ref().map_or("-", PartitionName::as_str).into();
    claims.iter().map(name).collect()
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).expect("a key")
}

pub(crate) fn actor() -> Actor {
    Actor::new("operator-7").expect("an actor")
}

/// A job of a lifecycle.
pub(crate) fn job_of(lifecycle: &Lifecycle) -> NewJob {
    job(1).lifecycle(lifecycle.name().clone())
}

/// A verdict that asks for another attempt after some seconds.
pub(crate) fn retry(after: u64) -> Verdict {
    Verdict::Retry { failure: passing(), delay: Some(seconds(after)) }
}

/// A failure that will fail again.
pub(crate) fn lasting() -> Failure {
    Failure::new(FailureCode::SchemaInvalid, "no width")
}

/// A failure of the program itself.
pub(crate) fn bug() -> Failure {
    Failure::new(FailureCode::InvariantBroken, "two and two are five")
}

/// Fails unless the answer is an error of this kind.
pub(crate) fn assert_refused<T: std::fmt::Debug>(answer: Result<T>, kind: ErrorKind) {
    let error = answer.expect_err("a refusal");
    assert_eq!(error.kind(), kind, "{error}");
}

/// A failure that may be tried again.
pub(crate) fn passing() -> Failure {
    Failure::new(FailureCode::WorkerLost, "gone for a while")
}

/// Fails unless the answer is a lost fence of this reason.
pub(crate) fn assert_lost<T: std::fmt::Debug>(answer: Result<T>, reason: LostReason) {
    let error = answer.expect_err("a lost fence");
    assert_eq!(error.lost_reason(), Some(reason), "{error}");
}
