//! Owns the fault sweep: for each verb, by itself and inside a caller's transaction, the first, second, …
//! statement fails with each code, the commit too, until the verb gets through untouched. Every error is
//! the server's own. What is stored is what was, or all that the verb does; the error is of the right
//! kind; and the same store does the verb when it is asked again.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]
#![allow(clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod ground;

use std::sync::Arc;

use ground::Server;
use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::schedule::Ground;
use leasehold_conformance::sweep::{
    COMMON, JOINED, OTHERS, REPEATABLE, prepare, rows, run, run_joined, start,
};
use leasehold_core::lab::LabStore;
use leasehold_core::{Error, ErrorKind, Result, failpoint};
use leasehold_postgres::faults::{ENDED, REPLY_LOST, sqlstate};
use libtest_mimic::{Arguments, Failed, Trial};

use ErrorKind::{Busy, OutcomeUnknown, Unavailable};

/// A fault: its name, what it is at a statement and at the commit. `None`: the store begins anew by
/// itself, and the verb succeeds.
type Fault = (&'static str, Option<ErrorKind>, Option<ErrorKind>);

const FAULTS: [Fault; 9] = [
    ("40001", None, None),
    ("40P01", None, None),
    ("57014", Some(Busy), Some(OutcomeUnknown)),
    ("57P01", Some(Unavailable), Some(OutcomeUnknown)),
    ("08006", Some(Unavailable), Some(OutcomeUnknown)),
    ("25P03", Some(Unavailable), Some(Unavailable)),
    ("55P03", Some(Busy), Some(Busy)),
    ("the session ends", Some(Unavailable), Some(OutcomeUnknown)),
    ("the reply is lost", Some(Unavailable), Some(OutcomeUnknown)),
];
/// How many faults are tried on each verb where the environment does not say; on the most common verbs all are, for
/// what goes out at once fails in more ways: where a begin fails alone, what follows must not be done by itself.
const TRIED: usize = 2;

fn code(name: &str) -> i32 {
    match name {
        "the session ends" => ENDED,
        "the reply is lost" => REPLY_LOST,
        state => sqlstate(state),
    }
}

/// The faults that are tried on the n-th verb: as many as the environment says, from another one on each time.
fn tried(verb: usize, name: &str) -> impl Iterator<Item = Fault> {
    let asked = std::env::var("LEASEHOLD_FAULTS").ok();
    let number = match asked.as_deref() {
        Some("all") => FAULTS.len(),
        Some(number) => number.parse().expect("LEASEHOLD_FAULTS is a number, or all"),
        None if COMMON.contains(&name) => FAULTS.len(),
        None => TRIED,
    };
    let from = verb * TRIED;
    (from..from + number.min(FAULTS.len())).map(|at| FAULTS[at % FAULTS.len()])
}

/// What became of the points.
#[derive(Debug, Default)]
struct Met {
    points: u64,
    nothing: u64,
    whole: u64,
    anew: u64,
    unknown: u64,
}

/// One verb in its sweep.
struct Sweep<'a> {
    ground: &'a Server,
    store: Arc<dyn LabStore>,
    verb: &'static str,
    joined: bool,
    before: Vec<String>,
    after: Vec<String>,
}

impl<'a> Sweep<'a> {
    async fn begin(ground: &'a Server, verb: &'static str, joined: bool) -> Result<Self> {
        let store = Arc::clone(&ground.seats()[0].store);
        ground.empty().await?;
        store.clock().expect("a manual clock").set(start());
        prepare(store.as_ref(), verb).await?;
        ground.keep().await?;
        let before = rows(&ground.dump().await?);
        let mut sweep = Self { ground, store, verb, joined, before, after: Vec::new() };
        sweep.ask().await?;
        sweep.after = rows(&ground.dump().await?);
        ground.restore().await?;
        Ok(sweep)
    }

    async fn ask(&self) -> Result<()> {
        match self.joined {
            true => run_joined(self.store.as_ref(), self.verb).await,
            false => run(self.store.as_ref(), self.verb).await,
        }
    }

    fn reads(&self) -> bool {
        ["find", "stats"].contains(&self.verb)
    }

    /// Fails each step with one fault.
    async fn go(&self, fault: Fault, met: &mut Met) -> Result<()> {
        for step in 1..500 {
            failpoint::arm_fault(step, code(fault.0));
            let answer = self.ask().await;
            let fired = failpoint::steps() >= step;
            failpoint::arm_fault(0, 0);
            let at = format!("{} (joined: {}) at {step}: {}", self.verb, self.joined, fault.0);
            if !fired {
                answer?;
                assert_eq!(rows(&self.ground.dump().await?), self.after, "{at}");
                return self.ground.restore().await;
            }
            met.points += 1;
            self.judge(&at, fault, answer, met).await?;
        }
        panic!("{} never ends", self.verb);
    }

    /// The kinds that an error may be of.
    fn kinds(&self, (_, statement, commit): Fault) -> [Option<ErrorKind>; 2] {
        if !self.joined && !self.reads() {
            // Which step the commit is differs: a statement may be one, and others send theirs along.
            return [statement, commit];
        }
        // Nobody begins these anew but who asked, and in one that has failed nothing can be asked.
        let other = if self.joined { Unavailable } else { Busy };
        [statement.or(Some(Busy)), Some(other)]
    }

    async fn judge(&self, at: &str, fault: Fault, answer: Result<()>, met: &mut Met) -> Result<()> {
        let found = rows(&self.ground.dump().await?);
        match &answer {
            Ok(()) => {
                met.anew += 1;
                assert_eq!(found, self.after, "{at}");
            }
            Err(error) => {
                assert_ne!(error.operation(), "storage", "{at}: {error}");
                assert!(self.kinds(fault).contains(&Some(error.kind())), "{at}: {error}");
                met.unknown += u64::from(error.kind() == OutcomeUnknown);
                let own_row = |row: &&String| !(self.joined && row.starts_with("lab_rows"));
                let nothing = found.iter().filter(own_row).eq(self.before.iter());
                let lost = fault.0 == "the reply is lost" && error.kind() == OutcomeUnknown;
                let whole = lost && found == self.after;
                assert!(nothing || whole, "{at}: {error}, and left\n{found:#?}");
                met.whole += u64::from(whole);
                met.nothing += u64::from(!whole);
            }
        }
        if code(fault.0) < 0 {
            // One that is dead shows itself at its next use only, and to a statement that is a transaction by
            // itself as an unknown outcome.
            self.ground.stores[0].forget_connections();
        }
        self.again(at, found).await
    }

    /// The same store does the verb when it is asked again.
    async fn again(&self, at: &str, found: Vec<String>) -> Result<()> {
        let once_only = OTHERS.contains(&self.verb) || self.verb == "take";
        if !(once_only && found == self.after) {
            self.ask().await.unwrap_or_else(|error| panic!("{at}, asked again: {error}"));
            let own_row = |row: &String| !row.starts_with("lab_rows");
            let mut now = rows(&self.ground.dump().await?);
            let mut after = self.after.clone();
            now.retain(own_row);
            after.retain(own_row);
            assert_eq!(now, after, "{at}, asked again");
        }
        self.ground.restore().await
    }
}

/// Proves: ERR-1, GLO-2, TX-1, TX-2
fn each_step_that_fails_stores_nothing_and_says_why(server: &str) -> Result<()> {
    let ground = Server::new(server, "faults");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let evidence = Evidence::of("faults of each statement", "postgres");
    let own = REPEATABLE.into_iter().chain(OTHERS).chain(COMMON).map(|verb| (verb, false));
    let (mut met, mut verbs) = (Met::default(), 0_usize);
    for (verb, joined) in own.chain(JOINED.map(|verb| (verb, true))) {
        runtime.block_on(async {
            let sweep = Sweep::begin(&ground, verb, joined).await?;
            for fault in tried(verbs, verb) {
                sweep.go(fault, &mut met).await?;
            }
            Ok::<_, Error>(())
        })?;
        verbs += 1;
    }
    tell(evidence, verbs, &met);
    assert!(met.points >= 700, "{} points are too few", met.points);
    assert!(met.nothing > 100 && met.whole > 2 && met.anew > 100 && met.unknown > 10, "{met:?}");
    Ok(())
}

fn tell(evidence: Evidence, verbs: usize, met: &Met) {
    let evidence = evidence.count("verbs, by themselves and joined", verbs);
    let evidence = evidence.count("points", met.points).count("that left nothing", met.nothing);
    let evidence = evidence.count("that left all, the reply lost", met.whole);
    let evidence = evidence.count("begun anew by the store", met.anew);
    evidence.count("unknown outcomes", met.unknown).tell();
}

fn main() {
    let server = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let absent = server.is_none();
    let sweep = Trial::test("each_step_that_fails_stores_nothing_and_says_why", move || {
        let server = server.ok_or("LEASEHOLD_TEST_POSTGRES_URL names no server")?;
        each_step_that_fails_stores_nothing_and_says_why(&server).map_err(Failed::from)
    });
    let trials = vec![sweep.with_ignored_flag(absent && !required)];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
