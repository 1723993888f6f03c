//! Owns signed webhooks: how an event is signed and sent, and how a receiver verifies and takes it
//! once. Refuses to know what an event means.
//!
//! [`WebhookSink`] is where a [`Relay`](crate::Relay) delivers to; its endpoints are documents of the
//! store ([`Endpoints`]), and so is the record of every attempt ([`attempts`]).
//!
//! The receiver's order is: sizes, signature, age ([`Verifier::verify`], which touches no store), and
//! then nonce and event id together with the jobs that the event asks for ([`accept`], one
//! transaction). `docs/webhooks.md` tells the whole.

mod address;
mod attempt;
pub(crate) mod client;
pub(crate) mod connect;
mod endpoint;
mod gate;
mod key;
#[cfg(feature = "http")]
mod receive;
mod refusal;
mod route;
mod scheme;
mod sign;
mod sink;
pub(crate) mod target;
mod verify;
pub(crate) mod way;

use leasehold_core::{NewJob, Records, Result};

pub use attempt::{Attempt, attempts};
pub use endpoint::{Endpoint, EndpointStatus, Endpoints};
pub use key::{Key, Keys};
#[cfg(feature = "http")]
pub use receive::{Receiver, Refused, Signed};
pub use refusal::Refusal;
pub use route::ByJob;
pub use scheme::Scheme;
pub use sign::Signer;
pub use sink::{ByTopic, Route, SignFor, SinkBuilder, WebhookSink};
pub use target::{Resolve, Targets};
pub use verify::{Accepted, Verified, Verifier, accepted};
pub use way::WayOut;

/// Takes a verified request once: its nonce and its event's id are kept, and its jobs enqueued, in
/// one transaction. Where the jobs are refused the nonce stays free, and the sender may try again.
///
/// # Errors
/// As `Records::admit`; a refusal is the inner `Err`.
pub async fn accept(
    records: &dyn Records,
    verified: &Verified,
    jobs: impl IntoIterator<Item = NewJob>,
) -> Result<Result<Accepted, Refusal>> {
    accepted(records.admit(verified.admission()?.jobs(jobs)).await)
}

/// This machine's time in Unix seconds; signatures are compared with it.
pub(crate) fn now() -> Result<u64> {
    let micros = crate::clock::wall()?.as_micros();
    Ok(u64::try_from(micros / 1_000_000).unwrap_or_default())
}
