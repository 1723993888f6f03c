//! Owns the memory of which process opened a store. A forked child has a copy of the handle, but
//! neither the writer's thread nor the locks: it is told so, and closes nothing.

use leasehold_core::{Error, ErrorKind, Result};

/// The process that opened a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener(u32);

impl Opener {
    pub(crate) fn here() -> Self {
        Self(std::process::id())
    }

    #[cfg(test)]
    pub(crate) fn elsewhere() -> Self {
        Self(std::process::id() + 1)
    }

    pub(crate) fn is_here(self) -> bool {
        std::process::id() == self.0
    }

    pub(crate) fn check(self, operation: &'static str) -> Result<()> {
        if self.is_here() {
            return Ok(());
        }
        let why = "the store was opened before a fork; open it anew in this process";
        Err(Error::new(ErrorKind::Unavailable, operation, why))
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{PruneRequest, Store, StoreExt};

    use super::*;
    use crate::SqliteStore;

    /// Field case C50: what a forked child holds is a copy without the writer's thread.
    ///
    /// Proves: ERR-1
    #[tokio::test]
    async fn a_copy_in_a_forked_process_is_refused() {
        let name = format!("leasehold-fork-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut store = SqliteStore::open(&path.to_string_lossy()).await.expect("new");
        let _kept = store.stats().await.expect("figures, and a reader that is kept");
        store.forked();
        let job = store.job(leasehold_core::JobId::new()).await.expect_err("a read");
        let prune = store.prune(PruneRequest::new()).await.expect_err("a write");
        let other = store.clone();
        store.close().await; // at once: no thread of this process would tell of an end
        drop(other);
        for end in ["", "-wal", "-shm"] {
            let _absent = std::fs::remove_file(format!("{}{end}", path.display()));
        }
        for error in [job, prune] {
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.message().contains("before a fork"), "{error}");
        }
    }
}
