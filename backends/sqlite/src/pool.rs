//! Owns the connections that read: a few are kept between reads. Knows nothing of what is read, and
//! never writes.

use std::sync::{Mutex, PoisonError};

use leasehold_core::Result;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::engine;

/// How many are kept.
const KEPT_MAX: usize = 4;

/// The connections that nobody is reading through.
#[derive(Debug, Default)]
pub(crate) struct Readers(Mutex<Vec<Connection>>);

impl Readers {
    /// Reads in one snapshot, through a connection that is kept, or else newly opened.
    pub(crate) fn read<T>(
        &self,
        open: impl FnOnce() -> Result<Connection>,
        read: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = kept().pop();
        let conn = free.map_or_else(open, Ok)?;
        let tx = Transaction::new_unchecked(&conn, TransactionBehavior::Deferred);
        let found = tx.map_err(engine).and_then(|tx| read(&tx));
        let mut kept = kept();
        if found.is_ok() && kept.len() < KEPT_MAX {
            kept.push(conn);
        }
        found
    }

    /// Closes all that are kept.
    pub(crate) fn close(&mut self) {
        drop(self.take());
    }

    /// Lets go of all that are kept without closing them.
    pub(crate) fn abandon(&mut self) {
        std::mem::forget(self.take());
    }

    fn take(&mut self) -> Vec<Connection> {
        std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}
