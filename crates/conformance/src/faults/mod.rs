//! Owns what hurts a store and the programs on it: a wire that fails, processes that stop and end, and a
//! load whose every answer is kept and judged. Compiled with the feature `faults`.
//!
//! # Your own handlers
//!
//! | What | How |
//! |---|---|
//! | killed, paused past its lease, or its answer lost, at each durable step | [`survive::survive`] |
//! | a worker process stopped or killed wherever you like | [`process::Victim`] |
//! | the wire to PostgreSQL cut, or the reply to a commit lost | [`proxy::Proxy`] |
//! | a load on your database, every answer judged | [`load::Told`], [`verdict::judge`] |
//! | a history of your own judged | [`crate::history::faults`], [`crate::history::late`] |
//! | the clock set by hand | [`leasehold_core::lab::ManualClock`] |
//!
//! The example `hurt_handler` of the repository tries a handler with a bug, and finds it.

pub mod harm;
pub mod load;
pub mod process;
pub mod proxy;
mod relay;
pub mod storm;
pub mod survive;
mod tally;
pub mod verdict;
pub mod watched;
mod wire;
