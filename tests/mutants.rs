//! Alters the engines' statements one at a time, and looks whether the suites notice.
//!
//! `cargo test` makes every alteration, so that none is out of date, and looks whether the scenarios that
//! `docs/mutants.md` names still notice a few. `LEASEHOLD_MUTANTS=all` plays the suites on every one until the
//! first test fails, `new` on those that the page does not tell of, another text on those whose name holds it
//! or one of its parts between commas, and `LEASEHOLD_UPDATE_MUTANTS=1` writes what came of each to the page at once.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test fails"
)]
#![allow(clippy::print_stdout, reason = "it is a test, and prints figures")]

#[path = "mutants/list.rs"]
mod list;
#[path = "mutants/page.rs"]
mod page;
#[path = "mutants/place.rs"]
mod place;
#[path = "mutants/play.rs"]
mod play;
#[path = "mutants/suite.rs"]
mod suite;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Failed, Trial};
use list::Mutant;
use suite::Suite;

const ENGINES: [&str; 2] = ["sqlite", "postgres"];
/// How many of each engine are tried where not all are.
const SAMPLE: usize = 3;
/// How many of a hundred have to be noticed.
const NOTICED_MIN: usize = 95;

/// What became of the alterations that were tried: the test that noticed.
type Ends = BTreeMap<String, Option<String>>;

fn is_here(engine: &str) -> bool {
    let is_here = engine == "sqlite" || std::env::var_os("LEASEHOLD_TEST_POSTGRES_URL").is_some();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    assert!(is_here || !required, "LEASEHOLD_TEST_POSTGRES_URL names no server");
    is_here
}

/// Whether the page is written anew.
fn is_update() -> bool {
    std::env::var_os("LEASEHOLD_UPDATE_MUTANTS").is_some()
}

/// Those that are tried: all, those that nobody has tried yet, those of a name, or a few that a scenario is known
/// to notice.
fn chosen(all: &[Mutant], known: &BTreeMap<String, String>) -> Vec<Mutant> {
    match std::env::var("LEASEHOLD_MUTANTS").ok().as_deref() {
        Some("all") => all.to_vec(),
        Some("new") => page::untold(all),
        Some(parts) => {
            let is_meant = |name: &str| parts.split(',').any(|part| name.contains(part));
            all.iter().filter(|it| is_meant(&it.full_name())).cloned().collect()
        }
        None => ENGINES.into_iter().flat_map(|engine| sample(engine, all, known)).collect(),
    }
}

/// The first, the last and one in the middle of those that are tried quickly.
fn sample(engine: &str, all: &[Mutant], known: &BTreeMap<String, String>) -> Vec<Mutant> {
    let is_quick = |it: &&Mutant| {
        let test = known.get(&it.full_name());
        it.engine == engine && test.is_some_and(|test| test.starts_with(suite::SCENARIOS))
    };
    let quick: Vec<&Mutant> = all.iter().filter(is_quick).collect();
    let step = (quick.len().saturating_sub(1) / (SAMPLE - 1)).max(1);
    quick.into_iter().step_by(step).take(SAMPLE).cloned().collect()
}

/// Plays the suites on an altered statement.
fn tried(suite: &Suite, it: &Mutant, likely: Option<&str>) -> Result<Option<String>, Failed> {
    let noticed = suite.first_failure(it, &it.altered()?, likely)?;
    match (&noticed, &it.reason) {
        (None, None) => println!("{} SURVIVES, and nothing says why", it.full_name()),
        (None, Some(why)) => println!("{} survives: {why}", it.full_name()),
        (Some(test), _) => println!("{} is noticed by {test}", it.full_name()),
    }
    Ok(noticed)
}

fn trials(all: &[Mutant], ends: &Arc<Mutex<Ends>>) -> Vec<Trial> {
    let (known, suite) = (page::known(), Arc::new(Suite::new()));
    let (listed, paged) = (all.to_vec(), all.to_vec());
    let page = Trial::test("page_tells_of_every_alteration", move || page::is_of(&paged));
    let mut trials = vec![
        Trial::test("every_alteration_can_be_made", move || every_alteration_can_be_made(&listed)),
        page.with_ignored_flag(is_update()),
    ];
    for it in chosen(all, &known) {
        let (suite, ends, all) = (Arc::clone(&suite), Arc::clone(ends), all.to_vec());
        let likely = known.get(&it.full_name()).cloned();
        let is_here = is_here(it.engine);
        let trial = Trial::test(it.full_name(), move || {
            let noticed = tried(&suite, &it, likely.as_deref())?;
            let explained = noticed.is_some() || it.reason.is_some();
            let mut ends = ends.lock().expect("no panic");
            ends.insert(it.full_name(), noticed);
            if is_update() {
                page::write(&all, &ends);
            }
            explained.then_some(()).ok_or_else(|| "nobody notices, and nothing says why".into())
        });
        trials.push(trial.with_ignored_flag(!is_here));
    }
    trials
}

/// An alteration of what no longer stands in its statement would prove nothing.
///
/// Proves: PAR-2
fn every_alteration_can_be_made(all: &[Mutant]) -> Result<(), Failed> {
    let stale: Vec<String> = all.iter().filter_map(|it| it.altered().err()).collect();
    match stale.is_empty() {
        true => Ok(()),
        false => Err(stale.join("\n").into()),
    }
}

/// Says how many of all were noticed, and whether that is enough, where all were tried.
fn is_enough(all: &[Mutant], ends: &Ends) -> bool {
    let noticed = ends.values().flatten().count();
    println!("{} tried of {}, {noticed} noticed", ends.len(), all.len());
    ends.len() < all.len() || noticed * 100 >= all.len() * NOTICED_MIN
}

fn main() -> ExitCode {
    if let Some(code) = play::in_role() {
        return code;
    }
    let arguments = Arguments::from_args();
    let all: Vec<Mutant> = ENGINES.into_iter().flat_map(list::of).collect();
    let ends = Arc::new(Mutex::new(Ends::new()));
    let ended = libtest_mimic::run(&arguments, trials(&all, &ends));
    let ends = ends.lock().expect("no panic").clone();
    if is_update() {
        page::write(&all, &ends);
    }
    if !is_enough(&all, &ends) || ended.has_failed() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
