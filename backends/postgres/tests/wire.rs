//! The wire between the store and its server, hurt by a proxy: every verb is cut at many of its bytes, and
//! its commit or the reply to that is lost; and a load goes on while one connection after the other is hurt.
//! What was done is all or nothing, what was told is true, and what was left open is settled by asking again.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

#[path = "wire/load.rs"]
mod load;
#[path = "wire/verbs.rs"]
mod verbs;

use leasehold_conformance::sweep::REPEATABLE;
use libtest_mimic::{Arguments, Failed, Trial};

/// The server to test against.
pub(crate) fn server() -> Option<String> {
    std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok()
}

/// The same with a parameter of the store's.
pub(crate) fn with(url: &str, parameter: &str) -> String {
    let join = if url.contains('?') { '&' } else { '?' };
    format!("{url}{join}{parameter}")
}

/// A number of runs: what the environment names, else the usual one.
pub(crate) fn runs(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn main() {
    let absent = server().is_none();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let mut trials =
        vec![trial("load::unknown_outcomes_are_settled_by_asking_again".into(), || {
            runtime().block_on(load::unknown_outcomes_are_settled_by_asking_again())
        })];
    trials.extend(REPEATABLE.map(|verb| {
        trial(format!("verbs::hurt_anywhere_is_all_or_nothing::{verb}"), move || {
            runtime().block_on(verbs::hurt_anywhere_is_all_or_nothing(verb))
        })
    }));
    let trials = trials.into_iter().map(|it| it.with_ignored_flag(absent && !required)).collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    if !conclusion.has_failed() && conclusion.num_filtered_out == 0 {
        verbs::tell();
    }
    conclusion.exit();
}

fn trial(name: String, run: impl FnOnce() -> leasehold_core::Result<()> + Send + 'static) -> Trial {
    Trial::test(name, move || {
        server().ok_or_else(|| Failed::from("LEASEHOLD_TEST_POSTGRES_URL names no server"))?;
        run().map_err(Failed::from)
    })
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
}
