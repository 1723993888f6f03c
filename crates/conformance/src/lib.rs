//! The conformance suite: what every store of Leasehold must do, as scenarios over the seam alone.
//!
//! Owns the scenarios, and how they become one test line per engine and scenario. Refuses to know
//! which engine it is talking to.
//!
//! # Your own backend
//!
//! Give your store a [`LabStore`](leasehold_core::lab::LabStore) and the suite a [`Harness`] that opens
//! it, in a test target with `harness = false`. [`conclude`] then plays everything that one store can be
//! judged by:
//!
//! ```
//! # use std::{process::ExitCode, sync::Arc};
//! use leasehold_conformance::{conclude, harness, start};
//! use leasehold_core::{lab::LabStore, memory::MemoryStore};
//!
//! # let _main = || -> ExitCode {
//! let mine = harness("mine", || async {
//!     Ok(Arc::new(MemoryStore::lab(start())) as Arc<dyn LabStore>)
//! });
//! conclude(mine) // the whole of `main`
//! # };
//! ```

mod clock;
pub mod contest;
pub mod evidence;
#[cfg(feature = "faults")]
pub mod faults;
mod hand_on;
mod harness;
pub mod history;
pub mod interleave;
pub mod invariants;
mod kept;
mod lab;
pub mod race;
pub mod report;
mod scenarios;
#[cfg(feature = "schedules")]
pub mod schedule;
pub mod script;
pub mod statements;
pub mod sweep;

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use leasehold_core::{Error, ErrorKind, Result};
use libtest_mimic::{Failed, Trial};

pub use harness::{Harness, harness, memory, start};
pub use lab::Lab;
pub use scenarios::crossed::{JOINED, Presents, VERBS};

/// What a scenario runs to.
pub type Run<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// One rule, played on one fresh store.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Group and assertion, such as `settle::stale_fence_changes_nothing`.
    pub name: &'static str,
    /// Plays it.
    pub run: for<'a> fn(&'a Lab) -> Run<'a>,
}

/// Every scenario, in the order of the groups.
pub fn scenarios() -> Vec<Scenario> {
    scenarios::GROUPS.iter().flat_map(|group| group.iter().copied()).collect()
}

/// One trial per scenario on one engine.
pub fn trials(harness: &Arc<dyn Harness>) -> Vec<Trial> {
    let trial = |scenario: Scenario| {
        let harness = Arc::clone(harness);
        let name = format!("{}::{}", harness.name(), scenario.name);
        Trial::test(name, move || play(&*harness, scenario).map_err(Failed::from))
    };
    scenarios().into_iter().map(trial).collect()
}

/// One ignored trial per scenario, for an engine that cannot be reached here.
pub fn ignored(engine: &str) -> Vec<Trial> {
    let trial = |scenario: Scenario| {
        let name = format!("{engine}::{}", scenario.name);
        Trial::test(name, || Err(Failed::from("the engine cannot be reached")))
            .with_ignored_flag(true)
    };
    scenarios().into_iter().map(trial).collect()
}

/// Plays all that one store is judged by, as a test program's `main`: every scenario, a thousand
/// random interleavings and ten races. Takes the arguments that test programs take.
pub fn conclude(harness: Arc<dyn Harness>) -> ExitCode {
    let mut all = trials(&harness);
    all.extend(interleave::trials(&harness, 1_000));
    all.extend(race::trials(&harness, 10));
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), all).exit_code()
}

fn play(harness: &dyn Harness, scenario: Scenario) -> Result<()> {
    let build = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = build.map_err(|e| {
        Error::new(ErrorKind::Unavailable, "conformance", "no runtime").with_source(e)
    })?;
    runtime.block_on(async {
        let lab = Lab::new(harness.store().await?)?;
        (scenario.run)(&lab).await?;
        let broken = invariants::broken(&lab.dump().await?);
        assert!(broken.is_empty(), "the store is left unsound:\n{}", broken.join("\n"));
        Ok(())
    })
}
