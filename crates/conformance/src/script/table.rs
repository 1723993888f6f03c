//! Owns what a script remembers: the ids it made and the fences that were handed to it, live or long
//! dead. All stores fill the same table; the first one's answers are kept, since the others must agree.

use leasehold_core::{
    Claim, ClaimRequest, EventClaim, EventFence, EventId, Fence, JobId, NewEvent, NewJob, Replay,
    Settlement,
};

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) jobs: Vec<NewJob>,
    pub(super) events: Vec<NewEvent>,
    pub(super) fences: Vec<Fence>,
    pub(super) event_fences: Vec<EventFence>,
    /// The last claim request, for a repeat.
    pub(super) claims: Vec<ClaimRequest>,
    /// Settlements already sent, for a repeat.
    pub(super) settled: Vec<Settlement>,
    /// Jobs whose settlement may have left a dead letter, and those that replay them.
    pub(super) dead: Vec<JobId>,
    turn: usize,
}

impl Table {
    pub(super) fn job_ids(&self) -> Vec<JobId> {
        self.jobs.iter().map(|job| job.id).collect()
    }

    pub(super) fn event_ids(&self) -> Vec<EventId> {
        self.events.iter().map(|event| event.id).collect()
    }

    pub(super) fn keep_claims(&mut self, claims: &[Claim]) {
        if self.turn == 0 {
            self.fences.extend(claims.iter().map(|claim| claim.fence));
        }
    }

    pub(super) fn keep_events(&mut self, claims: &[EventClaim]) {
        if self.turn == 0 {
            self.event_fences.extend(claims.iter().map(|claim| claim.fence));
        }
    }

    pub(super) fn keep_requests(
        &mut self,
        jobs: &[NewJob],
        events: &[NewEvent],
        settled: &[Settlement],
    ) {
        if self.turn == 0 {
            self.jobs.extend(jobs.iter().cloned());
            self.events.extend(events.iter().cloned());
            self.settled.extend(settled.iter().cloned());
            let ends = settled.iter().filter(|it| it.verdict.failure().is_some());
            self.dead.extend(ends.map(|it| it.fence.job()));
        }
    }

    pub(super) fn keep_replay(&mut self, replay: &Replay) {
        if self.turn == 0 {
            self.dead.push(replay.new_job);
        }
    }

    pub(super) fn keep_claim(&mut self, request: &ClaimRequest) {
        if self.turn == 0 {
            self.claims.push(request.clone());
        }
    }

    pub(super) fn take_turn(&mut self) {
        self.turn += 1;
    }

    pub(super) fn end_turns(&mut self) {
        self.turn = 0;
    }
}
