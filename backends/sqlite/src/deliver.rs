//! Owns the outbox's claim and reclaim: which events are candidates. What happens to one is a rule
//! of the contract.

use leasehold_core::row::EventRow;
use leasehold_core::rules::Work;
use leasehold_core::{
    EventClaim, EventClaimRequest, EventFence, EventId, EventState, Reclaimed, Result, Topic,
};
use rusqlite::{Connection, params};

use crate::joined::Joined;
use crate::load::{self, Facts, bound};
use crate::places;
use crate::row::Columns;
use crate::statement::{row, rows, sql};

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

/// Loads the events of some fences.
pub(crate) fn load<'a>(
    conn: &Connection,
    work: &mut Work,
    fences: impl Iterator<Item = &'a EventFence>,
) -> Result<()> {
    let mut ids: Vec<EventId> = fences.map(|fence| fence.event()).collect();
    ids.sort_unstable();
    ids.dedup();
    load::events(conn, work, &ids)
}

/// Takes expired deliveries back, in memory.
pub(crate) fn reclaim(
    joined: &Joined<'_>,
    facts: &Facts,
    work: &mut Work,
    topics: Option<&[Topic]>,
    limit: usize,
) -> Result<TakenBack> {
    let values = params![facts.now.as_micros(), topic_list(topics), bound(limit)];
    let found = rows(joined.conn, sql!("expired_events"), values, |row| Columns::of(row).event())?;
    let ids: Vec<EventId> = found.iter().map(|row| row.id).collect();
    work.load_events(found);
    let taken = ids.into_iter().filter(|id| work.reclaim_event(*id).is_some());
    Ok(TakenBack(taken.collect()))
}

impl Joined<'_> {
    pub(crate) fn claim_events(&self, request: &EventClaimRequest) -> Result<Vec<EventClaim>> {
        request.check()?;
        self.verb("claim events", |facts| {
            let mut work = facts.work(self.shared);
            let topics = request.topics.as_deref();
            let now = facts.now;
            let again = match request.repeat {
                true => again(self.conn, facts, request)?,
                false => Vec::new(),
            };
            let mut claims: Vec<EventClaim> =
                again.iter().map(|row| work.event_claim_of(row, request)).collect();
            let limit = request.limit - claims.len();
            let mut found = candidates(self.conn, facts, topics, limit)?;
            if found.len() < limit {
                let back = reclaim(self, facts, &mut work, topics, limit)?;
                let due = |row: &&EventRow| row.state == EventState::Waiting && row.run_at <= now;
                for row in back.0.iter().filter_map(|id| work.event(*id)).filter(due) {
                    // A replay may have put an earlier one of its key before it.
                    if is_first(self.conn, row.id)? {
                        found.push(row.clone());
                    }
                }
                found.sort_by_key(|row| (row.run_at, row.id));
                found.truncate(limit);
            }
            let fresh = found.iter().filter(|row| work.event(row.id).is_none());
            work.load_events(fresh.cloned().collect::<Vec<_>>());
            for row in &found {
                claims.push(work.claim_event(row.id, request)?);
            }
            self.write(facts, work)?;
            Ok(claims)
        })
    }
}

/// What an earlier send of the same request took and still holds.
fn again(conn: &Connection, facts: &Facts, request: &EventClaimRequest) -> Result<Vec<EventRow>> {
    let values = params![
        request.claim.as_bytes().as_slice(),
        request.worker.as_bytes().as_slice(),
        facts.now.as_micros(),
        bound(request.limit),
    ];
    rows(conn, sql!("event_claim_again"), values, |row| Columns::of(row).event())
}

/// Due events in the claim order: one index range for each topic that has any.
fn candidates(
    conn: &Connection,
    facts: &Facts,
    topics: Option<&[Topic]>,
    limit: usize,
) -> Result<Vec<EventRow>> {
    let waiting = || places::topics(conn, EventState::Waiting);
    let mut topics = topics.map_or_else(waiting, |topics| Ok(topics.to_vec()))?;
    topics.sort_unstable();
    topics.dedup();
    let mut found = Vec::new();
    for topic in &topics {
        let values = params![facts.now.as_micros(), topic.as_str(), bound(limit)];
        found.extend(rows(conn, sql!("event_candidates"), values, |row| Columns::of(row).event())?);
    }
    found.sort_by_key(|row: &EventRow| (row.run_at, row.id));
    found.truncate(limit);
    Ok(found)
}

fn is_first(conn: &Connection, event: EventId) -> Result<bool> {
    let key = params![event.as_bytes().as_slice()];
    let first = row(conn, sql!("event_is_first"), key, |row| Columns::of(row).raw())?;
    Ok(first.unwrap_or(true))
}

fn topic_list(topics: Option<&[Topic]>) -> Option<String> {
    topics.map(|topics| {
        let names: Vec<&str> = topics.iter().map(Topic::as_str).collect();
        serde_json::Value::from(names).to_string()
    })
}
