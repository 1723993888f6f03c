//! Owns the letting go of what has ended long enough ago, at most so many rows of each sort.

use std::time::Duration;

use leasehold_core::row::QueueRow;
use leasehold_core::{EventState, PruneRequest, Pruned, Result, State, Timestamp};
use rusqlite::{Connection, params};

use crate::find;
use crate::joined::Joined;
use crate::load::{Facts, bound};
use crate::row::Columns;
use crate::statement::{execute, rows, sql};

impl Joined<'_> {
    pub(crate) fn prune(&self, request: &PruneRequest) -> Result<Pruned> {
        request.check()?;
        self.verb("prune", |facts| {
            let (conn, limit) = (self.conn, bound(request.limit));
            let now = facts.now.as_micros();
            let tombstones = facts.now.minus(self.shared.limits.tombstone_ttl).as_micros();
            let mut done = Pruned::default();
            done.keys = counted(execute(conn, sql!("prune_keys"), params![now, limit])?);
            done.tombstones =
                counted(execute(conn, sql!("prune_tombstones"), params![tombstones, limit])?);
            done.records = counted(execute(conn, sql!("prune_records"), params![now, limit])?);
            let versions = facts.now.plus(self.shared.limits.tombstone_ttl).as_micros();
            done.versions = counted(execute(conn, sql!("prune_versions"), params![now, limit])?);
            done.documents =
                counted(execute(conn, sql!("prune_documents"), params![now, limit, versions])?);
            done.blobs = counted(execute(conn, sql!("prune_blobs"), params![now, limit])?);
            done.buckets = counted(execute(conn, sql!("prune_tokens"), params![now, limit])?);
            done.starts = counted(execute(conn, sql!("prune_starts"), params![now, limit])?);
            done.events = events(conn, facts, request)?;
            done.jobs = jobs(conn, facts, request)?;
            if done.total() > 0 {
                self.shared.clock.keep(conn, facts.now)?;
            }
            Ok(done)
        })
    }
}

/// The last end that has stayed long enough.
fn cut(now: Timestamp, request: &PruneRequest, keep_seconds: i64) -> i64 {
    let keep = Duration::from_secs(u64::try_from(keep_seconds).unwrap_or(0));
    now.minus(request.older_than.unwrap_or(keep)).as_micros()
}

fn events(conn: &Connection, facts: &Facts, request: &PruneRequest) -> Result<u64> {
    let mut gone = 0;
    for state in EventState::ALL {
        let Some(keep) = state.keep_seconds() else { continue };
        let left = bound(request.limit).saturating_sub(gone);
        let values = params![state.as_str(), cut(facts.now, request, keep), left];
        gone += i64::try_from(execute(conn, sql!("prune_events"), values)?).unwrap_or(i64::MAX);
    }
    Ok(u64::try_from(gone).unwrap_or(0))
}

fn jobs(conn: &Connection, facts: &Facts, request: &PruneRequest) -> Result<u64> {
    let mut gone = 0;
    for queue in find::queues(conn)? {
        for state in State::ALL {
            let left = request.limit.saturating_sub(gone);
            gone += jobs_at(conn, facts, request, (&queue, state), left)?;
        }
    }
    Ok(counted(gone))
}

fn jobs_at(
    conn: &Connection,
    facts: &Facts,
    request: &PruneRequest,
    (queue, state): (&QueueRow, State),
    limit: usize,
) -> Result<usize> {
    let Some(keep) = queue.keep_seconds(state) else { return Ok(0) };
    let before = cut(facts.now, request, keep);
    let values = params![queue.name.as_str(), state.as_str(), before, bound(limit)];
    let ids: Vec<Vec<u8>> = rows(conn, sql!("prune_jobs"), values, |row| Columns::of(row).raw())?;
    for id in &ids {
        execute(conn, sql!("prune_tombstone"), params![id, facts.now.as_micros()])?;
        execute(conn, sql!("prune_job"), params![id])?;
        execute(conn, sql!("prune_payload"), params![id])?;
        execute(conn, sql!("prune_outcome"), params![id])?;
        execute(conn, sql!("prune_wait"), params![id])?;
        execute(conn, sql!("prune_transitions"), params![id])?;
        execute(conn, sql!("prune_dead_letters"), params![id])?;
    }
    Ok(ids.len())
}

fn counted(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
