//! Owns the leases in hand and the lane that renews them: a thread with a runtime of its own, so
//! that no handler can starve it. Leases are counted on the monotonic clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use leasehold_core::{Fence, RenewRequest, Renewal, Store};
use tokio_util::sync::CancellationToken;

use crate::clock;

/// How long the lane sleeps at most between looks.
const LOOK: Duration = Duration::from_millis(100);

/// One lease in hand.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) fence: Fence,
    pub(super) ends: Instant,
    pub(super) length: Duration,
    /// Tells the handler to stop, whatever the reason.
    pub(super) stop: CancellationToken,
    /// Says that the lease is gone.
    pub(super) lost: CancellationToken,
    /// Whether its end is on the way, so that losing it is no news.
    pub(super) settling: bool,
}

/// All leases in hand.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<HashMap<Fence, Held>>);

impl Leases {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<Fence, Held>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn add(&self, held: Held) {
        self.with(|all| all.insert(held.fence, held));
    }

    pub(super) fn remove(&self, fence: &Fence) {
        self.with(|all| all.remove(fence));
    }

    pub(super) fn ends(&self, fence: &Fence) -> Option<Instant> {
        self.with(|all| all.get(fence).map(|held| held.ends))
    }

    pub(super) fn settling(&self, fence: &Fence) {
        self.with(|all| {
            if let Some(held) = all.get_mut(fence) {
                held.settling = true;
            }
        });
    }

    fn lose(&self, fence: &Fence) {
        if let Some(held) = self.with(|all| all.remove(fence)) {
            if !held.settling {
                tracing::warn!(job = %fence.job(), version = %fence.version(), "lease lost");
            }
            held.lost.cancel();
            held.stop.cancel();
        }
    }

    /// Gives up what has run out, and lists everything once one lease is a third used.
    fn due(&self, now: Instant) -> Vec<Held> {
        let over: Vec<Fence> = self.with(|all| {
            all.values().filter(|held| held.ends <= now).map(|held| held.fence).collect()
        });
        over.iter().for_each(|fence| self.lose(fence));
        self.with(|all| {
            let due = |held: &Held| held.ends.duration_since(now) <= held.length * 2 / 3;
            if all.values().any(due) { all.values().cloned().collect() } else { Vec::new() }
        })
    }

    fn learn(&self, fence: &Fence, asked: Instant, answer: Renewal) {
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

/// Starts the lane; it ends once nobody holds the leases any more.
pub(super) fn start(store: Arc<dyn Store>, leases: &Arc<Leases>) -> std::io::Result<()> {
    let leases = Arc::downgrade(leases);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new()
        .name("leasehold-renew".to_owned())
        .spawn(move || runtime.block_on(renew_all(store, leases)))?;
    Ok(())
}

async fn renew_all(store: Arc<dyn Store>, leases: Weak<Leases>) {
    while let Some(leases) = leases.upgrade() {
        let asked = clock::now();
        let due = leases.due(asked);
        if let Some(first_end) = due.iter().map(|held| held.ends).min() {
            let fences: Vec<Fence> = due.iter().map(|held| held.fence).collect();
            let patience = first_end.duration_since(asked).max(LOOK);
            let request = store.renew(RenewRequest::new(fences.iter().copied()));
            match tokio::time::timeout(patience, request).await {
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
