//! A backend joins the suite from a crate of its own like this; the store here is the one in memory.

use std::process::ExitCode;
use std::sync::Arc;

use leasehold_conformance::{Harness, conclude};
use leasehold_core::lab::LabStore;
use leasehold_core::memory::MemoryStore;
use leasehold_core::{Result, Timestamp};

struct Mine;

#[async_trait::async_trait]
impl Harness for Mine {
    fn name(&self) -> &'static str {
        "mine"
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        let start = Timestamp::saturating(1_700_000_000_000_000);
        Ok(Arc::new(MemoryStore::lab(start)))
    }
}

fn main() -> ExitCode {
    conclude(Arc::new(Mine))
}
