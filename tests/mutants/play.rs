//! Owns this program's second role: it plays the scenarios on the statement that its environment alters, those
//! first whose names are nearest to what is altered. Refuses to know what that is.

use std::cmp::Reverse;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_conformance::{Harness, harness, start, trials};
use leasehold_core::lab::LabStore;
use leasehold_postgres::PostgresStore;
use leasehold_sqlite::SqliteStore;
use libtest_mimic::{Arguments, Trial};

/// Names the engine whose scenarios are played.
pub(crate) const ROLE: &str = "LEASEHOLD_MUTANTS_ROLE";
/// Names what is altered, in words.
pub(crate) const FIRST: &str = "LEASEHOLD_MUTANTS_FIRST";
/// Shorter words tell nothing.
const WORD_MIN: usize = 3;

fn sqlite() -> Arc<dyn Harness> {
    harness("sqlite", || async {
        Ok(Arc::new(SqliteStore::lab(":memory:", start()).await?) as Arc<dyn LabStore>)
    })
}

/// A server as it is, or as behind a pooler, where no verb is one statement.
fn postgres(name: &'static str, parameters: &str) -> Arc<dyn Harness> {
    let url = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").expect("a server");
    let join = if url.contains('?') { '&' } else { '?' };
    let (url, made) = (format!("{url}{join}{parameters}"), AtomicU64::new(0));
    harness(name, move || {
        let number = made.fetch_add(1, Ordering::Relaxed) % 64;
        let schema = format!("mutant_{}_{}_{number}", name.replace('-', "_"), std::process::id());
        let url = url.clone();
        async move {
            Ok(Arc::new(PostgresStore::lab(&url, &schema, Some(start())).await?)
                as Arc<dyn LabStore>)
        }
    })
}

fn harnesses(engine: &str) -> Vec<Arc<dyn Harness>> {
    match engine {
        "sqlite" => vec![sqlite()],
        _ => vec![
            postgres("postgres", "pool_size=4"),
            postgres("postgres-pooled", "pool_size=4&pooler=transaction"),
        ],
    }
}

/// How many of the words a name holds.
fn nearness(name: &str, words: &[String]) -> usize {
    words.iter().filter(|word| name.contains(word.as_str())).count()
}

/// Plays the scenarios, where that is this process's role.
pub(crate) fn in_role() -> Option<ExitCode> {
    let engine = std::env::var(ROLE).ok()?;
    let first = std::env::var(FIRST).unwrap_or_default();
    let words = first.split(|c: char| !c.is_alphanumeric()).map(|word| word.trim_end_matches('s'));
    let words: Vec<String> = words.filter(|it| it.len() >= WORD_MIN).map(str::to_owned).collect();
    let mut all: Vec<Trial> = harnesses(&engine).iter().flat_map(trials).collect();
    all.sort_by_key(|trial| Reverse(nearness(trial.name(), &words)));
    Some(libtest_mimic::run(&Arguments::from_args(), all).exit_code())
}
