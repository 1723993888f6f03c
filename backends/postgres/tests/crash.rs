//! Owns the end of a process at each storage step of a verb in turn: what is left is all of the verb
//! or nothing, and the verb asked again ends where it would have. The child is this program again.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use leasehold_conformance::sweep::{REPEATABLE, prepare, run, start};
use leasehold_core::lab::{Dump, LabStore};
use leasehold_core::{Result, failpoint};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, NoTls};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

const CHILD: &str = "LEASEHOLD_CRASH_CHILD";

fn server() -> Option<String> {
    std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok()
}

/// Opens the child's or the parent's store; `anew` makes the schema fresh.
async fn open(schema: &str, anew: bool) -> Result<PostgresStore> {
    let server = format!("{}&pool_size=2", server().expect("a server"));
    if anew {
        let child = format!("{server}&application_name={schema}");
        return PostgresStore::lab(&child, schema, Some(start())).await;
    }
    PostgresStore::lab_again(&server, schema, Some(start())).await
}

/// The child: prepares, arms the hook, runs the verb.
fn child(task: &str) -> Result<()> {
    let [schema, number, verb] = task.splitn(3, '|').collect::<Vec<_>>()[..] else {
        panic!("a task is schema, number, verb: {task}")
    };
    runtime().block_on(async {
        let store = open(schema, true).await?;
        prepare(&store, verb).await?;
        failpoint::arm(number.parse().expect("a number"));
        run(&store, verb).await
    })
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

async fn session() -> Client {
    let server = server().expect("a server");
    let (client, connection) =
        leasehold_postgres::tokio_postgres::connect(&server, NoTls).await.expect("a session");
    tokio::spawn(connection);
    client
}

/// Waits until the server has noticed that a child's sessions are gone, and rolled them back.
async fn until_gone(watcher: &Client, child: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    let text = "select count(*) from pg_stat_activity where application_name = $1";
    while watcher.query_one(text, &[&child]).await.expect("counted").get::<_, i64>(0) > 0 {
        assert!(Instant::now() < end, "the sessions of {child} stay");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The store before the verb and after it, where nothing crashes.
async fn clean(verb: &str) -> Result<(Dump, Dump)> {
    let store = open(&format!("crash_clean_{verb}_{}", std::process::id()), true).await?;
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
    let schema = format!("crash_{verb}_{}", std::process::id());
    let watcher = runtime.block_on(session());
    let (mut nothing, mut whole) = (0, 0);
    for step in 1..500 {
        let task = format!("{schema}|{step}|{verb}");
        let status = Command::new(&program).env(CHILD, task).stderr(Stdio::null()).status();
        let survived = status.expect("a child").success();
        runtime.block_on(async {
            until_gone(&watcher, &schema).await;
            let store = open(&schema, false).await?;
            let found = store.dump().await?;
            let (undone, done) = (found.difference(&before), found.difference(&after));
            assert!(done.is_empty() || (undone.is_empty() && !survived), "{verb} {step}:\n{done}");
            if !survived && done.is_empty() {
                whole += 1;
            } else if !survived {
                nothing += 1;
            }
            run(&store, verb).await?;
            let again = store.dump().await?.difference(&after);
            assert!(again.is_empty(), "{verb} asked again after a crash at {step}:\n{again}");
            Ok::<_, leasehold_core::Error>(())
        })?;
        if survived {
            let met = format!("{verb} was met undone {nothing} times and done {whole} times");
            assert!(nothing > 6 && whole > 0, "{met}");
            return Ok(());
        }
    }
    panic!("{verb} never ends");
}

fn main() {
    if let Ok(task) = std::env::var(CHILD) {
        child(&task).expect("a survivor's verb");
        return;
    }
    let absent = server().is_none();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let trials = REPEATABLE.map(|verb| {
        let name = format!("ended_at_each_step_it_is_all_or_nothing::{verb}");
        let crash = move || {
            if absent {
                return Err(Failed::from("LEASEHOLD_TEST_POSTGRES_URL names no server"));
            }
            ended_at_each_step_it_is_all_or_nothing(verb).map_err(Failed::from)
        };
        Trial::test(name, crash).with_ignored_flag(absent && !required)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}
