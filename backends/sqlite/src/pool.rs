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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use leasehold_core::ErrorKind;

    use super::*;
    use crate::error::corrupt;

    /// A connection whose read failed may be at fault, and more than a few would cost memory.
    ///
    /// Proves: ERR-1
    #[test]
    fn a_few_are_kept_and_none_through_which_a_read_failed() {
        let (readers, opened) = (Readers::default(), Cell::new(0));
        let open = || {
            opened.set(opened.get() + 1);
            Connection::open_in_memory().map_err(engine)
        };
        let error = readers.read(open, |_| Err::<(), _>(corrupt("damaged"))).expect_err("failed");
        assert_eq!((error.kind(), opened.get()), (ErrorKind::Corrupt, 1));
        readers.read(open, |_| Ok(())).expect("read");
        readers.read(open, |_| Ok(())).expect("read");
        assert_eq!(opened.get(), 2, "the second kept one was used again");

        fn nested(
            readers: &Readers,
            open: &impl Fn() -> Result<Connection>,
            more: usize,
        ) -> Result<()> {
            readers.read(open, |_| if more == 0 { Ok(()) } else { nested(readers, open, more - 1) })
        }
        nested(&readers, &open, KEPT_MAX).expect("read");
        assert_eq!(opened.get(), 2 + KEPT_MAX, "each of those at once has its own");
        nested(&readers, &open, KEPT_MAX).expect("read");
        assert_eq!(opened.get(), 3 + KEPT_MAX, "one was too many to keep");
    }
}
