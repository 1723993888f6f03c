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
        let mut found: Vec<&EventRow> = self.deliverable(facts, topics).collect();
        found.sort_by_key(|row| (row.run_at, row.id));
        found.truncate(request.limit);
        let mut found: Vec<EventRow> = found.into_iter().cloned().collect();
        work.load_events(found.iter().cloned());
        if found.len() < request.limit {
            let back = self.take_back_events(facts, &mut work, topics, request.limit);
            let back = back.iter().filter_map(|id| work.event(*id));
            let due = |row: &&EventRow| {
                row.state == EventState::Waiting
                    && row.run_at <= facts.now
                    && self.is_first_of_its_key(row)
            };
            found.extend(back.filter(due).cloned());
            found.sort_by_key(|row| (row.run_at, row.id));
            found.truncate(request.limit);
        }
        let claims = found.iter().map(|row| work.claim_event(row.id, request)).collect();
        self.write(facts, work);
        claims
    }

    fn deliverable<'a>(
        &'a self,
        facts: &'a Facts<'_>,
        topics: Option<&'a [Topic]>,
    ) -> impl Iterator<Item = &'a EventRow> {
        self.events.values().filter(move |row| {
            row.state == EventState::Waiting
                && row.run_at <= facts.now
                && topics.is_none_or(|topics| topics.contains(&row.topic))
                && self.is_first_of_its_key(row)
        })
    }

    fn is_first_of_its_key(&self, row: &EventRow) -> bool {
        let live = |event: &EventRow| {
            matches!(event.state, EventState::Waiting | EventState::Leased) && event.ordered
        };
        let earlier = |event: &EventRow| {
            live(event) && event.ordering == row.ordering && event.sequence < row.sequence
        };
        !row.ordered || !self.events.values().any(earlier)
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
        let found: Vec<EventRow> =
            self.events.values().filter(expired).take(limit).cloned().collect();
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
        self.write(facts, work);
        Ok(answers)
    }
}
