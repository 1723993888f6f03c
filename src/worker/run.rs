//! Owns the claim loop and the shutdown, which is bounded by one deadline over all queues.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, Shared};
use leasehold_core::retry::random_unit;
use leasehold_core::{
    Claim, ClaimRequest, Control, Error, ErrorKind, Fence, HintKind, Listener, Result, Store,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ask::{Asked, Asking, Next};
use super::begun::Unbegun;
use super::builder::Worker;
use super::name::name_from_env;
use super::settle::Settler;
use crate::clock;
use crate::lane::Leases;
use crate::maintenance::Maintenance;

/// Every which claim starts at another queue, so that none starves.
const ROTATE: usize = 16;
/// How long the releases at the end of a shutdown may take.
const RELEASE_MAX: Duration = Duration::from_secs(5);
/// How often a call at the start is tried, and how long to wait between the tries at most.
const START_TRIES: u32 = 12;
const START_PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a running worker holds.
pub(super) struct Running {
    pub(super) worker: Arc<Worker>,
    pub(super) leases: Arc<Leases<Fence>>,
    pub(super) settler: Settler,
    /// Says that the deadline of the shutdown has come.
    pub(super) closing: CancellationToken,
    pub(super) shutdown: CancellationToken,
    pub(super) unbegun: Unbegun,
    asking: Asking,
}

impl Worker {
    /// Runs until `shutdown` is cancelled, then waits for the handlers up to the grace time and
    /// gives the rest back; the attempts given back do not count.
    ///
    /// # Errors
    /// Those of registering the lifecycles and the name, after some retries where a repeat may mend
    /// them; `Unavailable` without a renewal thread, and when a lane of the worker itself ends;
    /// `Invalid` when the store refuses the claims.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        let upkeep = shutdown.child_token();
        let _ends_with_us = upkeep.clone().drop_guard();
        if let Some(every) = self.upkeep {
            let rounds = Maintenance::new(self.store.clone()).every(every);
            tokio::spawn(keep_up(rounds.observer(self.observer.clone()), every, upkeep));
        }
        self.start(shutdown).await?.claim_until(false).await
    }

    /// Runs until no job is due and none is in hand; for tests and one-off drains. A job whose next try
    /// lies in the future, after a failure say, is not due and not waited for.
    ///
    /// # Errors
    /// As [`Worker::run`], and any error of a claim that a repeat cannot mend.
    pub async fn run_until_idle(self) -> Result<()> {
        self.start(CancellationToken::new()).await?.claim_until(true).await
    }

    async fn start(self, shutdown: CancellationToken) -> Result<Running> {
        for warning in self.warnings() {
            tracing::warn!("{warning}");
        }
        for lifecycle in &self.lifecycles {
            let register = Control::Register(Box::new(lifecycle.clone()));
            begin_with(&*self.store, register, &shutdown).await?;
        }
        let name = name_from_env(self.id);
        let introduce = Control::Introduce { worker: self.id, name };
        begin_with(&*self.store, introduce, &shutdown).await?;
        let leases = Leases::start(self.store.clone(), self.renew_at)?;
        let settler = Settler::start(self.store.clone(), leases.clone(), self.observer.clone());
        let (queues, breakers) = (self.queues.clone(), self.breakers.clone());
        let asking = Asking::new(self.id, queues, self.lease, breakers);
        Ok(Running {
            worker: Arc::new(self),
            leases,
            settler,
            closing: CancellationToken::new(),
            shutdown,
            unbegun: Unbegun::default(),
            asking,
        })
    }
}

impl Running {
    async fn claim_until(mut self, until_idle: bool) -> Result<()> {
        let (shutdown, grace) = (self.shutdown.clone(), self.worker.grace);
        let deadline = async move {
            shutdown.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        let deadline = deadline.boxed().shared();
        let mut tasks = JoinSet::new();
        let (settler, leases) = (self.settler.clone(), self.leases.clone());
        let ended = tokio::select! {
            ended = self.claim_all(until_idle, &mut tasks, &deadline) => ended,
            error = settler.ended() => self.give_up(error),
            error = leases.unrenewed() => self.give_up(error),
        };
        if ended.is_err() {
            self.shutdown.cancel(); // the jobs in hand still get their grace time
        }
        let closing = self.closing.clone();
        let over = async {
            tokio::select! {
                () = deadline => closing.cancel(),
                () = closing.cancelled() => {}
            }
        };
        tokio::select! {
            () = self.join_all(&mut tasks) => {}
            () = over => {
                if tokio::time::timeout(RELEASE_MAX, self.join_all(&mut tasks)).await.is_err() {
                    let jobs = tasks.len() + self.settler.on_their_way();
                    tracing::error!("{jobs} jobs are not released; their leases will lapse");
                }
            }
        }
        ended
    }

    /// Waits until nothing runs and every end is stored.
    async fn join_all(&self, tasks: &mut JoinSet<()>) {
        while tasks.join_next().await.is_some() {}
        self.settler.fewer_than(1).await;
    }

    /// How many jobs may be begun. An end on its way to the store takes no slot, so that the next jobs
    /// are claimed meanwhile; but no more than that.
    async fn free(&self, tasks: &mut JoinSet<()>) -> usize {
        let slots = self.worker.slots;
        // Jobs that are about to end do so first, so that one claim fills all their slots.
        self.unbegun.none().await;
        loop {
            let before = tasks.len();
            tokio::task::yield_now().await;
            while tasks.try_join_next().is_some() {}
            if tasks.len() == before || tasks.is_empty() {
                break;
            }
        }
        let unsettled = self.settler.on_their_way().saturating_sub(slots);
        slots.saturating_sub(tasks.len() + unsettled)
    }

    /// Without one of its lanes a worker can keep no lease or store no end: whatever runs is stopped.
    fn give_up(&self, error: Error) -> Result<()> {
        tracing::error!(%error, "the worker ends");
        self.closing.cancel();
        Err(error)
    }

    /// Claims and begins jobs until the shutdown, or until there is nothing left to do.
    async fn claim_all(
        &mut self,
        until_idle: bool,
        tasks: &mut JoinSet<()>,
        deadline: &Deadline,
    ) -> Result<()> {
        let mut hints = self.worker.store.hints().listen(HintKind::Jobs);
        while !self.shutdown.is_cancelled()
            || (self.asking.is_unanswered() && !self.closing.is_cancelled())
        {
            let free = self.free(tasks).await;
            if free == 0 && !self.asking.is_unanswered() {
                let unsettled = self.settler.on_their_way();
                let waits = unsettled > 0 || tasks.is_empty();
                tokio::select! {
                    Some(_) = tasks.join_next() => {}
                    () = self.settler.fewer_than(unsettled.max(1)), if waits => {}
                    () = self.shutdown.cancelled() => {}
                }
                continue;
            }
            let unsettled = self.settler.on_their_way();
            let is_idle = |tasks: &JoinSet<()>| until_idle && tasks.is_empty() && unsettled == 0;
            let asked = match self.asking.next(free) {
                Next::Ask(asked) => asked,
                Next::Rest { is_all: true } if is_idle(tasks) => return Ok(()),
                Next::Rest { .. } => {
                    self.pause(&mut hints, tasks, joining(until_idle, unsettled)).await;
                    continue;
                }
            };
            let sent = clock::now();
            let Some(answer) = self.claim(asked.request.clone(), deadline).await else {
                tracing::error!("a claim got no answer; what it took will lapse");
                return Ok(());
            };
            let Some((mut asked, claims)) = self.learn(asked, answer, until_idle)? else {
                self.pause(&mut hints, tasks, None).await;
                continue;
            };
            let (none, is_probe) = (claims.is_empty(), asked.is_probe());
            for claim in claims {
                self.asking.found();
                let pass = asked.pass(self.worker.breakers.as_ref(), &claim.job.queue);
                self.begin(claim, sent, pass, tasks);
            }
            if none && asked.is_all && is_idle(tasks) {
                return Ok(());
            }
            if none && !is_probe {
                self.pause(&mut hints, tasks, joining(until_idle, unsettled)).await;
            }
        }
        Ok(())
    }

    /// Sends a claim; `None` when it has no answer long after the deadline of the shutdown. What comes
    /// of it between the two is given back.
    async fn claim(
        &self,
        request: ClaimRequest,
        deadline: &Deadline,
    ) -> Option<Result<Vec<Claim>>> {
        let mut claim = self.worker.store.claim(request);
        tokio::select! {
            biased;
            answer = &mut claim => Some(answer),
            () = deadline.clone() => {
                self.closing.cancel();
                tokio::time::timeout(RELEASE_MAX, claim).await.ok()
            }
        }
    }

    /// What a claim gave; `None` when it failed and is worth another try.
    fn learn(
        &mut self,
        asked: Box<Asked>,
        answer: Result<Vec<Claim>>,
        until_idle: bool,
    ) -> Result<Option<(Box<Asked>, Vec<Claim>)>> {
        let error = match answer {
            Ok(claims) => return Ok(Some((asked, claims))),
            Err(error) => error,
        };
        let hopeless = error.kind() == ErrorKind::Invalid || until_idle;
        if !error.is_retryable() && hopeless {
            return Err(error);
        }
        tracing::warn!(%error, "claim failed");
        if error.kind() == ErrorKind::OutcomeUnknown {
            self.asking.lost_reply(asked);
        }
        Ok(None)
    }

    /// Waits up to the poll time, jittered; a hint, the shutdown or (if asked) a job that has ended since there
    /// were `joining` ends on their way ends it.
    async fn pause(&self, hints: &mut Listener, tasks: &mut JoinSet<()>, joining: Option<usize>) {
        let wait = self.worker.poll.mul_f64(0.5 + random_unit() / 2.0);
        let unsettled = joining.unwrap_or(0);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = hints.heard() => {}
            Some(_) = tasks.join_next(), if joining.is_some() => {}
            () = self.settler.fewer_than(unsettled), if unsettled > 0 => {}
            () = self.shutdown.cancelled(), if !self.shutdown.is_cancelled() => {}
        }
    }
}

/// What a pause of a worker that runs until it is idle waits for: fewer ends on their way than there were
/// before the claim, for those stored while it was out count too.
fn joining(until_idle: bool, unsettled: usize) -> Option<usize> {
    until_idle.then_some(unsettled)
}

/// Does one act of the start; a database that is away for a moment does not end the worker.
async fn begin_with(store: &dyn Store, act: Control, shutdown: &CancellationToken) -> Result<()> {
    let mut pause = Duration::from_millis(100);
    for tried in 1.. {
        let answer = tokio::select! {
            biased;
            answer = store.control(act.clone()) => answer.map(|_| ()),
            () = after(shutdown, RELEASE_MAX) => {
                Err(Error::new(ErrorKind::Unavailable, "start worker", "shut down before an answer"))
            }
        };
        match answer {
            Ok(()) => break,
            Err(error) if !error.is_retryable() || shutdown.is_cancelled() => return Err(error),
            Err(error) if tried == START_TRIES => return Err(error),
            Err(error) => tracing::warn!(%error, "the worker cannot start yet"),
        }
        tokio::select! {
            () = tokio::time::sleep(pause.mul_f64(0.5 + random_unit())) => {}
            () = shutdown.cancelled() => {}
        }
        pause = (pause * 2).min(START_PAUSE_MAX);
    }
    Ok(())
}

async fn after(shutdown: &CancellationToken, wait: Duration) {
    shutdown.cancelled().await;
    tokio::time::sleep(wait).await;
}

/// Upkeep whose panic ends neither itself nor the worker.
async fn keep_up(maintenance: Maintenance, every: Duration, shutdown: CancellationToken) {
    loop {
        let (maintenance, until) = (maintenance.clone(), shutdown.clone());
        let round = tokio::spawn(async move { maintenance.run(&until).await });
        match round.await {
            Err(stopped) if stopped.is_panic() => tracing::error!(%stopped, "upkeep panicked"),
            _ => return,
        }
        tokio::time::sleep(every).await;
    }
}

type Deadline = Shared<BoxFuture<'static, ()>>;

/// The queues in the order of claim number `claim`, from 1.
pub(super) fn rotated<T: Clone>(queues: &[T], claim: usize) -> Vec<T> {
    let mut order = queues.to_vec();
    if claim.is_multiple_of(ROTATE) && order.len() > 1 {
        let by = 1 + (claim / ROTATE - 1) % (order.len() - 1);
        order.rotate_left(by);
    }
    order
}
