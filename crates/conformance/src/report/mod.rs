//! Owns a run of the suite whose every case is kept for a report: what was played, how it ended, how long it
//! took, what its operations came to. Refuses to know how a report looks; that is [`junit`] and [`page`].

pub mod coverage;
pub mod junit;
pub mod page;
mod play;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::clock;
use coverage::{Coverage, Shares};

/// The groups of cases, with a title each.
pub const GROUPS: [(&str, &str); 5] = [
    ("scenarios", "Scenarios: one rule each"),
    ("schedules", "Schedules: random interleavings, judged by a model"),
    ("histories", "Histories of racing workers"),
    ("scripts", "Scripts, compared step by step with the store in memory"),
    ("faults", "Faults under load"),
];

/// How much is played.
#[derive(Clone, Debug)]
pub struct Programme {
    /// Random schedules of a few claims, judged by a model.
    pub schedules: u64,
    /// Races of several workers, whose histories are judged.
    pub histories: u64,
    /// Random scripts of 50 steps, compared with the store in memory.
    pub scripts: u64,
    /// The first seed of each.
    pub seed: u64,
    /// Scenarios whose name has this text, and no others.
    pub only: Option<String>,
}

/// One case and its end.
#[derive(Clone, Debug)]
pub struct Case {
    /// The group of cases: `scenarios`, `schedules`, …
    pub group: &'static str,
    /// Its name in its group.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// What a load under faults came to.
#[derive(Clone, Debug, Default)]
pub struct Hurt {
    /// What was hurt, as the case is called.
    pub name: String,
    /// Where chance began.
    pub seed: u64,
    /// How often each kind of fault struck.
    pub faults: BTreeMap<&'static str, u64>,
    /// Further figures, in order.
    pub figures: Vec<(&'static str, u64)>,
}

/// A run of the suite on one engine.
#[derive(Clone, Debug)]
pub struct Report {
    /// The engine's name.
    pub engine: String,
    /// What the engine says of itself.
    pub version: String,
    /// Every case, in order.
    pub cases: Vec<Case>,
    /// What the operations came to.
    pub coverage: Arc<Coverage>,
    /// Loads under faults.
    pub hurts: Vec<Hurt>,
    /// The seeds of a group, from the first to before the second.
    pub seeds: BTreeMap<&'static str, Range<u64>>,
    /// What a reader must know besides.
    pub notes: Vec<String>,
    /// How long all of it took.
    pub seconds: f64,
    begun: Instant,
}

/// What is known of a group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The group.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// How many cases were played.
    pub played: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How long they took.
    pub seconds: f64,
    /// What the operations came to, over all verbs.
    pub shares: Shares,
}

impl Report {
    /// Begins a report.
    pub fn new(engine: &str, version: &str) -> Self {
        Self {
            engine: engine.to_owned(),
            version: version.to_owned(),
            cases: Vec::new(),
            coverage: Arc::default(),
            hurts: Vec::new(),
            seeds: BTreeMap::new(),
            notes: Vec::new(),
            seconds: 0.0,
            begun: clock::now(),
        }
    }

    /// The cases that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| case.failure.is_some())
    }

    /// Every group of which a case was played.
    pub fn groups(&self) -> Vec<Group> {
        let operations = self.coverage.all();
        let group = |(name, title)| {
            let cases = self.cases.iter().filter(|case| case.group == name);
            let mut group = Group { name, title, ..Group::default() };
            for case in cases {
                group.played += 1;
                group.failed += usize::from(case.failure.is_some());
                group.seconds += case.seconds;
            }
            let of_group = operations.iter().filter(|(of, ..)| *of == name);
            group.shares = of_group.fold(Shares::default(), |sum, (.., more)| sum.plus(*more));
            group
        };
        GROUPS.into_iter().map(group).filter(|group| group.played > 0).collect()
    }

    /// Plays one case on a thread of its own, so that one that panics is only its own failure.
    pub fn case(
        &mut self,
        group: &'static str,
        name: String,
        run: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> &Case {
        self.coverage.begin(group);
        let begun = clock::now();
        let failure = match std::thread::spawn(run).join() {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why),
            Err(panic) => Some(heard().unwrap_or_else(|| said(&*panic))),
        };
        let seconds = clock::seconds_since(begun);
        self.seconds = clock::seconds_since(self.begun);
        self.cases.push(Case { group, name, seconds, failure });
        &self.cases[self.cases.len() - 1]
    }
}

/// What the last panic said and where, once [`listen`] was called.
static HEARD: Mutex<Option<String>> = Mutex::new(None);

/// Has panics of this program be kept for the report, with their places, and not printed.
pub fn listen() {
    std::panic::set_hook(Box::new(|panic| {
        *HEARD.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic.to_string());
    }));
}

fn heard() -> Option<String> {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "the case panicked".to_owned())
}

/// Makes a text harmless in XML and HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            // XML has no way to hold these.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
