//! Owns the commands about queues.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use leasehold::{
    Control, Error, ErrorKind, Found, LeaseLength, Query, QueueName, QueueSettings, Result, Store,
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
    Pause(Named),
    /// Allows claims again.
    Resume(Named),
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
        /// Make the queue where there is none of the name
        #[arg(long, requires = "queue")]
        create: bool,
    },
    /// Sets the lease of a queue, in seconds.
    Lease {
        #[command(flatten)]
        named: Named,
        /// Seconds
        seconds: u64,
    },
}

impl Action {
    /// Whether it changes nothing.
    pub(super) fn looks(&self) -> bool {
        matches!(self, Self::List)
    }
}

/// A queue that has to be there.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub struct Named {
    /// The queue
    queue: QueueName,
    /// Make the queue where there is none of the name
    #[arg(long)]
    create: bool,
}

impl Named {
    /// Refuses a queue that nobody has used, which is a slip of the pen more often than not.
    async fn there(self, store: &Arc<dyn Store>) -> Result<QueueName> {
        let found = store.find(Query::Queues).await?.items;
        let is_it = |found: &Found| matches!(found, Found::Queue(it) if it.name == self.queue);
        if self.create || found.iter().any(is_it) {
            return Ok(self.queue);
        }
        let why = "there is no such queue; --create makes it";
        Err(Error::new(ErrorKind::NotFound, "queues", why).about(format!("queue {}", self.queue)))
    }
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
        Action::Pause(named) => Control::Pause(named.there(store).await?),
        Action::Resume(named) => Control::Resume(named.there(store).await?),
        Action::Lease { named, seconds } => {
            let lease = LeaseLength::new(Duration::from_secs(seconds))?;
            Control::SetQueue(named.there(store).await?, QueueSettings::new().lease(lease))
        }
        Action::Limit { queue: None, leases: Some(Bound(limit)), .. } => {
            Control::SetStoreLimit(limit)
        }
        Action::Limit { queue: Some(queue), leases, partition, create } => {
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
            Control::SetQueue(Named { queue, create }.there(store).await?, settings)
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
