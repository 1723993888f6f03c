//! Owns how a worker is put together: queues, handlers, slots, lease, retry policy.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use leasehold_core::{
    Failure, FailureCode, JobKind, LeaseLength, Lifecycle, QueueName, Result, RetryPolicy, Store,
    WorkerId,
};
use serde::de::DeserializeOwned;

use super::context::Context;
use super::handler::{Handled, HandlerError};
use crate::circuit::CircuitBreakers;
use crate::lane::RenewAt;
use crate::observe::{self, Observer};

/// The shortest wait after a claim that found nothing: anything shorter only keeps a store busy.
const POLL_MIN: Duration = Duration::from_millis(10);

type Answer = BoxFuture<'static, Result<Handled, HandlerError>>;

/// One kind's handler.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) run: Arc<dyn Fn(Context) -> Answer + Send + Sync>,
    pub(super) idempotent: bool,
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("idempotent", &self.idempotent).finish_non_exhaustive()
    }
}

/// Runs the handlers of some queues.
///
/// | What | Unless set |
/// |---|---|
/// | [`queue`](WorkerBuilder::queue) | `default` |
/// | [`slots`](WorkerBuilder::slots) | 4 jobs at once |
/// | [`lease`](WorkerBuilder::lease) | the queue's own, 30 s; 1 s and more is allowed |
/// | [`renew_at`](WorkerBuilder::renew_at) | a third of the lease |
/// | [`retry`](WorkerBuilder::retry) | 1 s, doubled up to 60 s, fully jittered |
/// | [`poll`](WorkerBuilder::poll) | 1 s at most after a claim that found nothing |
/// | [`grace`](WorkerBuilder::grace) | 20 s over all queues |
/// | [`upkeep`](WorkerBuilder::upkeep) | every 5 s on average |
/// | [`observer`](WorkerBuilder::observer) | nobody |
/// | [`breakers`](WorkerBuilder::breakers) | none |
///
/// With several queues the first listed with a due job wins, but every 16th claim starts at another
/// one. A job is claimed only for a free slot, so none waits under a lease. A handler that panics
/// costs its attempt and nothing else; a thread that a handler blocks stops no renewal.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use leasehold::memory::MemoryStore;
/// use leasehold::{CancellationToken, Context, Failure, FailureCode, Handled, JobKind, Worker};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let worker = Worker::builder(Arc::new(MemoryStore::new()))
///     .handler(JobKind::new("resize")?, |context: Context, name: String| async move {
///         if name.is_empty() {
///             return Err(Failure::new(FailureCode::PayloadInvalid, "no name").into());
///         }
///         context.ensure_live(std::time::Duration::from_secs(5))?; // before what takes long
///         Ok(Handled::done())
///     })
///     .slots(8)
///     .build();
/// let shutdown = CancellationToken::new();
/// shutdown.cancel(); // on SIGTERM, as a rule
/// worker.run(shutdown).await?;
/// # Ok::<(), leasehold::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Worker {
    pub(super) store: Arc<dyn Store>,
    pub(super) id: WorkerId,
    pub(super) queues: Vec<QueueName>,
    pub(super) handlers: HashMap<JobKind, Handler>,
    /// Kinds that were given more than one.
    replaced: BTreeSet<JobKind>,
    pub(super) lifecycles: Vec<Lifecycle>,
    pub(super) slots: usize,
    pub(super) lease: Option<LeaseLength>,
    pub(super) renew_at: RenewAt,
    pub(super) retry: RetryPolicy,
    pub(super) poll: Duration,
    pub(super) grace: Duration,
    pub(super) upkeep: Option<Duration>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) breakers: Option<Arc<CircuitBreakers>>,
}

impl Worker {
    /// Begins a worker: 4 slots, the queues' leases, 20 s to shut down, upkeep every 5 s.
    pub fn builder(store: Arc<dyn Store>) -> WorkerBuilder {
        let worker = Self {
            store,
            id: WorkerId::new(),
            queues: Vec::new(),
            handlers: HashMap::new(),
            replaced: BTreeSet::new(),
            lifecycles: Vec::new(),
            slots: 4,
            lease: None,
            renew_at: RenewAt::default(),
            retry: RetryPolicy::default(),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(20),
            upkeep: Some(Duration::from_secs(5)),
            observer: observe::nobody(),
            breakers: None,
        };
        WorkerBuilder { worker, last: None }
    }

    /// What an operator should know before this worker runs; logged at its start.
    pub fn warnings(&self) -> Vec<String> {
        let few = self.store.connections().filter(|connections| *connections <= self.slots);
        let few = few.map(|connections| {
            let slots = self.slots;
            format!("{connections} connections for {slots} slots and the claims: they wait for one another")
        });
        let idle =
            self.handlers.is_empty().then(|| "no handler: every job is given back".to_owned());
        let twice = self
            .replaced
            .iter()
            .map(|kind| format!("{kind} has several handlers, of which the one added last counts"));
        few.into_iter().chain(idle).chain(twice).collect()
    }

    /// The id of this worker, new at every start.
    pub fn id(&self) -> WorkerId {
        self.id
    }
}

/// Puts a [`Worker`] together.
#[derive(Debug)]
pub struct WorkerBuilder {
    worker: Worker,
    last: Option<JobKind>,
}

impl WorkerBuilder {
    /// Adds a queue; earlier ones are asked first. `default` when none is added.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.worker.queues.push(queue);
        self
    }

    /// Adds the handler of a kind; its payload is read into `T`.
    #[must_use]
    pub fn handler<T, H, F>(mut self, kind: JobKind, run: H) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        H: Fn(Context, T) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Handled, HandlerError>> + Send + 'static,
    {
        let run = move |context: Context| match context.payload().read::<T>() {
            Ok(payload) => run(context, payload).boxed(),
            Err(error) => {
                let failure = Failure::new(FailureCode::SchemaInvalid, error.to_string());
                std::future::ready(Err(HandlerError::of(failure))).boxed()
            }
        };
        let handler = Handler { run: Arc::new(run), idempotent: false };
        if self.worker.handlers.insert(kind.clone(), handler).is_some() {
            self.worker.replaced.insert(kind.clone());
        }
        self.last = Some(kind);
        self
    }

    /// Declares the handler added last idempotent: its conflicts are tried again.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        let last = self.last.as_ref().and_then(|kind| self.worker.handlers.get_mut(kind));
        if let Some(handler) = last {
            handler.idempotent = true;
        }
        self
    }

    /// Registers a lifecycle when the worker starts.
    #[must_use]
    pub fn lifecycle(mut self, lifecycle: Lifecycle) -> Self {
        self.worker.lifecycles.push(lifecycle);
        self
    }

    /// Sets how many jobs run at once; 0 counts as 1. A job that has ended takes no slot while its end is
    /// stored, so that up to twice as many may be leased for a moment.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.worker.slots = slots.max(1);
        self
    }

    /// Sets the lease of every claim, in place of the queues' own.
    #[must_use]
    pub fn lease(mut self, lease: LeaseLength) -> Self {
        self.worker.lease = Some(lease);
        self
    }

    /// Sets after which part of a lease it is renewed; a third unless set.
    ///
    /// # Errors
    /// `Invalid` unless more than 0 and less than a half: a second try must find the lease alive.
    pub fn renew_at(mut self, part: f64) -> Result<Self> {
        self.worker.renew_at = RenewAt::new("build worker", part)?;
        Ok(self)
    }

    /// Sets the waits between attempts.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.worker.retry = retry;
        self
    }

    /// Sets how long a worker waits at most after a claim that found nothing, unless something tells it of a
    /// job; 1 s unless set, 10 ms at least. Each wait is jittered, between half of it and all.
    #[must_use]
    pub fn poll(mut self, poll: Duration) -> Self {
        self.worker.poll = poll.max(POLL_MIN);
        self
    }

    /// Sets how long a shutdown waits for handlers, over all queues together; 20 s unless set.
    ///
    /// What has not ended by then is cancelled and given back, which takes 5 s at most, and 5 s more
    /// while the store leaves a claim unanswered.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.worker.grace = grace;
        self
    }

    /// Sets how often upkeep runs beside the jobs; `None` switches it off.
    #[must_use]
    pub fn upkeep(mut self, every: Option<Duration>) -> Self {
        self.worker.upkeep = every;
        self
    }

    /// Sets who is told of claims, ends, lost leases and refused writes, and of what upkeep takes back.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.worker.observer = observer;
        self
    }

    /// Sets the circuit breakers of the queues; share them between the workers of a process.
    #[must_use]
    pub fn breakers(mut self, breakers: Arc<CircuitBreakers>) -> Self {
        self.worker.breakers = Some(breakers);
        self
    }

    /// Ends the building.
    #[must_use]
    pub fn build(mut self) -> Worker {
        if self.worker.queues.is_empty() {
            self.worker.queues.push(QueueName::default_queue());
        }
        self.worker
    }
}
