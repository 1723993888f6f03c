//! Owns periodic jobs: schedules as rows of the store, and the ticks that they make into jobs. Refuses
//! to know who runs them: any number of nodes may, and none leads.
//!
//! A schedule is a document; a tick is a job whose idempotency key names schedule and tick. Whoever sees
//! a tick first enqueues it, everybody else finds it done, and a node that dies in between leaves
//! nothing undone: the row says which ticks were seen, and moves on by compare-and-set only after
//! their jobs exist.
//!
//! ```
//! use std::sync::Arc;
//!
//! use leasehold::periodic::{Missed, Periodic, Schedule};
//! use leasehold::{JobKind, Json, memory::MemoryStore};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let periodic = Periodic::new(Arc::new(MemoryStore::new()));
//! let report = Schedule::new("report", "30 2 * * *", "Europe/Paris", JobKind::new("report")?, Json::parse("{}")?)?;
//! periodic.set(&report.missed(Missed::Once)).await?;
//! # Ok::<(), leasehold::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Daylight saving time
//!
//! - A schedule at a fixed time of day (its minute and its hour are plain numbers or lists) runs once on
//!   every day it names: a time that the clocks leap over runs at the first instant after the leap, a
//!   time that comes twice runs at its first coming.
//! - A schedule at intervals (a `*` or a step in its minute or its hour) follows the clock on the wall:
//!   times that are leapt over are left out, times that come twice run twice.
//!
//! # Missed ticks
//!
//! A tick that nobody made into a job within the grace (a minute unless set), because no node was up,
//! is missed: see [`Missed`].

mod row;
mod run;
mod schedule;
mod ticks;

pub use run::{Periodic, Planned, Round};
pub use schedule::{Missed, Schedule};
