//! Owns the schedules as a test program: a trial for each beginning, and the figures at the end.

use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};

use leasehold_core::VerdictKind;

use super::{Act, Ground, POSITIONS, Played, Programme, again, run};
use crate::evidence::Evidence;

/// Schedules worth keeping: beginning, acts, choices.
const KEPT: &[(&str, &[Act], &[usize])] = &[
    // A claim found nothing at all while another session held the head of one partition.
    (
        "partitions",
        &[Act::Claim, Act::Cancel(1)],
        &[1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1],
    ),
    // Passed over a lapsed row that was locked, and took the next: which is right.
    (
        "full_and_lapsed",
        &[Act::Claim, Act::Settle(VerdictKind::Succeed)],
        &[0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1],
    ),
];

/// The least that a whole run plays.
const LEAST: u64 = 2_000;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// What the environment asks for: `LEASEHOLD_SCHEDULES` drawn orders for each pair of acts, and with
/// `LEASEHOLD_SCHEDULES_ALL` every order of what two sessions send at once, and every order of their
/// statements that leaves a session so many times before its end.
fn programme() -> Programme {
    let all = std::env::var("LEASEHOLD_SCHEDULES_ALL").ok();
    let drawn = number("LEASEHOLD_SCHEDULES", 3);
    Programme {
        drawn,
        triples: drawn * 5,
        of_triple: drawn,
        flights: all.is_some(),
        switches: all.and_then(|text| text.parse().ok()),
        seed: number("LEASEHOLD_SCHEDULES_SEED", 1),
    }
}

fn add(all: &Mutex<Played>, played: Played) {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.schedules += played.schedules;
    all.distinct += played.distinct;
    all.waited += played.waited;
    all.meetings += played.meetings;
}

/// Runs the trials as a test program's `main`; where the engine is absent they are ignored, unless the
/// environment requires it.
pub fn conclude(
    engine: &'static str,
    is_here: bool,
    ground: impl Fn(&str) -> Result<Arc<dyn Ground>, &'static str> + Clone + Send + 'static,
) {
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let evidence = Evidence::of("schedules", engine);
    let all: Arc<Mutex<Played>> = Arc::default();
    let mut trials = Vec::new();
    for position in POSITIONS {
        let (all, ground) = (Arc::clone(&all), ground.clone());
        let trial = Trial::test(format!("{engine}::schedules::{}", position.name), move || {
            let ground = ground(position.name)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let played = runtime.block_on(run(&ground, &position, programme()));
            let played = played.map_err(Failed::from)?;
            println!("{engine} {}: {played:?}", position.name);
            add(&all, played);
            Ok(())
        });
        trials.push(trial.with_ignored_flag(!is_here && !required));
    }
    for (number, (position, acts, ways)) in KEPT.iter().enumerate() {
        let ground = ground.clone();
        let name = format!("{engine}::schedules::kept::{position}_{acts:?}");
        let trial = Trial::test(name, move || {
            let ground = ground(&format!("kept_{number}"))?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(again(&ground, position, acts, ways)).map_err(Failed::from)
        });
        trials.push(trial.with_ignored_flag(!is_here && !required));
    }
    let arguments = Arguments::from_args();
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    let ended = libtest_mimic::run(&arguments, trials);
    let played = *all.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_whole || !is_here || ended.has_failed() {
        ended.exit();
    }
    let Programme { seed, drawn, .. } = programme();
    let evidence = evidence
        .count("meetings of two or three acts", played.meetings)
        .count("orders of their statements", played.schedules)
        .count("different ones", played.distinct)
        .count("with a wait for a lock", played.waited);
    evidence.seeds(seed..seed + drawn).tell();
    if played.schedules < LEAST && std::env::var_os("LEASEHOLD_SCHEDULES").is_none() {
        eprintln!("{} schedules are fewer than {LEAST}", played.schedules);
        std::process::exit(1);
    }
}
