//! Owns the regular upkeep of a store: taking lapsed leases back and pruning. Safe on any number
//! of nodes. Refuses to know which kinds of job a process runs; stored data alone decides.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::retry::random_unit;
use leasehold_core::{PruneRequest, Pruned, ReclaimRequest, Reclaimed, Result, Store};
use tokio_util::sync::CancellationToken;

/// The calls of each sort in one round at most; what is left waits for the next round.
const CALLS_MAX: usize = 10;

/// Keeps a store tidy at intervals.
#[derive(Clone, Debug)]
pub struct Maintenance {
    store: Arc<dyn Store>,
    every: Duration,
}

/// What one round of upkeep did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Upkept {
    /// How many jobs were taken back.
    pub jobs: usize,
    /// How many deliveries were taken back.
    pub events: usize,
    /// How many rows were pruned.
    pub pruned: u64,
}

impl Maintenance {
    /// Begins upkeep every 5 s on average.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, every: Duration::from_secs(5) }
    }

    /// Sets the interval; each wait is between half and one and a half of it.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Does one round.
    ///
    /// # Errors
    /// Engine errors of reclaim and prune.
    pub async fn run_once(&self) -> Result<Upkept> {
        let jobs = self.reclaim(ReclaimRequest::jobs()).await?;
        let events = self.reclaim(ReclaimRequest::events()).await?;
        let mut upkept = Upkept { jobs, events, pruned: 0 };
        for _ in 0..CALLS_MAX {
            let pruned: Pruned = self.store.prune(PruneRequest::new()).await?;
            upkept.pruned += pruned.total();
            if pruned.total() == 0 {
                break;
            }
        }
        Ok(upkept)
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<usize> {
        let mut total = 0;
        for _ in 0..CALLS_MAX {
            let reclaimed: Reclaimed = self.store.reclaim(request.clone()).await?;
            total += reclaimed.total();
            if reclaimed.total() < request.limit {
                break;
            }
        }
        Ok(total)
    }

    /// Does rounds until `shutdown` is cancelled; a failed round is logged and the next one tried.
    pub async fn run(&self, shutdown: &CancellationToken) {
        loop {
            let wait = self.every.mul_f64(0.5 + random_unit());
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            if let Err(error) = self.run_once().await {
                tracing::warn!(%error, "upkeep failed");
            }
        }
    }
}
