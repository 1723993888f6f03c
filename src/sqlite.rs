//! The SQLite store, and how a handler settles its job inside its own transaction there.

pub use leasehold_sqlite::*;

use leasehold_core::{Result, Verdict};

use crate::worker::{Context, Handled};

/// Settling a worker's job on the caller's own transaction.
pub trait SettleFor {
    /// Settles the job of a handler together with the handler's own rows.
    ///
    /// Commit, then return what this gives: the worker sends nothing more. Where the transaction
    /// does not commit, return the error instead, and the attempt counts as failed. Events that the
    /// context has in hand go along.
    ///
    /// # Errors
    /// `FenceLost`, so that `?` rolls the caller's rows back; else as `Store::settle`, per item.
    ///
    /// ```
    /// use leasehold::sqlite::SettleFor;
    /// use leasehold::{Context, Handled, HandlerError, Verdict};
    ///
    /// async fn pay(store: leasehold::sqlite::SqliteStore, context: Context) -> Result<Handled, HandlerError> {
    ///     let joining = store.clone();
    ///     let handled = store
    ///         .transaction(move |tx| {
    ///             // … the handler's own rows …
    ///             joining.join(tx).settle_for(&context, Verdict::Succeed { result: None })
    ///         })
    ///         .await?;
    ///     Ok(handled)
    /// }
    /// ```
    fn settle_for(&self, context: &Context, verdict: Verdict) -> Result<Handled>;
}

impl SettleFor for Joined<'_> {
    fn settle_for(&self, context: &Context, verdict: Verdict) -> Result<Handled> {
        let settlement = context.begin_settling(verdict);
        let answer = self.settle_one(&settlement);
        context.end_settling(settlement, answer)
    }
}
