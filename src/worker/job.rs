//! Owns the run of one job: from its claim over its handler to its settlement.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leasehold_core::{Claim, Failure, FailureCode, Settled, Settlement, Verdict};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::builder::{Handler, Worker};
use super::context::{Context, Inner};
use super::handler::{Handled, HandlerError};
use super::run::Running;
use super::settle::InHand;
use crate::circuit::Pass;
use crate::clock;
use crate::lane::Held;
use crate::observe::Leased;
use crate::trace::{Trace, tell_outcome};

/// How long a job of an unknown kind is put back for.
const UNKNOWN_BACKOFF: Duration = Duration::from_secs(30);

impl Running {
    /// Begins a claimed job, or gives it back where it must not begin.
    pub(super) fn begin(
        &self,
        claim: Claim,
        sent: Instant,
        pass: Option<Pass>,
        tasks: &mut JoinSet<()>,
    ) {
        self.worker.observer.claimed(&claim.job);
        let (fence, ends) = (claim.fence, sent + claim.remaining);
        let length = self.worker.lease.map_or(claim.remaining, |lease| lease.as_duration());
        let stop = self.closing.child_token();
        let held = Held::new(fence, ends, length, stop.clone());
        let lost = held.lost();
        self.leases.add(held);
        let settler = self.settler.clone();
        let mut held = InHand::new(self.leases.clone(), fence, &claim.job);
        let left = ends.saturating_duration_since(clock::now());
        let handler = match self.may_begin(&claim, left, length) {
            Ok(handler) => handler,
            Err(delay) => {
                let back = Settlement::new(fence, Verdict::Release { delay });
                tasks.spawn(async move { settler.settle(back, held).await });
                return;
            }
        };
        let (trace, span) = Trace::of_job(&claim.job);
        let context = Context(Arc::new(Inner {
            store: self.worker.store.clone(),
            leases: self.leases.clone(),
            fence,
            job: claim.job,
            stop,
            events: Mutex::default(),
            step: tokio::sync::Mutex::default(),
            observer: self.worker.observer.clone(),
            trace,
        }));
        let run = Run { worker: self.worker.clone(), closing: self.closing.clone(), lost };
        let beginning = self.unbegun.add();
        let work = async move {
            drop(beginning);
            let begun = clock::now();
            let over = run.run(handler, context).await;
            let (outcome, is_well) = over.outcome();
            tell_outcome(outcome, is_well);
            held.ran = Some(clock::now().saturating_duration_since(begun));
            if let (Some(pass), Some(verdict)) = (pass, over.verdict()) {
                pass.learn(verdict);
            }
            match over {
                Over::Settle(settlement) => settler.settle(*settlement, held).await,
                Over::Settled(own) => {
                    held.tell(&*run.worker.observer, &own.0.verdict, own.1);
                }
                Over::Lost => run.worker.observer.lease_lost(Leased::Job),
            }
        };
        tasks.spawn(work.instrument(span));
    }

    /// The job's handler, or how long to put it back for.
    fn may_begin(
        &self,
        claim: &Claim,
        left: Duration,
        length: Duration,
    ) -> Result<Handler, Option<Duration>> {
        if self.shutdown.is_cancelled() || left < length / 3 {
            return Err(None);
        }
        let known = self.worker.handlers.get(&claim.job.kind).cloned();
        known.ok_or_else(|| {
            let (job, kind, queue) = (claim.job.id, &claim.job.kind, &claim.job.queue);
            tracing::warn!(%job, %queue, "no handler for kind {kind}; given back");
            Some(UNKNOWN_BACKOFF)
        })
    }
}

struct Run {
    worker: Arc<Worker>,
    closing: CancellationToken,
    lost: CancellationToken,
}

/// How a run is over.
enum Over {
    /// Its end is to be stored.
    Settle(Box<Settlement>),
    /// The handler has settled the job itself, and the store agreed.
    Settled(Box<(Settlement, Settled)>),
    /// Its lease is lost: nothing is left to write.
    Lost,
}

impl Over {
    fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Settle(settlement) => Some(&settlement.verdict),
            Self::Settled(own) => Some(&own.0.verdict),
            Self::Lost => None,
        }
    }

    /// What the span of the execution is told, and whether that is as it should be.
    fn outcome(&self) -> (&'static str, bool) {
        let told = |verdict: &Verdict| (verdict.kind().as_str(), verdict.failure().is_none());
        self.verdict().map_or(("lost", false), told)
    }

    fn by(context: &Context, verdict: Verdict) -> Self {
        Self::Settle(Box::new(Settlement::new(context.fence(), verdict)))
    }
}

impl Run {
    async fn run(&self, handler: Handler, context: Context) -> Over {
        let (run, inside) = (handler.run.clone(), context.clone());
        let mut task = Task(tokio::spawn(async move { run(inside).await }.in_current_span()));
        let ended = tokio::select! {
            biased;
            () = self.lost.cancelled() => return Over::Lost,
            ended = &mut task.0 => ended,
            () = self.closing.cancelled() => {
                return Over::by(&context, Verdict::Release { delay: None });
            }
        };
        self.over(&handler, &context, ended)
    }

    fn over(
        &self,
        handler: &Handler,
        context: &Context,
        ended: Result<Result<Handled, HandlerError>, JoinError>,
    ) -> Over {
        let failed = match ended {
            Ok(Ok(handled)) => {
                return match handled.into_settlement(
                    context.fence(),
                    context.take_events(),
                    context.trace(),
                ) {
                    Ok(settlement) => Over::Settle(Box::new(settlement)),
                    Err(own) => Over::Settled(own),
                };
            }
            Ok(Err(failed)) => failed,
            Err(stopped) => HandlerError::of(Failure::new(FailureCode::Panic, panic_text(stopped))),
        };
        if self.closing.is_cancelled() {
            return Over::by(context, Verdict::Release { delay: None });
        }
        if context.cancellation().is_cancelled() {
            let reason = Some(failed.failure().message().to_owned());
            return Over::by(context, Verdict::Cancel { reason });
        }
        let attempt = context.job().attempt;
        let verdict = failed.into_verdict(attempt, handler.idempotent, &self.worker.retry);
        Over::by(context, verdict)
    }
}

/// A handler's task, which ends with the run that waits for it.
struct Task(JoinHandle<Result<Handled, HandlerError>>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn panic_text(stopped: JoinError) -> String {
    let Ok(payload) = stopped.try_into_panic() else {
        return "the handler's task was stopped".to_owned();
    };
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| {
        std::mem::forget(payload); // its drop is the handler's code and may panic again
        "the handler panicked without a text".to_owned()
    })
}
