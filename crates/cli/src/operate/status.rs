//! Owns the overview: what the store counts of itself. Decides nothing.

use std::sync::Arc;

use leasehold::{Result, Stats, Store, Timestamp};
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
];

/// Shows how much is where.
pub(super) async fn show(store: &Arc<dyn Store>) -> Result<Answer> {
    let before = clock::wall();
    let stats = store.stats().await?;
    let rows = stats.queues.iter().map(|queue| {
        let oldest = queue.oldest_ready.map(|at| seconds(stats.now, at));
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
        ]
    });
    let queues = Answer::Rows { columns: QUEUE, rows: rows.collect(), next: None };
    Ok(Answer::Parts(vec![
        ("store", store_facts(&stats, before)),
        ("queues", queues),
        ("outbox", outbox_facts(&stats)),
    ]))
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
