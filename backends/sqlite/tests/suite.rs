//! Owns the run of the conformance scenarios on this engine: on a file and in memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use leasehold_conformance::Harness;
use leasehold_core::lab::LabStore;
use leasehold_core::{Result, Timestamp};
use leasehold_sqlite::SqliteStore;
use libtest_mimic::Arguments;

struct Files(PathBuf, AtomicU64);
struct Memory;

fn start() -> Timestamp {
    Timestamp::saturating(1_800_000_000_000_000)
}

#[async_trait]
impl Harness for Files {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        let number = self.1.fetch_add(1, Ordering::Relaxed);
        let path = self.0.join(format!("suite-{}-{number}.db", std::process::id()));
        for end in ["", "-wal", "-shm"] {
            let _absent = std::fs::remove_file(format!("{}{end}", path.display()));
        }
        let url = format!("sqlite:{}?synchronous=normal", path.display());
        Ok(Arc::new(SqliteStore::lab(&url, start()).await?))
    }
}

#[async_trait]
impl Harness for Memory {
    fn name(&self) -> &'static str {
        "sqlite-memory"
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        Ok(Arc::new(SqliteStore::lab(":memory:", start()).await?))
    }
}

fn main() {
    let folder =
        std::env::var_os("LEASEHOLD_TEST_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let files: Arc<dyn Harness> = Arc::new(Files(folder, AtomicU64::new(0)));
    let memory: Arc<dyn Harness> = Arc::new(Memory);
    let mut trials = leasehold_conformance::trials(&files);
    trials.extend(leasehold_conformance::trials(&memory));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
