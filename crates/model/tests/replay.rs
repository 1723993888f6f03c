//! Owns the replay of the model's traces on the stores: each step of a random walk through the model is
//! done on a store too, and answers and rows have to be those of the model. A failover is played on
//! a second store that has seen the trace up to where the standby was.
//!
//! PostgreSQL is found by `LEASEHOLD_TEST_POSTGRES_URL`; without it its traces are shown as ignored.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]
#![allow(missing_docs, clippy::indexing_slicing, reason = "a test's own tables")]

mod replay_walk;

use std::process::ExitCode;
use std::sync::Arc;

use leasehold_conformance::evidence::Evidence;
use leasehold_core::lab::LabStore;
use leasehold_core::memory::MemoryStore;
use leasehold_core::{Result, Timestamp};
use leasehold_model::Mutant;
use leasehold_postgres::PostgresStore;
use leasehold_sqlite::SqliteStore;
use libtest_mimic::{Arguments, Failed, Trial};
use replay_walk::{LANES, walk};

/// How many traces share stores and a test line.
const EACH: u64 = 100;

#[derive(Clone)]
enum Engine {
    Memory,
    Sqlite,
    Postgres(Option<String>),
}

impl Engine {
    fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    async fn store(&self, name: &str) -> Result<Arc<dyn LabStore>> {
        let start = Timestamp::saturating(1_700_000_000_000_000);
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::lab(start)),
            Self::Sqlite => Arc::new(SqliteStore::lab(":memory:", start).await?),
            Self::Postgres(server) => {
                let server = server.as_deref().expect("a server");
                let join = if server.contains('?') { '&' } else { '?' };
                let url = format!("{server}{join}pool_size=2");
                let schema = format!("replay_{}_{name}", std::process::id());
                Arc::new(PostgresStore::lab(&url, &schema, Some(start)).await?)
            }
        })
    }
}

/// Proves: FAN-2, FAN-3, GLO-2, GLO-3, PAR-1, WQ-3, WQ-6, WQ-7, WQ-8, WQ-15
fn traces_agree_with_the_model(engine: &Engine, from: u64) -> std::result::Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stores = Vec::new();
        for lane in 0..LANES {
            stores.push(engine.store(&format!("{from}_{lane}")).await?);
        }
        let mut epoch = 0;
        let mut met = replay_walk::Met::default();
        for trace in from..from + EACH {
            epoch = walk(&stores, trace, epoch, None, &mut met).await.map_err(Failed::from)?;
        }
        met.check().map_err(Failed::from)
    })
}

/// Whether a mistake is one of the store, told by its answers and rows, and not of the outside or of
/// the failover.
fn is_of_the_store(mutant: Mutant) -> bool {
    !matches!(mutant, Mutant::TokenIgnored | Mutant::EpochNotRaised)
}

/// The comparison has teeth: a model with a mistake does not agree with a store that has none.
fn a_mistaken_model_parts_from_the_store(mutant: Mutant) -> std::result::Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut met = replay_walk::Met::default();
        for trace in 0..EACH * 10 {
            let mut stores = Vec::new();
            for _ in 0..LANES {
                stores.push(Engine::Memory.store("").await?);
            }
            if walk(&stores, trace, 0, Some(mutant), &mut met).await.is_err() {
                return Ok(());
            }
        }
        Err(Failed::from(format!("{mutant:?} agrees with the store")))
    })
}

fn trials(engine: &Engine, traces: u64) -> impl Iterator<Item = Trial> {
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let absent = matches!(engine, Engine::Postgres(None));
    (0..traces).step_by(EACH as usize).map(move |from| {
        let to = from + EACH;
        let name = format!("{}::traces_{from}_to_{to}_agree_with_the_model", engine.name());
        let engine = engine.clone();
        let play = move || match absent {
            true => Err(Failed::from("LEASEHOLD_TEST_POSTGRES_URL names no server")),
            false => traces_agree_with_the_model(&engine, from),
        };
        Trial::test(name, play).with_ignored_flag(absent && !required)
    })
}

fn main() -> ExitCode {
    let wanted: Option<u64> = std::env::var("LEASEHOLD_TRACES").ok().and_then(|n| n.parse().ok());
    let server = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok();
    let engines = [Engine::Memory, Engine::Sqlite, Engine::Postgres(server)];
    let traces = wanted.unwrap_or(1_000);
    let here = engines.iter().filter(|it| !matches!(it, Engine::Postgres(None)));
    let evidence = here.map(|engine| {
        let line = Evidence::of("model, traces replayed", engine.name());
        line.count("traces", traces).count("traces in a store's lifetime", EACH).seeds(0..traces)
    });
    let evidence: Vec<Evidence> = evidence.collect();
    let all = engines.iter().flat_map(|engine| trials(engine, traces));
    let mut all: Vec<Trial> = all.collect();
    all.extend(Mutant::ALL.into_iter().filter(|mutant| is_of_the_store(*mutant)).map(|mutant| {
        let name = format!("memory::the_model_with_{mutant:?}_parts_from_the_store");
        Trial::test(name, move || a_mistaken_model_parts_from_the_store(mutant))
    }));
    let ended = libtest_mimic::run(&Arguments::from_args(), all);
    if !ended.has_failed() && ended.num_filtered_out == 0 && ended.num_passed > 0 {
        evidence.iter().for_each(Evidence::tell);
    }
    ended.exit_code()
}
