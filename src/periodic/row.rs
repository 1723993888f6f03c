//! Owns the stored form of a schedule: the body of its document.

use std::time::Duration;

use leasehold_core::{
    Document, JobKind, Json, LifecycleName, PutDocument, QueueName, RecordId, Result, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::schedule::{Missed, Schedule};

/// The namespace of the documents.
pub(super) const NAMESPACE: &str = "leasehold.periodic";

/// What a document holds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Body {
    cron: String,
    zone: String,
    queue: QueueName,
    kind: JobKind,
    /// The payload's own text, byte for byte.
    payload: String,
    lifecycle: LifecycleName,
    priority: i16,
    missed: Missed,
    grace_s: u64,
    /// The last tick that was seen, in microseconds since 1970.
    seen_us: Option<i64>,
}

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    pub(super) schedule: Schedule,
    /// The last tick that was seen, or when the schedule was first set.
    pub(super) seen: Timestamp,
    pub(super) ticked: bool,
    pub(super) version: i64,
}

impl Stored {
    pub(super) fn read(document: &Document) -> Result<Self> {
        let body: Body = document.body.read()?;
        let payload = Json::parse(body.payload)?;
        let name = document.id.key.as_str();
        let schedule = Schedule::new(name, body.cron, body.zone, body.kind, payload)?
            .queue(body.queue)
            .lifecycle(body.lifecycle)
            .priority(body.priority)
            .missed(body.missed)
            .grace(Duration::from_secs(body.grace_s));
        let seen = body.seen_us.map(Timestamp::from_micros).transpose()?;
        let (ticked, version) = (seen.is_some(), document.version);
        Ok(Self { schedule, seen: seen.unwrap_or(document.created_at), ticked, version })
    }
}

pub(super) fn id(name: &str) -> Result<RecordId> {
    RecordId::new(NAMESPACE, name)
}

/// The document of a schedule that has seen its ticks up to one.
pub(super) fn put(schedule: &Schedule, seen: Option<Timestamp>) -> Result<PutDocument> {
    let body = Body {
        cron: schedule.cron.clone(),
        zone: schedule.zone.clone(),
        queue: schedule.queue.clone(),
        kind: schedule.kind.clone(),
        payload: schedule.payload.as_str().to_owned(),
        lifecycle: schedule.lifecycle.clone(),
        priority: schedule.priority,
        missed: schedule.missed,
        grace_s: schedule.grace.as_secs(),
        seen_us: seen.map(Timestamp::as_micros),
    };
    Ok(PutDocument::new(id(schedule.name.as_str())?, Json::of(&body)?))
}
