//! Owns the relay: takes due events from the outbox and hands each to a sink, so that a slow one holds
//! back no other. The store keeps the order of a key; the relay refuses to know what a sink does with
//! an event.

mod run;
mod sink;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Error, LeaseLength, Result, RetryPolicy, Store, Topic, WorkerId};

use crate::lane::RenewAt;
use crate::observe::{self, Observer};

pub use sink::{ChannelSink, Delivery, JsonLinesSink, Sink, Undelivered};

/// The largest batch without [`Relay::allow_large_batches`].
const BATCH_MAX: usize = 25;

/// Delivers the outbox's events to a sink, at least once each.
///
/// Events of one ordering key arrive in their order; one that ends in the dead letters releases those
/// behind it. Between empty polls a relay waits half to one and a half times the poll, less when woken.
///
/// | What | Unless set |
/// |---|---|
/// | [`topics`](Relay::topics) | all |
/// | [`batch`](Relay::batch) | 10 events a claim |
/// | [`at_once`](Relay::at_once) | 5 deliveries |
/// | [`lease`](Relay::lease) | 30 s; 1 s and more is allowed |
/// | [`renew_at`](Relay::renew_at) | a third of the lease |
/// | [`poll`](Relay::poll) | 1 s |
/// | [`retry`](Relay::retry) | 1 s, doubled up to 60 s, fully jittered; 10 attempts an event |
/// | [`grace`](Relay::grace) | 20 s |
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use leasehold::memory::MemoryStore;
/// use leasehold::{ChannelSink, Json, NewEvent, Relay, StoreExt, Topic};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let store = Arc::new(MemoryStore::new());
/// store.publish_one(NewEvent::new(Topic::new("paid")?, Json::of(&7)?)).await?;
/// let (sink, mut received) = ChannelSink::new(8);
/// assert_eq!(Relay::new(store, sink).run_until_idle().await?, 1);
/// assert_eq!(received.recv().await.map(|event| event.payload), Some(Json::of(&7)?));
/// # Ok::<(), leasehold::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Relay<S> {
    store: Arc<dyn Store>,
    sink: Arc<S>,
    id: WorkerId,
    topics: Option<Vec<Topic>>,
    batch: usize,
    large: bool,
    at_once: usize,
    lease: LeaseLength,
    renew_at: RenewAt,
    poll: Duration,
    retry: RetryPolicy,
    grace: Duration,
    idempotent: bool,
    observer: Arc<dyn Observer>,
}

impl<S: Sink> Relay<S> {
    /// Begins a relay of all topics: batches of 10, 5 deliveries at once, leases of 30 s.
    pub fn new(store: Arc<dyn Store>, sink: S) -> Self {
        Self {
            store,
            sink: Arc::new(sink),
            id: WorkerId::new(),
            topics: None,
            batch: 10,
            large: false,
            at_once: 5,
            lease: LeaseLength::DEFAULT,
            renew_at: RenewAt::default(),
            poll: Duration::from_secs(1),
            retry: RetryPolicy::default(),
            grace: Duration::from_secs(20),
            idempotent: false,
            observer: observe::nobody(),
        }
    }

    /// Sets the topics.
    #[must_use]
    pub fn topics(mut self, topics: impl IntoIterator<Item = Topic>) -> Self {
        self.topics = Some(topics.into_iter().collect());
        self
    }

    /// Allows batches above 25.
    #[must_use]
    pub fn allow_large_batches(mut self) -> Self {
        self.large = true;
        self
    }

    /// Sets the batch, 1 to 25.
    ///
    /// # Errors
    /// `Invalid` for 0, and above 25 without [`Relay::allow_large_batches`].
    pub fn batch(mut self, batch: usize) -> Result<Self> {
        if batch == 0 || (batch > BATCH_MAX && !self.large) {
            let why = format!("a batch of {batch} lies outside 1 to {BATCH_MAX}");
            return Err(Error::invalid("build relay", why));
        }
        self.batch = batch;
        Ok(self)
    }

    /// Sets how many deliveries run at once; 0 counts as 1.
    #[must_use]
    pub fn at_once(mut self, deliveries: usize) -> Self {
        self.at_once = deliveries.max(1);
        self
    }

    /// Sets the lease of every delivery.
    #[must_use]
    pub fn lease(mut self, lease: LeaseLength) -> Self {
        self.lease = lease;
        self
    }

    /// Sets after which part of a lease it is renewed; a third unless set.
    ///
    /// # Errors
    /// `Invalid` unless more than 0 and less than a half.
    pub fn renew_at(mut self, part: f64) -> Result<Self> {
        self.renew_at = RenewAt::new("build relay", part)?;
        Ok(self)
    }

    /// Sets how long an empty outbox is left alone on average; each wait is between half and one and a half
    /// of it, and a wake-up ends it. An event that is due only later, a retry say, is met at its end.
    #[must_use]
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = every;
        self
    }

    /// Declares the sink idempotent: its conflicts are tried again; else they are dead at once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Sets how long a shutdown waits for deliveries; what is left is given back uncounted. A store
    /// that does not answer then is waited for 5 s more, no longer.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets who is told of ends, lost leases and refused writes.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Sets the waits between attempts.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }
}
