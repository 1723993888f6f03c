//! Owns one walk: what the model does next, the same on a store, and the comparison of both.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::lab::LabStore;
use leasehold_core::{
    Actor, ClaimId, ClaimRequest, ClaimVersion, Control, Epoch, Failure, FailureCode, Fence, JobId,
    JobKind, Json, LostReason, NewJob, QueueName, ReclaimRequest, RenewRequest, Renewal, Result,
    Settlement, State, StoreExt, VerdictKind, WorkerId,
};
use leasehold_model::{
    Action, Answer, Ended, Lost, Mutant, OnFailure, Protocol, Request, Row, Said, Verdict, World,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use stateright::Model;
use uuid::Uuid;

/// How many stores a trace may go over: one, and one more for each failover.
pub(crate) const LANES: usize = 3;
const STEPS: usize = 40;
const ATTEMPTS_MAX: u8 = 3;
/// After how many steps the rows are compared in the middle of a trace.
const LOOK_EVERY: usize = 8;

type Judged<T = ()> = std::result::Result<T, String>;

/// How often the walks met what they are made for.
#[derive(Debug, Default)]
pub(crate) struct Met {
    steps: u64,
    claims: u64,
    settled: u64,
    repeated: u64,
    refused: u64,
    failovers: u64,
    lapses: u64,
}

impl Met {
    /// Fails when the walks missed something that they are for.
    pub(crate) fn check(&self) -> Judged {
        let parts = [self.claims, self.settled, self.repeated, self.refused, self.failovers];
        match parts.iter().all(|met| *met >= 20) && self.lapses >= 20 {
            true => Ok(()),
            false => Err(format!("the walks met too little: {self:?}")),
        }
    }
}

/// What a store is told, in order, so that a standby can be told the same.
#[derive(Clone, Copy, Debug)]
enum Told {
    Request(Request),
    Lapse,
    Reclaim,
    Reopen(u8),
    Bump,
}

struct Walk<'a> {
    store: &'a dyn LabStore,
    trace: u64,
    /// The stores' epoch at the beginning.
    epoch: u16,
    /// Whether the second job waits for the first, and how.
    waits: Option<OnFailure>,
}

fn waits(drawn: u8) -> Option<OnFailure> {
    [OnFailure::Cancel, OnFailure::Run, OnFailure::Wait].get(usize::from(drawn)).copied()
}

/// Walks one trace; the epoch of all stores afterwards.
pub(crate) async fn walk(
    stores: &[Arc<dyn LabStore>],
    trace: u64,
    epoch: u16,
    mutant: Option<Mutant>,
    met: &mut Met,
) -> Judged<u16> {
    let mut random = StdRng::seed_from_u64(trace);
    let model = Protocol {
        jobs: 2,
        workers: 3,
        claims: 6,
        attempts_max: ATTEMPTS_MAX,
        failovers: if random.random_range(0..3) == 0 { 2 } else { 0 },
        verdicts: vec![Verdict::Succeed, Verdict::Fail, Verdict::Retry, Verdict::Release],
        one_clock: true,
        waits: waits(random.random_range(0..6)),
        mutant,
    };
    let mut world = model.init_states().remove(0);
    let mut told = Vec::new();
    let mut seen = 0;
    let mut lane = 0;
    let mut log = Vec::new();
    let mut walk = Walk { store: &*stores[0], trace, epoch, waits: model.waits };
    walk.begin().await.map_err(|error| error.to_string())?;
    for step in 0..STEPS {
        let Some((action, next)) = draw(&model, &world, &mut random) else { break };
        log.push(action);
        let why = |why: String| format!("trace {trace}: {why}\n{log:#?}");
        met.steps += 1;
        if action == Action::CatchUp {
            seen = told.len();
        } else if action == Action::FailOver {
            met.failovers += 1;
            told.truncate(seen);
            told.push(Told::Bump);
            seen = told.len();
            lane += 1;
            walk.store = &*stores[lane];
            walk.again(&told).await.map_err(|error| why(error.to_string()))?;
        } else if let Some(request) = model.request(&world, action) {
            told.push(Told::Request(request));
            let answer = model.serve(&mut world.clone(), request);
            note(met, answer);
            walk.ask(request, answer).await.map_err(why)?;
        } else if let Some(plain) = plain(action) {
            met.lapses += u64::from(action == Action::LapseAll);
            told.push(plain);
            walk.tell(plain).await.map_err(|error| why(error.to_string()))?;
        }
        world = next;
        if step % LOOK_EVERY == LOOK_EVERY - 1 || action == Action::FailOver {
            walk.compare(&world).await.map_err(why)?;
        }
    }
    walk.compare(&world).await.map_err(|why| format!("trace {trace}: {why}\n{log:#?}"))?;
    level(stores, lane, world.store.epoch).await.map_err(|error| error.to_string())?;
    Ok(epoch + u16::from(world.store.epoch))
}

/// Brings every store to the epoch of the one that the trace ended on.
async fn level(stores: &[Arc<dyn LabStore>], lane: usize, bumps: u8) -> Result<()> {
    for (at, store) in stores.iter().enumerate() {
        // The store of the n-th failover has seen all bumps up to its own.
        let had = if at <= lane { at } else { 0 };
        for _ in had..usize::from(bumps) {
            store.control(Control::BumpEpoch { actor: Actor::new("standby")? }).await?;
        }
    }
    Ok(())
}

/// What an operator, a sweeper or the clock does.
fn plain(action: Action) -> Option<Told> {
    match action {
        Action::LapseAll => Some(Told::Lapse),
        Action::Reclaim => Some(Told::Reclaim),
        Action::Reopen(job) => Some(Told::Reopen(job)),
        _ => None,
    }
}

/// A step that changes something; those that end a walk soon come more rarely.
fn draw(model: &Protocol, world: &World, random: &mut StdRng) -> Option<(Action, World)> {
    for _ in 0..200 {
        let mut actions = Vec::new();
        model.actions(world, &mut actions);
        let action = actions[random.random_range(0..actions.len())];
        let rare = matches!(action, Action::Crash(_) | Action::FailOver);
        if rare && random.random_range(0..4) != 0 {
            continue;
        }
        if let Some(next) = model.next_state(world, action) {
            return Some((action, next));
        }
    }
    None
}

fn note(met: &mut Met, answer: Answer) {
    match answer {
        Answer::Claimed(Some(_)) => met.claims += 1,
        Answer::Settled(Said::Settled { repeated: true }) => met.repeated += 1,
        Answer::Settled(Said::Settled { .. }) => met.settled += 1,
        Answer::Settled(Said::Lost(_)) | Answer::Renewed(Err(_)) => met.refused += 1,
        _ => {}
    }
}

fn reason(lost: Lost) -> LostReason {
    match lost {
        Lost::TakenOver => LostReason::TakenOver,
        Lost::Reclaimed => LostReason::Reclaimed,
        Lost::Expired => LostReason::Expired,
        Lost::Settled => LostReason::Settled,
        Lost::EpochRaised => LostReason::EpochRaised,
    }
}

fn verdict_of(verdict: Verdict) -> leasehold_core::Verdict {
    let failure = || Failure::new(FailureCode::WorkerLost, "gone for a while");
    match verdict {
        Verdict::Succeed => leasehold_core::Verdict::Succeed { result: None },
        Verdict::Fail => leasehold_core::Verdict::Fail { failure: failure() },
        Verdict::Retry => leasehold_core::Verdict::Retry { failure: failure(), delay: None },
        Verdict::Release => leasehold_core::Verdict::Release { delay: None },
    }
}

fn policy_of(waits: OnFailure) -> leasehold_core::OnFailure {
    match waits {
        OnFailure::Cancel => leasehold_core::OnFailure::Cancel,
        OnFailure::Run => leasehold_core::OnFailure::Run,
        OnFailure::Wait => leasehold_core::OnFailure::Wait,
    }
}

fn kind_of(verdict: Verdict) -> VerdictKind {
    verdict_of(verdict).kind()
}

fn state_of(row: &Row) -> State {
    match row.state {
        Ended::Waiting => State::Waiting,
        Ended::Leased => State::Leased,
        Ended::Succeeded => State::Succeeded,
        Ended::Failed => State::Failed,
        Ended::Dead => State::DeadLetter,
        Ended::Cancelled => State::Cancelled,
    }
}

impl Walk<'_> {
    fn id(&self, what: u64, number: u8) -> Uuid {
        Uuid::from_u64_pair(self.trace + 1, what * 256 + u64::from(number))
    }

    fn job(&self, job: u8) -> JobId {
        JobId::from_uuid(self.id(1, job))
    }

    fn worker(&self, worker: u8) -> WorkerId {
        WorkerId::from_uuid(self.id(2, worker))
    }

    fn queue(&self) -> Result<QueueName> {
        QueueName::new(format!("trace-{}", self.trace))
    }

    fn fence(&self, fence: &leasehold_model::Fence) -> Result<Fence> {
        let claim = ClaimId::from_uuid(self.id(3, fence.claim));
        let version = ClaimVersion::new(i64::from(fence.version))?;
        let epoch = Epoch::new(i64::from(self.epoch) + i64::from(fence.epoch))?;
        let worker = self.worker(fence.worker);
        Ok(Fence::from_parts(self.job(fence.job), version, claim, worker, epoch))
    }

    async fn begin(&self) -> Result<()> {
        for number in 0..2 {
            let mut job = NewJob::new(JobKind::new("resize")?, Json::null());
            job.id = self.job(number);
            job.queue = self.queue()?;
            let job = job.priority(2 - i16::from(number)).max_attempts(u16::from(ATTEMPTS_MAX));
            let job = match self.waits.filter(|_| number == 1) {
                Some(waits) => job.after(self.job(0), policy_of(waits)),
                None => job,
            };
            let _new = self.store.enqueue_one(job).await?;
        }
        Ok(())
    }

    /// Tells a standby what it had seen.
    async fn again(&self, told: &[Told]) -> Result<()> {
        self.begin().await?;
        for told in told {
            self.tell(*told).await?;
        }
        Ok(())
    }

    /// Does a step whose answer nobody waits for.
    async fn tell(&self, told: Told) -> Result<()> {
        match told {
            Told::Request(Request::Claim { worker, claim, again }) => {
                let _claims = self.store.claim(self.claim(worker, claim, again)?).await?;
            }
            Told::Request(Request::Renew(fence)) => {
                self.store.renew_one(self.fence(&fence)?).await?;
            }
            Told::Request(Request::Settle(fence, verdict)) => {
                let settled = self.store.settle_one(self.settlement(&fence, verdict)?).await;
                settled.map(|_| ()).or_else(|error| match error.is_fence_lost() {
                    true => Ok(()),
                    false => Err(error),
                })?;
            }
            Told::Request(Request::Effect(_)) => {}
            Told::Lapse => {
                self.store.clock().expect("a clock").advance(Duration::from_secs(31));
            }
            Told::Reclaim => {
                self.store.reclaim(ReclaimRequest::queues([self.queue()?])).await?;
            }
            Told::Reopen(job) => {
                let actor = Actor::new("operator")?;
                self.store.control(Control::Retry { job: self.job(job), actor }).await?;
            }
            Told::Bump => {
                self.store.control(Control::BumpEpoch { actor: Actor::new("standby")? }).await?;
            }
        }
        Ok(())
    }

    fn claim(&self, worker: u8, claim: u8, again: bool) -> Result<ClaimRequest> {
        let request = ClaimRequest::new(self.worker(worker), [self.queue()?]);
        let request = request.claim_id(ClaimId::from_uuid(self.id(3, claim)));
        Ok(if again { request.repeat() } else { request })
    }

    fn settlement(&self, fence: &leasehold_model::Fence, verdict: Verdict) -> Result<Settlement> {
        Ok(Settlement::new(self.fence(fence)?, verdict_of(verdict)))
    }

    /// Asks the store and compares its answer with the model's.
    async fn ask(&self, request: Request, expected: Answer) -> Judged {
        let text = |error: leasehold_core::Error| error.to_string();
        let (found, expected) = match (request, expected) {
            (Request::Claim { worker, claim, again }, Answer::Claimed(fence)) => {
                let request = self.claim(worker, claim, again).map_err(text)?;
                let claims = self.store.claim(request).await.map_err(text)?;
                let found: Vec<Fence> = claims.iter().map(|claim| claim.fence).collect();
                let fence = fence.map(|fence| self.fence(&fence)).transpose().map_err(text)?;
                (format!("{found:?}"), format!("{:?}", Vec::from_iter(fence)))
            }
            (Request::Renew(fence), Answer::Renewed(expected)) => {
                let request = RenewRequest::new([self.fence(&fence).map_err(text)?]);
                let found = self.store.renew(request).await.map_err(text)?;
                let lost = match found[..] {
                    [Renewal::Renewed { .. }] => Ok(()),
                    [Renewal::Lost(why)] => Err(why),
                    _ => return Err(format!("{found:?}")),
                };
                (format!("{lost:?}"), format!("{:?}", expected.map_err(reason)))
            }
            (Request::Settle(fence, verdict), Answer::Settled(expected)) => {
                let settlement = self.settlement(&fence, verdict).map_err(text)?;
                let found = match self.store.settle_one(settlement).await {
                    Ok(settled) => Ok(settled.repeated),
                    Err(error) => Err(error.lost_reason().ok_or_else(|| error.to_string())?),
                };
                let expected = match expected {
                    Said::Settled { repeated } => Ok(repeated),
                    Said::Lost(why) => Err(reason(why)),
                };
                (format!("{found:?}"), format!("{expected:?}"))
            }
            _ => return Ok(()),
        };
        match found == expected {
            true => Ok(()),
            false => Err(format!("{request:?}: {found}, the model says {expected}")),
        }
    }

    /// Compares the rows of the store with those of the model.
    async fn compare(&self, world: &World) -> Judged {
        for (job, row) in world.store.rows.iter().enumerate() {
            let text = |error: leasehold_core::Error| error.to_string();
            let id = self.job(job as u8);
            let view = self.store.job(id).await.map_err(text)?.ok_or("a job is gone")?;
            let now = self.store.clock().expect("a clock").now();
            let found = (
                view.state,
                view.claim_version.get(),
                view.attempts,
                view.worker,
                view.lease_expires_at.is_some_and(|end| end > now),
                view.last_verdict,
                view.blocked,
            );
            let leased = row.state == Ended::Leased;
            let expected = (
                state_of(row),
                i64::from(row.version),
                u32::from(row.attempts),
                leased.then(|| self.worker(row.worker)),
                row.live,
                row.verdict.map(kind_of),
                row.held,
            );
            if found != expected {
                return Err(format!("job {job} is {found:?}, in the model {expected:?}"));
            }
        }
        Ok(())
    }
}
