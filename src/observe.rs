//! Owns what workers, relays and upkeep tell of what they do, so that a program may count it. Refuses
//! to know what is made of it; metrics are one answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{ClaimedJob, Error, FailureClass, Place, QueueName, Reclaimed, VerdictKind};

use crate::circuit::Circuit;

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

/// What a person must hear of. Each is an event on the topic `leasehold.alerts` as well, which says about
/// what; this says only that there was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alert {
    /// A job ended by a bug or a bad configuration.
    Job,
    /// A delivery ended by one.
    Delivery,
    /// A provider refuses a recipient for good.
    NotificationFailed,
    /// A message was marked as sent that its provider has never heard of.
    NotificationNeverSent,
    /// A message is marked as sent without a trace, and its provider cannot be asked.
    NotificationDoubtful,
    /// A message is not sent, and no job is left to send it.
    NotificationOrphaned,
    /// An endpoint said that it is gone, and is asked no more.
    EndpointDisabled,
}

impl Alert {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Job,
        Self::Delivery,
        Self::NotificationFailed,
        Self::NotificationNeverSent,
        Self::NotificationDoubtful,
        Self::NotificationOrphaned,
        Self::EndpointDisabled,
    ];

    /// Its name in metrics, and in the events that have a name.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Delivery => "delivery",
            Self::NotificationFailed => "notification_failed",
            Self::NotificationNeverSent => "notification_never_sent",
            Self::NotificationDoubtful => "notification_doubtful",
            Self::NotificationOrphaned => "notification_orphaned",
            Self::EndpointDisabled => "endpoint_disabled",
        }
    }
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

    /// A person must hear of something.
    fn alerted(&self, _alert: Alert) {}

    /// The breaker of a webhook's endpoint changed: `None` before its first event, and once it is let go.
    fn endpoint_changed(&self, _was: Option<Circuit>, _is: Option<Circuit>) {}
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
