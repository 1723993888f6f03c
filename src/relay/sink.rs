//! Owns where events go: the seam and two sinks. A sink may see an event again; its id is the
//! same every time.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{EventClaim, EventId, Failure, FailureCode, Json, Ordering, Topic};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, mpsc};

use crate::trace::Trace;

/// One event on its way to a sink.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Delivery {
    /// The id, the same on every delivery.
    pub id: EventId,
    /// The topic.
    pub topic: Topic,
    /// What it is ordered by.
    pub ordering: Ordering,
    /// Its place within its ordering key, from 1.
    pub sequence: Option<i64>,
    /// The payload, byte for byte as published.
    pub payload: Json,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The place of this delivery in its trace (W3C Trace Context): in the trace that the event carries, or
    /// in one that begins here.
    pub traceparent: Option<String>,
    /// The rising number for systems downstream.
    pub fencing_token: i64,
}

impl Delivery {
    pub(super) fn of(claim: EventClaim, trace: Trace) -> Self {
        Self {
            id: claim.fence.event(),
            topic: claim.topic,
            ordering: claim.ordering,
            sequence: claim.sequence,
            payload: claim.payload,
            attempt: claim.attempt,
            traceparent: Some(trace.traceparent()),
            fencing_token: claim.fence.fencing_token(),
        }
    }
}

/// Why an event is not delivered, for now or for good.
#[derive(Clone, Debug, PartialEq)]
pub enum Undelivered {
    /// The attempt failed; its class says whether another may succeed.
    Failed(Failure),
    /// It was not tried, and has to wait so long; that costs no attempt.
    Later(Duration),
}

impl From<Failure> for Undelivered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Takes events; `Ok` says that the event is safe on the other side.
///
/// ```
/// use leasehold::{Delivery, Sink, Undelivered, async_trait};
///
/// struct Printer;
///
/// #[async_trait]
/// impl Sink for Printer {
///     async fn deliver(&self, event: &Delivery) -> Result<(), Undelivered> {
///         println!("{} {}", event.topic, event.payload.as_str());
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Delivers one event.
    ///
    /// # Errors
    /// The failure, or how long the event has to wait without having been tried.
    async fn deliver(&self, event: &Delivery) -> Result<(), Undelivered>;

    /// Whether an event seen twice does no harm there: then conflicts are tried again.
    fn is_idempotent(&self) -> bool {
        false
    }
}

/// Sends events into a channel of this process.
#[derive(Clone, Debug)]
pub struct ChannelSink(mpsc::Sender<Delivery>);

impl ChannelSink {
    /// Makes a sink and the end that receives from it; a full channel holds deliveries back.
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<Delivery>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(sender), receiver)
    }
}

#[async_trait]
impl Sink for ChannelSink {
    async fn deliver(&self, event: &Delivery) -> Result<(), Undelivered> {
        let gone = |_| Failure::new(FailureCode::ConnectionReset, "the receiver is gone");
        self.0.send(event.clone()).await.map_err(gone)?;
        Ok(())
    }
}

/// Writes one JSON object a line, to a file or the standard output.
pub struct JsonLinesSink(Mutex<Box<dyn AsyncWrite + Send + Unpin>>);

impl fmt::Debug for JsonLinesSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonLinesSink")
    }
}

impl JsonLinesSink {
    /// Appends to a file, which is made where it does not exist.
    ///
    /// # Errors
    /// Those of opening the file.
    pub async fn file(path: impl AsRef<Path>) -> std::io::Result<Self> {
        let file = tokio::fs::OpenOptions::new().create(true).append(true).open(path).await?;
        Ok(Self(Mutex::new(Box::new(file))))
    }

    /// Writes to the standard output.
    pub fn stdout() -> Self {
        Self(Mutex::new(Box::new(tokio::io::stdout())))
    }
}

#[async_trait]
impl Sink for JsonLinesSink {
    async fn deliver(&self, event: &Delivery) -> Result<(), Undelivered> {
        let failed = |error: &dyn fmt::Display| {
            Failure::new(FailureCode::UpstreamError, format!("line not written: {error}"))
        };
        let line = json_line(event);
        let mut out = self.0.lock().await;
        out.write_all(line.as_bytes()).await.map_err(|error| failed(&error))?;
        out.flush().await.map_err(|error| failed(&error))?;
        Ok(())
    }
}

/// The payload's own text, with line breaks between its tokens as spaces.
fn json_line(event: &Delivery) -> String {
    let head = serde_json::json!({
        "id": event.id.to_string(),
        "topic": event.topic.as_str(),
        "ordering": event.ordering.namespace(),
        "key": event.ordering.key_text(),
        "sequence": event.sequence,
        "attempt": event.attempt,
        "traceparent": event.traceparent,
    })
    .to_string();
    let payload = event.payload.as_str().replace(['\n', '\r'], " ");
    format!("{},\"payload\":{payload}}}\n", head.strip_suffix('}').unwrap_or(&head))
}
