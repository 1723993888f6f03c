//! Owns the order in which a report's cases are played, and the number and the seeds of each group.

use std::sync::Arc;

use super::coverage::counting;
use super::{Case, Programme, Report};
use crate::{Harness, interleave, play, race, scenarios, script};

/// How many schedules share a store, and so a case.
const SHARE: u64 = 10;
/// The length of a script.
const STEPS: usize = 50;

type Run = Box<dyn FnOnce() -> Result<(), String> + Send>;

impl Report {
    /// Plays the suite on stores of a harness; `told` hears of each case, and whether it says to go on.
    ///
    /// `memory` is what scripts are compared with. The answer is whether the run came to its end.
    pub fn play(
        &mut self,
        harness: &Arc<dyn Harness>,
        memory: &Arc<dyn Harness>,
        programme: &Programme,
        mut told: impl FnMut(&Case) -> bool,
    ) -> bool {
        let counting = counting(harness, &self.coverage);
        for (group, number) in [
            ("schedules", programme.schedules),
            ("histories", programme.histories),
            ("scripts", programme.scripts),
        ] {
            if number > 0 {
                self.seeds.insert(group, programme.seed..programme.seed + number);
            }
        }
        let cases = of_scenarios(&counting, programme)
            .chain(of_schedules(&counting, programme))
            .chain(of_histories(&counting, programme))
            .chain(of_scripts(&counting, memory, programme));
        for (group, name, run) in cases {
            if !told(self.case(group, name, run)) {
                return false;
            }
        }
        true
    }
}

type Cases<'a> = Box<dyn Iterator<Item = (&'static str, String, Run)> + 'a>;

fn of_scenarios<'a>(harness: &'a Arc<dyn Harness>, programme: &'a Programme) -> Cases<'a> {
    let is_meant = |name: &str| programme.only.as_ref().is_none_or(|only| name.contains(only));
    let meant = scenarios().into_iter().filter(move |scenario| is_meant(scenario.name));
    Box::new(meant.map(|scenario| {
        let own = Arc::clone(harness);
        let run = move || play(&*own, scenario).map_err(|error| error.to_string());
        ("scenarios", scenario.name.to_owned(), Box::new(run) as Run)
    }))
}

fn of_schedules<'a>(harness: &'a Arc<dyn Harness>, programme: &Programme) -> Cases<'a> {
    let (first, end) = (programme.seed, programme.seed + programme.schedules);
    let beginnings = (0..programme.schedules).step_by(usize::try_from(SHARE).unwrap_or(1));
    Box::new(beginnings.map(move |number| {
        let (own, from) = (Arc::clone(harness), first + number);
        let to = (from + SHARE).min(end);
        let run = move || runtime()?.block_on(interleave::play(&*own, from..to));
        ("schedules", format!("seeds {from} to {}", to - 1), Box::new(run) as Run)
    }))
}

fn of_histories<'a>(harness: &'a Arc<dyn Harness>, programme: &Programme) -> Cases<'a> {
    let seeds = programme.seed..programme.seed + programme.histories;
    Box::new(seeds.map(|seed| {
        let own = Arc::clone(harness);
        let run = move || runtime()?.block_on(race::run(&*own, seed));
        ("histories", format!("seed {seed}"), Box::new(run) as Run)
    }))
}

fn of_scripts<'a>(
    harness: &'a Arc<dyn Harness>,
    memory: &'a Arc<dyn Harness>,
    programme: &Programme,
) -> Cases<'a> {
    let seeds = programme.seed..programme.seed + programme.scripts;
    Box::new(seeds.map(|seed| {
        let both = [Arc::clone(memory), Arc::clone(harness)];
        let run = move || runtime()?.block_on(script::compare(&both, seed, STEPS));
        ("scripts", format!("seed {seed}"), Box::new(run) as Run)
    }))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().map_err(|error| error.to_string())
}
