//! Stories that need servers of their own: a primary that fails over to its standby, and a server whose clock is
//! set. `scripts/postgres-throwaway run` tells where such servers may be made.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

#[path = "clusters/cluster.rs"]
mod cluster;
#[path = "clusters/failover.rs"]
mod failover;
#[path = "clusters/work.rs"]
mod work;

use std::pin::Pin;

use cluster::Host;
use libtest_mimic::{Arguments, Trial};

type Story = fn(Host) -> Pin<Box<dyn Future<Output = ()>>>;

const STORIES: [(&str, Story); 2] = [
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
    let trials = STORIES.iter().map(|&(name, story)| {
        let own = host.clone();
        let trial = Trial::test(name, move || {
            let host = own.ok_or("nowhere to make a server: see scripts/postgres-throwaway run")?;
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            runtime.worker_threads(2).enable_all().build()?.block_on(story(host));
            Ok(())
        });
        trial.with_ignored_flag(host.is_none() && !required)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
