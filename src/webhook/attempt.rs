//! Owns the record of every attempt: when, how it ended, how long it took, and the beginning of what
//! was answered, without secrets.

use std::time::Duration;

use leasehold_core::sanitize::sanitize;
use leasehold_core::{
    Error, ErrorKind, EventId, Failure, Json, ListDocuments, Namespace, PutDocument, RecordId,
    Records, Result, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::client::Answer;

/// The namespace of the documents.
const NAMESPACE: &str = "webhook.attempts";
/// How long an attempt is kept: as long as the dead letters of the outbox.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// One attempt to deliver an event, kept for 30 days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attempt {
    /// Which attempt of its event it was, from 1.
    pub attempt: u32,
    /// The name of the endpoint.
    pub endpoint: String,
    /// When it ended, by the store's clock.
    #[serde(skip)]
    pub ended_at: Option<Timestamp>,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
    /// The HTTP status, where an answer came.
    pub status: Option<u16>,
    /// The code of the failure; none for a delivery.
    pub failure: Option<String>,
    /// The beginning of the answer's body, at most 1 KiB of it, sanitized; or why none came.
    pub said: String,
}

impl Attempt {
    pub(super) fn of(
        (attempt, endpoint, took): (u32, &str, Duration),
        answer: &Result<Answer, Failure>,
        failure: Option<&Failure>,
    ) -> Self {
        let said = match answer {
            Ok(answer) => sanitize(&String::from_utf8_lossy(&answer.excerpt)),
            Err(failure) => failure.message().to_owned(),
        };
        Self {
            attempt,
            endpoint: endpoint.to_owned(),
            ended_at: None,
            latency_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            status: answer.as_ref().ok().map(|answer| answer.status),
            failure: failure.map(|failure| failure.code_id().to_owned()),
            said,
        }
    }

    pub(super) async fn keep(&self, records: &dyn Records, event: EventId) -> Result<()> {
        let id = RecordId::new(NAMESPACE, format!("{event}/{:010}", self.attempt))?;
        records.put(PutDocument::new(id, Json::of(self)?).ttl(KEPT)).await.map(|_| ())
    }
}

/// Lists the attempts to deliver an event, up to 1,000, oldest first.
///
/// # Errors
/// `Corrupt` for a document that is no attempt; engine errors.
pub async fn attempts(records: &dyn Records, event: EventId) -> Result<Vec<Attempt>> {
    let list = ListDocuments::new(Namespace::new(NAMESPACE)?).prefix(format!("{event}/"));
    let page = records.list(list.limit(1_000)).await?;
    let read = |document: leasehold_core::Document| {
        let attempt: Result<Attempt, _> = serde_json::from_str(document.body.as_str());
        let why = "the document is no attempt";
        let corrupt =
            |error| Error::new(ErrorKind::Corrupt, "list attempts", why).with_source(error);
        Ok(Attempt { ended_at: Some(document.updated_at), ..attempt.map_err(corrupt)? })
    };
    page.items.into_iter().map(read).collect()
}
