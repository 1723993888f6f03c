//! Owns the circuit breakers of queues: one state for each queue in this process, whichever worker
//! claims from it. A queue whose jobs fail too often is not claimed from for a while; then one job
//! decides. Refuses to know how jobs are run.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{Error, FailureClass, QueueName, Result, Verdict};

use crate::breaker::{Breaker, BreakerPolicy, Leave};
use crate::clock;

/// Where the breaker of a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Circuit {
    /// Jobs are claimed as always.
    Closed,
    /// One job is out, or about to be, and decides.
    HalfOpen,
    /// No job is claimed.
    Open,
}

impl Circuit {
    pub(crate) fn of(breaker: &Breaker) -> Self {
        match (breaker.is_closed(), breaker.is_half_open()) {
            (true, _) => Self::Closed,
            (_, true) => Self::HalfOpen,
            _ => Self::Open,
        }
    }

    /// The number in metrics: 0 closed, 1 half-open, 2 open.
    pub const fn number(self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::HalfOpen => 1,
            Self::Open => 2,
        }
    }
}

/// Circuit breakers, one for each queue; give the same ones to every worker of a process.
///
/// A failed attempt counts against the queue when its class says that another job would have failed as
/// well: `network`, `rate_limit`, `upstream`, `auth`, `bug`. What is wrong with one job only
/// (`validation`, `not_found`, `conflict`, `policy`) counts as an answer of the other side, as a success
/// does. A job that was put off, called off, given back or whose lease was lost counts as nothing, and
/// gives back the permit that it may hold.
///
/// | What | Unless set |
/// |---|---|
/// | [`failure_threshold`](Self::failure_threshold) | half of the results |
/// | [`window`](Self::window) | 60 s |
/// | [`cooldown`](Self::cooldown) | 30 s |
/// | [`min_samples`](Self::min_samples) | 20 |
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use leasehold::circuit::{Circuit, CircuitBreakers};
/// use leasehold::memory::MemoryStore;
/// use leasehold::{Context, Failure, FailureCode, Handled, JobKind, Json, NewJob, QueueName, StoreExt, Worker};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let breakers = Arc::new(CircuitBreakers::new().min_samples(1).cooldown(Duration::from_secs(60)));
/// let store = Arc::new(MemoryStore::new());
/// let _new = store.enqueue_one(NewJob::new(JobKind::new("call")?, Json::of(&())?)).await?;
/// let worker = Worker::builder(store)
///     .handler(JobKind::new("call")?, |_: Context, ()| async {
///         Err(Failure::new(FailureCode::Panic, "no such host").into())
///     })
///     .breakers(breakers.clone())
///     .build();
/// let shutdown = leasehold::CancellationToken::new();
/// let running = tokio::spawn(worker.run(shutdown.clone()));
/// while breakers.state(&QueueName::default_queue()) != Circuit::Open {
///     tokio::time::sleep(Duration::from_millis(5)).await;
/// }
/// shutdown.cancel();
/// running.await??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct CircuitBreakers {
    policy: BreakerPolicy,
    queues: Mutex<HashMap<QueueName, Breaker>>,
}

impl Default for CircuitBreakers {
    fn default() -> Self {
        let policy = BreakerPolicy {
            failure_threshold: 0.5,
            window: Duration::from_secs(60),
            cooldown: Duration::from_secs(30),
            min_samples: 20,
        };
        Self { policy, queues: Mutex::default() }
    }
}

impl CircuitBreakers {
    /// Begins with every queue closed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the share of failures from which a queue's breaker opens.
    ///
    /// # Errors
    /// `Invalid` unless above 0 and at most 1.
    pub fn failure_threshold(mut self, share: f64) -> Result<Self> {
        if !(share > 0.0 && share <= 1.0) {
            let why = format!("a share of {share}; above 0 and at most 1 is allowed");
            return Err(Error::invalid("build breakers", why));
        }
        self.policy.failure_threshold = share;
        Ok(self)
    }

    /// Sets for how long a result counts.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.policy.window = window;
        self
    }

    /// Sets for how long an open breaker rests.
    #[must_use]
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.policy.cooldown = cooldown;
        self
    }

    /// Sets how many results it takes to judge; 0 counts as 1.
    #[must_use]
    pub fn min_samples(mut self, results: usize) -> Self {
        self.policy.min_samples = results.max(1);
        self
    }

    /// Where the breaker of a queue stands.
    pub fn state(&self, queue: &QueueName) -> Circuit {
        self.lock().get(queue).map_or(Circuit::Closed, Circuit::of)
    }

    /// Every queue that has been claimed from, and where its breaker stands.
    pub fn states(&self) -> Vec<(QueueName, Circuit)> {
        let all = self.lock();
        all.iter().map(|(queue, breaker)| (queue.clone(), Circuit::of(breaker))).collect()
    }

    pub(crate) fn is_closed(&self, queue: &QueueName) -> bool {
        self.state(queue) == Circuit::Closed
    }

    /// Leave for a job of a queue, where its breaker is closed; what comes of it is learned.
    pub(crate) fn pass(self: &Arc<Self>, queue: &QueueName) -> Option<Pass> {
        let mut all = self.lock();
        let breaker = self.breaker(&mut all, queue);
        let leave = breaker.is_closed().then(|| breaker.ask(clock::now()).ok()).flatten()?;
        Some(self.give(queue, leave))
    }

    /// The permit of a queue that has rested; nobody else gets it until it is given back.
    pub(crate) fn probe(self: &Arc<Self>, queue: &QueueName) -> Option<Pass> {
        let mut all = self.lock();
        let breaker = self.breaker(&mut all, queue);
        let leave = if breaker.is_closed() { None } else { breaker.ask(clock::now()).ok() };
        Some(self.give(queue, leave?))
    }

    fn give(self: &Arc<Self>, queue: &QueueName, leave: Leave) -> Pass {
        Pass { breakers: self.clone(), queue: queue.clone(), leave: Some(leave) }
    }

    fn breaker<'a>(
        &self,
        all: &'a mut HashMap<QueueName, Breaker>,
        queue: &QueueName,
    ) -> &'a mut Breaker {
        all.entry(queue.clone()).or_insert_with(|| Breaker::new(self.policy))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, Breaker>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave for one job. Dropped without a verdict, by a cancel, a panic or a lost lease, it is given back.
#[derive(Debug)]
pub(crate) struct Pass {
    breakers: Arc<CircuitBreakers>,
    queue: QueueName,
    leave: Option<Leave>,
}

impl Pass {
    pub(crate) fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// Takes in how the job ended.
    pub(crate) fn learn(mut self, verdict: &Verdict) {
        let is_failure = match (verdict, verdict.failure()) {
            (_, Some(failure)) => tells_of_others(failure.class()),
            (Verdict::Succeed { .. }, None) => false,
            _ => return,
        };
        if let Some(leave) = self.leave.take() {
            let mut all = self.breakers.lock();
            self.breakers.breaker(&mut all, &self.queue).learn(clock::now(), leave, is_failure);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            let mut all = self.breakers.lock();
            self.breakers.breaker(&mut all, &self.queue).forget(clock::now(), leave);
        }
    }
}

/// Whether other jobs of the queue would fail alike.
fn tells_of_others(class: FailureClass) -> bool {
    match class {
        FailureClass::Network
        | FailureClass::RateLimit
        | FailureClass::Upstream
        | FailureClass::Auth
        | FailureClass::Bug => true,
        FailureClass::Conflict
        | FailureClass::Validation
        | FailureClass::NotFound
        | FailureClass::Policy => false,
    }
}
