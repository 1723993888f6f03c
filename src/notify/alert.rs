//! Owns what a person must hear of a notification: an event on the topic `leasehold.alerts`, beside those
//! of jobs. Names rows by their keys, and no recipient.

use leasehold_core::event::Ordering;
use leasehold_core::{Json, NewEvent, Result, Store, StoreExt, Topic};
use serde::Serialize;

use super::row::Row;

/// What has happened.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) enum Alarm {
    /// A provider refuses a recipient for good.
    #[serde(rename = "notification_failed")]
    Failed,
    /// A message was marked as sent that the provider has never heard of.
    #[serde(rename = "notification_never_sent")]
    NeverSent,
    /// A message is marked as sent without a trace, and the provider cannot be asked.
    #[serde(rename = "notification_doubtful")]
    Doubtful,
    /// A message is not sent, and no job is left to send it.
    #[serde(rename = "notification_orphaned")]
    Orphaned,
}

#[derive(Serialize)]
struct Told<'a> {
    alert: Alarm,
    subject: &'a str,
    version: i64,
    row: &'a str,
    job_id: String,
}

/// Publishes it before the row is changed: heard twice after a crash, but heard.
pub(super) async fn raise(store: &dyn Store, alert: Alarm, row: &Row) -> Result<()> {
    let (key, job_id) = (row.key(), row.job.to_string());
    tracing::error!(
        ?alert,
        subject = row.subject,
        version = row.version,
        row = key,
        "notification"
    );
    let (subject, version) = (row.subject.as_str(), row.version);
    let payload = Json::of(&Told { alert, subject, version, row: &key, job_id })?;
    let event = NewEvent::new(Topic::new("leasehold.alerts")?, payload);
    store.publish_one(event.ordering(Ordering::Unordered)).await.map(|_| ())
}
