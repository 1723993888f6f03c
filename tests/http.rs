//! The HTTP API, on every store. PostgreSQL is found as in
//! `tests/processes.rs`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test fails"
)]

#[path = "http/asking.rs"]
mod asking;
#[path = "processes/engine.rs"]
#[allow(dead_code, reason = "not every test has children that need the address")]
mod engine;
#[path = "http/hostile.rs"]
mod hostile;

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
/// Names each story and boxes it.
macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const STORIES: &[(&str, crate::Story)] =
            &[$((stringify!($name), |store| Box::pin($name(store)))),+];
    };
}
pub(crate) use stories;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let stories = [asking::STORIES, hostile::STORIES].concat();
    for (name, story) in stories.iter().copied() {
        let play = move || {
            let store: Arc<dyn Store> = Arc::new(leasehold::memory::MemoryStore::new());
            runtime().block_on(story(store))
        };
        trials.push(Trial::test(format!("memory::{name}"), play));
    }
    for engine in Engine::all() {
        let absent = engine.is_absent() && !engine::required();
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
