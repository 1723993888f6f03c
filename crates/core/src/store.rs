//! Owns the seam every engine implements: the verbs, each exactly one transaction. No capability
//! flags, no optional verbs: a store does all of it, and the conformance suite says whether it does.

use std::fmt;

use async_trait::async_trait;

use crate::claim::{Claim, ClaimRequest, ReclaimRequest, Reclaimed, RenewRequest, Renewal};
use crate::control::{Control, Controlled};
use crate::error::{Error, ErrorKind, Result};
use crate::event::{EventClaim, EventClaimRequest, EventSettlement, NewEvent, Published};
use crate::fence::{EventFence, Fence};
use crate::hints::Hints;
use crate::id::JobId;
use crate::job::{Enqueued, NewJob};
use crate::query::{Found, JobFilter, JobView, Page, Paging, Query};
use crate::record::Records;
use crate::settle::{Progress, Settled, Settlement, Verdict};
use crate::upkeep::{PruneRequest, Pruned, Stats, StatsScope};

/// A durable job store with a transactional outbox; every verb is exactly one transaction.
///
/// Batches answer per item where one bad item must not fail the others. Answers stand in the order
/// of the items.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Adds jobs; a known id or key answers with the job that has it.
    ///
    /// All or nothing for invalid input and engine errors; a key or id that another request holds
    /// is that item's `Conflict`, and the others are enqueued.
    ///
    /// # Errors
    /// `Invalid` naming the item and the rule; `NotFound` for a lifecycle that is not registered;
    /// `Busy`, `Unavailable`, `StorageFull`, `OutcomeUnknown` from the engine.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Result<Enqueued>>>;

    /// Takes due jobs: larger priority first, then `run_at`, then id; never more than the limit.
    ///
    /// # Errors
    /// `Invalid` for an empty list of queues or a limit out of range; engine errors.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>>;

    /// Holds claims longer; each fence is answered by itself.
    ///
    /// # Errors
    /// Engine errors only.
    async fn renew(&self, request: RenewRequest) -> Result<Vec<Renewal>>;

    /// Stores checkpoints, goes on to stages, publishes events; the leases stay as they are.
    ///
    /// A repeat of a report already stored is `Ok` and writes nothing.
    ///
    /// # Errors
    /// Engine errors; per item `FenceLost`, `IllegalTransition`, `Invalid`.
    async fn progress(&self, reports: Vec<Progress>) -> Result<Vec<Result<()>>>;

    /// Ends claims; verdict, events and follow-on jobs land together or not at all.
    ///
    /// A repeat of the same verdict by the same claim is `Ok` and writes nothing.
    ///
    /// # Errors
    /// Engine errors; per item `FenceLost`, `IllegalTransition`, `Invalid`, `Conflict`.
    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Result<Settled>>>;

    /// Takes expired leases back; safe with many at once.
    ///
    /// # Errors
    /// Engine errors only.
    async fn reclaim(&self, request: ReclaimRequest) -> Result<Reclaimed>;

    /// Adds events to the outbox; a known id answers with the event that has it.
    ///
    /// # Errors
    /// `Invalid` naming the item and the rule; `NotFound` for an ordering job that does not exist;
    /// `Conflict` for an id that carries another payload; engine errors. All or nothing.
    async fn publish(&self, events: Vec<NewEvent>) -> Result<Vec<Published>>;

    /// Takes due events, the first undelivered one of each ordering key only.
    ///
    /// # Errors
    /// `Invalid` for a limit out of range; engine errors.
    async fn claim_events(&self, request: EventClaimRequest) -> Result<Vec<EventClaim>>;

    /// Holds event claims longer; each fence is answered by itself.
    ///
    /// # Errors
    /// Engine errors only.
    async fn renew_events(&self, request: RenewRequest<EventFence>) -> Result<Vec<Renewal>>;

    /// Ends deliveries; a repeat of the same verdict by the same claim is `Ok` and writes nothing.
    ///
    /// # Errors
    /// Engine errors; per item `FenceLost`.
    async fn settle_events(&self, settlements: Vec<EventSettlement>) -> Result<Vec<Result<()>>>;

    /// Does one act of control.
    ///
    /// # Errors
    /// `NotFound`, `IllegalTransition`, `Invalid`, `Conflict` (another definition under a
    /// registered lifecycle's name and revision); engine errors.
    async fn control(&self, act: Control) -> Result<Controlled>;

    /// Reads a page.
    ///
    /// # Errors
    /// `Invalid` for a page size out of range; engine errors.
    async fn find(&self, query: Query) -> Result<Page<Found>>;

    /// Tells the store's state, and counts as much as the scope asks for.
    ///
    /// # Errors
    /// Engine errors only.
    async fn look(&self, scope: StatsScope) -> Result<Stats>;

    /// Counts what is where, what has ended too: [`look`](Store::look) with [`StatsScope::All`]. It takes longer
    /// the more ended rows there are; who looks every few seconds asks for less.
    ///
    /// # Errors
    /// Engine errors only.
    async fn stats(&self) -> Result<Stats> {
        self.look(StatsScope::All).await
    }

    /// Lets go of what has ended long enough ago; live rows are never touched.
    ///
    /// A job goes with its request, outcome, transitions and dead letters and leaves a tombstone;
    /// its key stays.
    ///
    /// # Errors
    /// `Invalid` for a limit out of range; engine errors.
    async fn prune(&self, request: PruneRequest) -> Result<Pruned>;

    /// The hub of this store's wake-ups.
    fn hints(&self) -> Hints;

    /// How many connections the verbs share; `None` where a call waits for no connection.
    fn connections(&self) -> Option<usize> {
        None
    }

    /// What else a service keeps in the same database.
    fn records(&self) -> &dyn Records;
}

/// Short forms of the verbs, for one item at a time.
#[async_trait]
pub trait StoreExt: Store {
    /// Adds one job.
    ///
    /// # Errors
    /// As [`Store::enqueue`]; a key or id that another request holds is `Conflict`.
    async fn enqueue_one(&self, job: NewJob) -> Result<Enqueued> {
        first("enqueue", self.enqueue(vec![job]).await?)?
    }

    /// Settles one claim.
    ///
    /// # Errors
    /// As [`Store::settle`], per item.
    async fn settle_one(&self, settlement: Settlement) -> Result<Settled> {
        first("settle", self.settle(vec![settlement]).await?)?
    }

    /// Ends one claim well.
    ///
    /// # Errors
    /// As [`Store::settle`], per item.
    async fn succeed(&self, fence: Fence) -> Result<Settled> {
        self.settle_one(Settlement::new(fence, Verdict::Succeed { result: None })).await
    }

    /// Stores one report of progress.
    ///
    /// # Errors
    /// As [`Store::progress`], per item.
    async fn progress_one(&self, report: Progress) -> Result<()> {
        first("progress", self.progress(vec![report]).await?)?
    }

    /// Renews one claim.
    ///
    /// # Errors
    /// Engine errors only.
    async fn renew_one(&self, fence: Fence) -> Result<Renewal> {
        first("renew", self.renew(RenewRequest::new([fence])).await?)
    }

    /// Publishes one event.
    ///
    /// # Errors
    /// As [`Store::publish`].
    async fn publish_one(&self, event: NewEvent) -> Result<Published> {
        first("publish", self.publish(vec![event]).await?)
    }

    /// Ends one delivery.
    ///
    /// # Errors
    /// As [`Store::settle_events`], per item.
    async fn settle_event(&self, settlement: EventSettlement) -> Result<()> {
        first("settle", self.settle_events(vec![settlement]).await?)?
    }

    /// Reads one job; `None` when there is none of that id.
    ///
    /// # Errors
    /// Engine errors only.
    async fn job(&self, id: JobId) -> Result<Option<JobView>> {
        let filter = JobFilter { id: Some(id), ..JobFilter::default() };
        Ok(self.jobs(filter, Paging::first(1)).await?.items.pop())
    }

    /// Lists jobs.
    ///
    /// # Errors
    /// As [`Store::find`].
    async fn jobs(&self, filter: JobFilter, paging: Paging) -> Result<Page<JobView>> {
        let page = self.find(Query::Jobs(filter, paging)).await?;
        let items = page.items.into_iter().filter_map(|found| match found {
            Found::Job(job) => Some(*job),
            _ => None,
        });
        Ok(Page::from_parts(items.collect(), page.next))
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

fn first<T>(operation: &'static str, answers: Vec<T>) -> Result<T> {
    let none = || Error::new(ErrorKind::Corrupt, operation, "the store gave no answer");
    answers.into_iter().next().ok_or_else(none)
}
