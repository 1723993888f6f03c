//! Owns when all jobs of a claim have begun. Refuses to know what they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How long the next claim waits for jobs to begin: a runtime whose threads are all held up begins none.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// The jobs that are claimed and whose tasks have not run yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Unbegun(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    jobs: AtomicUsize,
    none: Notify,
}

/// One such job, until this is dropped.
#[derive(Debug)]
pub(super) struct Beginning(Arc<Inner>);

impl Unbegun {
    pub(super) fn add(&self) -> Beginning {
        self.0.jobs.fetch_add(1, Ordering::Relaxed);
        Beginning(Arc::clone(&self.0))
    }

    /// Waits until every job has begun, but not for long.
    pub(super) async fn none(&self) {
        let none = self.0.none.notified();
        if self.0.jobs.load(Ordering::Acquire) > 0 {
            // What is begun after that wait is claimed for later.
            let _late = tokio::time::timeout(WAIT_MAX, none).await;
        }
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        if self.0.jobs.fetch_sub(1, Ordering::Release) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Proves: WQ-3
    #[tokio::test(start_paused = true)]
    async fn the_last_to_begin_ends_the_wait() {
        let unbegun = Unbegun::default();
        assert!(unbegun.none().now_or_never().is_some(), "there are none");
        let (one, other) = (unbegun.add(), unbegun.add());
        let mut wait = Box::pin(unbegun.none());
        assert!(wait.as_mut().now_or_never().is_none());
        drop(one);
        assert!(wait.as_mut().now_or_never().is_none(), "one has not begun");
        drop(other);
        assert!(wait.as_mut().now_or_never().is_some());
        let _stuck = unbegun.add();
        let begun = tokio::time::Instant::now();
        unbegun.none().await;
        assert_eq!(begun.elapsed(), WAIT_MAX);
    }
}
