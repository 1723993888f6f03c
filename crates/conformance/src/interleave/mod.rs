//! Owns random interleavings: three workers, a few jobs, and writes under every fence that was ever
//! handed out, each judged against a model of who holds what. Refuses to know how a store decides.

mod model;
mod write;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::lab::{Dump, LabStore, ManualClock};
use leasehold_core::{
    ClaimId, ClaimRequest, Fence, JobId, LeaseLength, QueueName, ReclaimRequest, State, StoreExt,
    WorkerId,
};
use libtest_mimic::{Failed, Trial};

use crate::Harness;
use crate::lab::{job, queue};
use crate::script::draw::Draw;
use model::Model;

const STEPS: usize = 24;
const WORKERS: usize = 3;
/// How many interleavings share a trial.
const EACH: u64 = 250;
/// How many interleavings share a store, each in a queue of its own.
const SHARE: usize = 3;

/// What went wrong, with the steps that led there.
type Judged<T = ()> = std::result::Result<T, String>;

/// One trial per 250 interleavings, named by their seeds, and one for each seed that is kept.
///
/// Proves: GLO-3, PAR-1, WQ-3, WQ-6, WQ-7, WQ-8
pub fn trials(harness: &Arc<dyn Harness>, runs: u64) -> Vec<Trial> {
    let trial = |from: u64| {
        let harness = Arc::clone(harness);
        let to = (from + EACH).min(runs);
        let name = format!("{}::interleavings_{from}_to_{to}_hold", harness.name());
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(play(&*harness, from..to)).map_err(Failed::from)
        })
    };
    let kept = crate::kept::seeds("interleavings").map(|seed| {
        let harness = Arc::clone(harness);
        let name = format!("{}::kept_interleaving_{seed}_holds", harness.name());
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(play(&*harness, seed..seed + 1)).map_err(Failed::from)
        })
    });
    (0..runs).step_by(EACH as usize).map(trial).chain(kept).collect()
}

/// Plays the interleavings of some seeds on fresh stores, a few on each in queues of their own.
///
/// # Errors
/// Where the store parts from the model, with the steps before.
pub async fn play(harness: &dyn Harness, seeds: Range<u64>) -> Judged {
    let mut last = None;
    for (number, seed) in seeds.enumerate() {
        let store = match last.take() {
            Some(store) if number % SHARE > 0 => store,
            last => harness.anew(last).await.map_err(|error| error.to_string())?,
        };
        let clock = store.clock().ok_or("the clock is not manual")?;
        let mut play = Play {
            store: Arc::clone(&store),
            clock,
            draw: Draw::seeded(seed),
            queue: queue(&format!("interleaving-{seed}")),
            model: Model::default(),
            fences: Vec::new(),
            kept: None,
            log: Vec::new(),
        };
        let judged = play.all().await;
        judged.map_err(|why| format!("seed {seed}: {why}\n{}", play.log.join("\n")))?;
        last = Some(store);
    }
    Ok(())
}

struct Play {
    store: Arc<dyn LabStore>,
    clock: ManualClock,
    draw: Draw,
    queue: QueueName,
    model: Model,
    /// Every fence that was handed out.
    fences: Vec<Fence>,
    /// What is stored, while it is known.
    kept: Option<Dump>,
    log: Vec<String>,
}

fn shown(fence: &Fence) -> String {
    format!("{} {:?} of {}", fence.job(), fence.version(), fence.worker())
}

fn text(error: &leasehold_core::Error) -> String {
    error.to_string()
}

impl Play {
    async fn all(&mut self) -> Judged {
        for number in 0..=self.draw.below(3) {
            let new = job(number as i64).queue(self.queue.clone()).max_attempts(1000);
            let id = self.store.enqueue_one(new).await;
            self.model.add(id.map_err(|error| text(&error))?.job());
        }
        for _ in 0..STEPS {
            match self.draw.below(9) {
                0..=2 => self.claim().await?,
                3 => self.reclaim().await?,
                4 => {
                    let by = Duration::from_millis(self.draw.below(2_500) as u64);
                    self.log.push(format!("{by:?} pass"));
                    self.clock.advance(by);
                }
                _ => self.write().await?,
            }
        }
        for id in self.model.jobs() {
            self.same_version(id).await?;
        }
        Ok(())
    }

    async fn claim(&mut self) -> Judged {
        let worker = WorkerId::from_uuid(uuid::Uuid::from_u128(self.draw.below(WORKERS) as u128));
        let lease = LeaseLength::from_millis(1_000 + self.draw.below(3_000) as u64);
        let asked = ClaimRequest::new(worker, [self.queue.clone()]).limit(1 + self.draw.below(3));
        let asked = asked.lease(lease.map_err(|error| text(&error))?);
        let asked = asked.claim_id(ClaimId::from_uuid(self.draw.id()));
        self.kept = None;
        let claims = self.store.claim(asked.clone()).await.map_err(|error| text(&error))?;
        let now = self.clock.now();
        let due = self.model.claimable(now).min(asked.limit);
        let shown: Vec<String> = claims.iter().map(|claim| shown(&claim.fence)).collect();
        self.log.push(format!("claimed {shown:?}"));
        if claims.len() != due {
            return Err(format!("{} claims where {due} jobs are free", claims.len()));
        }
        for claim in claims {
            self.fences.push(claim.fence);
            self.model.claimed(claim.fence, claim.lease_expires_at, now)?;
        }
        self.see_lapsed().await
    }

    /// A claim may take lapsed leases back in passing; whether it did, the store has to say.
    async fn see_lapsed(&mut self) -> Judged {
        for id in self.model.lapsed(self.clock.now()) {
            let row = self.store.job(id).await.map_err(|error| text(&error))?;
            let row = row.ok_or("a job is gone")?;
            if row.state == State::Waiting {
                self.model.taken_back(id);
            }
            self.same_version(id).await?;
        }
        Ok(())
    }

    async fn reclaim(&mut self) -> Judged {
        self.kept = None;
        let back = self.store.reclaim(ReclaimRequest::queues([self.queue.clone()])).await;
        let back = back.map_err(|error| text(&error))?;
        let ids: Vec<JobId> = back.jobs.iter().map(|(id, _)| *id).collect();
        self.log.push(format!("reclaimed {ids:?}"));
        self.model.reclaimed(&ids, self.clock.now())
    }

    async fn same_version(&self, id: JobId) -> Judged {
        let row = self.store.job(id).await.map_err(|error| text(&error))?.ok_or("a job is gone")?;
        let expected = self.model.version(id);
        match row.claim_version.get() == expected {
            true => Ok(()),
            false => Err(format!("job {id} is at {:?}, not at {expected}", row.claim_version)),
        }
    }
}
