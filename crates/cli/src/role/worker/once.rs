//! Owns when a worker that runs once is done: when no job is left that it could do without anybody's word. Refuses
//! to know how one is done.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use leasehold::circuit::{Circuit, CircuitBreakers};
use leasehold::{
    AuditFilter, CancellationToken, Found, JobFilter, JobKind, Paging, Query, QueueName, Result,
    State, Stats, StatsScope, Store, Timestamp,
};

use super::super::file_job;
use super::NO_ROOM;
use crate::config::Config;
use crate::role::Process;

/// How many rows are looked at in one go.
const PAGE: usize = 500;

/// Cancels `done` once nothing is left to do. Says so when a circuit breaker is what keeps it waiting, and which
/// queues it leaves as they are.
pub(super) async fn when_empty(process: &Process, done: CancellationToken) -> Result<()> {
    let Process { config, store, breakers, .. } = process;
    let (mut open, mut was_empty) = (HashSet::new(), false);
    while !done.is_cancelled() {
        tell_of_breakers(breakers, &mut open);
        tokio::select! {
            () = done.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
        match Look::at(config, store).await {
            // A job that went from one state to the other between two queries is seen by the next look.
            Ok(look) if look.is_more || !was_empty => was_empty = !look.is_more,
            Ok(look) => {
                look.tell();
                done.cancel();
            }
            Err(error) if error.is_retryable() => {
                crate::log_line!(warn, error = error, "cannot count what is left")
            }
            Err(error) => {
                done.cancel();
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Logs each queue once whenever its breaker opens.
fn tell_of_breakers(breakers: &CircuitBreakers, open: &mut HashSet<QueueName>) {
    for (queue, circuit) in breakers.states() {
        match circuit {
            Circuit::Closed => drop(open.remove(&queue)),
            _ if open.insert(queue.clone()) => crate::log_line!(
                warn,
                queue = queue,
                "the circuit breaker is open: jobs wait until one of them has gone well"
            ),
            _ => {}
        }
    }
}

/// What is left of the folder's jobs.
#[derive(Debug, Default)]
struct Look {
    /// Whether one runs, may run now, or is tried again soon.
    is_more: bool,
    /// The queues from which nobody may claim, and that hold some.
    closed: Vec<QueueName>,
}

impl Look {
    async fn at(config: &Config, store: &Arc<dyn Store>) -> Result<Self> {
        let stats = store.look(StatsScope::Health).await?;
        // What is due later than any pause between two tries is no other try of what this run has begun.
        let pause = config.duration("worker.backoff.max").max(NO_ROOM);
        let soon = stats.now.plus(pause);
        let kind = JobKind::new(file_job::KIND)?;
        let mut look = Self::default();
        for queue in super::queues(config) {
            let queue = queue?;
            let jobs = JobFilter::new().queue(queue.clone()).kind(kind.clone());
            let closed = is_closed(&stats, &queue);
            let latest = if closed { Timestamp::MAX } else { soon };
            let waits = some_wait(store, jobs.clone().state(State::Waiting), latest).await?;
            let running = Query::Jobs(jobs.state(State::Leased), Paging::first(1));
            look.is_more |= (waits && !closed) || !store.find(running).await?.items.is_empty();
            if waits && closed {
                look.closed.push(queue);
            }
        }
        Ok(look)
    }

    fn tell(&self) {
        for queue in &self.closed {
            crate::log_line!(
                warn,
                queue = queue,
                "the queue is paused, or a limit is 0: its jobs are left as they are"
            );
        }
    }
}

/// Whether nothing is claimed from a queue until an operator says so.
fn is_closed(stats: &Stats, queue: &QueueName) -> bool {
    let settings = stats.queue(queue);
    let is_paused = settings.is_some_and(|queue| queue.paused);
    is_paused || settings.and_then(|queue| queue.limit) == Some(0) || stats.limit == Some(0)
}

/// Whether one of these jobs is due by then. What waits for other jobs or rests is not.
async fn some_wait(store: &Arc<dyn Store>, jobs: JobFilter, latest: Timestamp) -> Result<bool> {
    let mut paging = Paging::first(PAGE);
    loop {
        let page = store.find(Query::Jobs(jobs.clone(), paging)).await?;
        for found in &page.items {
            let waits = match found {
                Found::Job(job) => {
                    !job.blocked && job.run_at <= latest && job.run_at < Timestamp::MAX
                }
                Found::Unreadable(row) => !is_set_aside(store, &row.id).await?,
                _ => false,
            };
            if waits {
                return Ok(true);
            }
        }
        match page.next {
            Some(next) => paging = Paging::first(PAGE).after(next),
            None => return Ok(false),
        }
    }
}

/// Whether a claim has met the damaged row, and left it resting.
async fn is_set_aside(store: &Arc<dyn Store>, id: &str) -> Result<bool> {
    let mut filter = AuditFilter::new();
    filter.action = Some("job.set_aside".to_owned());
    filter.target = Some(format!("job {id}"));
    Ok(!store.records().audit(filter, Paging::first(1)).await?.items.is_empty())
}
