//! Owns a load on a store that is being hurt: callers enqueue, workers claim, report, pause past their
//! leases and settle; whatever has no final answer is asked again, the very same call. It keeps what each
//! was told. Refuses to know what hurts the store, and to judge: that is [`super::verdict`].

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{
    Claim, ClaimRequest, Error, ErrorKind, EventId, Fence, JobId, JobKind, Json, LeaseLength,
    NewEvent, NewJob, Progress, QueueName, ReclaimRequest, Result, Settled, Settlement, StatsScope,
    Store, StoreExt, Topic, Verdict, WorkerId,
};

pub use super::tally::Tally;
use super::tally::count;
use crate::history::{Seen, Timed};
use crate::script::draw::Draw;

/// Between two sends of a call that has no final answer: at once, while an earlier one may still be at work, and
/// when that is over.
const AGAIN_AFTER: Duration = Duration::from_millis(5);
const LATER: Duration = Duration::from_millis(50);
/// The most sends of one call.
const SENDS_MAX: u32 = 4_000;
/// How many jobs are worked off at once when the load is over.
const DRAIN: usize = 200;

/// What a load may do.
#[derive(Clone, Debug)]
pub struct Load {
    /// The queue, which nobody else uses.
    pub queue: QueueName,
    /// Tasks that enqueue.
    pub callers: usize,
    /// Tasks that claim and settle.
    pub workers: usize,
    /// The lease of every claim.
    pub lease: LeaseLength,
    /// One in so many claims is paused past its lease; 0 for none.
    pub pause_one_in: usize,
    /// Where chance begins.
    pub seed: u64,
}

impl Load {
    /// A load on a queue: 4 callers, 4 workers, leases of a second, one in 40 claims paused past its own.
    pub fn new(queue: QueueName, seed: u64) -> Self {
        let lease = LeaseLength::MIN;
        Self { queue, callers: 4, workers: 4, lease, pause_one_in: 40, seed }
    }
}

/// What the callers and workers of a load were told.
#[derive(Debug)]
pub struct Told {
    /// How often what.
    pub tally: Tally,
    load: Load,
    over: AtomicBool,
    turn: AtomicU64,
    kept: Mutex<Kept>,
}

/// What is judged afterwards.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) acknowledged: BTreeSet<JobId>,
    pub(super) seen: Vec<Timed>,
    /// Events of settlements and reports that were accepted.
    pub(super) events: BTreeSet<EventId>,
    /// Events of reports that may have been.
    pub(super) perhaps: BTreeSet<EventId>,
}

/// The final answer to a call, and whether a send before it had an unknown outcome.
struct Answer<T> {
    answer: Result<T>,
    was_unknown: bool,
}

impl Told {
    /// Prepares a load.
    pub fn new(load: Load) -> Arc<Self> {
        let (tally, over, turn) = (Tally::default(), AtomicBool::new(false), AtomicU64::new(0));
        Arc::new(Self { tally, load, over, turn, kept: Mutex::default() })
    }

    /// Runs callers and workers, spread over the stores, until [`Told::end`]; then works off what is left.
    ///
    /// # Errors
    /// What a store says that no repeat mends.
    ///
    /// # Panics
    /// When a task does.
    pub async fn run(self: &Arc<Self>, stores: &[Arc<dyn Store>]) -> Result<()> {
        let mut tasks = tokio::task::JoinSet::new();
        let seed = self.load.seed.wrapping_mul(1_000);
        for number in 0..self.load.callers + self.load.workers {
            let (told, draw) = (Arc::clone(self), Draw::seeded(seed + number as u64));
            let Some(store) = stores.get(number % stores.len().max(1)).map(Arc::clone) else {
                return Err(Error::invalid("load", "no store"));
            };
            match number < self.load.callers {
                true => tasks.spawn(async move { told.call(&*store, draw).await }),
                false => tasks.spawn(async move { told.work(&*store, draw).await }),
            };
        }
        let mut first = Ok(());
        while let Some(ended) = tasks.join_next().await {
            let ended =
                ended.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
            if ended.is_err() && first.is_ok() {
                self.end();
                first = ended;
            }
        }
        first
    }

    /// Has the tasks end, each after what it is doing.
    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Whether the tasks have been told to end, or one has failed.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Ends every job of the queue that has not ended.
    ///
    /// # Errors
    /// What the store says that no repeat mends.
    pub async fn drain(&self, store: &dyn Store) -> Result<()> {
        let worker = WorkerId::new();
        loop {
            let claims = self.claim(store, worker, DRAIN).await?;
            self.succeed_all(store, &claims).await?;
            let stats = store.stats().await?;
            let left = stats.queue(&self.load.queue);
            if claims.is_empty() && left.is_none_or(|left| left.ready == 0 && left.leased == 0) {
                return Ok(());
            }
            store.reclaim(ReclaimRequest::queues([self.load.queue.clone()])).await?;
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queue(&self) -> &QueueName {
        &self.load.queue
    }

    fn tick(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, began: u64, seen: Seen) {
        let ended = self.tick();
        self.kept().seen.push(Timed { began, ended, seen });
    }

    /// Sends a call until its answer is final.
    async fn until_final<T, F>(&self, mut send: impl FnMut(u32) -> F) -> Result<Answer<T>>
    where
        F: Future<Output = Result<T>>,
    {
        let mut was_unknown = false;
        for number in 0..SENDS_MAX {
            let turn = self.tally.sent.fetch_add(1, Ordering::SeqCst);
            let error = match send(number).await {
                Ok(answer) => {
                    count(&self.tally.succeeded);
                    return Ok(Answer { answer: Ok(answer), was_unknown });
                }
                Err(error) => error,
            };
            if error.is_fence_lost() {
                count(&self.tally.fenced);
                return Ok(Answer { answer: Err(error), was_unknown });
            }
            match error.kind() {
                ErrorKind::OutcomeUnknown => {
                    count(&self.tally.unknown);
                    was_unknown = true;
                }
                _ if error.is_retryable() => count(&self.tally.unreached),
                _ => return Err(error),
            }
            let wait = if turn.is_multiple_of(2) { AGAIN_AFTER } else { LATER };
            tokio::time::sleep(wait).await;
        }
        Err(Error::new(ErrorKind::Unavailable, "load", "no call was answered any more"))
    }

    async fn call(&self, store: &dyn Store, mut draw: Draw) -> Result<()> {
        let kind = JobKind::new("count")?;
        while !self.is_over() {
            let job = NewJob::new(kind.clone(), Json::null()).queue(self.load.queue.clone());
            let job = job.max_attempts(10_000);
            let told = self.until_final(|_| store.enqueue_one(job.clone())).await?;
            let enqueued = told.answer?;
            self.tally.resolved(told.was_unknown, !enqueued.is_new());
            self.kept().acknowledged.insert(job.id);
            tokio::time::sleep(Duration::from_millis(draw.below(24) as u64)).await;
        }
        Ok(())
    }

    async fn claim(&self, store: &dyn Store, worker: WorkerId, limit: usize) -> Result<Vec<Claim>> {
        let asked = ClaimRequest::new(worker, [self.load.queue.clone()]).lease(self.load.lease);
        let asked = asked.limit(limit);
        let (began, last_send) = (self.tick(), AtomicI64::new(i64::MIN));
        let told = self
            .until_final(|number| {
                let (asked, last_send) = (asked.clone(), &last_send);
                async move {
                    if number == 0 {
                        return store.claim(asked).await;
                    }
                    let now = store.look(StatsScope::Health).await?.now;
                    last_send.store(now.as_micros(), Ordering::SeqCst);
                    store.claim(asked.repeat()).await
                }
            })
            .await?;
        let claims = told.answer?;
        if told.was_unknown {
            self.tally.claim_resolved(&claims, self.load.lease, last_send.into_inner());
        }
        for claim in &claims {
            self.note(began, Seen::Claimed(claim.fence));
        }
        Ok(claims)
    }

    async fn work(&self, store: &dyn Store, mut draw: Draw) -> Result<()> {
        let worker = WorkerId::new();
        let mut old = Vec::new();
        while !self.is_over() {
            let claims = self.claim(store, worker, 1 + draw.below(3)).await?;
            if claims.is_empty() {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            for claim in claims {
                self.hold(store, &mut draw, claim.fence).await?;
                old.push(claim.fence);
            }
            if draw.once_in(6)
                && let Some(fence) = draw.late(&old).copied()
            {
                // One that may have lost its claim long ago.
                self.succeed(store, fence).await?;
            }
            if draw.once_in(20) {
                let asked = ReclaimRequest::queues([self.load.queue.clone()]);
                self.until_final(|_| store.reclaim(asked.clone())).await?.answer?;
            }
        }
        Ok(())
    }

    async fn hold(&self, store: &dyn Store, draw: &mut Draw, fence: Fence) -> Result<()> {
        if self.load.pause_one_in > 0 && draw.once_in(self.load.pause_one_in) {
            count(&self.tally.pauses);
            let past = self.load.lease.as_duration() + Duration::from_millis(100);
            tokio::time::sleep(past).await;
        }
        match draw.below(8) {
            // Left to its lease, as by a crash.
            0 => return Ok(()),
            1 | 2 => self.report(store, fence).await?,
            3 => drop(self.until_final(|_| store.renew_one(fence)).await?.answer?),
            4 => return self.release(store, fence).await,
            _ => {}
        }
        self.succeed(store, fence).await
    }

    async fn report(&self, store: &dyn Store, fence: Fence) -> Result<()> {
        let event = NewEvent::new(Topic::new("reported")?, Json::null());
        let id = event.id;
        let report = Progress::new(fence, 1).checkpoint(Json::null()).event(event);
        let told = self.until_final(|_| store.progress_one(report.clone())).await?;
        let mut kept = self.kept();
        match told.answer {
            Ok(()) => kept.events.insert(id),
            Err(_) if told.was_unknown => kept.perhaps.insert(id),
            Err(_) => false,
        };
        drop(kept);
        if told.was_unknown {
            count(&self.tally.either);
        }
        Ok(())
    }

    async fn release(&self, store: &dyn Store, fence: Fence) -> Result<()> {
        let given = Settlement::new(fence, Verdict::Release { delay: None });
        let began = self.tick();
        let told = self.until_final(|_| store.settle_one(given.clone())).await?;
        match &told.answer {
            Ok(settled) => self.tally.resolved(told.was_unknown, settled.repeated),
            // Another holds the job since, and then the answer is the same either way.
            Err(_) if told.was_unknown => count(&self.tally.either),
            Err(_) => {}
        }
        if told.answer.is_ok_and(|settled| !settled.repeated || told.was_unknown) {
            self.note(began, Seen::Settled(fence));
        }
        Ok(())
    }

    /// Ends a claim well, with an event of this very settlement.
    async fn succeed(&self, store: &dyn Store, fence: Fence) -> Result<()> {
        let (done, id) = success(fence)?;
        let began = self.tick();
        let told = self.until_final(|_| store.settle_one(done.clone())).await?;
        self.succeeded(began, (fence, id), told);
        Ok(())
    }

    /// Ends many claims well in one call.
    async fn succeed_all(&self, store: &dyn Store, claims: &[Claim]) -> Result<()> {
        let made: Result<Vec<_>> = claims.iter().map(|claim| success(claim.fence)).collect();
        let (all, ids): (Vec<Settlement>, Vec<EventId>) = made?.into_iter().unzip();
        let began = self.tick();
        let Answer { answer, was_unknown } =
            self.until_final(|_| store.settle(all.clone())).await?;
        for ((claim, id), answer) in claims.iter().zip(ids).zip(answer?) {
            self.succeeded(began, (claim.fence, id), Answer { answer, was_unknown });
        }
        Ok(())
    }

    /// Keeps what the answer to a success tells.
    fn succeeded(&self, began: u64, (fence, id): (Fence, EventId), told: Answer<Settled>) {
        let had = told.answer.as_ref().is_ok_and(|settled| settled.repeated);
        let did = told.answer.is_ok_and(|settled| !settled.repeated);
        let was_open = self.is_first_end(fence);
        if did || (had && told.was_unknown && was_open) {
            self.note(began, Seen::Settled(fence));
            self.kept().events.insert(id);
        }
        if was_open {
            self.tally.resolved(told.was_unknown, had);
        } else if told.was_unknown {
            count(&self.tally.either);
        }
    }

    /// Whether this claim's end was not accepted before; a claim is one worker's.
    fn is_first_end(&self, fence: Fence) -> bool {
        let ended = |timed: &Timed| matches!(timed.seen, Seen::Settled(of) if of == fence);
        !self.kept().seen.iter().any(ended)
    }
}

/// A good end for a claim, and the event that it publishes.
fn success(fence: Fence) -> Result<(Settlement, EventId)> {
    let event = NewEvent::new(Topic::new("counted")?, Json::null());
    let id = event.id;
    Ok((Settlement::new(fence, Verdict::Succeed { result: None }).event(event), id))
}
