//! Owns the claim loop, the run of one job, and the bounded shutdown.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leasehold_core::retry::random_unit;
use leasehold_core::{
    Claim, ClaimRequest, Control, Error, ErrorKind, Failure, FailureCode, HintKind, Result,
    Settlement, Verdict,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::builder::{Handler, Worker};
use super::context::{Context, Inner};
use super::handler::HandlerError;
use super::lane::{self, Held, Leases};
use super::settle::Settler;

/// Every which claim starts at another queue, so that none starves.
const ROTATE: usize = 16;
/// How long a job of an unknown kind is put back for.
const UNKNOWN_BACKOFF: Duration = Duration::from_secs(30);

struct Running {
    worker: Arc<Worker>,
    leases: Arc<Leases>,
    settler: Settler,
    closing: CancellationToken,
    claims: usize,
}

impl Worker {
    /// Runs until `shutdown` is cancelled, then shuts down to one deadline.
    ///
    /// # Errors
    /// Those of registering the lifecycles and the name; `Unavailable` without a renewal thread.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        self.drive(shutdown, false).await
    }

    /// Runs until no job is due and none is in hand; for tests and one-off drains.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub async fn run_until_idle(self) -> Result<()> {
        self.drive(CancellationToken::new(), true).await
    }

    async fn drive(self, shutdown: CancellationToken, until_idle: bool) -> Result<()> {
        for lifecycle in &self.lifecycles {
            self.store.control(Control::Register(Box::new(lifecycle.clone()))).await?;
        }
        let name = worker_name(&self.id.to_string());
        self.store.control(Control::Introduce { worker: self.id, name }).await?;
        let leases = Arc::new(Leases::default());
        lane::start(self.store.clone(), &leases).map_err(|error| {
            Error::new(ErrorKind::Unavailable, "start worker", "no renewal thread")
                .with_source(error)
        })?;
        let settler = Settler::start(self.store.clone(), leases.clone());
        let closing = CancellationToken::new();
        let mut running = Running { worker: Arc::new(self), leases, settler, closing, claims: 0 };
        running.claim_until(&shutdown, until_idle).await;
        Ok(())
    }
}

impl Running {
    async fn claim_until(&mut self, shutdown: &CancellationToken, until_idle: bool) {
        let mut tasks = JoinSet::new();
        let mut hints = self.worker.store.hints().listen(HintKind::Jobs);
        while !shutdown.is_cancelled() {
            while tasks.try_join_next().is_some() {}
            let free = self.worker.slots.saturating_sub(tasks.len());
            if free == 0 {
                tokio::select! { _ = tasks.join_next() => {}, () = shutdown.cancelled() => {} }
                continue;
            }
            let sent = Instant::now();
            let request = self.request(free);
            let claims = self.worker.store.claim(request).await;
            let claims = claims.unwrap_or_else(|error| {
                tracing::warn!(%error, "claim failed");
                Vec::new()
            });
            let none = claims.is_empty();
            for claim in claims {
                self.begin(claim, sent, shutdown.is_cancelled(), &mut tasks);
            }
            if none && until_idle && tasks.is_empty() {
                break;
            }
            if none {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(1).mul_f64(random_unit())) => {}
                    () = hints.heard() => {}
                    _ = tasks.join_next(), if until_idle => {}
                    () = shutdown.cancelled() => {}
                }
            }
        }
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(self.worker.grace, all).await.is_err() {
            self.closing.cancel();
            while tasks.join_next().await.is_some() {}
        }
    }

    fn request(&mut self, free: usize) -> ClaimRequest {
        self.claims += 1;
        let mut queues = self.worker.queues.clone();
        if self.claims.is_multiple_of(ROTATE) {
            let by = (self.claims / ROTATE) % queues.len().max(1);
            queues.rotate_left(by);
        }
        ClaimRequest::new(self.worker.id, queues).limit(free.min(100)).lease(self.worker.lease)
    }

    fn begin(&self, claim: Claim, sent: Instant, closed: bool, tasks: &mut JoinSet<()>) {
        let stop = self.closing.child_token();
        let lost = CancellationToken::new();
        let length = self.worker.lease.as_duration();
        let ends = sent + claim.remaining;
        let fence = claim.fence;
        let held = Held { fence, ends, length, stop: stop.clone(), lost: lost.clone() };
        self.leases.add(held);
        let settler = self.settler.clone();
        let late = ends.saturating_duration_since(Instant::now()) < length / 3;
        let handler = self.worker.handlers.get(&claim.job.kind).cloned();
        let (Some(handler), false) = (handler, late || closed) else {
            let known = late || closed;
            if !known {
                tracing::warn!(job = %claim.job.id, kind = %claim.job.kind, "unknown kind");
            }
            let delay = (!known).then_some(UNKNOWN_BACKOFF);
            let back = Settlement::new(fence, Verdict::Release { delay });
            tasks.spawn(async move { settler.settle(back).await });
            return;
        };
        let context = Context(Arc::new(Inner {
            store: self.worker.store.clone(),
            leases: self.leases.clone(),
            fence,
            job: claim.job,
            stop,
            events: Mutex::default(),
            step: tokio::sync::Mutex::default(),
        }));
        let (worker, closing) = (self.worker.clone(), self.closing.clone());
        tasks.spawn(async move {
            let end = run_one(&worker, handler, context, &lost, &closing).await;
            if let Some(settlement) = end {
                settler.settle(settlement).await;
            }
        });
    }
}

/// Runs one handler; `None` when the lease was lost and nothing may be written.
async fn run_one(
    worker: &Worker,
    handler: Handler,
    context: Context,
    lost: &CancellationToken,
    closing: &CancellationToken,
) -> Option<Settlement> {
    let fence = context.fence();
    let (run, inside) = (handler.run, context.clone());
    let mut task = tokio::spawn(async move { run(inside).await });
    let ended = tokio::select! {
        biased;
        () = lost.cancelled() => { task.abort(); return None; }
        ended = &mut task => ended,
        () = closing.cancelled() => {
            task.abort();
            return Some(Settlement::new(fence, Verdict::Release { delay: None }));
        }
    };
    let failed = match ended {
        Ok(Ok(handled)) => {
            let mut settlement = handled.into_settlement(fence);
            settlement.events.splice(0..0, context.take_events());
            return Some(settlement);
        }
        Ok(Err(failed)) => failed,
        Err(panic) => HandlerError::of(Failure::new(FailureCode::Panic, panic.to_string())),
    };
    let verdict = if closing.is_cancelled() {
        Verdict::Release { delay: None }
    } else if context.cancellation().is_cancelled() {
        Verdict::Cancel { reason: Some(failed.failure().message().to_owned()) }
    } else {
        failed.into_verdict(context.job().attempt, handler.idempotent, &worker.retry)
    };
    Some(Settlement::new(fence, verdict))
}

fn worker_name(id: &str) -> String {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = set("POD_NAME").or_else(|| set("HOSTNAME"));
    name.map_or_else(|| id.to_owned(), |name| format!("{name}/{id}"))
}
