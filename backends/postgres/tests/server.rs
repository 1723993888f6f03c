//! Owns the stories that need a server and more than one session: races, openings, wake-ups, lost
//! connections, plans. Each runs in a schema of its own.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "a panic is how a test fails")]

#[path = "server/aside.rs"]
mod aside;
#[path = "server/book.rs"]
mod book;
#[path = "server/cleared.rs"]
mod cleared;
#[path = "server/contents.rs"]
mod contents;
#[path = "server/crowd.rs"]
mod crowd;
#[path = "server/enqueue_sql.rs"]
mod enqueue_sql;
#[path = "server/events.rs"]
mod events;
#[path = "server/fan_in.rs"]
mod fan_in;
#[path = "server/loss.rs"]
mod loss;
#[path = "server/marks.rs"]
mod marks;
#[path = "server/opening.rs"]
mod opening;
#[path = "server/passing.rs"]
mod passing;
#[path = "server/place.rs"]
mod place;
#[path = "server/plans.rs"]
mod plans;
#[path = "server/quick.rs"]
mod quick;
#[path = "server/races.rs"]
mod races;
#[path = "server/record_plans.rs"]
mod record_plans;
#[path = "server/statements.rs"]
mod statements;
#[path = "server/together.rs"]
mod together;
#[path = "server/wakes.rs"]
mod wakes;

use std::pin::Pin;

use libtest_mimic::{Arguments, Failed, Trial};
use place::Place;

type Story = fn(Place) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! stories {
    ($($module:ident::$name:ident),* $(,)?) => {
        [$((
            concat!(stringify!($module), "::", stringify!($name)),
            (|place| Box::pin($module::$name(place))) as Story,
        )),*]
    };
}

const STORIES: &[(&str, Story)] = &stories![
    aside::a_queue_that_cannot_be_read_hides_no_other,
    aside::figures_leave_out_what_cannot_be_read,
    aside::live_leases_of_others_are_left_alone,
    aside::unreadable_events_end_and_hold_up_no_other,
    aside::unreadable_jobs_rest_and_hold_up_no_other,
    aside::what_cannot_be_put_to_rest_is_told,
    cleared::a_schema_is_used_again_as_if_it_were_new,
    enqueue_sql::equal_the_stores_own_enqueue,
    enqueue_sql::race_of_one_key_is_one_job,
    events::late_commits_are_delivered,
    events::one_key_waits_for_its_open_publisher,
    enqueue_sql::view_runs_nothing_of_the_inserters,
    enqueue_sql::view_takes_sound_jobs_only,
    fan_in::callbacks_of_many_batches_run_once,
    fan_in::older_snapshot_misses_no_new_wait,
    fan_in::older_snapshot_misses_no_other_end,
    fan_in::open_transactions_are_waited_for,
    fan_in::prune_passes_over_what_is_waited_for,
    loss::damaged_row_fails_its_own_item_only,
    loss::dead_connections_are_replaced,
    loss::dropped_calls_leave_nothing_open,
    loss::failed_transaction_asks_for_a_restart,
    loss::lost_reply_to_a_commit_is_unknown,
    loss::write_that_is_thrown_away_is_no_success,
    marks::held_snapshot_does_not_slow_claims,
    marks::job_behind_the_mark_keeps_its_turn,
    marks::no_claimable_row_lies_before_its_mark,
    marks::old_snapshot_adds_its_own_mark,
    marks::open_transaction_keeps_the_mark_down,
    marks::strangers_rows_are_found,
    opening::edited_migration_is_refused,
    opening::missing_lifecycle_comes_back,
    opening::newer_schema_decides_who_may_read,
    opening::role_without_rights_is_told_what_it_needs,
    opening::schema_is_made_only_when_told,
    opening::sixteen_open_at_once,
    opening::sixteen_open_under_a_strict_default,
    passing::claims_pass_over_locked_jobs,
    passing::deliveries_pass_over_locked_ones,
    passing::lapsed_leases_are_taken_back_past_a_locked_one,
    passing::lease_being_used_counts_for_all_queues,
    passing::limited_claims_wait_for_each_other,
    passing::prunes_pass_over_locked_jobs,
    passing::two_ends_of_a_delivery_have_one_winner,
    plans::hostile_plans_never_claim_too_many,
    plans::statements_visit_what_they_are_asked_for,
    quick::changes_by_others_are_seen,
    quick::children_added_meanwhile_are_seen,
    quick::each_fence_answers_for_itself,
    quick::each_way_is_one_statement,
    races::crossed_locks_end_in_an_answer,
    races::heartbeat_passes_waiting_settlements,
    races::key_taken_meanwhile_is_the_same_job,
    races::id_taken_meanwhile_is_the_same_job,
    races::lease_being_used_counts_as_held,
    races::lease_limits_are_exact,
    races::lock_wait_does_not_lengthen_a_lease,
    races::no_job_is_claimed_twice,
    races::renewal_passes_over_locked_rows,
    races::raised_epoch_is_told_past_locked_rows,
    races::records_have_one_winner,
    races::stale_snapshot_asks_for_a_restart,
    races::twin_between_two_looks_is_seen_whole,
    opening::what_stands_in_the_way_is_told,
    record_plans::records_and_reruns_walk_their_index,
    together::a_full_disk_fails_every_call,
    together::a_refused_job_fails_its_own_call_only,
    together::an_open_transaction_holds_up_only_who_waits_for_it,
    together::enqueues_at_once_share_transactions_and_no_fate,
    wakes::enqueue_wakes_another_process,
    wakes::killed_listener_listens_again,
    wakes::lost_connection_comes_back,
    wakes::notifications_stay_short_and_few,
    wakes::silent_connection_is_given_up,
];

fn main() {
    let url = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok();
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let trials = STORIES.iter().map(|&(name, story)| {
        let server = url.clone();
        let trial = Trial::test(name, move || {
            let server = server.ok_or("LEASEHOLD_TEST_POSTGRES_URL names no server")?;
            run(story, Place::new(&server, name))
        });
        trial.with_ignored_flag(url.is_none() && !required)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn run(story: Story, place: Place) -> Result<(), Failed> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(story(place));
    Ok(())
}
