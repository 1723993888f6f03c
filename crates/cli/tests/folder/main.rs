//! Runs the command as a durable folder processor, as an operator would: whole processes, real
//! files, real signals, on both engines. Engines that the environment does not name are ignored,
//! and are a failure when `LEASEHOLD_REQUIRE_ENGINES` is set.

mod collector;
mod damage;
mod ends;
mod files;
mod kills;
mod once;
#[cfg(target_os = "linux")]
mod room;
mod secrets;
mod stops;
mod yard;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use self::yard::Yard;

type Play = fn(&Yard) -> Result<(), Failed>;

const PLAYS: &[(&str, Play)] = &[
    ("files::each_version_is_done_once", files::each_version_is_done_once),
    ("files::odd_names_and_links_are_no_obstacle", files::odd_names_and_links_are_no_obstacle),
    (
        "files::a_file_that_went_or_changed_is_passed_over",
        files::a_file_that_went_or_changed_is_passed_over,
    ),
    ("files::globs_and_priorities_hold", files::globs_and_priorities_hold),
    ("files::a_watched_folder_is_scanned_soon", files::a_watched_folder_is_scanned_soon),
    ("files::producers_share_one_rate", files::producers_share_one_rate),
    ("ends::an_open_breaker_is_told_of_once", ends::an_open_breaker_is_told_of_once),
    ("ends::exit_codes_are_classes", ends::exit_codes_are_classes),
    ("ends::a_command_ends_with_all_it_started", ends::a_command_ends_with_all_it_started),
    (
        "ends::a_job_that_is_called_off_ends_its_command",
        ends::a_job_that_is_called_off_ends_its_command,
    ),
    ("ends::output_is_bounded_and_masked", ends::output_is_bounded_and_masked),
    ("ends::a_command_sees_only_listed_variables", ends::a_command_sees_only_listed_variables),
    ("ends::a_bad_start_says_why", ends::a_bad_start_says_why),
    #[cfg(target_os = "linux")]
    ("room::want_of_files_costs_no_attempt", room::want_of_files_costs_no_attempt),
    ("damage::damaged_jobs_hold_up_no_other_file", damage::damaged_jobs_hold_up_no_other_file),
    (
        "collector::a_collector_gets_the_trace_of_each_file",
        collector::a_collector_gets_the_trace_of_each_file,
    ),
    (
        "once::jobs_of_another_kind_keep_no_run_waiting",
        once::jobs_of_another_kind_keep_no_run_waiting,
    ),
    ("once::what_nobody_may_claim_is_left", once::what_nobody_may_claim_is_left),
    ("secrets::a_secret_is_written_nowhere", secrets::a_secret_is_written_nowhere),
    ("secrets::half_a_secret_is_not_kept", secrets::half_a_secret_is_not_kept),
    ("kills::sigterm_burns_no_attempt", kills::sigterm_burns_no_attempt),
    (
        "kills::sigterm_under_load_leaves_nothing_leased",
        kills::sigterm_under_load_leaves_nothing_leased,
    ),
    (
        "kills::each_signal_ends_it_and_a_second_one_at_once",
        kills::each_signal_ends_it_and_a_second_one_at_once,
    ),
    ("kills::kill_9_loses_no_file", kills::kill_9_loses_no_file),
    (
        "stops::a_stop_while_the_schema_is_made_is_prompt",
        stops::a_stop_while_the_schema_is_made_is_prompt,
    ),
    ("stops::a_claim_that_is_out_is_given_back", stops::a_claim_that_is_out_is_given_back),
    (
        "stops::a_stop_while_the_store_is_away_is_prompt",
        stops::a_stop_while_the_store_is_away_is_prompt,
    ),
];

fn main() -> ExitCode {
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let server = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok();
    let ignored = server.is_none() && !required;
    let mut trials = Vec::new();
    for (name, play) in PLAYS {
        trials.push(Trial::test(format!("sqlite::{name}"), move || play(&Yard::sqlite(name)?)));
        let server = server.clone();
        let on_server = move || {
            let server = server.ok_or("no server: see scripts/test")?;
            play(&Yard::postgres(name, &server)?)
        };
        trials.push(Trial::test(format!("postgres::{name}"), on_server).with_ignored_flag(ignored));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
