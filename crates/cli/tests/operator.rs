//! Runs the operator's commands as an operator would, on both engines, and reads what they print.
//! Engines that the environment does not name are ignored, and are a failure when
//! `LEASEHOLD_REQUIRE_ENGINES` is set.

#[path = "operator/acts.rs"]
mod acts;
#[path = "operator/answers.rs"]
mod answers;
#[path = "operator/damage.rs"]
mod damage;
#[path = "operator/desk.rs"]
mod desk;
#[path = "operator/keeping.rs"]
mod keeping;
#[path = "operator/shown.rs"]
mod shown;
#[path = "operator/variables.rs"]
mod variables;

use leasehold::{
    Actor, AuditEntry, ClaimRequest, Control, JobId, Json, NewEvent, PartitionName, QueueName,
    QueueSettings, Topic, WorkerId,
};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::process::{Command, ExitCode};
use std::time::Duration;

use desk::{Desk, at, job, rows, same};
use keeping::{
    a_copy_comes_back_with_a_raised_epoch, keys_are_listed_rotated_and_retired,
    verify_is_content_until_a_rule_is_broken,
};

type Play = fn(&Desk) -> Result<(), Failed>;

const PLAYS: &[(&str, Play)] = &[
    ("status_counts_what_is_where", status_counts_what_is_where),
    ("jobs_are_listed_shown_and_called_off", jobs_are_listed_shown_and_called_off),
    ("why_names_every_reason", why_names_every_reason),
    ("queues_are_paused_and_limited", acts::queues_are_paused_and_limited),
    (
        "dead_letters_events_and_the_audit_log_are_shown",
        dead_letters_events_and_the_audit_log_are_shown,
    ),
    ("dead_letters_are_replayed_and_closed", acts::dead_letters_are_replayed_and_closed),
    ("dead_letters_are_listed_by_class", acts::dead_letters_are_listed_by_class),
    ("what_is_not_there_has_its_exit_code", what_is_not_there_has_its_exit_code),
    ("a_copy_comes_back_with_a_raised_epoch", a_copy_comes_back_with_a_raised_epoch),
    ("the_epoch_is_raised_and_the_clock_set", keeping::the_epoch_is_raised_and_the_clock_set),
    ("a_table_is_for_people", a_table_is_for_people),
    ("verify_is_content_until_a_rule_is_broken", verify_is_content_until_a_rule_is_broken),
    ("every_answer_is_as_it_was", answers::every_answer_is_as_it_was),
    ("damaged_rows_hold_up_nothing_else", damage::damaged_rows_hold_up_nothing_else),
    ("a_damaged_lease_is_taken_back", damage::a_damaged_lease_is_taken_back),
    ("a_look_needs_no_right_to_write", keeping::a_look_needs_no_right_to_write),
    ("a_damaged_event_holds_up_no_other", damage::a_damaged_event_holds_up_no_other),
    ("a_damaged_queue_hides_no_other", damage::a_damaged_queue_hides_no_other),
    ("verify_sees_what_was_set_back_or_lost", damage::verify_sees_what_was_set_back_or_lost),
    ("keys_are_listed_rotated_and_retired", keys_are_listed_rotated_and_retired),
    ("a_prune_takes_the_secrets_along", keeping::a_prune_takes_the_secrets_along),
    ("copies_are_as_they_were", shown::copies_are_as_they_were),
    ("keys_are_as_they_were", shown::keys_are_as_they_were),
    ("replays_are_as_they_were", shown::replays_are_as_they_were),
    ("lists_have_the_names_of_the_configuration", shown::lists_have_the_names_of_the_configuration),
];

fn main() -> ExitCode {
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let server = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok();
    let ignored = server.is_none() && !required;
    let mut trials = vec![
        Trial::test("the_page_and_the_completions_are_whole", page_and_completions),
        Trial::test("every_help_is_as_it_was", answers::every_help_is_as_it_was),
        Trial::test("every_option_stands_in_the_page", shown::every_option_stands_in_the_page),
        Trial::test("every_variable_is_named", variables::every_variable_is_named),
        Trial::test("the_configuration_is_as_it_was", shown::the_configuration_is_as_it_was),
        Trial::test("the_shipped_configuration_is_fine", the_shipped_configuration_is_fine),
        Trial::test("a_mistyped_database_is_not_made", a_mistyped_database_is_not_made),
        Trial::test("a_reader_that_is_gone_is_no_panic", a_reader_that_is_gone_is_no_panic),
        Trial::test(
            "a_folder_that_cannot_be_listed_is_refused",
            shown::a_folder_that_cannot_be_listed_is_refused,
        ),
        Trial::test("a_server_that_is_away_is_named", shown::a_server_that_is_away_is_named),
    ];
    for (name, play) in PLAYS {
        trials.push(Trial::test(format!("sqlite::{name}"), move || play(&Desk::sqlite(name)?)));
        let server = server.clone();
        let on_server =
            move || play(&Desk::postgres(name, &server.ok_or("no server: see scripts/test")?)?);
        trials.push(Trial::test(format!("postgres::{name}"), on_server).with_ignored_flag(ignored));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Nobody but `migrate` makes a database; it finds it as all others do.
fn a_mistyped_database_is_not_made() -> Result<(), Failed> {
    let path = std::env::temp_dir().join(format!("leasehold-absent-{}.db", std::process::id()));
    let (url, copy) = (format!("sqlite:{}", path.display()), path.with_extension("copy"));
    let copy = copy.display().to_string();
    for words in
        [&["status"][..], &["verify"], &["jobs", "list"], &["dead", "list"], &["backup", &copy]]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        let out = command.args(words).env("STORE_URL", &url).output()?;
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(4), "{words:?}: {said}");
        assert!(said.contains(&path.display().to_string()), "{words:?}: {said}");
        assert!(!path.exists(), "{words:?} made it");
    }
    let file = path.with_extension("yaml");
    std::fs::write(&file, format!("store:\n  url: {url}\n"))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    let out = command.args(["migrate", "--config"]).arg(&file).output()?;
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(path.exists());
    for made in [path.clone(), file, path.with_extension("db-wal"), path.with_extension("db-shm")] {
        let _absent = std::fs::remove_file(made);
    }
    Ok(())
}

/// Neither what is printed nor what is told beside it ends in a panic when nobody reads on.
fn a_reader_that_is_gone_is_no_panic() -> Result<(), Failed> {
    let piped = Command::new("sh")
        .args(["-c", "{ \"$0\" man; echo $? >&2; } | head -1", env!("CARGO_BIN_EXE_leasehold")])
        .output()?;
    let said = String::from_utf8_lossy(&piped.stderr).into_owned();
    same(&said, &Value::from(said.trim()), "0")?;
    for words in [&["completions", "bash"][..], &["man"], &["status", "--url", "absent.db"]] {
        let full = || std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        let ended = command.args(words).stdout(full()?).stderr(full()?).status()?;
        assert!(matches!(ended.code(), Some(1 | 4)), "{words:?}: {ended}");
    }
    Ok(())
}

fn status_counts_what_is_where(desk: &Desk) -> Result<(), Failed> {
    for _ in 0..3 {
        desk.enqueue(job("mail")?)?;
    }
    desk.enqueue(job("mail")?.delay(Duration::from_secs(600)))?;
    desk.kill_one("mail")?;
    let event = NewEvent::new(Topic::new("sent")?, Json::parse("1")?);
    desk.wait(desk.store.publish(vec![event]))?;
    let status = desk.json(&["status"])?;
    let queues = rows(&status, "queues")?;
    let row = queues.first().ok_or("no queue")?;
    for (name, wanted) in [
        ("queue", Value::from("mail")),
        ("ready", 2.into()),
        ("later", 1.into()),
        ("dead_letter", 1.into()),
    ] {
        same(name, at(row, &format!("/{name}")), wanted)?;
    }
    same("no rate", at(row, "/ended_per_second"), Value::Null)?;
    same("nobody holds anything", &Value::from(rows(&status, "workers")?.len()), 0)?;
    let worker = WorkerId::new();
    let request = ClaimRequest::new(worker, [QueueName::new("mail")?]).limit(2);
    same("held", &Value::from(desk.wait(desk.store.claim(request))?.len()), 2)?;
    let busy = desk.json(&["status", "--over", "1"])?;
    same("running", at(&busy, "/queues/rows/0/running"), 2)?;
    same("came", at(&busy, "/queues/rows/0/new_per_second"), 0.0)?;
    same("ended", at(&busy, "/queues/rows/0/ended_per_second"), 0.0)?;
    same("worker", at(&busy, "/workers/rows/0/worker"), worker.to_string())?;
    same("its jobs", at(&busy, "/workers/rows/0/running"), 2)?;
    same("its lease", &Value::from(at(&busy, "/workers/rows/0/next_lease_end").is_string()), true)?;
    same("outbox", at(&status, "/outbox/waiting"), 1)?;
    same("limit", at(&status, "/store/limit"), Value::Null)
}

fn jobs_are_listed_shown_and_called_off(desk: &Desk) -> Result<(), Failed> {
    let ids = [desk.enqueue(job("a")?)?, desk.enqueue(job("a")?)?, desk.enqueue(job("b")?)?];
    let first = desk.json(&["jobs", "list", "--queue", "a", "--limit", "1"])?;
    same("first", at(&first, "/rows/0/job"), ids[0].to_string())?;
    let next = at(&first, "/next").as_str().ok_or("no next page")?.to_owned();
    let second = desk.json(&["jobs", "list", "--queue", "a", "--limit", "1", "--after", &next])?;
    same("second", at(&second, "/rows/0/job"), ids[1].to_string())?;
    let id = ids[0].to_string();
    let shown = desk.json(&["jobs", "show", &id])?;
    same("state", at(&shown, "/job/state"), "waiting")?;
    if shown.to_string().contains("payload-marker") {
        return Err("a payload is shown without being asked for".into());
    }
    let shown = desk.json(&["jobs", "show", &id, "--payload"])?;
    same("payload", at(&shown, "/job/payload"), "{\"secret\":\"payload-marker\"}")?;
    let done = desk.json(&["jobs", "cancel", &id, "--reason", "not wanted"])?;
    same("cancelled", at(&done, "/outcome"), "cancelled")?;
    let listed = desk.json(&["jobs", "list", "--state", "cancelled"])?;
    same("listed", at(&listed, "/rows/0/job"), id)?;
    let audit = desk.json(&["audit", "--by", "tester"])?;
    same("audited", &Value::from(rows(&audit, "")?.len()), 1)
}

fn why_names_every_reason(desk: &Desk) -> Result<(), Failed> {
    let says = |id: JobId, wanted: &str| {
        let answer = desk.json(&["jobs", "why", &id.to_string()])?;
        let reasons = at(&answer, "/reasons").to_string();
        if reasons.contains(wanted) {
            Ok(())
        } else {
            Err(Failed::from(format!("{reasons}, wanted {wanted}")))
        }
    };
    let plain = desk.enqueue(job("why")?)?;
    says(plain, "nothing keeps it: it is one of 1 due jobs of queue why")?;
    let later = desk.enqueue(job("why")?.delay(Duration::from_secs(600)))?;
    says(later, "it is not due before")?;
    let child = desk.enqueue(job("why")?.after(plain, leasehold::OnFailure::Cancel))?;
    says(child, &format!("it waits for 1 of 1 jobs, among them {plain} (waiting)"))?;
    let queue = QueueName::new("why")?;
    desk.wait(desk.store.control(Control::Pause(queue.clone())))?;
    says(plain, "queue why is paused")?;
    desk.wait(desk.store.control(Control::Resume(queue.clone())))?;
    let settings = QueueSettings::new().limit(Some(2)).partition_limit(Some(1));
    desk.wait(desk.store.control(Control::SetQueue(queue.clone(), settings)))?;
    let partition = PartitionName::new("tenant")?;
    let mut tenants = Vec::new();
    for _ in 0..2 {
        tenants.push(desk.enqueue(job("why")?.partition(partition.clone()))?);
    }
    // One of the two tenants' jobs and the plain one: neither bound lets more through.
    let request = ClaimRequest::new(WorkerId::new(), [queue]).limit(10);
    let held: Vec<JobId> =
        desk.wait(desk.store.claim(request))?.iter().map(|claim| claim.job.id).collect();
    says(plain, "it runs: worker")?;
    let other = tenants.into_iter().find(|id| !held.contains(id)).ok_or("both held")?;
    says(other, "queue why has 2 leases, and its limit is 2")?;
    says(other, "partition tenant has 1 leases, and its limit is 1")?;
    desk.json(&["jobs", "cancel", &later.to_string()])?;
    says(later, "it is over: cancelled since")
}

fn dead_letters_events_and_the_audit_log_are_shown(desk: &Desk) -> Result<(), Failed> {
    let id = desk.enqueue(job("d")?)?.to_string();
    desk.kill_one("d")?;
    let listed = desk.json(&["dead", "list", "--queue", "d"])?;
    same("class", at(&listed, "/rows/0/error_class"), "SCHEMA_INVALID")?;
    let shown = desk.json(&["dead", "show", &id])?.to_string();
    if shown.contains("hunter2") || !shown.contains("[redacted:secret]") {
        return Err(shown.into());
    }
    let event = NewEvent::new(Topic::new("t")?, Json::parse("\"payload-marker\"")?);
    let event =
        desk.wait(desk.store.publish(vec![event]))?.pop().ok_or("no event")?.event.to_string();
    let listed = desk.json(&["outbox", "list", "--topic", "t", "--state", "waiting"])?;
    same("event", at(&listed, "/rows/0/event"), event.clone())?;
    let shown = desk.json(&["outbox", "show", &event])?;
    same("state", at(&shown, "/state"), "waiting")?;
    same("payload", at(&shown, "/payload"), Value::Null)?;
    let entry = AuditEntry::new(Actor::new("somebody")?, "looked", "at it");
    desk.wait(desk.store.records().append(entry))?;
    let audit = desk.json(&["audit", "--action", "looked"])?;
    same("target", at(&audit, "/rows/0/target"), "at it")
}

fn what_is_not_there_has_its_exit_code(desk: &Desk) -> Result<(), Failed> {
    let nobody = JobId::new().to_string();
    let waiting = desk.enqueue(job("q")?)?.to_string();
    for (arguments, code, text) in [
        (&["jobs", "show", &nobody][..], 4, "there is no such job"),
        (&["jobs", "why", &nobody], 4, "there is no such job"),
        (&["jobs", "cancel", &nobody], 4, "job"),
        (&["jobs", "retry", &waiting], 4, "job"),
        (&["dead", "show", &nobody], 4, "the job has no dead letter"),
        (&["outbox", "show", &nobody], 4, "there is no such event"),
        (&["jobs", "show", "no-id"], 2, "invalid value"),
        (&["jobs", "wake", &nobody], 4, "job"),
        (&["jobs", "list", "--state", "odd"], 2, "odd"),
        (&["outbox", "list", "--state", "odd"], 2, "odd"),
        (&["dead", "list", "--state", "odd"], 2, "odd"),
        (&["jobs", "list", "--limit", "0"], 2, "1 to 1,000"),
        (&["audit", "--limit", "1001"], 2, "1 to 1,000"),
        (&["jobs", "list", "--state", "odd"], 2, "waiting, leased, succeeded, failed"),
        (&["outbox", "list", "--state", "odd"], 2, "waiting, leased, delivered, dead_letter"),
        (&["dead", "list", "--state", "odd"], 2, "open, replaying, superseded"),
        (&["dead", "list", "--class", "odd"], 2, "network, rate_limit"),
        (&["dead", "replay", "--job", &nobody, "--note", "n", "--safe-to-repeat"], 4, &nobody),
        (
            &["dead", "replay", "--job", &waiting, "--note", "n", "--safe-to-repeat"],
            4,
            "it is waiting, there is no dead letter",
        ),
        (&["queues", "limit", "q", "--leases", "0"], 2, "`queues pause` stops a queue"),
        (&["queues", "limit", "q", "--partition", "0"], 2, "`queues pause` stops a queue"),
        (&["queues", "limit", "--leases", "few"], 2, "a number from 1 on, or none"),
        (&["queues", "limit", "q"], 2, "nothing to set"),
        (&["queues", "pause", "mial"], 4, "queue mial: not found: there is no such queue"),
        (&["queues", "resume", "mial"], 4, "no such queue"),
        (&["queues", "lease", "mial", "60"], 4, "no such queue"),
        (&["queues", "limit", "mial", "--leases", "1"], 4, "no such queue"),
        (&["status", "--url", "sqlite:/no/such/folder/x.db"], 4, "folder"),
    ] {
        let out = desk.run(arguments)?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        if out.status.code() != Some(code) || !said.contains(text) {
            return Err(format!("{arguments:?}: {:?}: {said}", out.status.code()).into());
        }
    }
    Ok(())
}

fn a_table_is_for_people(desk: &Desk) -> Result<(), Failed> {
    let out = desk.run(&["jobs", "list"])?;
    same("empty", &Value::from(String::from_utf8(out.stdout)?), "nothing\n")?;
    desk.enqueue(job("q")?)?;
    let text = String::from_utf8(desk.run(&["jobs", "list"])?.stdout)?;
    for part in ["queue", "status", "print", "waiting"] {
        if !text.contains(part) {
            return Err(text.into());
        }
    }
    desk.json(&["prune"]).map(|_| ())
}

/// Both are made from the arguments themselves.
fn page_and_completions() -> Result<(), Failed> {
    for (arguments, wanted) in [
        (&["man"][..], ".TH leasehold 1"),
        (&["completions", "bash"], "_leasehold()"),
        (&["completions", "fish"], "complete -c leasehold"),
        (&["--help"], "--role"),
    ] {
        let out = Command::new(env!("CARGO_BIN_EXE_leasehold")).args(arguments).output()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if !out.status.success() || !text.contains(wanted) {
            return Err(format!("{arguments:?}: {text}").into());
        }
    }
    let bare = Command::new(env!("CARGO_BIN_EXE_leasehold")).output()?;
    same("without arguments", &Value::from(bare.status.code()), 2)
}

/// The shipped configuration breaks no rule, but for the folder that is not here.
///
/// Proves: CFG-1
fn the_shipped_configuration_is_fine() -> Result<(), Failed> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/leasehold.yaml");
    let check = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(["config", "check", "--config", path]).args(more).output()
    };
    let worker = check(&["--role", "worker"])?;
    let said = String::from_utf8_lossy(&worker.stderr).into_owned();
    same(&said, &Value::from(worker.status.code()), 0)?;
    same("prints", &Value::from(worker.stdout.len()), 0)?;
    let all = check(&[])?;
    let said = String::from_utf8_lossy(&all.stderr).into_owned();
    let problems = said.lines().filter(|line| line.contains("leasehold.yaml:")).count();
    same(&said, &Value::from(all.status.code()), 3)?;
    same(&said, &Value::from(problems), 1)?;
    same(&said, &Value::from(said.contains("producer.scan_dir")), true)
}
