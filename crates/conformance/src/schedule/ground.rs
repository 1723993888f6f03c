//! Owns what a schedule needs of an engine: a few sessions on one database, and a beginning to go back to.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::Result;
use leasehold_core::failpoint::Session;
use leasehold_core::lab::{Dump, LabStore, Reply, Step};
use tokio::runtime::Handle;

/// One session: its store, which nobody else uses, and where its tasks run.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The store, on a manual clock.
    pub store: Arc<dyn LabStore>,
    /// The hand on its storage steps.
    pub session: Session,
    /// Where its tasks run.
    pub runtime: Handle,
}

/// Sessions on one database of an engine.
#[async_trait]
pub trait Ground: Send + Sync {
    /// The sessions.
    fn seats(&self) -> &[Seat];

    /// Empties every table.
    ///
    /// # Errors
    /// What the engine says.
    async fn empty(&self) -> Result<()>;

    /// Keeps what the tables hold now.
    ///
    /// # Errors
    /// What the engine says.
    async fn keep(&self) -> Result<()>;

    /// Brings the tables back to what was kept.
    ///
    /// # Errors
    /// What the engine says.
    async fn restore(&self) -> Result<()>;

    /// Takes a job's row out of the tables, as one is for a claim that passes over it, or puts it back.
    ///
    /// # Errors
    /// What the engine says.
    async fn hide(&self, job: u8, is_hidden: bool) -> Result<()>;

    /// Every row of every table.
    ///
    /// # Errors
    /// What the engine says.
    async fn dump(&self) -> Result<Dump>;

    /// Whether a session's step waits for what another session holds.
    async fn waits(&self, seat: usize) -> bool;

    /// Whether one session at a time is past its step `begin`.
    fn is_exclusive(&self) -> bool;

    /// Plays a script in a transaction of a caller's that may have to be run again: one that keeps its
    /// snapshot, or that takes its lock late.
    ///
    /// # Errors
    /// What the engine says.
    async fn play_loosely(&self, seat: usize, script: Vec<Step>) -> Result<Vec<Reply>>;
}
