//! Owns the outbox's claim and reclaim: which events are candidates. What happens to one is a rule
//! of the contract.

use std::collections::BTreeSet;

use async_trait::async_trait;
use leasehold_core::row::EventRow;
use leasehold_core::rules::Work;
use leasehold_core::{
    EventClaim, EventClaimRequest, EventFence, EventId, EventSettlement, EventState, LostReason,
    Reclaimed, RenewRequest, Renewal, Result, Timestamp, Topic,
};

use crate::bind::Params;
use crate::joined::{Joined, Verb, sorted};
use crate::load::Facts;
use crate::row::Columns;
use crate::statement::{Db, Sql, sql};

/// Events that were taken back, in id order.
#[derive(Debug, Default)]
pub(crate) struct TakenBack(Vec<EventId>);

impl TakenBack {
    /// Adds them up by where they landed.
    pub(crate) fn count(&self, work: &Work, done: &mut Reclaimed) {
        for event in self.0.iter().filter_map(|id| work.event(*id)) {
            match event.state {
                EventState::Waiting => done.events_returned += 1,
                _ => done.events_dead += 1,
            }
        }
    }
}

/// Which of some events have no earlier one of their key still to go.
async fn firsts(db: &Db<'_>, ids: &[EventId]) -> Result<BTreeSet<EventId>> {
    those(db, sql!("event_is_first"), ids).await
}

async fn those(db: &Db<'_>, sql: Sql, ids: &[EventId]) -> Result<BTreeSet<EventId>> {
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids = Params::new().many(ids.iter().copied());
    let found = db.rows(sql, ids, |row| Columns::of(row).id());
    Ok(found.await?.into_iter().map(EventId::from_uuid).collect())
}

/// Takes expired deliveries back, in memory.
pub(crate) async fn reclaim(
    db: &Db<'_>,
    facts: &Facts,
    work: &mut Work,
    topics: Option<&[Topic]>,
    limit: usize,
) -> Result<TakenBack> {
    let found = event_rows(db, sql!("expired_events"), facts, topics, limit).await?;
    let ids: Vec<EventId> = found.iter().map(|row| row.id).collect();
    work.load_events(found);
    let taken = ids.into_iter().filter(|id| work.reclaim_event(*id).is_some());
    Ok(TakenBack(taken.collect()))
}

#[async_trait]
impl Verb for EventClaimRequest {
    const NAME: &'static str = "claim events";
    type Answer = Vec<EventClaim>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        let facts = tx.facts().await?;
        self.check()?;
        let mut work = facts.work(tx.shared);
        let topics = self.topics.as_deref();
        let (db, now) = (&tx.db, facts.now);
        let again = match self.repeat {
            true => again(db, now, self).await?,
            false => Vec::new(),
        };
        let mut claims: Vec<EventClaim> =
            again.iter().map(|row| work.event_claim_of(row, self)).collect();
        let limit = self.limit - claims.len();
        let mut found = event_rows(db, sql!("event_candidates"), &facts, topics, limit).await?;
        if found.len() < limit {
            let back = reclaim(db, &facts, &mut work, topics, limit).await?;
            // A replay may have put an earlier one of its key before it.
            let first = firsts(db, &back.0).await?;
            let due = |row: &&EventRow| {
                row.state == EventState::Waiting && row.run_at <= now && first.contains(&row.id)
            };
            found.extend(back.0.iter().filter_map(|id| work.event(*id)).filter(due).cloned());
        }
        found.sort_by_key(|row| (row.run_at, row.id));
        found.truncate(limit);
        let fresh = found.iter().filter(|row| work.event(row.id).is_none());
        work.load_events(fresh.cloned().collect::<Vec<_>>());
        for row in &found {
            claims.push(work.claim_event(row.id, self)?);
        }
        tx.write(work).await?;
        Ok(claims)
    }
}

#[async_trait]
impl Verb for RenewRequest<EventFence> {
    const NAME: &'static str = "renew";
    type Answer = Vec<Renewal>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        let mut facts = tx.facts().await?;
        tx.shared.limits.check_batch(Self::NAME, self.fences.len())?;
        let ids = sorted(self.fences.iter().map(|fence| fence.event()));
        let rows = facts.lock_free_events(&tx.db, tx.shared, &ids).await?;
        let mut work = facts.work(tx.shared);
        work.load_events(rows);
        let absent: Vec<EventId> =
            ids.iter().copied().filter(|id| work.event(*id).is_none()).collect();
        let held = those(&tx.db, sql!("load_present_events"), &absent).await?;
        let renew = |fence: &EventFence| match held.contains(&fence.event()) {
            true if fence.epoch() != facts.epoch => Renewal::Lost(LostReason::EpochRaised),
            true => Renewal::Locked,
            false => work.renew_event(fence, self),
        };
        let answers = self.fences.iter().map(renew).collect();
        tx.write(work).await?;
        Ok(answers)
    }
}

#[async_trait]
impl Verb for [EventSettlement] {
    const NAME: &'static str = "settle";
    type Answer = Vec<Result<()>>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        let mut facts = tx.facts().await?;
        tx.shared.limits.check_batch(Self::NAME, self.len())?;
        let ids = sorted(self.iter().map(|item| item.fence.event()));
        let rows = facts.lock_events(&tx.db, tx.shared, &ids).await?;
        let mut work = facts.work(tx.shared);
        work.load_events(rows);
        let answers = self.iter().map(|item| work.settle_event(item)).collect();
        let delivered = work.delivered_of_jobs();
        tx.write(work).await?;
        if !delivered.is_empty() {
            tx.close_letters(&facts, delivered).await?;
        }
        Ok(answers)
    }
}

/// What an earlier send of the same request took and still holds.
async fn again(db: &Db<'_>, now: Timestamp, request: &EventClaimRequest) -> Result<Vec<EventRow>> {
    let values = Params::new().one(request.claim).one(request.worker).one(now).one(request.limit);
    let mut found =
        db.rows(sql!("event_claim_again"), values, |row| Columns::of(row).event()).await?;
    found.sort_by_key(|row| (row.run_at, row.id));
    Ok(found)
}

async fn event_rows(
    db: &Db<'_>,
    sql: Sql,
    facts: &Facts,
    topics: Option<&[Topic]>,
    limit: usize,
) -> Result<Vec<EventRow>> {
    let topics = topics.map(|topics| topics.iter().map(Topic::as_str));
    let values = Params::new().one(facts.now).maybe_many(topics).one(limit);
    db.rows(sql, values, |row| Columns::of(row).event()).await
}
