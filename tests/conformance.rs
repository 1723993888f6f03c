//! The conformance suite on every store of this repository: one line per engine and scenario.
//!
//! PostgreSQL is found by `LEASEHOLD_TEST_POSTGRES_URL`. Without it its scenarios are shown as
//! ignored, and are a failure when `LEASEHOLD_REQUIRE_ENGINES` is set.

use std::process::ExitCode;
use std::sync::Arc;

use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::report::coverage::{Coverage, counting};
use leasehold_conformance::{
    Harness, harness, ignored, interleave, memory, race, scenarios, script, start, trials,
};
use leasehold_core::lab::LabStore;
use leasehold_postgres::LabSchemas;
use leasehold_sqlite::SqliteStore;
use libtest_mimic::Trial;

/// SQLite in memory.
fn sqlite() -> Arc<dyn Harness> {
    harness("sqlite", || async {
        Ok(Arc::new(SqliteStore::lab(":memory:", start()).await?) as Arc<dyn LabStore>)
    })
}

/// The server to test against, where the environment names one.
fn postgres() -> Option<Arc<dyn Harness>> {
    let url = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok()?;
    let join = if url.contains('?') { '&' } else { '?' };
    let schemas = LabSchemas::new(format!("{url}{join}pool_size=4"), "conformance");
    let schemas = Arc::new(schemas);
    Some(harness("postgres", move || {
        let schemas = Arc::clone(&schemas);
        async move { Ok(Arc::new(schemas.store(start()).await?) as Arc<dyn LabStore>) }
    }))
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

/// What is played of each sort, and the differential scripts that a store is a part of.
struct Sizes {
    interleavings: u64,
    races: u64,
    scripts: u64,
}

/// One engine's part of a run: how much, and what its operations came to.
struct Part {
    evidence: Evidence,
    sizes: Sizes,
    schedules: Arc<Coverage>,
    histories: Arc<Coverage>,
}

impl Part {
    fn new(harness: &Arc<dyn Harness>, sizes: Sizes) -> Self {
        let evidence = Evidence::of("the conformance suite", harness.name());
        Self { evidence, sizes, schedules: Arc::default(), histories: Arc::default() }
    }

    /// The scenarios, interleavings and races of a store.
    fn trials(&self, harness: &Arc<dyn Harness>) -> Vec<Trial> {
        let mut all = trials(harness);
        let counted = counting(harness, &self.schedules);
        all.extend(interleave::trials(&counted, self.sizes.interleavings));
        let counted = counting(harness, &self.histories);
        all.extend(race::trials(&counted, self.sizes.races));
        all
    }

    fn tell(self) {
        let Sizes { interleavings, races, scripts } = self.sizes;
        let mut line = self.evidence.count("scenarios", scenarios().len());
        line = line.count("random schedules, judged by a model", interleavings);
        line = line.count("histories of races", races);
        line = line.count("differential scripts", scripts).count("steps of each", STEPS);
        for (what, coverage) in [("schedules", self.schedules), ("histories", self.histories)] {
            let sum = coverage.sum();
            line = line.count(&format!("operations in {what}"), sum.total());
            for (how, number) in sum.named() {
                line = line.count(&format!("operations in {what} that were {how}"), number);
            }
        }
        line.seeds(0..interleavings.max(races).max(scripts)).tell();
    }
}

fn main() -> ExitCode {
    let arguments = libtest_mimic::Arguments::from_args();
    let harnesses = [memory(), sqlite()];
    let usual = scripts(1_000);
    let mut all = script::trials(&harnesses, usual, STEPS);
    let mut parts = Vec::new();
    let mut add = |harness: &Arc<dyn Harness>, sizes: Sizes| {
        let part = Part::new(harness, sizes);
        all.extend(part.trials(harness));
        parts.push(part);
    };
    for (harness, (interleaved, raced)) in harnesses.iter().zip([(10_000, 80), (1_000, 60)]) {
        let (interleavings, races) = (interleavings(interleaved), races(raced));
        add(harness, Sizes { interleavings, races, scripts: usual });
    }
    if let Some(postgres) = postgres() {
        let (interleavings, scripts) = (interleavings(1_000), scripts(1_000));
        add(&postgres, Sizes { interleavings, races: races(30), scripts });
        let both = [memory(), postgres];
        all.extend(script::trials(&both, scripts, STEPS));
    } else {
        assert!(
            std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_none(),
            "LEASEHOLD_TEST_POSTGRES_URL names no server"
        );
        all.extend(ignored("postgres"));
    }
    let ended = libtest_mimic::run(&arguments, all);
    if !ended.has_failed() && ended.num_filtered_out == 0 && ended.num_passed > 0 {
        parts.into_iter().for_each(Part::tell);
    }
    ended.exit_code()
}
