//! Owns the run of the conformance scenarios on this engine: as it is, and as behind a pooler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use leasehold_conformance::Harness;
use leasehold_core::lab::LabStore;
use leasehold_core::{Result, Timestamp};
use leasehold_postgres::PostgresStore;
use libtest_mimic::Arguments;

struct Schemas {
    name: &'static str,
    url: String,
    number: AtomicU64,
}

#[async_trait]
impl Harness for Schemas {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let prefix = self.name.replace('-', "_");
        let schema = format!("suite_{prefix}_{}_{number}", std::process::id());
        let start = Timestamp::saturating(1_800_000_000_000_000);
        Ok(Arc::new(PostgresStore::lab(&self.url, &schema, Some(start)).await?))
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let names = ["postgres", "postgres-pooled"];
    let Ok(url) = std::env::var("LEASEHOLD_TEST_POSTGRES_URL") else {
        assert!(
            std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_none(),
            "LEASEHOLD_TEST_POSTGRES_URL names no server"
        );
        let trials = names.iter().flat_map(|name| leasehold_conformance::ignored(name)).collect();
        libtest_mimic::run(&arguments, trials).exit();
    };
    let join = if url.contains('?') { '&' } else { '?' };
    let urls =
        [format!("{url}{join}pool_size=4"), format!("{url}{join}pool_size=4&pooler=transaction")];
    let mut trials = Vec::new();
    for (name, url) in names.into_iter().zip(urls) {
        let harness: Arc<dyn Harness> = Arc::new(Schemas { name, url, number: AtomicU64::new(0) });
        trials.extend(leasehold_conformance::trials(&harness));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
