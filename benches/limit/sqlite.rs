//! Owns the raw loops on SQLite. Their tables are no part of Leasehold.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use leasehold::JobId;
use leasehold_sqlite::rusqlite::{Connection, Row, TransactionBehavior, params, params_from_iter};

use crate::{Extra, Limit, Outcome, Pickup};
use leasehold_cli::bench::workload::{Payload, payload};

const TABLES: &str = "
    create table limit_jobs (
      id blob primary key,
      queue text not null,
      state text not null,
      priority integer not null,
      run_at integer not null,
      finished_at integer,
      claim blob,
      payload text not null
    ) strict;
    create index limit_jobs_claimable on limit_jobs (queue, priority desc, run_at, id)
      where state = 'waiting';
    create table limit_log (
      job blob not null, verb text not null, at integer not null, primary key (job, verb)
    ) strict";
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
const CLAIM_FENCED: &str = "
    with due as (
      select id from limit_jobs
      where state = 'waiting' and queue = ?1 and run_at <= unixepoch()
      order by priority desc, run_at, id
      limit ?2
    )
    update limit_jobs set state = 'leased', claim = ?3 where id in (select id from due)
    returning id, payload";
const LOG: &str = "insert into limit_log (job, verb, at) values (?1, ?2, unixepoch())";
/// How long the system is left alone before each pick-up.
const IDLE: Duration = Duration::from_millis(30);

/// A connection with Leasehold's settings and tables for the loops.
pub(crate) struct Raw {
    conn: Connection,
    path: PathBuf,
}

type Claimed = Vec<(Vec<u8>, String)>;

impl Raw {
    pub(crate) fn open(path: &Path) -> Outcome<Self> {
        let conn = connect(path)?;
        conn.execute_batch(TABLES)?;
        Ok(Self { conn, path: path.to_owned() })
    }

    fn insert(&mut self, queue: &str, numbers: std::ops::Range<usize>) -> Outcome<()> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for number in numbers {
            let id = JobId::new();
            let values = params![id.as_bytes().as_slice(), queue, payload(number)];
            tx.prepare_cached(INSERT)?.execute(values)?;
        }
        Ok(tx.commit()?)
    }

    fn complete(&mut self, ids: Vec<Vec<u8>>, extra: Extra, fence: JobId) -> Outcome<()> {
        let marks = vec!["?"; ids.len()].join(", ");
        let text = format!(
            "update limit_jobs set state = 'succeeded', finished_at = unixepoch() where id in ({marks})"
        );
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for id in ids.iter().filter(|_| extra == Extra::Log) {
            tx.prepare_cached(LOG)?.execute(params![id, "complete"])?;
        }
        if extra == Extra::Fence {
            let wanted = ids.len();
            let text = format!("{text} and claim = ?");
            let values = ids.into_iter().chain([fence.as_bytes().to_vec()]);
            let done = tx.prepare_cached(&text)?.execute(params_from_iter(values))?;
            if done != wanted {
                return Err("a fence was lost".into());
            }
        } else {
            tx.prepare_cached(&text)?.execute(params_from_iter(ids))?;
        }
        Ok(tx.commit()?)
    }
}

fn connect(path: &Path) -> Outcome<Connection> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(Duration::from_secs(30))?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "synchronous", "full")?;
    Ok(conn)
}

fn claim(
    conn: &mut Connection,
    queue: &str,
    batch: usize,
    extra: Extra,
    fence: JobId,
) -> Outcome<Claimed> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let batch = i64::try_from(batch)?;
    let claimed = if extra == Extra::Fence {
        let values = params![queue, batch, fence.as_bytes().as_slice()];
        let mut statement = tx.prepare_cached(CLAIM_FENCED)?;
        statement.query_map(values, read)?.collect::<Result<Claimed, _>>()?
    } else {
        let mut statement = tx.prepare_cached(CLAIM)?;
        statement.query_map(params![queue, batch], read)?.collect::<Result<Claimed, _>>()?
    };
    for (id, _) in claimed.iter().filter(|_| extra == Extra::Log) {
        tx.prepare_cached(LOG)?.execute(params![id, "claim"])?;
    }
    tx.commit()?;
    Ok(claimed)
}

#[async_trait]
impl Limit for Raw {
    async fn enqueue(&mut self, queue: &str, jobs: usize, batch: usize) -> Outcome<()> {
        for first in (0..jobs).step_by(batch) {
            self.insert(queue, first..jobs.min(first + batch))?;
        }
        Ok(())
    }

    /// One writer is all that the file takes; so this is one connection's loop.
    async fn enqueue_from(&mut self, queue: &str, jobs: usize, _clients: usize) -> Outcome<()> {
        self.enqueue(queue, jobs, 1).await
    }

    async fn drain(&mut self, queue: &str, batch: usize, extra: Extra) -> Outcome<usize> {
        let (mut jobs, mut sum) = (0, 0);
        loop {
            let fence = JobId::new();
            let claimed = claim(&mut self.conn, queue, batch, extra, fence)?;
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
            self.complete(ids, extra, fence)?;
        }
    }

    async fn pick_up(&mut self, queue: &str, jobs: usize) -> Outcome<Vec<Pickup>> {
        let (wake, woken) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let mut other = connect(&self.path)?;
        let name = queue.to_owned();
        let claimer = std::thread::spawn(move || -> Outcome<()> {
            while woken.recv().is_ok() {
                for (_, text) in claim(&mut other, &name, 1, Extra::Nothing, JobId::new())? {
                    let number = serde_json::from_str::<Payload>(&text)?.number;
                    tell.send((number, Instant::now()))?;
                }
            }
            Ok(())
        });
        let mut picked = Vec::with_capacity(jobs);
        for number in 0..jobs {
            std::thread::sleep(IDLE);
            let called = Instant::now();
            self.insert(queue, number..number + 1)?;
            wake.send(())?;
            let returned = Instant::now();
            let (seen, begun) = told.recv_timeout(Duration::from_secs(30))?;
            if seen != number {
                return Err("another job was picked up".into());
            }
            picked.push((between(called, begun), between(returned, begun)));
        }
        drop(wake);
        claimer.join().map_err(|_| "the claimer stopped")??;
        Ok(picked)
    }
}

/// Milliseconds, less than nothing when the second came first.
pub(crate) fn between(from: Instant, to: Instant) -> f64 {
    let (ahead, behind) = (to.saturating_duration_since(from), from.saturating_duration_since(to));
    (ahead.as_secs_f64() - behind.as_secs_f64()) * 1_000.0
}
