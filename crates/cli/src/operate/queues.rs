//! Owns the commands about queues.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use leasehold::{
    Actor, AuditEntry, Control, Controlled, Error, ErrorKind, Found, LeaseLength, Query, QueueName,
    QueueSettings, Result, Store,
};
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::jobs::{self, done};

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
    match text.parse() {
        _ if text == "none" => Ok(Bound(None)),
        Ok(0) => Err("none would ever be claimed; `queues pause` stops a queue".to_owned()),
        Ok(most) => Ok(Bound(Some(most))),
        Err(_) => Err("a number from 1 on, or none".to_owned()),
    }
}

/// The longest target that the audit log takes, in bytes.
const TARGET_BYTES_MAX: usize = 255;

const COLUMNS: &[&str] = &[
    "queue",
    "paused",
    "limit",
    "lease_seconds",
    "log",
    "partition_limit",
    "partition_starts_an_hour",
];

/// Does it, and enters in the audit log what has changed by that.
pub(super) async fn act(store: &Arc<dyn Store>, action: Action, actor: Actor) -> Result<Answer> {
    let (control, entry) = match action {
        Action::List => return list(store).await,
        Action::Pause(named) => {
            let queue = named.there(store).await?;
            let entry = AuditEntry::new(actor, "queue.pause", target(&queue));
            (Control::Pause(queue), entry)
        }
        Action::Resume(named) => {
            let queue = named.there(store).await?;
            let entry = AuditEntry::new(actor, "queue.resume", target(&queue));
            (Control::Resume(queue), entry)
        }
        Action::Lease { named, seconds } => {
            let lease = LeaseLength::new(Duration::from_secs(seconds))?;
            let queue = named.there(store).await?;
            let entry = AuditEntry::new(actor, "queue.lease", target(&queue));
            let set = Control::SetQueue(queue, QueueSettings::new().lease(lease));
            (set, entry.detail(json!({ "seconds": seconds }).to_string()))
        }
        Action::Limit { queue: None, leases: Some(Bound(limit)), .. } => {
            let entry = AuditEntry::new(actor, "store.limit", "store");
            (Control::SetStoreLimit(limit), entry.detail(json!({ "leases": limit }).to_string()))
        }
        Action::Limit { queue: Some(queue), leases, partition, create } => {
            let (settings, detail) = limits(leases, partition)?;
            let queue = Named { queue, create }.there(store).await?;
            let entry = AuditEntry::new(actor, "queue.limit", target(&queue));
            (Control::SetQueue(queue, settings), entry.detail(detail))
        }
        Action::Limit { .. } => return Err(nothing()),
    };
    let controlled = store.control(control).await?;
    if controlled == Controlled::Done {
        store.records().append(entry).await?;
    }
    done(controlled)
}

fn target(queue: &QueueName) -> String {
    let text = format!("queue {queue}");
    let end = text.floor_char_boundary(TARGET_BYTES_MAX);
    text.get(..end).unwrap_or_default().to_owned()
}

/// The settings, and how the audit log tells of them.
fn limits(leases: Option<Bound>, partition: Option<Bound>) -> Result<(QueueSettings, String)> {
    let (mut settings, mut detail) = (QueueSettings::new(), Map::new());
    if let Some(Bound(limit)) = leases {
        settings = settings.limit(limit);
        detail.insert("leases".to_owned(), json!(limit));
    }
    if let Some(Bound(limit)) = partition {
        settings = settings.partition_limit(limit);
        detail.insert("partition".to_owned(), json!(limit));
    }
    if detail.is_empty() { Err(nothing()) } else { Ok((settings, Value::from(detail).to_string())) }
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
        Found::Unreadable(row) => Some(jobs::unreadable(row, COLUMNS, 1)),
        _ => None,
    });
    Ok(Answer::Rows { columns: COLUMNS, rows: rows.collect(), next: None })
}
