//! Owns what workers, relays and upkeep tell of what they do, so that a program may count it. Refuses
//! to know what is made of it; metrics are one answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{ClaimedJob, Error, FailureClass, Place, QueueName, Reclaimed, VerdictKind};

/// How a claim of a job ended, once the store has said so.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ended {
    /// The queue it came from.
    pub queue: QueueName,
    /// What the worker said.
    pub verdict: VerdictKind,
    /// The class of what went wrong, where something did.
    pub failure: Option<FailureClass>,
    /// Where the job is now.
    pub place: Place,
    /// How long its handler ran; `None` where it never began.
    pub ran: Option<Duration>,
    /// Which attempt of the budget it was, from 1.
    pub attempt: u32,
    /// How many attempts the budget has.
    pub max_attempts: u32,
}

/// What a lease was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leased {
    /// A job.
    Job,
    /// A delivery of the outbox.
    Event,
}

/// Is told what a worker, a relay or the upkeep of this process does.
///
/// The calls come from the loops that do the work: an observer must not wait for anything. What it
/// does not care about it need not write.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use leasehold::memory::MemoryStore;
/// use leasehold::observe::{Ended, Observer};
/// use leasehold::{Context, Handled, JobKind, Json, NewJob, StoreExt, Worker};
///
/// #[derive(Debug, Default)]
/// struct Ends(AtomicU64);
///
/// impl Observer for Ends {
///     fn ended(&self, _: &Ended) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let (store, ends) = (Arc::new(MemoryStore::new()), Arc::new(Ends::default()));
/// let _new = store.enqueue_one(NewJob::new(JobKind::new("ping")?, Json::of(&())?)).await?;
/// Worker::builder(store)
///     .handler(JobKind::new("ping")?, |_: Context, ()| async { Ok(Handled::done()) })
///     .observer(ends.clone())
///     .build()
///     .run_until_idle()
///     .await?;
/// assert_eq!(ends.0.load(Ordering::Relaxed), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub trait Observer: fmt::Debug + Send + Sync + 'static {
    /// A job was claimed.
    fn claimed(&self, _job: &ClaimedJob) {}

    /// A claim has ended.
    fn ended(&self, _end: &Ended) {}

    /// A delivery has ended, as the store has agreed.
    fn delivery_ended(&self, _verdict: VerdictKind) {}

    /// A lease ran out or was taken while work went on under it.
    fn lease_lost(&self, _leased: Leased) {}

    /// The store refused a write for its fence.
    fn write_refused(&self, _write: &'static str, _error: &Error) {}

    /// Upkeep took leases back that had run out.
    fn reclaimed(&self, _reclaimed: &Reclaimed) {}
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
struct Unobserved;

impl Observer for Unobserved {}

/// What stands where no observer was given.
pub(crate) fn nobody() -> Arc<dyn Observer> {
    Arc::new(Unobserved)
}

/// Tells of a write that was refused for its fence; of no other error.
pub(crate) fn tell_refused(observer: &dyn Observer, write: &'static str, error: &Error) {
    if error.is_fence_lost() {
        observer.write_refused(write, error);
    }
}
