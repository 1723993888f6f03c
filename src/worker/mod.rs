//! Owns the worker: claims as many jobs as it has free slots, runs their handlers, keeps their
//! leases, settles them. It refuses to know any engine; it speaks to a `Store`.

mod ask;
mod begun;
mod builder;
mod context;
mod handler;
mod job;
mod name;
mod run;
mod settle;
#[cfg(test)]
pub(crate) mod tests;

pub use builder::{Worker, WorkerBuilder};
pub use context::Context;
pub use handler::{Handled, HandlerError};
