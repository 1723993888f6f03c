//! Owns the claim and the reclaim of jobs: which candidates are read, in which order, and within
//! which limits. What a claim does to a row is a rule of the contract.

use super::state::{Facts, State};
use crate::claim::{Claim, ClaimRequest, ReclaimRequest, Reclaimable, Reclaimed};
use crate::error::{Error, ErrorKind, Result};
use crate::event::EventState;
use crate::id::JobId;
use crate::name::QueueName;
use crate::row::{JobRow, QueueRow};
use crate::rules::{Work, claim_order, queues_once, room};

/// The most expired rows that one claim takes back in passing.
const RECLAIM_MAX: usize = 1_000;

/// One claim in the making.
pub(super) struct Taking<'a> {
    pub(super) state: &'a State,
    pub(super) facts: &'a Facts<'a>,
    request: &'a ClaimRequest,
    pub(super) work: Work,
    rows: Vec<JobRow>,
    /// How many of `rows` an earlier send of this request had taken.
    had: usize,
}

impl State {
    pub(super) fn claim(
        &mut self,
        facts: &Facts<'_>,
        request: &ClaimRequest,
    ) -> Result<Vec<Claim>> {
        request.check()?;
        let work = self.work(facts);
        let mut taking = Taking { state: self, facts, request, work, rows: Vec::new(), had: 0 };
        let queues = queues_once(&request.queues);
        if request.repeat {
            queues.iter().for_each(|queue| taking.again(queue));
        }
        queues.iter().try_for_each(|queue| taking.fill_from(queue))?;
        let Taking { mut work, mut rows, had, .. } = taking;
        work.claimed(rows.get_mut(had..).unwrap_or_default())?;
        let claims = rows.iter().map(|row| self.claim_for(&work, row)).collect::<Result<_>>()?;
        self.write(facts, work);
        rows.into_iter().skip(had).for_each(|row| self.put_job(row));
        Ok(claims)
    }

    fn claim_for(&self, work: &Work, row: &JobRow) -> Result<Claim> {
        let missing = || Error::new(ErrorKind::Corrupt, "claim", "a job has no request");
        let request = self.requests.get(&row.id).cloned().ok_or_else(missing)?;
        let left = self.outcomes.get(&row.id).and_then(|outcome| outcome.row.checkpoint.clone());
        work.claim_of(row, request.into(), left)
    }

    pub(super) fn reclaim(
        &mut self,
        facts: &Facts<'_>,
        request: &ReclaimRequest,
    ) -> Result<Reclaimed> {
        let mut work = self.work(facts);
        let mut done = Reclaimed::default();
        match &request.what {
            Reclaimable::Jobs(queues) => {
                let ids = match queues {
                    Some(queues) => {
                        let mut ids = Vec::new();
                        for queue in queues_once(queues) {
                            let left = request.limit.saturating_sub(ids.len());
                            ids.extend(self.expired(facts, Some(&queue), left));
                        }
                        ids
                    }
                    None => self.expired(facts, None, request.limit),
                };
                done.jobs = self.take_back(&mut work, ids)?;
                done.jobs.sort_unstable();
            }
            Reclaimable::Events(topics) => {
                let back =
                    self.take_back_events(facts, &mut work, topics.as_deref(), request.limit);
                for event in back.iter().filter_map(|id| work.event(*id)) {
                    match event.state {
                        EventState::Waiting => done.events_returned += 1,
                        _ => done.events_dead += 1,
                    }
                }
            }
        }
        self.conclude(facts, work)?;
        Ok(done)
    }

    fn expired(&self, facts: &Facts<'_>, queue: Option<&QueueName>, limit: usize) -> Vec<JobId> {
        let mut ids: Vec<JobId> = match queue {
            Some(queue) => self.orders.leased(queue).collect(),
            None => self.orders.leased_anywhere().collect(),
        };
        ids.retain(|id| !self.is_held(*id, facts));
        ids.sort_unstable();
        ids.truncate(limit);
        ids
    }

    /// Whether a job's lease still runs.
    fn is_held(&self, id: JobId, facts: &Facts<'_>) -> bool {
        let lease = self.jobs.get(&id).and_then(|row| row.lease);
        lease.is_some_and(|lease| lease.expires_at > facts.now)
    }

    fn take_back(
        &self,
        work: &mut Work,
        ids: Vec<JobId>,
    ) -> Result<Vec<(JobId, crate::lifecycle::Place)>> {
        self.load_jobs(work, ids.iter().copied());
        self.load_letters(work);
        let mut done = Vec::with_capacity(ids.len());
        for id in ids {
            done.extend(work.reclaim(id)?.map(|place| (id, place)));
        }
        Ok(done)
    }
}

impl Taking<'_> {
    fn left(&self) -> usize {
        self.request.limit.saturating_sub(self.rows.len())
    }

    fn again(&mut self, queue: &QueueName) {
        let (state, request) = (self.state, self.request);
        let mine = |row: &&JobRow| {
            row.claim == Some(request.claim)
                && row.lease.is_some_and(|lease| lease.worker == request.worker)
        };
        let held = state.orders.leased(queue).filter(|id| state.is_held(*id, self.facts));
        let rows = held.filter_map(|id| state.jobs.get(&id)).filter(mine);
        let mut rows: Vec<JobRow> = rows.cloned().collect();
        rows.sort_by_key(claim_order);
        rows.truncate(self.left());
        self.rows.append(&mut rows);
        self.had = self.rows.len();
    }

    fn fill_from(&mut self, name: &QueueName) -> Result<()> {
        let Some(queue) = self.state.queues.get(name) else { return Ok(()) };
        if queue.paused || self.left() == 0 {
            return Ok(());
        }
        let shared = self.state.orders.is_shared(name);
        let limited = shared || queue.limit.is_some() || self.state.limit.is_some();
        if limited {
            self.take_back(name)?;
        }
        let want = self.left().min(self.room(queue));
        if shared {
            let back: Vec<JobRow> = self.work.freed(name).cloned().collect();
            return self.fill_in_turns(queue, want, &back);
        }
        let mut found = self.candidates(name, want);
        if !limited && found.len() + self.freed(name).count() < want {
            self.take_back(name)?;
        }
        found.extend(self.freed(name).cloned());
        found.sort_by_key(claim_order);
        found.truncate(want);
        self.keep(queue, found);
        Ok(())
    }

    /// Claims rows, which stand in the claim order.
    pub(super) fn keep(&mut self, queue: &QueueRow, mut found: Vec<JobRow>) {
        let lease = self.request.lease_for(Some(queue), self.facts.limits.lease_default);
        for row in &mut found {
            self.work.claim_row(row, self.request, lease);
        }
        self.rows.append(&mut found);
    }

    /// What this claim has made claimable of no partition; partitions give by turns only.
    fn freed<'q>(&'q self, queue: &'q QueueName) -> impl Iterator<Item = &'q JobRow> {
        self.work.freed(queue).filter(|row| row.partition.is_none())
    }

    /// Reclaims a queue's expired rows.
    fn take_back(&mut self, queue: &QueueName) -> Result<()> {
        let ids = self.state.expired(self.facts, Some(queue), RECLAIM_MAX);
        self.state.take_back(&mut self.work, ids)?;
        self.state.resolve(&mut self.work)
    }

    fn room(&self, queue: &QueueRow) -> usize {
        let state = self.state;
        let count = |held: usize| u64::try_from(held).unwrap_or(u64::MAX);
        let held = |id: &JobId| state.is_held(*id, self.facts);
        let mut left = usize::MAX;
        if queue.limit.is_some() {
            let leased = state.orders.leased(&queue.name).filter(held).count();
            left = left.min(room(queue.limit, count(leased)));
        }
        if state.limit.is_some() {
            let taken = self.rows.len().saturating_sub(self.had);
            let leased = state.orders.leased_anywhere().filter(held).count();
            left = left.min(room(state.limit, count(leased.saturating_add(taken))));
        }
        left
    }

    fn candidates(&self, queue: &QueueName, want: usize) -> Vec<JobRow> {
        let waiting = self.state.orders.waiting(queue, None);
        let due = waiting.filter(|(run_at, _)| *run_at <= self.facts.now);
        due.filter_map(|(_, id)| self.state.jobs.get(&id)).take(want).cloned().collect()
    }
}
