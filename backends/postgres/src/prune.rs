//! Owns the letting go of what has ended long enough ago, at most so many rows of each sort.

use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::row::QueueRow;
use leasehold_core::{EventState, JobId, PruneRequest, Pruned, Result, State, Timestamp};

use crate::bind::Params;
use crate::find;
use crate::joined::{Joined, Verb};
use crate::load::Facts;
use crate::row::Columns;
use crate::statement::{Db, sql};
use crate::waits;

#[async_trait]
impl Verb for PruneRequest {
    const NAME: &'static str = "prune";
    type Answer = Pruned;

    async fn on(&self, tx: &Joined<'_>) -> Result<Pruned> {
        let facts = tx.facts().await?;
        self.check()?;
        let db = &tx.db;
        let until = |at: Timestamp| Params::new().one(at).one(self.limit);
        let tombstones = facts.now.minus(tx.shared.limits.tombstone_ttl);
        let mut done = Pruned::default();
        done.keys = db.execute(sql!("prune_keys"), until(facts.now)).await?;
        done.tombstones = db.execute(sql!("prune_tombstones"), until(tombstones)).await?;
        done.records = db.execute(sql!("prune_records"), until(facts.now)).await?;
        let versions = facts.now.plus(tx.shared.limits.tombstone_ttl);
        done.versions = db.execute(sql!("prune_versions"), until(facts.now)).await?;
        done.documents =
            db.execute(sql!("prune_documents"), until(facts.now).one(versions)).await?;
        done.blobs = db.execute(sql!("prune_blobs"), until(facts.now)).await?;
        done.buckets = db.execute(sql!("prune_tokens"), until(facts.now)).await?;
        done.starts = db.execute(sql!("prune_starts"), until(facts.now)).await?;
        done.events = events(db, &facts, self).await?;
        done.jobs = jobs(db, &facts, self).await?;
        Ok(done)
    }
}

/// The last end that has stayed long enough.
fn cut(now: Timestamp, request: &PruneRequest, keep_seconds: i64) -> Timestamp {
    let keep = Duration::from_secs(u64::try_from(keep_seconds).unwrap_or(0));
    now.minus(request.older_than.unwrap_or(keep))
}

fn left(request: &PruneRequest, gone: u64) -> usize {
    request.limit.saturating_sub(usize::try_from(gone).unwrap_or(usize::MAX))
}

async fn events(db: &Db<'_>, facts: &Facts, request: &PruneRequest) -> Result<u64> {
    let mut gone = 0;
    for state in EventState::ALL {
        let Some(keep) = state.keep_seconds() else { continue };
        let before = cut(facts.now, request, keep);
        let values = Params::new().one(state.as_str()).one(before).one(left(request, gone));
        gone += db.execute(sql!("prune_events"), values).await?;
    }
    Ok(gone)
}

async fn jobs(db: &Db<'_>, facts: &Facts, request: &PruneRequest) -> Result<u64> {
    let mut gone = 0;
    for queue in find::queues(db).await? {
        for state in State::ALL {
            gone += jobs_at(db, facts, request, (&queue, state), left(request, gone)).await?;
        }
    }
    Ok(gone)
}

async fn jobs_at(
    db: &Db<'_>,
    facts: &Facts,
    request: &PruneRequest,
    (queue, state): (&QueueRow, State),
    limit: usize,
) -> Result<u64> {
    let Some(keep) = queue.keep_seconds(state) else { return Ok(0) };
    if limit == 0 {
        return Ok(0);
    }
    let before = cut(facts.now, request, keep);
    let values = Params::new().one(queue.name.as_str()).one(state.as_str()).one(before).one(limit);
    let ids: Vec<JobId> = db
        .rows(sql!("prune_jobs"), values, |row| Columns::of(row).id().map(JobId::from_uuid))
        .await?;
    let ids = waits::not_waited_for(db, ids).await?;
    if ids.is_empty() {
        return Ok(0);
    }
    let these = || Params::new().many(ids.iter().copied());
    db.execute(sql!("prune_tombstone"), these().one(facts.now)).await?;
    db.execute(sql!("prune_job"), these()).await?;
    db.execute(sql!("prune_outcome"), these()).await?;
    db.execute(sql!("prune_wait"), these()).await?;
    db.execute(sql!("prune_transitions"), these()).await?;
    db.execute(sql!("prune_dead_letters"), these()).await?;
    Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX))
}
