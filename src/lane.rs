//! Owns the leases in hand, of jobs or of deliveries, and the lane that renews them: a thread with a
//! runtime of its own, so that nothing which runs under a lease can starve it. Leases are counted on
//! the monotonic clock. Refuses to know what is done with them.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use leasehold_core::{Error, ErrorKind, EventFence, Fence, RenewRequest, Renewal, Result, Store};
use tokio_util::sync::CancellationToken;

use crate::clock;

/// How long the lane sleeps at most between looks.
const LOOK: Duration = Duration::from_millis(100);

/// A fence that a store can renew.
pub(crate) trait Renewable: Copy + fmt::Debug + Eq + Hash + Send + Sync + 'static {
    /// The row, for people.
    fn row(&self) -> String;

    /// Asks for all of them in one call.
    fn renew(store: &dyn Store, fences: Vec<Self>) -> BoxFuture<'_, Result<Vec<Renewal>>>;
}

impl Renewable for Fence {
    fn row(&self) -> String {
        format!("job {}", self.job())
    }

    fn renew(store: &dyn Store, fences: Vec<Self>) -> BoxFuture<'_, Result<Vec<Renewal>>> {
        store.renew(RenewRequest::new(fences))
    }
}

impl Renewable for EventFence {
    fn row(&self) -> String {
        format!("event {}", self.event())
    }

    fn renew(store: &dyn Store, fences: Vec<Self>) -> BoxFuture<'_, Result<Vec<Renewal>>> {
        store.renew_events(RenewRequest::new(fences))
    }
}

/// After which part of a lease it is renewed: a third unless set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RenewAt(f64);

impl Default for RenewAt {
    fn default() -> Self {
        Self(1.0 / 3.0)
    }
}

impl RenewAt {
    /// Refuses a part that leaves no room for a second try.
    pub(crate) fn new(operation: &'static str, part: f64) -> Result<Self> {
        if part > 0.0 && part < 0.5 {
            return Ok(Self(part));
        }
        let why =
            format!("renewal after {part} of the lease; more than 0 and less than 0.5 is allowed");
        Err(Error::invalid(operation, why))
    }
}

/// One lease in hand.
#[derive(Clone, Debug)]
pub(crate) struct Held<F> {
    fence: F,
    ends: Instant,
    length: Duration,
    /// Tells whoever works under it to stop, whatever the reason.
    stop: CancellationToken,
    /// Says that the lease is gone.
    lost: CancellationToken,
    /// Whether its end is on the way, so that losing it is no news.
    settling: bool,
}

impl<F> Held<F> {
    /// A lease of some length that ends at an instant; losing it cancels `stop` too.
    pub(crate) fn new(fence: F, ends: Instant, length: Duration, stop: CancellationToken) -> Self {
        Self { fence, ends, length, stop, lost: CancellationToken::new(), settling: false }
    }

    /// Is cancelled once the lease is gone.
    pub(crate) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }
}

/// All leases of one worker or relay.
#[derive(Debug)]
pub(crate) struct Leases<F> {
    held: Mutex<HashMap<F, Held<F>>>,
    renew_at: RenewAt,
    /// Is cancelled once nobody renews any more.
    unrenewed: CancellationToken,
}

impl<F: Renewable> Leases<F> {
    /// Begins with none, and starts the lane that renews them; it ends once they are dropped.
    pub(crate) fn start(store: Arc<dyn Store>, renew_at: RenewAt) -> Result<Arc<Self>> {
        let unrenewed = CancellationToken::new();
        let ends = unrenewed.clone().drop_guard();
        let leases = Arc::new(Self { held: Mutex::default(), renew_at, unrenewed });
        let lane = renew_all(store, Arc::downgrade(&leases));
        let lane = async move {
            let _however_it_ends = ends;
            lane.await;
        };
        let begun = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let begun = begun.and_then(|runtime| {
            let thread = std::thread::Builder::new().name("leasehold-renew".to_owned());
            thread.spawn(move || runtime.block_on(lane))
        });
        let none = |error| {
            Error::new(ErrorKind::Unavailable, "start", "no thread for renewals").with_source(error)
        };
        begun.map(|_| leases).map_err(none)
    }

    /// Waits for the end of the lane, which comes only by a panic in it.
    pub(crate) async fn unrenewed(&self) -> Error {
        self.unrenewed.cancelled().await;
        Error::new(ErrorKind::Unavailable, "renew", "the renewal lane has ended")
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<F, Held<F>>) -> T) -> T {
        act(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, held: Held<F>) {
        self.with(|all| all.insert(held.fence, held));
    }

    pub(crate) fn remove(&self, fence: &F) {
        self.with(|all| all.remove(fence));
    }

    pub(crate) fn ends(&self, fence: &F) -> Option<Instant> {
        self.with(|all| all.get(fence).map(|held| held.ends))
    }

    /// Says whether the end of a claim is on the way.
    pub(crate) fn settling(&self, fence: &F, settling: bool) {
        self.with(|all| {
            if let Some(held) = all.get_mut(fence) {
                held.settling = settling;
            }
        });
    }

    /// A lease whose end is on the way is lost by that very end, as a rule: nobody is told, for the
    /// handler may just have committed it.
    fn lose(&self, fence: &F) {
        if let Some(held) = self.with(|all| all.remove(fence)).filter(|held| !held.settling) {
            tracing::warn!("lease of {} lost", fence.row());
            held.lost.cancel();
            held.stop.cancel();
        }
    }

    /// Gives up what has run out, and lists everything once one lease is due.
    fn due(&self, now: Instant) -> Vec<(F, Instant)> {
        let over = |all: &mut HashMap<F, Held<F>>| {
            all.values().filter(|held| held.ends <= now).map(|held| held.fence).collect::<Vec<F>>()
        };
        self.with(over).iter().for_each(|fence| self.lose(fence));
        let left = 1.0 - self.renew_at.0;
        self.with(|all| {
            let due = |held: &Held<F>| held.ends.duration_since(now) <= held.length.mul_f64(left);
            if !all.values().any(due) {
                return Vec::new();
            }
            all.values().map(|held| (held.fence, held.ends)).collect()
        })
    }

    fn learn(&self, fence: &F, asked: Instant, answer: Renewal) {
        match answer {
            Renewal::Renewed { remaining, cancel_requested } => self.with(|all| {
                if let Some(held) = all.get_mut(fence) {
                    held.ends = asked + remaining;
                    held.length = remaining;
                    if cancel_requested {
                        held.stop.cancel();
                    }
                }
            }),
            Renewal::Lost(_) => self.lose(fence),
            Renewal::Locked => {}
        }
    }
}

async fn renew_all<F: Renewable>(store: Arc<dyn Store>, leases: Weak<Leases<F>>) {
    while let Some(leases) = leases.upgrade() {
        let asked = clock::now();
        let due = leases.due(asked);
        if let Some(first_end) = due.iter().map(|(_, ends)| *ends).min() {
            let fences: Vec<F> = due.into_iter().map(|(fence, _)| fence).collect();
            let patience = first_end.duration_since(asked).max(LOOK);
            match tokio::time::timeout(patience, F::renew(&*store, fences.clone())).await {
                Ok(Ok(answers)) => {
                    fences.iter().zip(answers).for_each(|(f, a)| leases.learn(f, asked, a));
                }
                Ok(Err(error)) => tracing::warn!(%error, "renewal failed"),
                Err(_) => tracing::warn!("renewal took longer than the lease"),
            }
        }
        drop(leases);
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: WQ-18
    #[test]
    fn a_renewal_at_half_the_lease_or_later_is_refused() {
        for part in [0.1, 1.0 / 3.0, 0.499] {
            assert_eq!(RenewAt::new("build worker", part).unwrap(), RenewAt(part));
        }
        for part in [0.0, -0.1, 0.5, 0.9, 1.0, f64::NAN, f64::INFINITY] {
            let error = RenewAt::new("build worker", part).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{part}");
        }
    }
}
