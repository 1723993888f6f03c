//! Owns the commands about queues.

use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use leasehold::{
    Control, Error, Found, LeaseLength, Query, QueueName, QueueSettings, Result, Store,
};
use serde_json::json;

use super::answer::Answer;
use super::jobs::done;

/// What is done with queues.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Lists queues with their settings.
    List,
    /// Stops claims from a queue; jobs in hand go on.
    Pause {
        /// The queue
        queue: QueueName,
    },
    /// Allows claims again.
    Resume {
        /// The queue
        queue: QueueName,
    },
    /// Bounds the unexpired leases of a queue, or of the whole store.
    Limit {
        /// The queue; none: the store
        queue: Option<QueueName>,
        /// The most leases, or none
        #[arg(long, value_parser = bound)]
        leases: Option<Bound>,
        /// The most leases of each partition, or none
        #[arg(long, value_parser = bound, requires = "queue")]
        partition: Option<Bound>,
    },
    /// Sets the lease of a queue, in seconds.
    Lease {
        /// The queue
        queue: QueueName,
        /// Seconds
        seconds: u64,
    },
}

/// A bound that is set or lifted.
#[derive(Clone, Copy, Debug)]
pub struct Bound(Option<u32>);

fn bound(text: &str) -> std::result::Result<Bound, String> {
    match text {
        "none" => Ok(Bound(None)),
        _ => text.parse().map(|most| Bound(Some(most))).map_err(|_| "a number, or none".to_owned()),
    }
}

const COLUMNS: &[&str] = &[
    "queue",
    "paused",
    "limit",
    "lease_seconds",
    "log",
    "partition_limit",
    "partition_starts_an_hour",
];

/// Does it.
pub(super) async fn act(store: &Arc<dyn Store>, action: Action) -> Result<Answer> {
    let control = match action {
        Action::List => return list(store).await,
        Action::Pause { queue } => Control::Pause(queue),
        Action::Resume { queue } => Control::Resume(queue),
        Action::Lease { queue, seconds } => {
            let lease = LeaseLength::new(Duration::from_secs(seconds))?;
            Control::SetQueue(queue, QueueSettings::new().lease(lease))
        }
        Action::Limit { queue: None, leases: Some(Bound(limit)), .. } => {
            Control::SetStoreLimit(limit)
        }
        Action::Limit { queue: Some(queue), leases, partition } => {
            let mut settings = QueueSettings::new();
            if let Some(Bound(limit)) = leases {
                settings = settings.limit(limit);
            }
            if let Some(Bound(limit)) = partition {
                settings = settings.partition_limit(limit);
            }
            if leases.is_none() && partition.is_none() {
                return Err(nothing());
            }
            Control::SetQueue(queue, settings)
        }
        Action::Limit { .. } => return Err(nothing()),
    };
    done(store.control(control).await?)
}

fn nothing() -> Error {
    Error::invalid("limit", "nothing to set: give --leases or --partition, with a number or none")
}

async fn list(store: &Arc<dyn Store>) -> Result<Answer> {
    let found = store.find(Query::Queues).await?.items;
    let rows = found.iter().filter_map(|found| match found {
        Found::Queue(queue) => Some(vec![
            json!(queue.name.as_str()),
            json!(queue.paused),
            json!(queue.limit),
            json!(queue.lease.map(|lease| lease.as_duration().as_secs_f64())),
            json!(queue.log),
            json!(queue.partition_limit),
            json!(queue.partition_rate.map(|rate| rate.rate().hourly())),
        ]),
        _ => None,
    });
    Ok(Answer::Rows { columns: COLUMNS, rows: rows.collect(), next: None })
}
