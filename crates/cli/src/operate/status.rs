//! Owns the overview: what the store counts of itself, how fast that changes, and who holds leases. Decides nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold::{
    Found, JobFilter, Paging, Query, QueueStats, Result, State, Stats, Store, Timestamp, WorkerId,
};
use serde_json::{Value, json};

use super::answer::Answer;
use crate::clock;

const QUEUE: &[&str] = &[
    "queue",
    "paused",
    "limit",
    "ready",
    "oldest_ready_seconds",
    "later",
    "blocked",
    "running",
    "lapsed",
    "succeeded",
    "failed",
    "dead_letter",
    "cancelled",
    "new_per_second",
    "ended_per_second",
];
const WORKER: &[&str] = &["worker", "running", "oldest_start", "next_lease_end"];

/// The rows of a page, and how many pages of a queue's leases are looked at.
const PAGE: usize = 1_000;
const PAGES: usize = 10;

/// What is shown beside the counts.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(skip)]
pub struct Look {
    /// Look twice, so many seconds apart, and tell how many jobs a second came and ended meanwhile
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    over: Option<u64>,
}

/// Shows how much is where.
pub(super) async fn show(store: &Arc<dyn Store>, look: Look) -> Result<Answer> {
    let first = match look.over {
        None => None,
        Some(wait) => {
            let first = store.stats().await?;
            tokio::time::sleep(Duration::from_secs(wait)).await;
            Some(first)
        }
    };
    let before = clock::wall();
    let stats = store.stats().await?;
    let rows = stats.queues.iter().map(|queue| {
        let oldest = queue.oldest_ready.map(|at| seconds(stats.now, at));
        let [new, ended] = rates(queue, &stats, first.as_ref());
        vec![
            json!(queue.name.as_str()),
            json!(queue.paused),
            json!(queue.limit),
            json!(queue.ready),
            json!(oldest),
            json!(queue.later),
            json!(queue.blocked),
            json!(queue.leased.saturating_sub(queue.expired)),
            json!(queue.expired),
            json!(queue.succeeded),
            json!(queue.failed),
            json!(queue.dead_letter),
            json!(queue.cancelled),
            new,
            ended,
        ]
    });
    let queues = Answer::Rows { columns: QUEUE, rows: rows.collect(), next: None };
    Ok(Answer::Parts(vec![
        ("store", store_facts(&stats, before)),
        ("queues", queues),
        ("workers", workers(store, &stats).await?),
        ("outbox", outbox_facts(&stats)),
    ]))
}

/// How many jobs a second came to a queue and ended since the first look. What was pruned meanwhile is missing.
fn rates(queue: &QueueStats, now: &Stats, first: Option<&Stats>) -> [Value; 2] {
    let Some(first) = first else { return [Value::Null, Value::Null] };
    let took = now.now.since(first.now).as_secs_f64();
    let before = first.queues.iter().find(|it| it.name == queue.name).map_or((0, 0), totals);
    let after = totals(queue);
    let rate = |before: u64, after: u64| {
        let more = u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX);
        json!(rounded(f64::from(more) / took.max(0.001)))
    };
    [rate(before.0, after.0), rate(before.1, after.1)]
}

/// All jobs of a queue, and those that have ended.
fn totals(queue: &QueueStats) -> (u64, u64) {
    let ended = queue.succeeded + queue.failed + queue.dead_letter + queue.cancelled;
    (ended + queue.ready + queue.later + queue.blocked + queue.leased, ended)
}

/// What a worker holds.
#[derive(Default)]
struct Holds {
    running: u64,
    oldest_start: Option<Timestamp>,
    next_end: Option<Timestamp>,
}

/// Who holds leases. A worker with nothing in hand is not seen.
async fn workers(store: &Arc<dyn Store>, stats: &Stats) -> Result<Answer> {
    let mut workers: BTreeMap<WorkerId, Holds> = BTreeMap::new();
    for queue in stats.queues.iter().filter(|queue| queue.leased > 0) {
        let mut paging = Paging::first(PAGE);
        for pages in 1.. {
            let filter = JobFilter::new().queue(queue.name.clone()).state(State::Leased);
            let page = store.find(Query::Jobs(filter, paging)).await?;
            for found in &page.items {
                let Found::Job(job) = found else { continue };
                let Some(worker) = job.worker else { continue };
                let holds = workers.entry(worker).or_default();
                holds.running += 1;
                holds.oldest_start = holds.oldest_start.into_iter().chain(job.started_at).min();
                holds.next_end = holds.next_end.into_iter().chain(job.lease_expires_at).min();
            }
            let Some(next) = page.next else { break };
            if pages == PAGES {
                let seen = PAGE * PAGES;
                crate::failure::tell(format!(
                    "{seen} leases of queue {} are looked at",
                    queue.name
                ));
                break;
            }
            paging = Paging::first(PAGE).after(next);
        }
    }
    let rows = workers.into_iter().map(|(worker, holds)| {
        vec![
            json!(worker.to_string()),
            json!(holds.running),
            json!(holds.oldest_start.map(|at| at.to_string())),
            json!(holds.next_end.map(|at| at.to_string())),
        ]
    });
    Ok(Answer::Rows { columns: WORKER, rows: rows.collect(), next: None })
}

fn store_facts(stats: &Stats, before: Timestamp) -> Answer {
    let skew = stats.now.since(before).max(before.since(stats.now));
    Answer::facts([
        ("engine", json!(stats.engine)),
        ("now", json!(stats.now.to_string())),
        ("clock_off_by_seconds", json!(rounded(skew.as_secs_f64()))),
        ("epoch", json!(stats.epoch.get())),
        ("limit", json!(stats.limit)),
        ("log_bytes", json!(stats.log_bytes)),
        ("wake_ups_heard", json!(stats.wake_ups_heard)),
        ("warnings", json!(stats.warnings)),
    ])
}

fn outbox_facts(stats: &Stats) -> Answer {
    let outbox = &stats.outbox;
    let lag = outbox.oldest_waiting.map(|at| seconds(stats.now, at));
    Answer::facts([
        ("waiting", json!(outbox.waiting)),
        ("lag_seconds", json!(lag)),
        ("running", json!(outbox.leased)),
        ("delivered", json!(outbox.delivered)),
        ("dead_letter", json!(outbox.dead_letter)),
    ])
}

fn seconds(now: Timestamp, then: Timestamp) -> Value {
    json!(rounded(now.since(then).as_secs_f64()))
}

/// Milliseconds are enough for a person.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1_000.0).round() / 1_000.0
}
