//! Owns what a handler gives back, and how that becomes a verdict. Refuses to know how a verdict
//! is sent.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use leasehold_core::retry::random_unit;
use leasehold_core::{
    Failure, FailureCode, Fence, Json, NewEvent, NewJob, Result, RetryPolicy, Settled, Settlement,
    Verdict,
};
use serde::Serialize;

use crate::trace::Trace;

/// How a handler ended well.
#[derive(Debug)]
#[must_use]
pub struct Handled {
    end: End,
    events: Vec<NewEvent>,
    jobs: Vec<NewJob>,
}

#[derive(Debug)]
enum End {
    Done(Option<Result<Json>>),
    Snooze(Duration),
    Rest(Box<Failure>),
    Cancel(Option<String>),
    /// The handler's own transaction has settled this claim.
    Settled(Box<(Settlement, Settled)>),
}

impl Handled {
    fn ended(end: End) -> Self {
        Self { end, events: Vec::new(), jobs: Vec::new() }
    }

    /// Ends the job well, without a result.
    pub fn done() -> Self {
        Self::ended(End::Done(None))
    }

    /// Ends the job well; a result that is no storable JSON dead-letters it (`RESULT_INVALID`).
    pub fn done_with<T: Serialize + ?Sized>(result: &T) -> Self {
        Self::ended(End::Done(Some(Json::of(result))))
    }

    /// Puts the job off; the attempt does not count.
    pub fn snooze(delay: Duration) -> Self {
        Self::ended(End::Snooze(delay))
    }

    /// Puts the job to rest until somebody wakes it (`Control::Wake`); the attempt does not count.
    pub fn rest(failure: Failure) -> Self {
        Self::ended(End::Rest(Box::new(failure)))
    }

    /// Calls the job off.
    pub fn cancel(reason: impl Into<String>) -> Self {
        Self::ended(End::Cancel(Some(reason.into())))
    }

    /// Adds an event that is published together with the end. Too late for what `settle_for` gave:
    /// publish it inside the transaction instead.
    pub fn event(mut self, event: NewEvent) -> Self {
        self.events.push(event);
        self
    }

    /// Adds a job that is enqueued together with the end. Too late for what `settle_for` gave:
    /// enqueue it inside the transaction instead.
    pub fn job(mut self, job: NewJob) -> Self {
        self.jobs.push(job);
        self
    }

    /// The job is settled already, inside the handler's own transaction.
    pub(crate) fn settled(settlement: Settlement, settled: Settled) -> Self {
        Self::ended(End::Settled(Box::new((settlement, settled))))
    }

    /// What is left to send; or, where the handler has settled its job itself, what it sent and how
    /// the store answered.
    pub(super) fn into_settlement(
        self,
        fence: Fence,
        published: Vec<NewEvent>,
        trace: Trace,
    ) -> Result<Settlement, Box<(Settlement, Settled)>> {
        let verdict = match self.end {
            End::Settled(own) if own.0.fence == fence => {
                if !(self.events.is_empty() && self.jobs.is_empty()) {
                    tracing::error!(job = %fence.job(), "dropped what was added after settle_for");
                }
                return Err(own);
            }
            End::Settled(_) => {
                let why = "the handler gave back the end of another claim";
                let failure = Failure::new(FailureCode::InvariantBroken, why);
                return Ok(Settlement::new(fence, Verdict::Retry { failure, delay: None }));
            }
            End::Done(None) => Verdict::Succeed { result: None },
            End::Done(Some(Ok(json))) => Verdict::Succeed { result: Some(json) },
            End::Done(Some(Err(error))) => {
                let failure = Failure::new(FailureCode::ResultInvalid, error.to_string());
                return Ok(Settlement::new(fence, Verdict::Retry { failure, delay: None }));
            }
            End::Snooze(delay) => Verdict::Snooze { delay },
            End::Rest(failure) => Verdict::Rest { failure: *failure },
            End::Cancel(reason) => Verdict::Cancel { reason },
        };
        let mut settlement = Settlement::new(fence, verdict);
        settlement.events = published;
        settlement.events.extend(self.events.into_iter().map(|event| trace.carried_by(event)));
        settlement.jobs = self.jobs.into_iter().map(|job| trace.carried_on(job)).collect();
        Ok(settlement)
    }
}

/// How a handler failed; every `std::error::Error` converts into one with `?`, a boxed one with
/// [`HandlerError::from_boxed`].
pub struct HandlerError(Box<Failure>);

impl HandlerError {
    /// Takes a boxed error, such as `anyhow` gives; a [`Failure`] inside stays what it is.
    ///
    /// ```
    /// use leasehold::HandlerError;
    ///
    /// fn load() -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    ///     Err("the shelf is empty".into())
    /// }
    ///
    /// let failed: Result<u32, HandlerError> = load().map_err(HandlerError::from_boxed);
    /// assert_eq!(failed.unwrap_err().failure().message(), "the shelf is empty");
    /// ```
    pub fn from_boxed(error: Box<dyn StdError + Send + Sync>) -> Self {
        match error.downcast::<Failure>() {
            Ok(failure) => Self(failure),
            Err(error) => {
                let mut chain = error.to_string();
                let mut source = error.source();
                while let Some(cause) = source {
                    chain.push_str(&format!("\ncaused by: {cause}"));
                    source = cause.source();
                }
                let failure = Failure::new(FailureCode::HandlerFailed, error.to_string());
                Self::of(failure.with_stack(chain))
            }
        }
    }

    /// The failure that will be stored.
    pub fn failure(&self) -> &Failure {
        &self.0
    }

    pub(super) fn of(failure: Failure) -> Self {
        Self(Box::new(failure))
    }

    /// Turns the failure into a verdict: the store ends what is not retryable or has no budget.
    pub(super) fn into_verdict(
        self,
        attempt: u32,
        idempotent: bool,
        retry: &RetryPolicy,
    ) -> Verdict {
        let failure = *self.0;
        if failure.class().retries_need_idempotence() && !idempotent {
            return Verdict::DeadLetter { failure };
        }
        let delay = retry.delay(attempt, &failure, random_unit());
        Verdict::Retry { failure, delay: Some(delay) }
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandlerError").field(&self.0).finish()
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::from_boxed(Box::new(error))
    }
}
