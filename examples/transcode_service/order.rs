//! Owns what a requester asks for: where the source is, where the output goes, and whom to ask and tell.

use leasehold::Json;
use leasehold::storage::Place;
use serde::Deserialize;

/// The payload of a job.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// A WAV file.
    pub(crate) source: Place,
    /// Where the FLAC file goes.
    pub(crate) output: Place,
    /// Who gives credentials, by a signed call.
    #[serde(default)]
    pub(crate) refresh_url: Option<String>,
    /// Who is told of every step, by signed webhooks; read by the route of the relay.
    #[serde(default)]
    #[allow(dead_code, reason = "the relay reads it from the payload")]
    pub(crate) status_webhook_url: Option<String>,
}

/// Refuses a payload that is no order, before it becomes a job.
pub(crate) fn check(payload: &Json) -> Result<(), String> {
    payload.read::<Order>().map(|_| ()).map_err(|error| error.to_string())
}
