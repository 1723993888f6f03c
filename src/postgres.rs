//! The PostgreSQL store, and how a handler settles its job inside its own transaction there.

pub use leasehold_postgres::*;

use async_trait::async_trait;
use leasehold_core::{Result, Verdict};

use crate::worker::{Context, Handled};

/// Settling a worker's job on the caller's own transaction.
#[async_trait]
pub trait SettleFor {
    /// Settles the job of a handler together with the handler's own rows.
    ///
    /// Commit, then return what this gives: the worker sends nothing more. Where the transaction
    /// does not commit, return the error instead, and the attempt counts as failed. Events that the
    /// context has in hand go along.
    ///
    /// # Errors
    /// `FenceLost`, so that `?` rolls the caller's rows back; else as `Store::settle`, per item.
    async fn settle_for(&self, context: &Context, verdict: Verdict) -> Result<Handled>;
}

#[async_trait]
impl SettleFor for Joined<'_> {
    async fn settle_for(&self, context: &Context, verdict: Verdict) -> Result<Handled> {
        let settlement = context.begin_settling(verdict);
        let answer = self.settle_one(&settlement).await;
        context.end_settling(settlement, answer)
    }
}
