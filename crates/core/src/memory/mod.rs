//! Owns the in-memory store: every verb by the same rules as the engines, nothing kept after the
//! process. For users' own tests, and the plainest thing that passes the conformance suite.
//!
//! ```
//! use leasehold_core::memory::MemoryStore;
//! use leasehold_core::{ClaimRequest, JobKind, Json, NewJob, QueueName, Store, StoreExt, WorkerId};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = MemoryStore::new();
//! let job = NewJob::new(JobKind::new("resize")?, Json::parse("{}")?);
//! assert!(store.enqueue_one(job).await?.is_new());
//!
//! let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
//! let claim = store.claim(request).await?.pop().unwrap();
//! store.succeed(claim.fence).await?;
//! # Ok::<(), leasehold_core::Error>(())
//! # }).unwrap();
//! ```

mod claim;
mod clock;
mod control;
mod deliver;
mod find;
#[cfg(feature = "lab")]
mod lab;
mod letters;
mod order;
mod records;
mod state;
#[cfg(test)]
mod tests;
mod turns;
mod upkeep;
mod verbs;
mod waits;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use self::clock::Clock;
use self::state::{Facts, State};
use crate::claim::{Claim, ClaimRequest, ReclaimRequest, Reclaimed, RenewRequest, Renewal};
use crate::control::{Control, Controlled};
use crate::error::Result;
use crate::event::{EventClaim, EventClaimRequest, EventSettlement, NewEvent, Published};
use crate::fence::EventFence;
use crate::hints::{HintKind, Hints};
use crate::job::{Enqueued, Limits, NewJob};
use crate::query::{Found, Page, Query};
use crate::record::Records;
use crate::rules::Ids;
use crate::settle::{Progress, Settled, Settlement};
use crate::store::Store;
use crate::upkeep::{PruneRequest, Pruned, Stats, StatsScope};

/// A store that lives in this process's memory; clones share it.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    clock: Clock,
    limits: Limits,
    ids: Ids,
    hints: Hints,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store with the documented limits.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// An empty store with limits of its own.
    pub fn with_limits(limits: Limits) -> Self {
        Self::assemble(Clock::machine(), limits, Ids::random())
    }

    fn assemble(clock: Clock, limits: Limits, ids: Ids) -> Self {
        let (state, hints) = (Mutex::new(State::new()), Hints::new());
        Self { inner: Arc::new(Inner { state, clock, limits, ids, hints }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic leaves no half-written state: verbs decide first and write last.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn facts(&self) -> Facts<'_> {
        let Inner { clock, limits, ids, hints, .. } = &*self.inner;
        Facts { now: clock.now(), limits, ids, hints }
    }

    /// Runs one verb as one transaction and sends the wake-ups it is due.
    fn verb<T>(&self, act: impl FnOnce(&mut State, &Facts<'_>) -> Result<T>) -> Result<T> {
        let mut state = self.lock();
        let done = act(&mut state, &self.facts());
        let news = std::mem::take(&mut state.news);
        drop(state);
        if done.is_ok() {
            for kind in [HintKind::Jobs, HintKind::Events] {
                if news.contains(&kind) {
                    self.inner.hints.send(kind);
                }
            }
        }
        done
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Result<Enqueued>>> {
        self.verb(|state, facts| state.enqueue(facts, &jobs))
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
        self.verb(|state, facts| state.claim(facts, &request))
    }

    async fn renew(&self, request: RenewRequest) -> Result<Vec<Renewal>> {
        self.verb(|state, facts| state.renew(facts, &request))
    }

    async fn progress(&self, reports: Vec<Progress>) -> Result<Vec<Result<()>>> {
        self.verb(|state, facts| state.progress(facts, &reports))
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Result<Settled>>> {
        self.verb(|state, facts| state.settle(facts, &settlements))
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<Reclaimed> {
        self.verb(|state, facts| state.reclaim(facts, &request))
    }

    async fn publish(&self, events: Vec<NewEvent>) -> Result<Vec<Published>> {
        self.verb(|state, facts| state.publish(facts, &events))
    }

    async fn claim_events(&self, request: EventClaimRequest) -> Result<Vec<EventClaim>> {
        self.verb(|state, facts| state.claim_events(facts, &request))
    }

    async fn renew_events(&self, request: RenewRequest<EventFence>) -> Result<Vec<Renewal>> {
        self.verb(|state, facts| state.renew_events(facts, &request))
    }

    async fn settle_events(&self, settlements: Vec<EventSettlement>) -> Result<Vec<Result<()>>> {
        self.verb(|state, facts| state.settle_events(facts, &settlements))
    }

    async fn control(&self, act: Control) -> Result<Controlled> {
        self.verb(|state, facts| state.control(facts, &act))
    }

    async fn find(&self, query: Query) -> Result<Page<Found>> {
        self.lock().find(&query)
    }

    async fn look(&self, scope: StatsScope) -> Result<Stats> {
        Ok(self.lock().stats(&self.facts(), scope))
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned> {
        self.verb(|state, facts| state.prune(facts, &request))
    }

    fn hints(&self) -> Hints {
        self.inner.hints.clone()
    }

    fn records(&self) -> &dyn Records {
        self
    }
}
