//! Durable, fenced jobs and a transactional outbox in the database that a service already has.
//!
//! Owns the front door: the vocabulary of the contract under one name, the worker, the relay and the
//! upkeep. It refuses to know how an engine keeps its promises; the backends do.
//!
//! ```
//! use std::sync::Arc;
//!
//! use leasehold::memory::MemoryStore;
//! use leasehold::{Context, Handled, JobKind, Json, NewJob, State, StoreExt, Worker};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let store = Arc::new(MemoryStore::new()); // or sqlite::open, postgres::open, connect
//! let double = JobKind::new("double")?;
//! let job = store.enqueue_one(NewJob::new(double.clone(), Json::of(&21)?)).await?.job();
//!
//! let worker = Worker::builder(store.clone())
//!     .handler(double, |_: Context, n: u32| async move { Ok(Handled::done_with(&(n * 2))) })
//!     .build();
//! worker.run_until_idle().await?;
//!
//! let job = store.job(job).await?.ok_or("gone")?;
//! assert_eq!(job.state, State::Succeeded);
//! assert_eq!(job.result, Some(Json::of(&42)?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! - [`connect`] opens a store by its URL; the modules `sqlite` and `postgres` (each a feature) open
//!   their own and join a caller's transaction; [`memory`] is for tests.
//! - [`Store`] and [`StoreExt`] are the verbs: enqueue, claim, renew, progress, settle, reclaim,
//!   publish, control, find, stats, prune.
//! - [`Worker`] runs handlers; [`Relay`] delivers the outbox to a [`Sink`]; [`Maintenance`] is the
//!   upkeep on its own.
//! - `periodic` (a feature) makes the ticks of cron expressions into jobs, on any number of nodes.
//! - `http` (a feature) is an API that a service mounts: requesters enqueue jobs and ask about them.
//! - [`circuit`] breaks off claims from a queue whose jobs fail too often.
//! - [`observe`] tells a program what its workers and relays do; `metrics` (a feature) counts it as
//!   Prometheus reads it.
//! - `otel` (a feature) sends the spans of jobs and deliveries to an OpenTelemetry collector.
//! - `vault` (a feature) keeps secrets sealed, under keys that can be replaced.
//! - `credentials` (a feature) keeps what jobs reach storage with, and asks for it anew; `workspace` (a
//!   feature) keeps their temporary files within limits, and removes them.
//! - `storage` (a feature) moves files between jobs and local folders, HTTP and S3.
//! - `notify` and `smtp` (features) tell recipients, each once for each version of a subject.
//! - `webhook` (a feature) signs what goes out, and verifies and takes once what comes in.
//! - [`Lifecycle`] says as data which verb moves a job from where to where.
//!
//! At-least-once execution; at most one settlement per claim; effects exactly once only inside the
//! caller's transaction or behind the fence. It does not promise that code runs once, and it ends no
//! code whose lease has ended: only what that code writes is refused.

mod breaker;
pub mod circuit;
mod clock;
mod connect;
#[cfg(feature = "credentials")]
pub mod credentials;
#[cfg(feature = "http")]
pub mod http;
#[cfg(any(feature = "http", feature = "vault"))]
mod key_age;
mod lane;
pub mod maintenance;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "notify")]
pub mod notify;
pub mod observe;
#[cfg(feature = "otel")]
pub mod otel;
#[cfg(feature = "periodic")]
pub mod periodic;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod relay;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "storage")]
pub mod storage;
mod trace;
#[cfg(feature = "vault")]
pub mod vault;
#[cfg(feature = "webhook")]
pub mod webhook;
pub mod worker;
#[cfg(feature = "workspace")]
pub mod workspace;

/// For implementing [`Sink`] and other async traits of this crate.
pub use async_trait::async_trait;
pub use connect::{connect, read_url};
pub use leasehold_core::*;
pub use maintenance::Maintenance;
pub use relay::{ChannelSink, Delivery, JsonLinesSink, Relay, Sink, Undelivered};
pub use tokio_util::sync::CancellationToken;
pub use worker::{Context, Handled, HandlerError, Worker, WorkerBuilder};
