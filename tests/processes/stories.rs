//! Owns how a story is told: on a fresh store of each sort, in memory and on both engines. Knows nothing of
//! what happens in it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use leasehold::Store;
use libtest_mimic::{Failed, Trial};

use crate::engine::{Engine, required};

/// How a story ends.
pub(crate) type Told = Result<(), Failed>;
/// What a trial runs on a fresh store.
pub(crate) type Story = fn(Arc<dyn Store>) -> Pin<Box<dyn Future<Output = Told>>>;

/// Names each story and boxes it.
macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const STORIES: &[(&str, crate::stories::Story)] =
            &[$((stringify!($name), |store| Box::pin($name(store)))),+];
    };
}
pub(crate) use stories;

/// Makes a trial of each story on each store.
pub(crate) fn trials(stories: &[(&'static str, Story)]) -> Vec<Trial> {
    let in_memory = stories.iter().map(|(name, story)| {
        let story = *story;
        let play = move || {
            let store: Arc<dyn Store> = Arc::new(leasehold::memory::MemoryStore::new());
            runtime().block_on(story(store))
        };
        Trial::test(format!("memory::{name}"), play)
    });
    let mut trials: Vec<Trial> = in_memory.collect();
    for (name, story) in stories.iter().copied() {
        let play = move |at: &Engine| runtime().block_on(async { story(at.open().await?).await });
        trials.extend(on_engines(name, play));
    }
    trials
}

/// Makes a trial on a fresh database of each engine.
pub(crate) fn on_engines(
    name: &str,
    play: impl Fn(&Engine) -> Told + Copy + Send + 'static,
) -> Vec<Trial> {
    let on = |engine: Engine| {
        let absent = engine.is_absent() && !required();
        let name = format!("{}::{name}", engine.name());
        Trial::test(name, move || engine.fresh(play)).with_ignored_flag(absent)
    };
    Engine::all().into_iter().map(on).collect()
}

/// A runtime of the trial's own.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}
