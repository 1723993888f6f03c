//! Owns what a handler sees of its claim. Every write it offers goes through the fence.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leasehold_core::{
    ClaimedJob, Error, ErrorKind, Fence, Json, NewEvent, Progress, Result, Settled, Settlement,
    StageName, Store, StoreExt, Verdict,
};
use tokio_util::sync::CancellationToken;

use super::handler::Handled;
use crate::clock;
use crate::lane::Leases;
use crate::observe::{Observer, tell_refused};
use crate::trace::Trace;

/// What a handler works with: the job, its fence, its lease. Clones share it.
#[derive(Clone, Debug)]
pub struct Context(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) store: Arc<dyn Store>,
    pub(super) leases: Arc<Leases<Fence>>,
    pub(super) fence: Fence,
    pub(super) job: ClaimedJob,
    pub(super) stop: CancellationToken,
    pub(super) events: Mutex<Vec<NewEvent>>,
    pub(super) step: tokio::sync::Mutex<u32>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) trace: Trace,
}

impl Context {
    /// The job in hand.
    pub fn job(&self) -> &ClaimedJob {
        &self.0.job
    }

    /// The payload, byte for byte.
    pub fn payload(&self) -> &Json {
        &self.0.job.payload
    }

    /// The place of this execution in its trace, to go along with what it sends or enqueues: in the trace
    /// that the job carries, or in one that begins here (W3C Trace Context).
    pub fn traceparent(&self) -> String {
        self.0.trace.traceparent()
    }

    /// The proof of this claim.
    pub fn fence(&self) -> Fence {
        self.0.fence
    }

    /// The rising number for systems downstream.
    pub fn fencing_token(&self) -> i64 {
        self.0.fence.fencing_token()
    }

    /// When the lease ends unless renewed, by the monotonic clock; `None` once it is lost.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.leases.ends(&self.0.fence)
    }

    /// Is cancelled when the handler should stop: lease lost, cancel requested, shutdown.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Refuses unless the lease lasts at least `margin` from now.
    ///
    /// # Errors
    /// `FenceLost` when it does not.
    pub fn ensure_live(&self, margin: Duration) -> Result<()> {
        match self.deadline() {
            Some(ends) if ends.saturating_duration_since(clock::now()) >= margin => Ok(()),
            _ => {
                let why =
                    format!("job {}: less than {margin:?} of the lease is left", self.0.job.id);
                Err(Error::new(ErrorKind::FenceLost, "ensure live", why))
            }
        }
    }

    /// Keeps an event for the next progress or the settlement, whichever comes first; a
    /// failed attempt drops it. One without a trace goes along in this execution's.
    pub fn publish(&self, event: NewEvent) {
        let event = self.0.trace.carried_by(event);
        self.0.events().push(event);
    }

    /// Stores what a later execution should find, with the events published so far.
    ///
    /// # Errors
    /// As [`Store::progress`], per item.
    pub async fn checkpoint(&self, checkpoint: Json) -> Result<()> {
        self.report(|progress| progress.checkpoint(checkpoint)).await
    }

    /// Goes on to the next stage, with the events published so far.
    ///
    /// # Errors
    /// As [`Store::progress`], per item.
    pub async fn advance(&self, stage: StageName) -> Result<()> {
        self.report(|progress| progress.advance(stage)).await
    }

    /// Begins the settlement of this claim inside the handler's own transaction. A transaction may be
    /// run more than once, so the events in hand stay in hand. From here to its commit the lease may
    /// look lost from outside, and the handler is not to be stopped over that.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        expect(dead_code, reason = "only an engine's own module settles so")
    )]
    pub(crate) fn begin_settling(&self, verdict: Verdict) -> Settlement {
        self.0.leases.settling(&self.0.fence, true);
        let mut settlement = Settlement::new(self.0.fence, verdict);
        settlement.events.clone_from(&self.0.events());
        settlement
    }

    /// What the handler gives back once its own transaction took the settlement, or did not.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        expect(dead_code, reason = "only an engine's own module settles so")
    )]
    pub(crate) fn end_settling(
        &self,
        settlement: Settlement,
        answer: Result<Settled>,
    ) -> Result<Handled> {
        match answer {
            Ok(settled) => Ok(Handled::settled(settlement, settled)),
            Err(error) => {
                self.0.leases.settling(&self.0.fence, false);
                tell_refused(&*self.0.observer, "settle", &error);
                Err(error)
            }
        }
    }

    pub(super) fn trace(&self) -> Trace {
        self.0.trace
    }

    pub(super) fn take_events(&self) -> Vec<NewEvent> {
        std::mem::take(&mut *self.0.events())
    }

    /// Sends one report from a task of its own: a caller who stops waiting must not cut it in half,
    /// for the next report would then carry its number.
    async fn report(&self, fill: impl FnOnce(Progress) -> Progress) -> Result<()> {
        let report = fill(Progress::new(self.0.fence, 0));
        let sent = tokio::spawn(self.0.clone().send(report)).await;
        sent.unwrap_or_else(|stopped| {
            Err(Error::new(ErrorKind::Unavailable, "progress", "the report was stopped")
                .with_source(stopped))
        })
    }
}

impl Inner {
    /// Sends a report under the next number; after a lost reply the very same is sent again.
    async fn send(self: Arc<Self>, mut report: Progress) -> Result<()> {
        let mut step = self.step.lock().await;
        report.step = *step + 1;
        report.events = std::mem::take(&mut *self.events());
        loop {
            match self.store.progress_one(report.clone()).await {
                Ok(()) => {
                    *step += 1;
                    return Ok(());
                }
                Err(error) if error.is_retryable() && self.leases.ends(&self.fence).is_some() => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => {
                    self.events().splice(0..0, report.events);
                    tell_refused(&*self.observer, "progress", &error);
                    return Err(error);
                }
            }
        }
    }

    fn events(&self) -> MutexGuard<'_, Vec<NewEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
