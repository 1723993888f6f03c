//! Stored secrets, on every store. PostgreSQL is found as in
//! `tests/processes.rs`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test fails"
)]

#[path = "processes/engine.rs"]
mod engine;
#[path = "vault/keeping.rs"]
mod keeping;
#[path = "vault/killing.rs"]
mod killing;
#[path = "vault/sealing.rs"]
mod sealing;

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use engine::Engine;
use leasehold::Store;
use libtest_mimic::{Arguments, Failed, Trial};

type Told = Result<(), Failed>;
/// What a trial runs on a fresh store.
type Story = fn(Arc<dyn Store>) -> Pin<Box<dyn Future<Output = Told>>>;
/// What a trial runs without one.
type Pure = fn() -> Told;

/// What a trial does with a database that other processes open too.
type Crash = fn(&Engine) -> Told;

const CRASHES: [(&str, Crash); 1] =
    [("a_rewrap_killed_at_any_row_goes_on", killing::a_rewrap_killed_at_any_row_goes_on)];

/// Names each story and boxes it.
macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const STORIES: &[(&str, crate::Story)] =
            &[$((stringify!($name), |store| Box::pin($name(store)))),+];
    };
}
pub(crate) use stories;

/// Names each test that needs no store.
macro_rules! pure {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const PURE: &[(&str, crate::Pure)] = &[$((stringify!($name), $name)),+];
    };
}
pub(crate) use pure;

fn main() -> ExitCode {
    if let Some(code) = killing::play_role() {
        return code;
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, test) in sealing::PURE.iter().copied() {
        trials.push(Trial::test(format!("pure::{name}"), test));
    }
    let stories = keeping::STORIES;
    for (name, story) in stories.iter().copied() {
        let play = move || {
            let store: Arc<dyn Store> = Arc::new(leasehold::memory::MemoryStore::new());
            runtime().block_on(story(store))
        };
        trials.push(Trial::test(format!("memory::{name}"), play));
    }
    for engine in Engine::all() {
        let absent = engine.is_absent() && !engine::required();
        for (name, crash) in CRASHES {
            let (own, name) = (engine.clone(), format!("{}::{name}", engine.name()));
            trials.push(Trial::test(name, move || own.fresh(crash)).with_ignored_flag(absent));
        }
        for (name, story) in stories.iter().copied() {
            let (engine, name) = (engine.clone(), format!("{}::{name}", engine.name()));
            let play =
                move |at: &Engine| runtime().block_on(async { story(at.open().await?).await });
            let trial = Trial::test(name, move || engine.fresh(play));
            trials.push(trial.with_ignored_flag(absent));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}
