//! Owns the regular upkeep of a store: taking lapsed leases back, pruning, health warnings. Safe on any number
//! of nodes. Refuses to know which kinds of job a process runs; stored data alone decides.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::retry::random_unit;
use leasehold_core::{PruneRequest, Pruned, ReclaimRequest, Reclaimed, Result, Store, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::observe::{self, Observer};

/// The calls of each sort in one round at most; what is left waits for the next round.
const CALLS_MAX: usize = 10;

/// How far the store's clock and this machine's may lie apart before it is warned about.
const SKEW_MAX: Duration = Duration::from_secs(2);

/// Keeps a store tidy at intervals.
///
/// Workers do this by themselves unless told not to. On its own it is for a store whose workers are
/// elsewhere, or for a scheduled command:
///
/// ```
/// use std::sync::Arc;
///
/// use leasehold::{Maintenance, memory::MemoryStore};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let upkept = Maintenance::new(Arc::new(MemoryStore::new())).run_once().await?;
/// assert_eq!((upkept.jobs, upkept.pruned), (0, 0));
/// # Ok::<(), leasehold::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Maintenance {
    store: Arc<dyn Store>,
    every: Duration,
    observer: Arc<dyn Observer>,
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
    /// How far the store's clock and this machine's lie apart.
    pub skew: Duration,
}

impl Maintenance {
    /// Begins upkeep every 5 s on average.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, every: Duration::from_secs(5), observer: observe::nobody() }
    }

    /// Sets the interval; each wait is between half and one and a half of it.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Sets who is told of what is taken back.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Does one round.
    ///
    /// # Errors
    /// Engine errors of reclaim and prune.
    pub async fn run_once(&self) -> Result<Upkept> {
        let jobs = self.reclaim(ReclaimRequest::jobs()).await?;
        let events = self.reclaim(ReclaimRequest::events()).await?;
        let mut upkept = Upkept { jobs, events, pruned: 0, skew: Duration::ZERO };
        for _ in 0..CALLS_MAX {
            let pruned: Pruned = self.store.prune(PruneRequest::new()).await?;
            upkept.pruned += pruned.total();
            if pruned.total() == 0 {
                break;
            }
        }
        upkept.skew = self.look().await?;
        Ok(upkept)
    }

    /// Logs what an operator should know, and measures the skew.
    async fn look(&self) -> Result<Duration> {
        let before = clock::wall()?;
        let stats = self.store.stats().await?;
        let skew = skew(before, stats.now, clock::wall()?);
        if skew > SKEW_MAX {
            tracing::warn!(?skew, "the store's clock and this machine's lie apart");
        }
        for warning in &stats.warnings {
            tracing::warn!(engine = stats.engine, "{warning}");
        }
        Ok(skew)
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<usize> {
        let mut total = 0;
        for _ in 0..CALLS_MAX {
            let reclaimed: Reclaimed = self.store.reclaim(request.clone()).await?;
            total += reclaimed.total();
            self.observer.reclaimed(&reclaimed);
            if reclaimed.total() < request.limit {
                break;
            }
        }
        Ok(total)
    }

    /// Does rounds until `shutdown` is cancelled; a failed round is logged and the next one tried. With
    /// the feature `periodic` it also makes the ticks of every schedule into jobs.
    pub async fn run(&self, shutdown: &CancellationToken) {
        #[cfg(feature = "periodic")]
        {
            let periodic = crate::periodic::Periodic::new(self.store.clone());
            tokio::join!(self.tidy_up(shutdown), periodic.run(shutdown));
        }
        #[cfg(not(feature = "periodic"))]
        self.tidy_up(shutdown).await;
    }

    async fn tidy_up(&self, shutdown: &CancellationToken) {
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

/// How far `store` lies outside the span between two looks at the wall.
pub(crate) fn skew(before: Timestamp, store: Timestamp, after: Timestamp) -> Duration {
    before.since(store).max(store.since(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: GLO-7
    #[test]
    fn skew_is_what_the_call_itself_cannot_explain() {
        let at = |s: u64| Timestamp::MIN.plus(Duration::from_secs(s));
        assert_eq!(skew(at(10), at(12), at(13)), Duration::ZERO);
        assert_eq!(skew(at(10), at(7), at(13)), Duration::from_secs(3));
        assert_eq!(skew(at(10), at(17), at(13)), Duration::from_secs(4));
    }
}
