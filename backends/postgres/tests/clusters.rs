//! Stories that need servers of their own: a primary that fails over to its standby, and a server whose clock is
//! set. `scripts/postgres-throwaway run` tells where such servers may be made.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]
#![allow(clippy::print_stderr, reason = "what is not checked is said")]

#[path = "clusters/clock.rs"]
mod clock;
#[path = "clusters/cluster.rs"]
mod cluster;
#[path = "clusters/failover.rs"]
mod failover;
#[path = "clusters/work.rs"]
mod work;

use std::pin::Pin;

use cluster::Host;
use libtest_mimic::{Arguments, Trial};

/// The story that needs a library to show a server another time.
const CLOCK: &str = "clock::a_set_clock_of_the_server_ends_no_lease_but_those_it_has_passed";

type Story = fn(Host) -> Pin<Box<dyn Future<Output = ()>>>;

const STORIES: [(&str, Story); 3] = [
    (CLOCK, |host| {
        Box::pin(clock::a_set_clock_of_the_server_ends_no_lease_but_those_it_has_passed(host))
    }),
    ("failover::to_a_standby_that_lags_lets_no_stale_worker_in", |host| {
        Box::pin(failover::to_a_standby_that_lags_lets_no_stale_worker_in(host))
    }),
    ("failover::to_a_standby_that_has_all_loses_nothing", |host| {
        Box::pin(failover::to_a_standby_that_has_all_loses_nothing(host))
    }),
];

fn main() {
    let host = Host::from_env();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let no_clock = clock::library().is_none();
    if no_clock {
        eprintln!("NOT CHECKED: a server whose clock is set, since libfaketime is not here");
    }
    let needs_clock = std::env::var_os("LEASEHOLD_REQUIRE_FAKETIME").is_some();
    let trials = STORIES.iter().map(|&(name, story)| {
        let own = host.clone();
        let trial = Trial::test(name, move || {
            let host = own.ok_or("nowhere to make a server: see scripts/postgres-throwaway run")?;
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            runtime.worker_threads(2).enable_all().build()?.block_on(story(host));
            Ok(())
        });
        let absent = host.is_none() && !required;
        trial.with_ignored_flag(absent || name == CLOCK && no_clock && !needs_clock)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
