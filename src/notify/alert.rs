//! Owns what a person must hear of a notification: an event on the topic `leasehold.alerts`, beside those
//! of jobs, and a word to the observer. Names rows by their keys, and no recipient.

use leasehold_core::event::Ordering;
use leasehold_core::{Json, NewEvent, Result, StoreExt, Topic};
use serde::Serialize;

use super::Notifier;
use super::row::Row;
use crate::observe::Alert;

#[derive(Serialize)]
struct Told<'a> {
    alert: &'static str,
    subject: &'a str,
    version: i64,
    row: &'a str,
    job_id: String,
}

impl Notifier {
    /// Publishes it before the row is changed: heard twice after a crash, but heard.
    pub(super) async fn raise(&self, alert: Alert, row: &Row) -> Result<()> {
        let (key, job_id) = (row.key(), row.job.to_string());
        let (subject, version) = (row.subject.as_str(), row.version);
        tracing::error!(job = job_id, "{}: notification {key}", alert.id());
        let payload = Json::of(&Told { alert: alert.id(), subject, version, row: &key, job_id })?;
        let event = NewEvent::new(Topic::new("leasehold.alerts")?, payload);
        self.store.publish_one(event.ordering(Ordering::Unordered)).await?;
        self.observer.alerted(alert);
        Ok(())
    }
}
