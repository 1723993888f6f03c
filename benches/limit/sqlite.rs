//! Owns the raw loops on SQLite. Their table is no part of Leasehold.

use std::path::Path;

use async_trait::async_trait;
use leasehold::{JobId, QueueName};
use leasehold_sqlite::rusqlite::{Connection, TransactionBehavior, params, params_from_iter};

use crate::workload::{Payload, payload};
use crate::{Limit, Outcome};

const TABLE: &str = "
    create table limit_jobs (
      id blob primary key,
      queue text not null,
      state text not null,
      priority integer not null,
      run_at integer not null,
      finished_at integer,
      payload text not null
    ) strict;
    create index limit_jobs_claimable on limit_jobs (queue, priority desc, run_at, id)
      where state = 'waiting'";
const INSERT: &str = "
    insert into limit_jobs (id, queue, state, priority, run_at, payload)
    values (?1, ?2, 'waiting', 0, unixepoch(), ?3)";
const CLAIM: &str = "
    with due as (
      select id from limit_jobs
      where state = 'waiting' and queue = ?1 and run_at <= unixepoch()
      order by priority desc, run_at, id
      limit ?2
    )
    update limit_jobs set state = 'leased' where id in (select id from due)
    returning id, payload";

/// A connection with Leasehold's settings and a table for the loops.
pub(crate) struct Raw(Connection);

impl Raw {
    pub(crate) fn open(path: &Path) -> Outcome<Self> {
        let conn = Connection::open(path)?;
        conn.pragma_update(None, "journal_mode", "wal")?;
        conn.pragma_update(None, "synchronous", "full")?;
        conn.execute_batch(TABLE)?;
        Ok(Self(conn))
    }

    fn claim(&mut self, queue: &QueueName, batch: usize) -> Outcome<Vec<(Vec<u8>, String)>> {
        let tx = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let values = params![queue.as_str(), i64::try_from(batch)?];
        let claimed = tx
            .prepare_cached(CLAIM)?
            .query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<_>, _>>()?;
        tx.commit()?;
        Ok(claimed)
    }

    fn complete(&mut self, ids: Vec<Vec<u8>>) -> Outcome<()> {
        let marks = vec!["?"; ids.len()].join(", ");
        let text = format!(
            "update limit_jobs set state = 'succeeded', finished_at = unixepoch() where id in ({marks})"
        );
        let tx = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.prepare_cached(&text)?.execute(params_from_iter(ids))?;
        tx.commit()?;
        Ok(())
    }
}

#[async_trait]
impl Limit for Raw {
    async fn enqueue(&mut self, queue: &QueueName, jobs: usize, batch: usize) -> Outcome<()> {
        for first in (0..jobs).step_by(batch) {
            let tx = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for number in first..jobs.min(first + batch) {
                let id = JobId::new();
                let values = params![id.as_bytes().as_slice(), queue.as_str(), payload(number)];
                tx.prepare_cached(INSERT)?.execute(values)?;
            }
            tx.commit()?;
        }
        Ok(())
    }

    async fn drain(&mut self, queue: &QueueName, batch: usize) -> Outcome<usize> {
        let (mut jobs, mut sum) = (0, 0);
        loop {
            let claimed = self.claim(queue, batch)?;
            if claimed.is_empty() {
                return if sum == jobs * (jobs.max(1) - 1) / 2 {
                    Ok(jobs)
                } else {
                    Err("a job was drained twice or not at all".into())
                };
            }
            let mut ids = Vec::with_capacity(claimed.len());
            for (id, text) in claimed {
                sum += serde_json::from_str::<Payload>(&text)?.number;
                jobs += 1;
                ids.push(id);
            }
            self.complete(ids)?;
        }
    }
}
