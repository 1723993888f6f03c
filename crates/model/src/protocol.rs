//! Owns the steps of the model: what may happen next, and what comes of it.

use stateright::{Model, Property};

use crate::property::{Broken, always};
use crate::store::Desk;
use crate::{
    Ended, Fence, Lost, Mutant, OnFailure, Outside, Phase, Request, Row, Said, Store, Verdict,
    World,
};

/// A world's size, and the mistake that is made in it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Protocol {
    pub jobs: usize,
    pub workers: usize,
    /// How many claim ids are made; none comes after the last.
    pub claims: u8,
    pub attempts_max: u8,
    pub failovers: u8,
    pub verdicts: Vec<Verdict>,
    /// Whether leases lapse all together, as on one clock that jumps.
    pub one_clock: bool,
    /// Whether the second job waits for the first, and how.
    pub waits: Option<OnFailure>,
    pub mutant: Option<Mutant>,
}

impl Default for Protocol {
    fn default() -> Self {
        Self {
            jobs: 2,
            workers: 2,
            claims: 3,
            attempts_max: 3,
            failovers: 1,
            verdicts: vec![Verdict::Succeed, Verdict::Fail],
            one_clock: false,
            waits: None,
            mutant: None,
        }
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Delivery {
    Answered,
    ReplyLost,
    Delayed,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Action {
    /// Asks for a job; again when the worker asked before and heard nothing.
    Claim(u8, Delivery),
    Renew(u8, Delivery),
    Effect(u8, Delivery),
    Settle(u8, Verdict, Delivery),
    SettleAgain(u8, Delivery),
    /// A worker that heard nothing of its verdict comes to another.
    ChangeMind(u8),
    Crash(u8),
    Lapse(u8),
    LapseAll,
    Reclaim,
    Reopen(u8),
    /// The request that was on its way arrives.
    Arrive,
    /// The standby catches up.
    CatchUp,
    /// The standby takes over.
    FailOver,
}

/// What a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the requests")]
pub enum Answer {
    Claimed(Option<Fence>),
    Renewed(Result<(), Lost>),
    Settled(Said),
    Effect,
}

use Delivery::{Answered, Delayed, ReplyLost};

impl Protocol {
    fn desk<'a>(&self, store: &'a mut Store, broken: &'a mut Broken) -> Desk<'a> {
        let (mutant, jobs, attempts_max) = (self.mutant, self.jobs, self.attempts_max);
        Desk { store, broken, mutant, jobs, attempts_max, waits: self.waits }
    }

    /// Whether whoever waits for a job that is over may go on waiting: it can be taken back.
    pub(crate) fn returns(&self, row: &Row) -> bool {
        let may = row.state == Ended::Failed && row.attempts < self.attempts_max;
        self.waits == Some(OnFailure::Wait) && may
    }

    /// The request that a step brings to the store or outside; none where it stays on its way.
    pub fn request(&self, world: &World, action: Action) -> Option<Request> {
        let phase = |worker: u8| world.workers[usize::from(worker)].phase;
        let (request, delivery) = match action {
            Action::Claim(worker, it) => (self.ask(world, worker), it),
            Action::Renew(worker, it) => (Request::Renew(phase(worker).fence()?), it),
            Action::Effect(worker, it) => (Request::Effect(phase(worker).fence()?), it),
            Action::Settle(worker, verdict, it) => {
                (Request::Settle(phase(worker).fence()?, verdict), it)
            }
            Action::SettleAgain(worker, it) => match phase(worker) {
                Phase::Settling(fence, verdict) => (Request::Settle(fence, verdict), it),
                _ => return None,
            },
            Action::Arrive => return world.late,
            _ => return None,
        };
        (delivery != Delayed).then_some(request)
    }

    /// A claim; one with the id of before where the worker asked before.
    fn ask(&self, world: &World, worker: u8) -> Request {
        match world.workers[usize::from(worker)].phase {
            Phase::Asking { claim } => Request::Claim { worker, claim, again: true },
            _ => Request::Claim { worker, claim: world.claims + 1, again: false },
        }
    }

    /// Does a request at the store or outside.
    pub fn serve(&self, world: &mut World, request: Request) -> Answer {
        let mut desk = self.desk(&mut world.store, &mut world.broken);
        match request {
            Request::Claim { worker, claim, again } => {
                Answer::Claimed(desk.claim(worker, claim, again, &mut world.ghosts))
            }
            Request::Renew(fence) => Answer::Renewed(desk.renew(&fence)),
            Request::Settle(fence, verdict) => Answer::Settled(desk.settle(&fence, verdict)),
            Request::Effect(fence) => {
                self.effect(world, &fence);
                Answer::Effect
            }
        }
    }

    fn effect(&self, world: &mut World, fence: &Fence) {
        let outside = &mut world.outside[usize::from(fence.job)];
        if fence.token() < outside.token && self.mutant != Some(Mutant::TokenIgnored) {
            return;
        }
        // Told again in a later epoch, a claim is a later claim.
        let claim = (fence.epoch, fence.ghost);
        world.broken.mark(Broken::ORDER, claim < outside.claim);
        let newest = outside.claim.max(claim);
        *outside = Outside { token: fence.token().max(outside.token), claim: newest };
    }

    /// Brings a worker's request to where it goes; `waits` is what the worker does until it hears.
    fn send(
        &self,
        world: &mut World,
        worker: u8,
        (request, delivery): (Request, Delivery),
        waits: Phase,
    ) {
        let mut next = waits;
        match delivery {
            Delayed => world.late = Some(request),
            ReplyLost => drop(self.serve(world, request)),
            Answered => {
                let answer = self.serve(world, request);
                self.check_answer(world, request, answer);
                next = match answer {
                    Answer::Claimed(told) => told.map_or(Phase::Idle, Phase::Holding),
                    Answer::Renewed(Err(_)) | Answer::Settled(_) => Phase::Idle,
                    Answer::Renewed(Ok(())) | Answer::Effect => waits,
                };
            }
        }
        world.workers[usize::from(worker)].phase = next;
    }

    /// The store stands behind what it says.
    fn check_answer(&self, world: &mut World, request: Request, answer: Answer) {
        match (request, answer) {
            (_, Answer::Claimed(Some(fence))) => {
                let row = &world.store.rows[usize::from(fence.job)];
                let held = row.owner == fence.ghost && row.live;
                world.broken.mark(Broken::HELD, !held);
            }
            (Request::Settle(fence, verdict), Answer::Settled(Said::Settled { .. })) => {
                let job = usize::from(fence.job);
                let kept = Row::said_by(world.store.rows[job].said, fence.ghost);
                world.broken.mark(Broken::TRUTH, kept != verdict as u32);
                if Row::said_by(world.told[job], fence.ghost) == 0 {
                    Row::note(&mut world.told[job], fence.ghost, verdict);
                }
            }
            _ => {}
        }
    }

    fn act(&self, world: &mut World, action: Action) -> Option<()> {
        let phase = |world: &World, worker: u8| world.workers[usize::from(worker)].phase;
        match action {
            Action::Claim(worker, delivery) => {
                let request = self.ask(world, worker);
                let Request::Claim { claim, .. } = request else { return None };
                world.claims = world.claims.max(claim);
                self.send(world, worker, (request, delivery), Phase::Asking { claim });
            }
            Action::Renew(worker, delivery) => {
                let waits = phase(world, worker);
                self.send(world, worker, (Request::Renew(waits.fence()?), delivery), waits);
            }
            Action::Effect(worker, delivery) => {
                let waits = phase(world, worker);
                self.send(world, worker, (Request::Effect(waits.fence()?), delivery), waits);
            }
            Action::Settle(worker, verdict, delivery) => {
                let fence = phase(world, worker).fence()?;
                let request = Request::Settle(fence, verdict);
                self.send(world, worker, (request, delivery), Phase::Settling(fence, verdict));
            }
            Action::SettleAgain(worker, delivery) => {
                let waits = phase(world, worker);
                let Phase::Settling(fence, verdict) = waits else { return None };
                self.send(world, worker, (Request::Settle(fence, verdict), delivery), waits);
            }
            Action::ChangeMind(worker) => {
                let fence = phase(world, worker).fence()?;
                world.workers[usize::from(worker)].phase = Phase::Settling(fence, Verdict::Fail);
            }
            Action::Crash(worker) => world.workers[usize::from(worker)].phase = Phase::Idle,
            Action::Lapse(job) => world.store.rows[usize::from(job)].live = false,
            Action::LapseAll => world.store.rows.iter_mut().for_each(|row| row.live = false),
            Action::Reclaim => self.desk(&mut world.store, &mut world.broken).reclaim(),
            Action::Reopen(job) => {
                self.desk(&mut world.store, &mut world.broken).reopen(usize::from(job));
            }
            Action::Arrive => drop({
                let request = world.late.take()?;
                self.serve(world, request)
            }),
            Action::CatchUp => world.standby = Some(world.store),
            Action::FailOver => self.fail_over(world),
        }
        Some(())
    }

    fn fail_over(&self, world: &mut World) {
        let Some(standby) = world.standby else { return };
        world.store = standby;
        world.failovers += 1;
        if self.mutant != Some(Mutant::EpochNotRaised) && self.mutant != Some(Mutant::VersionOnly) {
            world.store.epoch += 1;
        }
        // What was lost with the failover is known to be lost: the epoch says so to every holder.
        for (told, row) in world.told.iter_mut().zip(&world.store.rows) {
            *told &= row.said;
        }
        world.standby = (world.failovers < self.failovers).then_some(world.store);
    }

    fn actions_of(&self, world: &World, worker: u8, actions: &mut Vec<Action>) {
        let free = world.late.is_none();
        let each = |answers: &[Delivery]| {
            let kept = answers.iter().filter(|it| free || **it != Delayed);
            kept.copied().collect::<Vec<Delivery>>()
        };
        match world.workers[usize::from(worker)].phase {
            Phase::Idle if world.claims >= self.claims => {}
            Phase::Idle | Phase::Asking { .. } => {
                let may = world.ghosts < 7;
                let all = each(if may { &[Answered, ReplyLost, Delayed] } else { &[] });
                actions.extend(all.into_iter().map(|it| Action::Claim(worker, it)));
            }
            Phase::Holding(_) => {
                let two = each(&[Answered, Delayed]);
                actions.extend(two.iter().map(|it| Action::Renew(worker, *it)));
                actions.extend(two.iter().map(|it| Action::Effect(worker, *it)));
                for verdict in &self.verdicts {
                    let all = each(&[Answered, ReplyLost, Delayed]).into_iter();
                    actions.extend(all.map(|it| Action::Settle(worker, *verdict, it)));
                }
            }
            Phase::Settling(_, verdict) => {
                let two = each(&[Answered, ReplyLost]).into_iter();
                actions.extend(two.map(|it| Action::SettleAgain(worker, it)));
                if verdict == Verdict::Succeed {
                    actions.push(Action::ChangeMind(worker));
                }
            }
        }
        if world.workers[usize::from(worker)].phase != Phase::Idle {
            actions.push(Action::Crash(worker));
        }
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut store = Store::default();
        store.rows[1].held = self.waits.is_some();
        let standby = (self.failovers > 0).then_some(store);
        vec![World { store, standby, ..World::default() }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for worker in 0..self.workers {
            self.actions_of(world, worker as u8, actions);
        }
        let rows = &world.store.rows[..self.jobs];
        if self.one_clock {
            actions.extend(rows.iter().any(|row| row.live).then_some(Action::LapseAll));
        } else {
            let live = (0..self.jobs).filter(|job| rows[*job].live);
            actions.extend(live.map(|job| Action::Lapse(job as u8)));
        }
        actions.push(Action::Reclaim);
        actions.extend((0..self.jobs).map(|job| Action::Reopen(job as u8)));
        actions.extend(world.late.map(|_| Action::Arrive));
        if world.standby.is_some() {
            actions.extend([Action::CatchUp, Action::FailOver]);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = *last;
        self.act(&mut world, action)?;
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let sometimes = Property::<Self>::sometimes;
        let mut all = always();
        all.push(sometimes("a job succeeds under its second claim", |_, w| {
            w.store.rows.iter().any(|row| row.state == crate::Ended::Succeeded && row.tries == 2)
        }));
        if self.waits.is_some() {
            all.push(sometimes("a job runs after the one that it waited for", |_, w| {
                w.store.rows[1].state == Ended::Succeeded
            }));
        }
        all.push(sometimes("a late settlement hangs while another owns the job", |_, w| {
            let Some(Request::Settle(fence, _)) = w.late else { return false };
            let row = &w.store.rows[usize::from(fence.job)];
            row.live && row.owner != fence.ghost
        }));
        all
    }
}
