//! Owns the outbox's claim, renewal, end and reclaim: which events are candidates. What happens to
//! one is a rule of the contract.

use super::state::{Facts, State};
use crate::claim::{RenewRequest, Renewal};
use crate::error::Result;
use crate::event::{EventClaim, EventClaimRequest, EventSettlement, EventState};
use crate::fence::EventFence;
use crate::id::EventId;
use crate::name::Topic;
use crate::row::EventRow;
use crate::rules::Work;

impl State {
    pub(super) fn claim_events(
        &mut self,
        facts: &Facts<'_>,
        request: &EventClaimRequest,
    ) -> Result<Vec<EventClaim>> {
        request.check()?;
        let mut work = self.work(facts);
        let topics = request.topics.as_deref();
        let of_topics = |row: &&EventRow| topics.is_none_or(|topics| topics.contains(&row.topic));
        let again = match request.repeat {
            true => self.events_again(facts, request),
            false => Vec::new(),
        };
        let mut claims: Vec<EventClaim> =
            again.iter().map(|row| work.event_claim_of(row, request)).collect();
        let limit = request.limit - claims.len();
        let due = self.orders.due_events(facts.now).filter_map(|id| self.events.get(&id));
        let due = due.filter(of_topics).filter(|row| self.orders.is_first(row));
        let mut found: Vec<EventRow> = due.take(limit).cloned().collect();
        work.load_events(found.iter().cloned());
        if found.len() < limit {
            let back = self.take_back_events(facts, &mut work, topics, limit);
            let due = |row: &&EventRow| {
                row.state == EventState::Waiting
                    && row.run_at <= facts.now
                    // A replay may have put an earlier one of its key before it.
                    && self.orders.is_first(row)
            };
            found.extend(back.iter().filter_map(|id| work.event(*id)).filter(due).cloned());
            found.sort_by_key(|row| (row.run_at, row.id));
            found.truncate(limit);
        }
        for row in &found {
            claims.push(work.claim_event(row.id, request)?);
        }
        self.write(facts, work);
        Ok(claims)
    }

    /// What an earlier send of the same request took and still holds.
    fn events_again(&self, facts: &Facts<'_>, request: &EventClaimRequest) -> Vec<EventRow> {
        let held = |row: &&EventRow| {
            let by = |lease: crate::row::Lease| lease.worker == request.worker;
            row.claim == Some(request.claim)
                && row.lease.is_some_and(|lease| by(lease) && lease.expires_at > facts.now)
        };
        let leased = self.orders.leased_events().filter_map(|id| self.events.get(&id));
        let mut rows: Vec<EventRow> = leased.filter(held).cloned().collect();
        rows.sort_by_key(|row| (row.run_at, row.id));
        rows.truncate(request.limit);
        rows
    }

    pub(super) fn take_back_events(
        &self,
        facts: &Facts<'_>,
        work: &mut Work,
        topics: Option<&[Topic]>,
        limit: usize,
    ) -> Vec<EventId> {
        let expired = |row: &&EventRow| {
            row.lease.is_some_and(|lease| lease.expires_at <= facts.now)
                && topics.is_none_or(|topics| topics.contains(&row.topic))
        };
        let leased = self.orders.leased_events().filter_map(|id| self.events.get(&id));
        let found: Vec<EventRow> = leased.filter(expired).take(limit).cloned().collect();
        let ids: Vec<EventId> = found.iter().map(|row| row.id).collect();
        work.load_events(found);
        ids.into_iter().filter(|id| work.reclaim_event(*id).is_some()).collect()
    }

    pub(super) fn renew_events(
        &mut self,
        facts: &Facts<'_>,
        request: &RenewRequest<EventFence>,
    ) -> Result<Vec<Renewal>> {
        facts.limits.check_batch("renew", request.fences.len())?;
        let mut work = self.work(facts);
        self.load_events(&mut work, request.fences.iter().map(|fence| fence.event()));
        let answers = request.fences.iter().map(|fence| work.renew_event(fence, request)).collect();
        self.write(facts, work);
        Ok(answers)
    }

    pub(super) fn settle_events(
        &mut self,
        facts: &Facts<'_>,
        settlements: &[EventSettlement],
    ) -> Result<Vec<Result<()>>> {
        facts.limits.check_batch("settle", settlements.len())?;
        let mut work = self.work(facts);
        self.load_events(&mut work, settlements.iter().map(|it| it.fence.event()));
        let answers = settlements.iter().map(|it| work.settle_event(it)).collect();
        let delivered = work.delivered_of_jobs();
        self.write(facts, work);
        if !delivered.is_empty() {
            self.close_letters(facts, &delivered);
        }
        Ok(answers)
    }
}
