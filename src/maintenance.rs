//! Owns the regular upkeep of a store: taking lapsed leases back, pruning, health warnings. Safe on any number
//! of nodes. Refuses to know which kinds of job a process runs; stored data alone decides.

mod report;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::retry::random_unit;
use leasehold_core::{
    Actor, AuditEntry, Json, PruneRequest, Pruned, ReclaimRequest, Reclaimed, Result, StatsScope,
    Store, Timestamp,
};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::observe::{self, Observer};

/// The calls of prune in one round at most; what is left waits for the next round.
const CALLS_MAX: usize = 10;
/// After how long a pass of the reaper begins no other page; what is left waits for the next round.
const PASS_MAX: Duration = Duration::from_millis(200);
/// How long it waits between two pages on average.
const PAGE_PAUSE: Duration = Duration::from_millis(10);

/// How long it waits between two looks for what pruned jobs have left behind, on average.
const LEFTOVERS_EVERY: Duration = Duration::from_secs(3_600);

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
    page_pause: Duration,
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
        let every = Duration::from_secs(5);
        Self { store, every, page_pause: PAGE_PAUSE, observer: observe::nobody() }
    }

    /// Sets the interval; each wait is between three and five quarters of it.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Sets the pause between two pages of lapsed leases, 10 ms unless set; each is between half and one
    /// and a half of it.
    #[must_use]
    pub fn page_pause(mut self, pause: Duration) -> Self {
        self.page_pause = pause;
        self
    }

    /// Sets who is told of what is taken back.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Does one round, and removes what pruned jobs have left behind, as [`Maintenance::leftovers`] says.
    ///
    /// # Errors
    /// Engine errors of reclaim and prune.
    pub async fn run_once(&self) -> Result<Upkept> {
        let mut upkept = self.round().await?;
        upkept.pruned += self.leftovers().await?;
        Ok(upkept)
    }

    async fn round(&self) -> Result<Upkept> {
        let mut moved = self.reclaim(ReclaimRequest::jobs()).await?;
        let events = self.reclaim(ReclaimRequest::events()).await?;
        moved.events_returned += events.events_returned;
        moved.events_dead += events.events_dead;
        let events = moved.events_returned + moved.events_dead;
        let mut upkept = Upkept { jobs: moved.jobs.len(), events, pruned: 0, skew: Duration::ZERO };
        if moved.total() > 0
            && let Err(error) = self.report(&moved).await
        {
            tracing::warn!(%error, "what was taken back is not in the audit log");
        }
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

    /// Removes what the store itself does not know to belong to a pruned job: with the feature `vault` the
    /// secrets that are bound to it, with `notify` the rows of its notifications once they are 30 days old. How
    /// much went.
    ///
    /// A row that cannot be read is passed over and told of in the log.
    ///
    /// # Errors
    /// Those of the store, the first one after the rows of either sort had their turn; what is gone stays gone.
    pub async fn leftovers(&self) -> Result<u64> {
        #[cfg(feature = "vault")]
        let secrets = crate::vault::prune(&*self.store, None).await;
        #[cfg(not(feature = "vault"))]
        let secrets: Result<u64> = Ok(0);
        #[cfg(feature = "notify")]
        let told = crate::notify::prune(&*self.store, crate::notify::KEPT).await;
        #[cfg(not(feature = "notify"))]
        let told: Result<u64> = Ok(0);
        Ok(secrets? + told?)
    }

    /// Logs what an operator should know, and measures the skew.
    async fn look(&self) -> Result<Duration> {
        let before = clock::wall()?;
        let stats = self.store.look(StatsScope::Health).await?;
        let skew = skew(before, stats.now, clock::wall()?);
        if skew > SKEW_MAX {
            tracing::warn!("the store's clock and this machine's lie {skew:?} apart");
        }
        for warning in &stats.warnings {
            tracing::warn!("{}: {warning}", stats.engine);
        }
        Ok(skew)
    }

    /// Takes back page after page, with pauses in between so that claims come first and many reapers do
    /// not go in step, for as long as one pass may take.
    async fn reclaim(&self, request: ReclaimRequest) -> Result<Reclaimed> {
        let ends = clock::now() + PASS_MAX;
        let mut moved = Reclaimed::default();
        loop {
            let page: Reclaimed = self.store.reclaim(request.clone()).await?;
            let is_last = page.total() < request.limit;
            self.observer.reclaimed(&page);
            moved.jobs.extend(page.jobs);
            moved.events_returned += page.events_returned;
            moved.events_dead += page.events_dead;
            if is_last || clock::now() >= ends {
                return Ok(moved);
            }
            tokio::time::sleep(self.page_pause.mul_f64(0.5 + random_unit())).await;
        }
    }

    /// Leaves a report of a pass that took anything back in the audit log, and its id in the log.
    async fn report(&self, moved: &Reclaimed) -> Result<()> {
        let detail = Json::of(&report::Pass::of(moved))?;
        let entry = AuditEntry::new(Actor::new("reaper")?, report::PASS, "leases that had run out");
        let id = self.store.records().append(entry.detail(detail.as_str())).await?;
        tracing::info!(request_id = %id, "{}", report::PASS);
        Ok(())
    }

    /// Does rounds until `shutdown` is cancelled; a failed round is logged and the next one tried. With
    /// the feature `periodic` it also makes the ticks of every schedule into jobs.
    pub async fn run(&self, shutdown: &CancellationToken) {
        #[cfg(feature = "periodic")]
        {
            let periodic = crate::periodic::Periodic::new(self.store.clone());
            tokio::join!(self.tidy_up(shutdown), self.clear_up(shutdown), periodic.run(shutdown));
        }
        #[cfg(not(feature = "periodic"))]
        tokio::join!(self.tidy_up(shutdown), self.clear_up(shutdown));
    }

    /// Removes leftovers soon after the start and every hour, beside the rounds, which cannot wait so long.
    async fn clear_up(&self, shutdown: &CancellationToken) {
        let mut wait = self.every;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(wait.mul_f64(0.75 + random_unit() / 2.0)) => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                gone = self.leftovers() => match gone {
                    Ok(0) => {}
                    Ok(gone) => tracing::info!("{gone} rows that pruned jobs left behind are removed"),
                    Err(error) => tracing::warn!(%error, "leftovers not removed"),
                }
            }
            wait = LEFTOVERS_EVERY;
        }
    }

    async fn tidy_up(&self, shutdown: &CancellationToken) {
        loop {
            let wait = self.every.mul_f64(0.75 + random_unit() / 2.0);
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "upkeep failed");
            }
        }
    }
}

/// How far `store` lies outside the span between two looks at the wall.
pub(crate) fn skew(before: Timestamp, store: Timestamp, after: Timestamp) -> Duration {
    before.since(store).max(store.since(after))
}
