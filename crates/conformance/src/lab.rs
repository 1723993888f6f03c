//! Owns the words scenarios are written in: a store, its clock, and jobs in known positions.
//! Refuses to know any rule; it only sets the stage.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::lab::{Dump, LabStore, ManualClock};
use leasehold_core::{
    Claim, ClaimRequest, Error, ErrorKind, EventClaim, EventClaimRequest, Failure, FailureCode,
    JobId, JobKind, JobView, Json, LostReason, NewEvent, NewJob, QueueName, Result, StoreExt,
    Topic, WorkerId,
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

pub(crate) fn json(number: i64) -> Json {
    Json::parse(format!("{{\"number\":{number}}}")).expect("JSON")
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
