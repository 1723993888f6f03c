//! Owns races: several workers on one store at once, each of whom writes down what it saw and when.
//! Refuses to know who should have won; `history` judges what was seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::lab::{LabStore, ManualClock};
use leasehold_core::{
    EventFilter, Fence, JobFilter, JobId, LeaseLength, Paging, Query, ReclaimRequest, Result,
    Settlement, State, StoreExt, Verdict, WorkerId,
};
use libtest_mimic::{Failed, Trial};
use tokio::sync::Mutex;

use crate::Harness;
use crate::history::{Seen, Timed, faults, late};
use crate::lab::{event, job, passing, request};
use crate::script::draw::Draw;

const WORKERS: u64 = 4;
const JOBS: i64 = 12;
const ROUNDS: usize = 40;

/// One trial per race, named by its seed; those whose seeds are kept too.
///
/// Proves: PAR-1, TX-1, WQ-3, WQ-6, WQ-8, WQ-11
pub fn trials(harness: &Arc<dyn Harness>, races: u64) -> Vec<Trial> {
    let trial = |seed: u64| {
        let harness = Arc::clone(harness);
        let name = format!("{}::race_{seed}_has_one_holder_and_one_end_a_claim", harness.name());
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let judged = runtime.block_on(run(&*harness, seed));
            judged.map_err(|why| Failed::from(format!("seed {seed}: {why}")))
        })
    };
    // A seed that is played anyway is not played twice.
    let kept = crate::kept::seeds("races").filter(|seed| *seed >= races);
    (0..races).chain(kept).map(trial).collect()
}

/// Runs the race of a seed on a fresh store.
///
/// # Errors
/// What the history of it has against it.
pub async fn run(harness: &dyn Harness, seed: u64) -> std::result::Result<(), String> {
    let store = harness.store().await.map_err(|error| error.to_string())?;
    let clock = store.clock().ok_or("the clock is not manual")?;
    let race = Arc::new(Race { store, clock, turn: AtomicU64::new(0), seen: Mutex::default() });
    race.go(seed).await.map_err(|error| error.to_string())?;
    let (ended, events) = race.stored().await.map_err(|error| error.to_string())?;
    race.judge(&ended, events).await
}

struct Race {
    store: Arc<dyn LabStore>,
    clock: ManualClock,
    turn: AtomicU64,
    seen: Mutex<Vec<Timed>>,
}

impl Race {
    async fn go(self: &Arc<Self>, seed: u64) -> Result<()> {
        let jobs = (0..JOBS).map(|number| job(number).max_attempts(10_000)).collect();
        for answer in self.store.enqueue(jobs).await? {
            assert!(answer?.is_new());
        }
        let mut workers = tokio::task::JoinSet::new();
        for number in 0..WORKERS {
            let (race, draw) = (Arc::clone(self), Draw::seeded(seed * WORKERS + number));
            workers.spawn(async move { race.work(draw).await });
        }
        while let Some(ended) = workers.join_next().await {
            ended.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))?;
        }
        self.drain().await
    }

    fn tick(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::SeqCst)
    }

    async fn note(&self, began: u64, seen: Seen) {
        let ended = self.tick();
        self.seen.lock().await.push(Timed { began, ended, seen });
    }

    async fn claim(&self, worker: WorkerId, limit: usize, lease: u64) -> Result<Vec<Fence>> {
        let asked = request(worker).limit(limit).lease(LeaseLength::from_millis(lease)?);
        let began = self.tick();
        let claims = self.store.claim(asked).await?;
        self.claimed(began, claims.iter().map(|claim| claim.fence).collect(), &[]).await
    }

    /// Claims, loses the answer, and asks again under the same claim id.
    async fn claim_unheard(&self, worker: WorkerId, limit: usize) -> Result<Vec<Fence>> {
        let asked = request(worker).limit(limit).lease(LeaseLength::from_millis(2_000)?);
        let began = self.tick();
        let lost = self.store.claim(asked.clone()).await?;
        let lost: Vec<Fence> = lost.iter().map(|claim| claim.fence).collect();
        self.claimed(began, lost.clone(), &[]).await?;
        let began = self.tick();
        let heard = self.store.claim(asked.repeat()).await?;
        self.claimed(began, heard.iter().map(|claim| claim.fence).collect(), &lost).await
    }

    /// Takes note of what a claim gave, but for what is known already.
    async fn claimed(&self, at: u64, fences: Vec<Fence>, known: &[Fence]) -> Result<Vec<Fence>> {
        for fence in fences.iter().filter(|fence| !known.contains(fence)) {
            self.note(at, Seen::Claimed(*fence)).await;
        }
        Ok(fences)
    }

    /// Ends a claim; each accepted end publishes one event.
    async fn end(&self, fence: Fence, verdict: Verdict) -> Result<()> {
        let began = self.tick();
        let settlement = Settlement::new(fence, verdict).event(event(1));
        match self.store.settle_one(settlement).await {
            Ok(settled) if !settled.repeated => self.note(began, Seen::Settled(fence)).await,
            Err(error) if !error.is_fence_lost() => return Err(error),
            _ => {}
        }
        Ok(())
    }

    async fn work(&self, mut draw: Draw) -> Result<()> {
        let worker = WorkerId::new();
        let mut old: Vec<Fence> = Vec::new();
        for _ in 0..ROUNDS {
            let lease = 1_000 + draw.below(2_000) as u64;
            let limit = 1 + draw.below(3);
            let fences = match draw.once_in(5) {
                true => self.claim_unheard(worker, limit).await?,
                false => self.claim(worker, limit, lease).await?,
            };
            for fence in fences {
                self.hold(&mut draw, fence).await?;
                old.push(fence);
            }
            if let Some(fence) = draw.late(&old).copied() {
                self.end(fence, verdict(&mut draw)).await?;
            }
            if draw.once_in(3) {
                self.clock.advance(Duration::from_millis(draw.below(1_500) as u64));
            }
            if draw.once_in(4) {
                self.store.reclaim(ReclaimRequest::jobs().limit(2)).await?;
            }
        }
        Ok(())
    }

    /// Ends a claim, holds it longer first, ends it twice, or stops as a crash would.
    async fn hold(&self, draw: &mut Draw, fence: Fence) -> Result<()> {
        match draw.below(6) {
            0 => return Ok(()),
            1 => drop(self.store.renew_one(fence).await?),
            2 => {
                // The answer is lost, and the same is asked again.
                let verdict = verdict(draw);
                self.end(fence, verdict.clone()).await?;
                return self.end(fence, verdict).await;
            }
            3 => tokio::task::yield_now().await,
            _ => {}
        }
        self.end(fence, verdict(draw)).await
    }

    /// Ends what is left.
    async fn drain(&self) -> Result<()> {
        let worker = WorkerId::new();
        loop {
            self.clock.advance(Duration::from_secs(60));
            let fences = self.claim(worker, 100, 30_000).await?;
            if fences.is_empty() {
                return Ok(());
            }
            for fence in fences {
                self.end(fence, Verdict::Succeed { result: None }).await?;
            }
        }
    }

    /// The jobs that have ended, and how many events there are.
    async fn stored(&self) -> Result<(Vec<JobId>, usize)> {
        let page = self.store.jobs(JobFilter::default(), Paging::first(1000)).await?;
        let ended = page.items.iter().filter(|row| row.state == State::Succeeded);
        let ended: Vec<JobId> = ended.map(|row| row.id).collect();
        let (mut events, mut paging) = (0, Paging::first(1000));
        loop {
            let page = self.store.find(Query::Events(EventFilter::default(), paging)).await?;
            events += page.items.len();
            let Some(next) = page.next else { return Ok((ended, events)) };
            paging = Paging::first(1000).after(next);
        }
    }

    async fn judge(&self, ended: &[JobId], events: usize) -> std::result::Result<(), String> {
        let seen = self.seen.lock().await;
        let plain: Vec<Seen> = seen.iter().map(|timed| timed.seen).collect();
        let mut found = faults(&plain, ended);
        found.extend(late(&seen));
        if ended.len() != usize::try_from(JOBS).unwrap_or(0) {
            found.push(format!("{} of {JOBS} jobs have ended", ended.len()));
        }
        let settled = plain.iter().filter(|seen| matches!(seen, Seen::Settled(_))).count();
        if events != settled {
            found.push(format!("{events} events of {settled} settlements"));
        }
        if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
    }
}

fn verdict(draw: &mut Draw) -> Verdict {
    match draw.below(12) {
        0 => Verdict::Succeed { result: None },
        1..=3 => Verdict::Release { delay: None },
        4..=6 => Verdict::Snooze { delay: Duration::ZERO },
        _ => Verdict::Retry { failure: passing(), delay: None },
    }
}
