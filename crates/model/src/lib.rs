//! A model of the protocol between workers and a store: claims whose replies are lost, requests that
//! arrive late, heartbeats, effects on the outside behind a token, settlements said twice, crashes,
//! lapsed leases, replays, and a failover that loses what its standby had not yet seen.
//!
//! Owns the abstract store, its workers and what must always hold. Refuses to know any engine, and
//! shares no code with one: what it says is compared with the engines by playing its traces there.
//! Every claim has a number that no rule may look at, the ghost; the properties speak of it alone.

#![allow(clippy::indexing_slicing, reason = "tables of fixed size; a panic is a failed check")]

mod mutant;
mod property;
mod protocol;
mod row;
mod store;
mod world;

pub use mutant::Mutant;
pub use property::{Broken, always};
pub use protocol::{Action, Answer, Delivery, Protocol};
pub use row::{Ended, Fence, Lost, OnFailure, Phase, Row, Verdict, Worker};
pub use store::{Said, Store};
pub use world::{Outside, Request, World};

/// The most jobs of a world.
pub const JOBS: usize = 2;
/// The most workers of a world.
pub const WORKERS: usize = 3;
