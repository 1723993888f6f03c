//! Owns what a requester asks for: where the source is, where the output goes, and whom to ask and tell.

use axum::http::Uri;
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
    pub(crate) status_webhook_url: Option<String>,
}

/// Refuses a payload that is no order, or whose addresses nobody could call, before it becomes a job.
pub(crate) fn check(payload: &Json) -> Result<(), String> {
    let order: Order = payload.read().map_err(|error| error.to_string())?;
    callable("refresh_url", order.refresh_url.as_deref())?;
    callable("status_webhook_url", order.status_webhook_url.as_deref())
}

fn callable(member: &str, url: Option<&str>) -> Result<(), String> {
    let Some(url) = url else { return Ok(()) };
    let parsed = url.parse::<Uri>().ok();
    let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    match parsed.is_some_and(|uri| is_http(&uri) && uri.host().is_some()) {
        true => Ok(()),
        false => Err(format!("{member} is not a whole http or https address")),
    }
}
