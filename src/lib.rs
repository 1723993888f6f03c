//! Owns the front door: the vocabulary of the contract under one name, the worker, the relay
//! and the upkeep. It refuses to know how an engine keeps its promises; the backends do.
//!
//! At-least-once execution; at most one settlement per claim; effects exactly once only inside the
//! caller's transaction or behind the fence.

mod clock;
mod connect;
mod lane;
pub mod maintenance;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod relay;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod worker;

pub use connect::connect;
pub use leasehold_core::*;
pub use maintenance::Maintenance;
pub use relay::{ChannelSink, Delivery, JsonLinesSink, Relay, Sink};
pub use tokio_util::sync::CancellationToken;
pub use worker::{Context, Handled, HandlerError, Worker, WorkerBuilder};
