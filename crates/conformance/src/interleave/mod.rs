//! Owns random interleavings: three workers, a few jobs, and writes under every fence that was ever
//! handed out, each judged against a model of who holds what. Refuses to know how a store decides.

mod model;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::lab::{Dump, LabStore, ManualClock};
use leasehold_core::{
    ClaimId, ClaimRequest, Fence, JobId, LeaseLength, Progress, ReclaimRequest, Renewal, Result,
    Settlement, State, StoreExt, Verdict, WorkerId,
};
use libtest_mimic::{Failed, Trial};

use crate::Harness;
use crate::lab::{event, job, json, passing, request};
use crate::script::draw::Draw;
use model::Model;

const STEPS: usize = 24;
const WORKERS: usize = 3;
/// How many interleavings share a trial.
const EACH: u64 = 500;

/// What went wrong, with the steps that led there.
type Judged<T = ()> = std::result::Result<T, String>;

/// One trial per five hundred interleavings, named by their seeds.
///
/// Proves: GLO-3, PAR-1, WQ-3, WQ-6, WQ-7, WQ-8
pub fn trials(harness: &Arc<dyn Harness>, runs: u64) -> Vec<Trial> {
    let trial = |from: u64| {
        let harness = Arc::clone(harness);
        let to = (from + EACH).min(runs);
        let name = format!("{}::interleavings_{from}_to_{to}_hold", harness.name());
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            for seed in from..to {
                runtime.block_on(play(&*harness, seed)).map_err(Failed::from)?;
            }
            Ok(())
        })
    };
    (0..runs).step_by(EACH as usize).map(trial).collect()
}

/// Plays the interleaving of a seed on a fresh store.
///
/// # Errors
/// Where the store parts from the model, with the steps before.
pub async fn play(harness: &dyn Harness, seed: u64) -> Judged {
    let store = harness.store().await.map_err(|error| error.to_string())?;
    let clock = store.clock().ok_or("the clock is not manual")?;
    let draw = Draw::seeded(seed);
    let model = Model::default();
    let mut play = Play { store, clock, draw, model, fences: Vec::new(), kept: None, log: vec![] };
    let judged = play.all().await;
    judged.map_err(|why| format!("seed {seed}: {why}\n{}", play.log.join("\n")))
}

struct Play {
    store: Arc<dyn LabStore>,
    clock: ManualClock,
    draw: Draw,
    model: Model,
    /// Every fence that was handed out.
    fences: Vec<Fence>,
    /// What is stored, while it is known.
    kept: Option<Dump>,
    log: Vec<String>,
}

/// One write under a fence.
#[derive(Clone, Debug)]
enum Write {
    Renew,
    Progress,
    Settle(Verdict),
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
            let id = self.store.enqueue_one(job(number as i64).max_attempts(1000)).await;
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
        let asked: ClaimRequest = request(worker).limit(1 + self.draw.below(3));
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
        let back = self.store.reclaim(ReclaimRequest::jobs()).await;
        let back = back.map_err(|error| text(&error))?;
        let ids: Vec<JobId> = back.jobs.iter().map(|(id, _)| *id).collect();
        self.log.push(format!("reclaimed {ids:?}"));
        self.model.reclaimed(&ids, self.clock.now())
    }

    fn draw_write(&mut self) -> Write {
        match self.draw.below(8) {
            0 => Write::Renew,
            1 => Write::Progress,
            2 => Write::Settle(Verdict::Release { delay: None }),
            3 => Write::Settle(Verdict::Snooze { delay: Duration::ZERO }),
            4..=5 => Write::Settle(Verdict::Retry { failure: passing(), delay: None }),
            _ => Write::Settle(Verdict::Succeed { result: Some(json(7)) }),
        }
    }

    /// Writes under some fence, live or dead; a dead one must change nothing.
    async fn write(&mut self) -> Judged {
        let Some(fence) = self.draw.late(&self.fences).copied() else { return Ok(()) };
        let write = self.draw_write();
        let owned = self.model.owns(&fence, self.clock.now());
        let said = match &write {
            Write::Settle(verdict) => verdict.kind().as_str(),
            Write::Renew => "renew",
            Write::Progress => "progress",
        };
        self.log.push(format!("{said} by {}, owned: {owned}", shown(&fence)));
        if owned {
            self.kept = None;
            return self.accept(fence, write).await;
        }
        let before = match self.kept.take() {
            Some(kept) => kept,
            None => self.store.dump().await.map_err(|error| text(&error))?,
        };
        self.refuse(fence, write).await?;
        let after = self.store.dump().await.map_err(|error| text(&error))?;
        let difference = before.difference(&after);
        if !difference.is_empty() {
            return Err(format!("a stale fence changed the store:\n{difference}"));
        }
        self.kept = Some(after);
        Ok(())
    }

    async fn accept(&mut self, fence: Fence, write: Write) -> Judged {
        let now = self.clock.now();
        match write {
            Write::Renew => match self.store.renew_one(fence).await {
                Ok(Renewal::Renewed { remaining, .. }) => {
                    self.model.renewed(&fence, now.plus(remaining));
                    Ok(())
                }
                other => Err(format!("an owner's renewal: {other:?}")),
            },
            Write::Progress => {
                let report = Progress::new(fence, self.model.step(&fence)).event(event(3));
                self.store.progress_one(report).await.map_err(|error| text(&error))
            }
            Write::Settle(verdict) => {
                let kind = verdict.kind();
                match self.store.settle_one(Settlement::new(fence, verdict)).await {
                    Ok(settled) if !settled.repeated => {
                        self.model.settled(&fence, kind);
                        Ok(())
                    }
                    other => Err(format!("an owner's settlement: {other:?}")),
                }
            }
        }
    }

    async fn refuse(&mut self, fence: Fence, write: Write) -> Judged {
        let lost = |answer: Result<String>| match answer {
            Err(error) if error.is_fence_lost() => Ok(()),
            other => Err(format!("a stale fence: {other:?}")),
        };
        match write {
            Write::Renew => match self.store.renew_one(fence).await {
                Ok(Renewal::Lost(_)) => Ok(()),
                other => Err(format!("a stale renewal: {other:?}")),
            },
            Write::Progress => {
                let report = Progress::new(fence, 1).checkpoint(json(8)).event(event(4));
                lost(self.store.progress_one(report).await.map(|()| "stored".to_owned()))
            }
            Write::Settle(verdict) => {
                let again = self.model.is_repeat(&fence, verdict.kind());
                let late = Settlement::new(fence, verdict).event(event(5)).job(job(6));
                match self.store.settle_one(late).await {
                    Ok(settled) if settled.repeated && again => Ok(()),
                    Err(_) if again => Err("a repeat is refused".to_owned()),
                    answer => lost(answer.map(|settled| format!("{settled:?}"))),
                }
            }
        }
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
