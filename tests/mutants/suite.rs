//! Owns the run of the suites' programs on an altered statement, until the first test that fails. Refuses to
//! know what is altered.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use leasehold_core::lab::altered;

use crate::ENGINES;
use crate::list::Mutant;
use crate::place::Place;
use crate::play;

/// What the page calls the scenarios, which this program plays itself.
pub(crate) const SCENARIOS: &str = "scenarios";
/// Who says nothing for so long never ends, and has noticed too.
const SILENCE_MAX: Duration = Duration::from_secs(240);
const NEVER_ENDS: &str = "(never ends)";
const ENDS_BY_ITSELF: &str = "(ends by itself)";

/// A program of the suites, and which of its tests.
type Part = (&'static str, &'static str);

/// The quick ones first.
const OF_SQLITE: &[Part] = &[
    (SCENARIOS, ""),
    ("leasehold::conformance", "memory_and_sqlite"),
    ("leasehold-sqlite::guards", ""),
    ("leasehold-sqlite::backup", ""),
    ("leasehold-sqlite::clock", ""),
    ("leasehold-sqlite::clock_steps", ""),
    ("leasehold-sqlite::open", ""),
    ("leasehold-sqlite::writer", ""),
    ("leasehold-sqlite::enqueue_sql", ""),
    ("leasehold-sqlite::schedules", ""),
    ("leasehold-sqlite::plans", ""),
    ("leasehold-sqlite::disk", ""),
    ("leasehold-sqlite::faults", ""),
    ("leasehold::conformance", "sqlite::interleavings"),
    ("leasehold::conformance", "sqlite::race_"),
    ("leasehold::view", "sqlite"),
];

/// Not among them are stories of the server program that are of connections, of plans over many rows, and of which
/// statement was sent: those know it by its comment, which an altered one lacks.
const OF_POSTGRES: &[Part] = &[
    (SCENARIOS, ""),
    ("leasehold::conformance", "memory_and_postgres"),
    ("leasehold-postgres::server", "races::"),
    ("leasehold-postgres::server", "passing::"),
    ("leasehold-postgres::server", "aside::"),
    ("leasehold-postgres::server", "quick::changes"),
    ("leasehold-postgres::server", "quick::each_fence"),
    ("leasehold-postgres::server", "loss::damaged"),
    ("leasehold-postgres::server", "marks::"),
    ("leasehold-postgres::server", "fan_in::"),
    ("leasehold-postgres::server", "enqueue_sql::"),
    ("leasehold-postgres::schedules", ""),
    ("leasehold::conformance", "postgres::interleavings"),
    ("leasehold::conformance", "postgres::race_"),
    ("leasehold-postgres::faults", ""),
    ("leasehold::view", "postgres"),
];

/// What only several sessions can notice.
const OF_LOCKS: &[Part] = &[
    ("leasehold-postgres::server", "passing::"),
    ("leasehold-postgres::server", "races::"),
    ("leasehold-postgres::server", "quick::changes"),
    ("leasehold-postgres::server", "quick::each_fence"),
    ("leasehold-postgres::server", "fan_in::"),
    ("leasehold-postgres::server", "marks::"),
    ("leasehold-postgres::server", "events::"),
    ("leasehold-postgres::schedules", ""),
    ("leasehold::conformance", "postgres::race_"),
    (SCENARIOS, ""),
    ("leasehold::conformance", "memory_and_postgres"),
    ("leasehold::conformance", "postgres::interleavings"),
];

/// Smaller numbers than usual, and no figures.
const NUMBERS: [(&str, &str); 6] = [
    ("LEASEHOLD_SCRIPTS", "60"),
    ("LEASEHOLD_INTERLEAVINGS", "100"),
    ("LEASEHOLD_RACES", "4"),
    ("LEASEHOLD_SCHEDULES", "1"),
    ("LEASEHOLD_PLAN_ROWS", "20000"),
    ("LEASEHOLD_POWER_LOSSES", "60"),
];

fn parts(it: &Mutant) -> &'static [Part] {
    let (name, words) = (it.full_name(), ["lock", "wait", "touch", "mark", "snapshot"]);
    let is_of_locks = words.iter().any(|word| name.contains(word));
    match it.engine {
        "sqlite" => OF_SQLITE,
        _ if is_of_locks => OF_LOCKS,
        _ => OF_POSTGRES,
    }
}

/// The test programs, which are built when the first of them is needed, and what the true statements came to.
pub(crate) struct Suite {
    programs: OnceLock<BTreeMap<String, (PathBuf, PathBuf)>>,
    sound: Mutex<BTreeMap<String, bool>>,
    /// One run of an engine at a time: two would meet in locks and names, and fail for that.
    turns: BTreeMap<&'static str, Mutex<()>>,
}

/// What a run plays on.
struct Stage<'a> {
    it: &'a Mutant,
    place: &'a Place,
}

impl Suite {
    pub(crate) fn new() -> Self {
        let turns = ENGINES.map(|engine| (engine, Mutex::default())).into();
        Self { programs: OnceLock::new(), sound: Mutex::default(), turns }
    }

    /// The first test that fails on an altered statement, and passes on the true one.
    ///
    /// # Errors
    /// When it fails on the true one too.
    pub(crate) fn first_failure(
        &self,
        it: &Mutant,
        text: &str,
        likely: Option<&str>,
    ) -> Result<Option<String>, String> {
        let _turn = self.turns[it.engine].lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::of(it.engine);
        let stage = Stage { it, place: &place };
        let altered = place.write(text);
        if let Some((program, test)) = likely.and_then(|it| it.split_once(' '))
            && let Some(failed) = self.played(&stage, program, &only(test), Some(&altered))
        {
            return self.named(&stage, program, &failed).map(Some);
        }
        for (program, filter) in parts(it) {
            let filter: &[&str] = if filter.is_empty() { &[] } else { &[filter] };
            if let Some(failed) = self.played(&stage, program, filter, Some(&altered)) {
                return self.named(&stage, program, &failed).map(Some);
            }
        }
        Ok(None)
    }

    /// A test that failed, if the true statement lets it pass.
    fn named(&self, stage: &Stage<'_>, program: &str, test: &str) -> Result<String, String> {
        let name = format!("{program} {test}");
        let known = self.sound.lock().expect("no panic").get(&name).copied();
        let passes = || self.played(stage, program, &only(test), None).is_none();
        let sound = known.unwrap_or_else(passes);
        self.sound.lock().expect("no panic").insert(name.clone(), sound);
        if sound { Ok(name) } else { Err(format!("{name} fails on the true statement too")) }
    }

    /// Plays tests of a program; the first that fails.
    fn played(
        &self,
        stage: &Stage<'_>,
        program: &str,
        tests: &[&str],
        altered: Option<&Path>,
    ) -> Option<String> {
        let it = stage.it;
        let mut command = if program == SCENARIOS {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            let first = format!("{} {}", it.statement, it.name);
            command.env(play::ROLE, it.engine).env(play::FIRST, first);
            command
        } else {
            let programs = self.programs.get_or_init(built);
            let known = programs.get(program).unwrap_or_else(|| panic!("no program {program}"));
            let mut command = Command::new(&known.0);
            command.current_dir(&known.1);
            command
        };
        if let Some(text) = altered {
            command.env(altered::STATEMENT, &it.statement).env(altered::TEXT, text);
        }
        command.args(tests).arg("--test-threads=2").envs(NUMBERS).env("RUST_BACKTRACE", "0");
        command.envs(stage.place.environment());
        command.env_remove(leasehold_conformance::evidence::RECORD);
        until_one_fails(command.stdout(Stdio::piped()).stderr(Stdio::null()))
    }
}

/// The arguments that choose a test, or all where a program as a whole failed.
fn only(test: &str) -> Vec<&str> {
    if test.starts_with('(') { Vec::new() } else { vec!["--exact", test] }
}

/// Builds the programs; where each is and in which folder it runs, by package and name.
fn built() -> BTreeMap<String, (PathBuf, PathBuf)> {
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["test", "--no-run", "--all-features", "--message-format=json", "--quiet"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let mut wanted = Vec::new();
    for (program, _) in OF_SQLITE.iter().chain(OF_POSTGRES) {
        let Some((package, target)) = program.split_once("::") else { continue };
        wanted.extend(["--package", package, "--test", target]);
    }
    // What cargo tells a test of itself would make it build anew what looks at that.
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    std::env::vars().filter(|(name, _)| told(name)).for_each(|(name, _)| {
        build.env_remove(name);
    });
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = build.args(wanted).current_dir(root).stderr(Stdio::inherit()).output();
    let made = made.expect("cargo runs");
    assert!(made.status.success(), "the suites do not build");
    let text = String::from_utf8(made.stdout).expect("JSON");
    let messages = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    messages.filter_map(|message| program(root, &message)).collect()
}

fn program(root: &Path, message: &serde_json::Value) -> Option<(String, (PathBuf, PathBuf))> {
    let manifest = PathBuf::from(message.get("manifest_path")?.as_str()?);
    let folder = manifest.parent()?.to_owned();
    let package = match folder.strip_prefix(root).ok()?.file_name() {
        Some(name) => format!("leasehold-{}", name.to_str()?),
        None => "leasehold".to_owned(),
    };
    let target = message.get("target")?;
    let path = PathBuf::from(message.get("executable")?.as_str()?);
    let is_test = target.get("kind")?.get(0)?.as_str()? == "test";
    is_test
        .then(|| Some((format!("{package}::{}", target.get("name")?.as_str()?), (path, folder))))?
}

/// Reads a program's lines to the first test that fails, and ends it there.
fn until_one_fails(command: &mut Command) -> Option<String> {
    let mut child = command.spawn().expect("the program runs");
    let out = child.stdout.take().expect("its lines");
    let (tell, told) = channel();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.take_while(|line| tell.send(line.clone()).is_ok()).for_each(drop);
    });
    let failed = loop {
        match told.recv_timeout(SILENCE_MAX) {
            Ok(line) => {
                if let Some(test) = failed_test(&line) {
                    break end(&mut child, Some(test.to_owned()));
                }
            }
            Err(RecvTimeoutError::Timeout) => break end(&mut child, Some(NEVER_ENDS.to_owned())),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    drop(told);
    let status = child.wait().expect("its end");
    reader.join().expect("no panic");
    failed.or_else(|| (!status.success()).then(|| ENDS_BY_ITSELF.to_owned()))
}

fn end(child: &mut Child, failed: Option<String>) -> Option<String> {
    let _over = child.kill();
    failed
}

fn failed_test(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("test ")?.strip_suffix("FAILED")?.rsplit_once("...")?;
    Some(name.trim())
}
