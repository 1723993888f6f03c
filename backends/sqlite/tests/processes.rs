//! Owns the tests that need processes of their own. A child is ended at each storage step of a verb in
//! turn: what is left is all of the verb or nothing, and the verb asked again ends where it would have.
//! And eight children write one file: none is ever told that it is busy, and none starves.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]
#![allow(clippy::print_stdout, reason = "a child speaks to its parent by lines")]

mod place;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leasehold_conformance::sweep::{REPEATABLE, prepare, run, start};
use leasehold_core::lab::{Dump, LabStore};
use leasehold_core::{JobKind, Json, NewJob, QueueName, Result, Store, StoreExt, failpoint};
use leasehold_sqlite::SqliteStore;
use libtest_mimic::{Arguments, Failed, Trial};
use place::Place;
use tokio::runtime::Runtime;

/// The verb of a child that enqueues until its time is over.
const HAMMER: &str = "hammer";
/// The verb of a child that sits in a transaction until it is ended.
const SIT: &str = "sit";
const CHILD: &str = "LEASEHOLD_CRASH_CHILD";

async fn open(place: &str) -> Result<SqliteStore> {
    SqliteStore::lab(place, start()).await
}

/// The child: prepares, arms the hook, runs the verb.
fn child(task: &str) -> Result<()> {
    let [place, number, verb] = task.splitn(3, '|').collect::<Vec<_>>()[..] else {
        panic!("a task is place, number, verb: {task}")
    };
    if verb == SIT {
        return sit(place);
    }
    if verb == HAMMER {
        return runtime().block_on(hammer(place, number.parse().expect("a number")));
    }
    runtime().block_on(async {
        let store = open(place).await?;
        prepare(&store, verb).await?;
        failpoint::arm(number.parse().expect("a number"));
        run(&store, verb).await
    })
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

/// The store before the verb and after it, where nothing crashes.
async fn clean(verb: &str) -> Result<(Dump, Dump)> {
    let place = Place::new(&format!("crash-clean-{verb}"));
    let store = open(&place.url()).await?;
    prepare(&store, verb).await?;
    let before = store.dump().await?;
    run(&store, verb).await?;
    Ok((before, store.dump().await?))
}

/// Proves: WQ-11, GLO-2, TX-1
fn ended_at_each_step_it_is_all_or_nothing(verb: &'static str) -> Result<()> {
    let runtime = runtime();
    let (before, after) = runtime.block_on(clean(verb))?;
    assert!(!before.difference(&after).is_empty(), "{verb} changes nothing");
    let program = std::env::current_exe().expect("this program");
    for step in 1..500 {
        let place = Place::new(&format!("crash-{verb}-{step}"));
        let task = format!("{}|{step}|{verb}", place.url());
        let status = Command::new(&program).env(CHILD, task).stderr(Stdio::null()).status();
        let survived = status.expect("a child").success();
        runtime.block_on(async {
            let store = open(&place.url()).await?;
            let found = store.dump().await?;
            let (undone, done) = (found.difference(&before), found.difference(&after));
            assert!(done.is_empty() || (undone.is_empty() && !survived), "{verb} {step}:\n{done}");
            run(&store, verb).await?;
            let again = store.dump().await?.difference(&after);
            assert!(again.is_empty(), "{verb} asked again after a crash at {step}:\n{again}");
            Ok::<_, leasehold_core::Error>(())
        })?;
        if survived {
            assert!(step > 6, "{verb} has only {step} steps");
            return Ok(());
        }
    }
    panic!("{verb} never ends");
}

/// Enqueues one job after the other.
async fn hammer(place: &str, seconds: u64) -> Result<()> {
    let store = leasehold_sqlite::open(place).await?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut turns = 0;
    while Instant::now() < end {
        let _new = store.enqueue_one(NewJob::new(JobKind::new("turn")?, Json::null())).await?;
        turns += 1;
    }
    assert!(turns >= 10, "one process got only {turns} turns");
    Ok(())
}

/// How long eight processes write at once: what the environment names, else five seconds.
fn hammer_seconds() -> u64 {
    std::env::var("LEASEHOLD_HAMMER_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// Holds one snapshot after the other, each for a while, until it is told that all is over.
fn read_long(place: &str, over: &AtomicBool) {
    let conn = leasehold_sqlite::rusqlite::Connection::open(place).expect("a reader");
    while !over.load(Ordering::SeqCst) {
        conn.execute_batch("begin; select count(*) from sqlite_schema").expect("a snapshot");
        std::thread::sleep(Duration::from_millis(200));
        conn.execute_batch("commit").expect("its end");
    }
}

/// Proves: ERR-1
fn eight_processes_are_never_busy_and_none_starves() -> Result<()> {
    let place = Place::new("hammer");
    let seconds = hammer_seconds();
    let program = std::env::current_exe().expect("this program");
    let children: Vec<_> = (0..8)
        .map(|_| {
            let task = format!("{}|{seconds}|{HAMMER}", place.url());
            Command::new(&program).env(CHILD, task).spawn().expect("a child")
        })
        .collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| read_long(&place.url(), &over));
        let refused = children.into_iter().filter_map(|mut child| {
            child.wait().is_ok_and(|status| !status.success()).then_some(child.id())
        });
        let refused: Vec<u32> = refused.collect();
        over.store(true, Ordering::SeqCst);
        assert!(refused.is_empty(), "{refused:?} were refused or starved");
    });
    let stats =
        runtime().block_on(async { leasehold_sqlite::open(&place.url()).await?.stats().await })?;
    assert!(stats.queue(&QueueName::default_queue()).is_some_and(|queue| queue.ready >= 80));
    Ok(())
}

/// Holds the write lock, says so, and never lets go.
fn sit(place: &str) -> Result<()> {
    let conn = leasehold_sqlite::rusqlite::Connection::open(place).expect("a connection");
    conn.execute_batch("begin immediate").expect("the lock");
    println!("sitting");
    loop {
        std::thread::park();
    }
}

/// Proves: ERR-1
fn a_process_stopped_inside_a_transaction_makes_the_others_busy() -> Result<()> {
    let place = Place::new("stopped");
    let runtime = runtime();
    let store = runtime.block_on(leasehold_sqlite::open(&place.url()))?;
    let program = std::env::current_exe().expect("this program");
    let task = format!("{}|0|{SIT}", place.url());
    let mut sitter = Command::new(program);
    let mut sitter = sitter.env(CHILD, task).stdout(Stdio::piped()).spawn().expect("a child");
    let mut said = String::new();
    let out = sitter.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut said).expect("a line");
    let pid = sitter.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().expect("kill").success());

    let begun = Instant::now();
    let turn = || NewJob::new(JobKind::new("turn").expect("a kind"), Json::null());
    let refused = runtime.block_on(store.enqueue_one(turn())).expect_err("the lock is held");
    let waited = begun.elapsed();
    sitter.kill().expect("an end");
    let _ended = sitter.wait().expect("an end");
    let then = runtime.block_on(store.enqueue_one(turn()))?;

    assert_eq!(refused.kind(), leasehold_core::ErrorKind::Busy, "{refused}");
    assert!(waited >= Duration::from_secs(29), "given up after {waited:?}; 30 s are documented");
    assert!(then.is_new());
    Ok(())
}

fn main() {
    if let Ok(task) = std::env::var(CHILD) {
        return child(&task).expect("the verb");
    }
    let trial = |verb: &'static str| {
        Trial::test(format!("crash::{verb}"), move || {
            ended_at_each_step_it_is_all_or_nothing(verb).map_err(Failed::from)
        })
    };
    let mut trials: Vec<Trial> = REPEATABLE.into_iter().map(trial).collect();
    trials.push(Trial::test("processes::eight_share_a_file", || {
        eight_processes_are_never_busy_and_none_starves().map_err(Failed::from)
    }));
    trials.push(Trial::test("processes::a_stopped_one_makes_others_busy", || {
        a_process_stopped_inside_a_transaction_makes_the_others_busy().map_err(Failed::from)
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
