//! Owns the search through every state of the model: the rules hold in all of them, and each mistake
//! is found by the rule that names it.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

use leasehold_conformance::evidence::Evidence;
use leasehold_model::{Mutant, OnFailure, Protocol, Verdict};
use stateright::{Checker, HasDiscoveries, Model};

/// How many threads search.
const THREADS: usize = 2;
/// Where a search for a mistake gives up.
const STATES_MAX: usize = 6_000_000;
/// How many steps of a larger world are looked at.
const FAR: usize = 60_000_000;

use Verdict::{Fail, Release, Retry, Succeed};

/// One job, two workers, two claims each told, lost or late, and a failover that loses a part.
fn failover() -> Protocol {
    let verdicts = vec![Succeed, Fail, Retry];
    Protocol { jobs: 1, claims: 2, attempts_max: 2, failovers: 1, verdicts, ..Protocol::default() }
}

/// One job that is claimed, fails, is replayed and claimed again.
fn replay() -> Protocol {
    Protocol { jobs: 1, claims: 3, failovers: 0, ..Protocol::default() }
}

/// Two jobs of one queue.
fn two_jobs() -> Protocol {
    let verdicts = vec![Succeed];
    Protocol { jobs: 2, claims: 2, attempts_max: 2, failovers: 0, verdicts, ..Protocol::default() }
}

/// A job that waits for another, which fails, is taken back, or dies by its lapsed leases.
fn fan_in(waits: OnFailure) -> Protocol {
    Protocol {
        workers: 1,
        claims: 3,
        attempts_max: 2,
        failovers: 0,
        waits: Some(waits),
        ..Protocol::default()
    }
}

/// Searches a whole world; how many states it has and how deep it is.
fn search(name: &str, world: Protocol) -> (usize, usize) {
    let checker = world.checker().threads(THREADS).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    eprintln!("{name}: {states} states, {} steps, depth {depth}", checker.state_count());
    checker.assert_properties();
    (states, depth)
}

/// Searches as much of a larger world as the nightly profile has memory for.
fn search_far(name: &str, world: Protocol) -> (usize, usize) {
    let checker = world.checker().threads(THREADS).target_state_count(FAR).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    eprintln!("{name}: {states} states, depth {depth}");
    checker.assert_properties();
    (states, depth)
}

/// Proves: FAN-2, FAN-3, GLO-2, GLO-3, WQ-3, WQ-6, WQ-8, WQ-12, WQ-15
#[test]
fn the_rules_hold_in_every_state() {
    let mut evidence = Evidence::of("model, every state", "none");
    let mut tell = |name: &str, (states, depth): (usize, usize)| {
        let line = evidence.clone().count(&format!("states of {name}"), states);
        evidence = line.count(&format!("depth of {name}"), depth);
    };
    let (states, depth) = search("failover", failover());
    assert!(states >= 1_000_000 && depth >= 20, "{states} states at depth {depth} are too few");
    tell("a failover", (states, depth));
    tell("a replay", search("replay", replay()));
    tell("two jobs", search("two jobs", two_jobs()));
    for waits in [OnFailure::Cancel, OnFailure::Run, OnFailure::Wait] {
        tell(&format!("a fan-in, {waits:?} on failure"), search("fan-in", fan_in(waits)));
    }
    if std::env::var("LEASEHOLD_MODEL").is_ok_and(|size| size == "large") {
        let verdicts = vec![Succeed, Fail, Retry, Release];
        let far = [
            ("every verdict", Protocol { verdicts, ..failover() }),
            ("three workers", Protocol { workers: 3, failovers: 1, ..replay() }),
            ("two failovers", Protocol { failovers: 2, ..failover() }),
        ];
        for (name, world) in far {
            tell(name, search_far(name, world));
        }
    }
    evidence
        .count("mutants of the model, each found by a test of its own", Mutant::ALL.len())
        .tell();
}

/// The rule that a mistake breaks, and the smallest world in which it does.
fn found_by(mutant: Mutant) -> (&'static str, Protocol) {
    const OWNER: &str = "only the owner of a job writes to it";
    const ORDER: &str = "effects outside go in the order of claims";
    const THEFT: &str = "no lease is taken before its end";
    const LEASE: &str = "nothing is written after the lease's end";
    const EARLY: &str = "no job is begun before what it waits for is over";
    const TRUTH: &str = "a success that is told has happened";
    match mutant {
        Mutant::FenceIgnored | Mutant::RescuedByTimeOnly => (OWNER, replay()),
        Mutant::VersionOnly => (OWNER, failover()),
        Mutant::VersionResetOnReplay | Mutant::VersionNotRaised | Mutant::TokenIgnored => {
            (ORDER, replay())
        }
        Mutant::EpochNotRaised => (ORDER, failover()),
        Mutant::ZeroRowsAreSuccess | Mutant::VerdictNotCompared => (TRUTH, replay()),
        Mutant::ToldBeforeKept => ("an acknowledged settlement stands", replay()),
        Mutant::StolenBeforeExpiry | Mutant::ReclaimedBeforeExpiry => (THEFT, replay()),
        Mutant::EpochIgnored => ("no fence of an earlier epoch writes", failover()),
        Mutant::LateSettlementTaken | Mutant::LateRenewalTaken => (LEASE, replay()),
        Mutant::EndedIsResurrected => ("an ended job stays ended", replay()),
        Mutant::RepeatIsDoneAgain => ("a claim is settled at most once", replay()),
        Mutant::RepeatTakesMore => ("a repeated claim holds no more than it asked for", two_jobs()),
        Mutant::RepeatTellsOldNews => ("a claim that is told is held", replay()),
        Mutant::HeldIsClaimed | Mutant::FailureFrees => (EARLY, fan_in(OnFailure::Cancel)),
        Mutant::HandBackFrees => {
            (EARLY, Protocol { verdicts: vec![Retry], ..fan_in(OnFailure::Run) })
        }
        Mutant::EndTellsNobody | Mutant::LapseTellsNobody => {
            ("no job waits for one that is over", fan_in(OnFailure::Wait))
        }
        Mutant::SuccessCancels => {
            ("a job is cancelled only after a bad end", fan_in(OnFailure::Cancel))
        }
        Mutant::LapseIsFree => ("the budget is kept", replay()),
    }
}

fn kill(mutant: Mutant) {
    let (rule, world) = found_by(mutant);
    let world = Protocol { mutant: Some(mutant), ..world };
    let until = HasDiscoveries::AllOf([rule].into());
    let search = world.checker().threads(THREADS).finish_when(until);
    let checker = search.target_state_count(STATES_MAX).spawn_bfs().join();
    let path = checker.discovery(rule).unwrap_or_else(|| panic!("{mutant:?} breaks no {rule:?}"));
    let actions = path.into_actions();
    eprintln!("{mutant:?} breaks {rule:?} in {} steps: {actions:?}", actions.len());
}

macro_rules! mutants {
    ($($test:ident: $mutant:ident),* $(,)?) => {
        $(#[test]
        fn $test() {
            kill(Mutant::$mutant);
        })*

        /// No mistake is left out.
        #[test]
        fn every_mutant_has_its_test() {
            assert_eq!([$(Mutant::$mutant),*], Mutant::ALL);
        }
    };
}

mutants! {
    an_ignored_fence_is_found: FenceIgnored,
    a_version_alone_is_found: VersionOnly,
    a_version_reset_on_replay_is_found: VersionResetOnReplay,
    a_version_not_raised_is_found: VersionNotRaised,
    zero_rows_as_success_are_found: ZeroRowsAreSuccess,
    a_lease_stolen_early_is_found: StolenBeforeExpiry,
    a_lease_reclaimed_early_is_found: ReclaimedBeforeExpiry,
    an_epoch_not_raised_is_found: EpochNotRaised,
    an_ignored_epoch_is_found: EpochIgnored,
    a_late_settlement_is_found: LateSettlementTaken,
    a_late_renewal_is_found: LateRenewalTaken,
    a_rescue_by_time_only_is_found: RescuedByTimeOnly,
    a_resurrected_end_is_found: EndedIsResurrected,
    a_repeat_done_again_is_found: RepeatIsDoneAgain,
    a_verdict_not_compared_is_found: VerdictNotCompared,
    a_repeat_that_takes_more_is_found: RepeatTakesMore,
    a_repeat_that_tells_old_news_is_found: RepeatTellsOldNews,
    an_ignored_token_is_found: TokenIgnored,
    a_free_lapse_is_found: LapseIsFree,
    a_reply_before_its_commit_is_found: ToldBeforeKept,
    a_claim_of_a_held_job_is_found: HeldIsClaimed,
    an_end_that_tells_nobody_is_found: EndTellsNobody,
    a_lapse_that_tells_nobody_is_found: LapseTellsNobody,
    a_hand_back_that_frees_is_found: HandBackFrees,
    a_failure_that_frees_is_found: FailureFrees,
    a_success_that_cancels_is_found: SuccessCancels,
}
