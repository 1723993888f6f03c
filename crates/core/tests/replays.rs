//! Replays by the batch before a store that is not always there: what is sent again, what ends the run, and what
//! the report says of it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test fails"
)]

use std::sync::Mutex;

use async_trait::async_trait;
use leasehold_core::listing::{listed, page_past};
use leasehold_core::query::{Cursor, Found, Page, Paging, Query};
use leasehold_core::{
    Actor, Claim, ClaimRequest, Control, Controlled, Enqueued, Error, ErrorKind, EventClaim,
    EventClaimRequest, EventFence, EventSettlement, Failure, FailureCode, Hints, JobId, JobKind,
    Json, LetterFilter, MemoryStore, NewEvent, NewJob, Progress, PruneRequest, Pruned, Published,
    QueueName, ReclaimRequest, Reclaimed, Records, RenewRequest, Renewal, ReplayBatch,
    ReplayOutcome, Result, Settled, Settlement, Stats, StatsScope, Store, StoreExt, Verdict,
    WorkerId,
};

/// How an answer goes astray.
#[derive(Clone, Copy, Debug)]
enum Astray {
    /// The store does nothing and says so.
    Refused(ErrorKind),
    /// The store does it, and nobody hears of it.
    Lost,
}

/// A store whose acts go astray in a set order, and then no more; each page of letters ends in a damaged one.
#[derive(Debug)]
struct Unsteady {
    store: MemoryStore,
    astray: Mutex<Vec<Astray>>,
    damaged: bool,
}

#[async_trait]
impl Store for Unsteady {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Result<Enqueued>>> {
        self.store.enqueue(jobs).await
    }
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
        self.store.claim(request).await
    }
    async fn renew(&self, request: RenewRequest) -> Result<Vec<Renewal>> {
        self.store.renew(request).await
    }
    async fn progress(&self, reports: Vec<Progress>) -> Result<Vec<Result<()>>> {
        self.store.progress(reports).await
    }
    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Result<Settled>>> {
        self.store.settle(settlements).await
    }
    async fn reclaim(&self, request: ReclaimRequest) -> Result<Reclaimed> {
        self.store.reclaim(request).await
    }
    async fn publish(&self, events: Vec<NewEvent>) -> Result<Vec<Published>> {
        self.store.publish(events).await
    }
    async fn claim_events(&self, request: EventClaimRequest) -> Result<Vec<EventClaim>> {
        self.store.claim_events(request).await
    }
    async fn renew_events(&self, request: RenewRequest<EventFence>) -> Result<Vec<Renewal>> {
        self.store.renew_events(request).await
    }
    async fn settle_events(&self, settlements: Vec<EventSettlement>) -> Result<Vec<Result<()>>> {
        self.store.settle_events(settlements).await
    }
    async fn control(&self, act: Control) -> Result<Controlled> {
        let astray = self.astray.lock().expect("no panic").pop();
        match astray {
            None => self.store.control(act).await,
            Some(Astray::Refused(kind)) => Err(Error::new(kind, "replay", "not now")),
            Some(Astray::Lost) => {
                self.store.control(act).await?;
                Err(Error::new(ErrorKind::OutcomeUnknown, "replay", "the line went dead"))
            }
        }
    }
    async fn find(&self, query: Query) -> Result<Page<Found>> {
        let mut page = self.store.find(query).await?;
        if self.damaged {
            let damage = Error::new(ErrorKind::Corrupt, "find", "no letter");
            let place = || Ok(Cursor { id: JobId::new().as_uuid(), sequence: 1 });
            let row = listed::<()>(Err(damage), place)?;
            let all = Paging::first(1);
            let cursor = |(): &()| Cursor { id: JobId::new().as_uuid(), sequence: 0 };
            let wrap = |()| -> Found { unreachable!("it cannot be read") };
            page.items.extend(page_past(vec![row], &all, cursor, wrap).items);
        }
        Ok(page)
    }
    async fn look(&self, scope: StatsScope) -> Result<Stats> {
        self.store.look(scope).await
    }
    async fn prune(&self, request: PruneRequest) -> Result<Pruned> {
        self.store.prune(request).await
    }
    fn hints(&self) -> Hints {
        self.store.hints()
    }
    fn records(&self) -> &dyn Records {
        self.store.records()
    }
}

/// A store with three dead letters, of these jobs.
async fn dead() -> (Unsteady, Vec<JobId>) {
    let store = MemoryStore::new();
    for _ in 0..3 {
        let new = NewJob::new(JobKind::new("resize").expect("a kind"), Json::null());
        let _new = store.enqueue_one(new).await.expect("enqueued");
    }
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(3);
    for claim in store.claim(request).await.expect("claimed") {
        let failure = Failure::new(FailureCode::SchemaInvalid, "no width");
        let verdict = Verdict::DeadLetter { failure };
        store.settle_one(Settlement::new(claim.fence, verdict)).await.expect("settled");
    }
    let planned = batch().dry_run().all(&store).await.expect("planned");
    let ids = planned.rows.iter().map(|row| row.job).collect();
    (Unsteady { store, astray: Mutex::new(Vec::new()), damaged: false }, ids)
}

fn batch() -> ReplayBatch {
    let actor = Actor::new("operator-7").expect("an actor");
    ReplayBatch::new(LetterFilter::new(), actor).note("mended").safe_to_repeat()
}

/// Proves: DL-3, GLO-2
#[tokio::test]
async fn what_may_have_been_done_is_asked_again_and_done_once() {
    let (store, ids) = dead().await;
    // The last of them comes first.
    let astray = [Astray::Lost, Astray::Refused(ErrorKind::Busy)];
    *store.astray.lock().expect("no panic") = astray.to_vec();
    let done = batch().all(&store).await.expect("the first page");
    assert!(done.stopped.is_none() && done.next.is_none(), "{done:?}");
    assert_eq!(done.rows.iter().map(|row| row.job).collect::<Vec<_>>(), ids);
    assert!(matches!(done.rows[0].outcome, ReplayOutcome::Repeated(job) if job == ids[0]));
    for row in &done.rows[1..] {
        assert!(matches!(row.outcome, ReplayOutcome::Replayed(job) if job == row.job), "{row:?}");
    }
}

/// Proves: DL-3, ERR-1
#[tokio::test]
async fn a_run_that_is_stopped_says_why_and_where_to_go_on() {
    let (store, ids) = dead().await;
    // One letter goes through, the next meets a store that is not there, however often it asks.
    let first = batch().size(1).page(&store, None).await.expect("a page");
    assert_eq!((first.rows[0].job, first.next.is_some()), (ids[0], true));
    *store.astray.lock().expect("no panic") = vec![Astray::Refused(ErrorKind::Corrupt)];
    let next = batch().size(1).page(&store, first.next).await.expect("a page");
    assert_eq!(next.stopped.map(|error| error.kind()), Some(ErrorKind::Corrupt));
    assert_eq!((next.rows.len(), next.next), (0, first.next), "nothing was seen to yet");
    let rest = batch().page(&store, next.next).await.expect("a page");
    assert_eq!(rest.rows.iter().map(|row| row.job).collect::<Vec<_>>(), ids[1..]);
}

/// Proves: DL-3, GLO-1
#[tokio::test]
async fn a_letter_that_cannot_be_read_holds_up_no_other() {
    let (mut store, ids) = dead().await;
    store.damaged = true;
    let done = batch().all(&store).await.expect("a page");
    assert_eq!(done.rows.iter().map(|row| row.job).collect::<Vec<_>>(), ids);
    assert!(done.stopped.is_none());
}
