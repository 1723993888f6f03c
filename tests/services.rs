//! What stands on a store: signed webhooks, notifications, stored secrets, credentials,
//! jobs over HTTP, temporary files; each on every store.
//! PostgreSQL is found as in `tests/processes.rs`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test fails"
)]

#[path = "http/asking.rs"]
mod asking;
#[path = "webhook/breaking.rs"]
mod breaking;
#[path = "transcode/bucket.rs"]
mod bucket;
#[path = "workspace/cleaning.rs"]
mod cleaning;
#[path = "webhook/crashing.rs"]
mod crashing;
#[path = "../examples/transcode_service/crew.rs"]
mod crew;
#[path = "vault/damaged.rs"]
mod damaged;
#[path = "notify/deciding.rs"]
mod deciding;
#[path = "notify/dying.rs"]
mod dying;
#[path = "transcode/encoding.rs"]
mod encoding;
#[path = "processes/engine.rs"]
mod engine;
#[path = "../examples/quickstart/files.rs"]
mod files;
#[path = "../examples/transcode_service/flac.rs"]
mod flac;
#[path = "webhook/flooding.rs"]
mod flooding;
#[path = "webhook/forgetting.rs"]
mod forgetting;
#[path = "webhook/guarding.rs"]
mod guarding;
#[path = "http/hostile.rs"]
mod hostile;
#[path = "vault/keeping.rs"]
mod keeping;
#[path = "notify/keeping_rows.rs"]
mod keeping_rows;
#[path = "vault/killing.rs"]
mod killing;
#[path = "notify/mailbox.rs"]
mod mailbox;
#[path = "notify/mailing.rs"]
mod mailing;
#[path = "storage/moving.rs"]
mod moving;
#[cfg(unix)]
#[path = "quickstart/naming.rs"]
mod naming;
#[path = "../examples/transcode_service/order.rs"]
mod order;
#[path = "notify/post.rs"]
mod post;
#[path = "notify/posting.rs"]
mod posting;
#[path = "notify/real_server.rs"]
mod real_server;
#[path = "webhook/receiving.rs"]
mod receiving;
#[path = "credentials/refreshing.rs"]
mod refreshing;
#[path = "transcode/requester.rs"]
mod requester;
#[path = "vault/sealing.rs"]
mod sealing;
#[path = "webhook/sending.rs"]
mod sending;
#[path = "webhook/server.rs"]
mod server;
#[path = "../examples/transcode_service/service.rs"]
mod service;
#[path = "webhook/signing.rs"]
mod signing;
#[path = "processes/stories.rs"]
mod stories;
#[path = "../examples/transcode_service/studio.rs"]
mod studio;
#[path = "webhook/taking.rs"]
mod taking;
#[path = "notify/telling.rs"]
mod telling;
#[path = "webhook/tracing_on.rs"]
mod tracing_on;
#[path = "transcode/transcoding.rs"]
mod transcoding;
#[path = "webhook/verifying.rs"]
mod verifying;
#[path = "webhook/watching.rs"]
mod watching;
#[path = "transcode/worker_processes.rs"]
mod worker_processes;

use std::process::ExitCode;

use engine::Engine;
use libtest_mimic::{Arguments, Trial};
use stories::{Told, on_engines, runtime, stories, trials};

/// What a trial runs without a store.
type Pure = fn() -> Told;
/// What a trial does with a database that other processes open too.
type Crash = fn(&Engine) -> Told;

const CRASHES: [(&str, Crash); 10] = [
    ("damaged_rows_keep_no_other_leftovers", damaged::damaged_rows_keep_no_other_leftovers),
    ("a_rewrap_killed_at_any_row_goes_on", killing::a_rewrap_killed_at_any_row_goes_on),
    (
        "a_sender_killed_at_any_step_loses_and_doubles_nothing",
        crashing::a_sender_killed_at_any_step_loses_and_doubles_nothing,
    ),
    (
        "a_sender_killed_while_the_receiver_answers_doubles_nothing",
        crashing::a_sender_killed_while_the_receiver_answers_doubles_nothing,
    ),
    (
        "a_receiver_killed_at_any_step_takes_each_event_once",
        taking::a_receiver_killed_at_any_step_takes_each_event_once,
    ),
    (
        "hostile_requests_grow_neither_memory_nor_what_is_kept",
        flooding::hostile_requests_grow_neither_memory_nor_what_is_kept,
    ),
    (
        "a_notifier_killed_at_any_step_tells_everybody_once",
        dying::a_notifier_killed_at_any_step_tells_everybody_once,
    ),
    (
        "a_notifier_killed_while_the_provider_answers_tells_everybody_once",
        dying::a_notifier_killed_while_the_provider_answers_tells_everybody_once,
    ),
    (
        "two_worker_processes_transcode_and_tell_all_of_it_though_one_is_killed",
        worker_processes::two_worker_processes_transcode_and_tell_all_of_it_though_one_is_killed,
    ),
    (
        "worker_processes_that_are_killed_are_started_again",
        worker_processes::worker_processes_that_are_killed_are_started_again,
    ),
];

/// Names each test that needs no store.
macro_rules! pure {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const PURE: &[(&str, crate::Pure)] = &[$((stringify!($name), $name)),+];
    };
}
pub(crate) use pure;

fn main() -> ExitCode {
    if let Some(code) = killing::play_role()
        .or_else(crashing::play_role)
        .or_else(taking::play_role)
        .or_else(flooding::play_role)
        .or_else(dying::play_role)
        .or_else(cleaning::play_role)
        .or_else(worker_processes::play_role)
    {
        return code;
    }
    let arguments = Arguments::from_args();
    let pure = [
        signing::PURE,
        verifying::PURE,
        sealing::PURE,
        cleaning::PURE,
        encoding::PURE,
        moving::PURE,
        tracing_on::PURE,
        #[cfg(unix)]
        naming::PURE,
    ]
    .concat();
    let pure = pure.into_iter().map(|(name, test)| Trial::test(format!("pure::{name}"), test));
    let mut all: Vec<Trial> = pure.collect();
    all.push(real_server::trial());
    all.extend(trials(
        &[
            receiving::STORIES,
            taking::STORIES,
            watching::STORIES,
            keeping_rows::STORIES,
            sending::STORIES,
            breaking::STORIES,
            forgetting::STORIES,
            guarding::STORIES,
            keeping::STORIES,
            asking::STORIES,
            hostile::STORIES,
            telling::STORIES,
            deciding::STORIES,
            posting::STORIES,
            refreshing::STORIES,
            transcoding::STORIES,
            mailing::STORIES,
        ]
        .concat(),
    ));
    for (name, crash) in CRASHES {
        all.extend(on_engines(name, crash));
    }
    libtest_mimic::run(&arguments, all).exit_code()
}
