//! Owns the run of the conformance scenarios on this engine: on a file and in memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_conformance::{Harness, harness, start};
use leasehold_core::lab::LabStore;
use leasehold_sqlite::SqliteStore;
use libtest_mimic::Arguments;

fn files(folder: PathBuf) -> Arc<dyn Harness> {
    let made = AtomicU64::new(0);
    harness("sqlite", move || {
        let number = made.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("suite-{}-{number}.db", std::process::id()));
        async move {
            for end in ["", "-wal", "-shm"] {
                let _absent = std::fs::remove_file(format!("{}{end}", path.display()));
            }
            let url = format!("sqlite:{}?synchronous=normal", path.display());
            Ok(Arc::new(SqliteStore::lab(&url, start()).await?) as Arc<dyn LabStore>)
        }
    })
}

fn memory() -> Arc<dyn Harness> {
    harness("sqlite-memory", || async {
        Ok(Arc::new(SqliteStore::lab(":memory:", start()).await?) as Arc<dyn LabStore>)
    })
}

fn main() {
    let folder =
        std::env::var_os("LEASEHOLD_TEST_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let mut trials = leasehold_conformance::trials(&files(folder));
    trials.extend(leasehold_conformance::trials(&memory()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
