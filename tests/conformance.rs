//! The conformance suite on every store of this repository: one line per engine and scenario.
//!
//! PostgreSQL is found by `LEASEHOLD_TEST_POSTGRES_URL`. Without it its scenarios are shown as
//! ignored, and are a failure when `LEASEHOLD_REQUIRE_ENGINES` is set.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use leasehold_conformance::{Harness, ignored, interleave, race, script, trials};
use leasehold_core::lab::LabStore;
use leasehold_core::memory::MemoryStore;
use leasehold_core::{Result, Timestamp};
use leasehold_postgres::PostgresStore;
use leasehold_sqlite::SqliteStore;

/// Where every manual clock begins.
fn start() -> Timestamp {
    Timestamp::saturating(1_700_000_000_000_000)
}

struct Memory;

#[async_trait]
impl Harness for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        Ok(Arc::new(MemoryStore::lab(start())))
    }
}

struct Sqlite;

#[async_trait]
impl Harness for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        Ok(Arc::new(SqliteStore::lab(":memory:", start()).await?))
    }
}

struct Postgres {
    url: String,
    made: AtomicU64,
}

impl Postgres {
    /// The server to test against, where the environment names one.
    fn here() -> Option<Arc<dyn Harness>> {
        let url = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok()?;
        let join = if url.contains('?') { '&' } else { '?' };
        Some(Arc::new(Self { url: format!("{url}{join}pool_size=4"), made: AtomicU64::new(0) }))
    }
}

#[async_trait]
impl Harness for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        // The schemas of stores that are gone are used again.
        let number = self.made.fetch_add(1, Ordering::Relaxed) % 500;
        let schema = format!("conformance_{}_{number}", std::process::id());
        Ok(Arc::new(PostgresStore::lab(&self.url, &schema, Some(start())).await?))
    }
}

/// The length of a differential script.
const STEPS: usize = 50;

/// A number of runs: what the environment names, else the usual one.
fn runs(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// How many differential scripts are played.
fn scripts(usual: u64) -> u64 {
    runs("LEASEHOLD_SCRIPTS", usual)
}

/// How many interleavings are judged by the model.
fn interleavings(usual: u64) -> u64 {
    runs("LEASEHOLD_INTERLEAVINGS", usual)
}

/// How many races of several workers are run.
fn races(usual: u64) -> u64 {
    runs("LEASEHOLD_RACES", usual)
}

fn main() -> ExitCode {
    let arguments = libtest_mimic::Arguments::from_args();
    let harnesses = [Arc::new(Memory) as Arc<dyn Harness>, Arc::new(Sqlite)];
    let mut all: Vec<_> = harnesses.iter().flat_map(trials).collect();
    all.extend(script::trials(&harnesses, scripts(1_000), STEPS));
    for (harness, usual) in harnesses.iter().zip([10_000, 1_000]) {
        all.extend(interleave::trials(harness, interleavings(usual)));
        all.extend(race::trials(harness, races(20)));
    }
    if let Some(postgres) = Postgres::here() {
        all.extend(trials(&postgres));
        all.extend(interleave::trials(&postgres, interleavings(1_000)));
        all.extend(race::trials(&postgres, races(10)));
        let both = [Arc::new(Memory) as Arc<dyn Harness>, postgres];
        all.extend(script::trials(&both, scripts(200), STEPS));
    } else {
        assert!(
            std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_none(),
            "LEASEHOLD_TEST_POSTGRES_URL names no server"
        );
        all.extend(ignored("postgres"));
    }
    libtest_mimic::run(&arguments, all).exit_code()
}
