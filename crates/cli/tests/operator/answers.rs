//! What each command prints, as a table and as JSON, held in a file; both engines print the same. Ids, times
//! and what the engines tell of themselves are masked.

use std::process::Command;

use leasehold::{Json, NewEvent, QueueName, QueueSettings, Topic};
use libtest_mimic::Failed;
use regex::Regex;

use crate::desk::{Desk, job};

/// What differs from run to run, and what stands in its place.
const MASKS: &[(&str, &str)] = &[
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME"),
    (r"\b\d+\.\d+\b", "N.N"),
    (r#"(?m)^ *"?(engine|log.bytes|wake.ups.heard|clock.off.by.seconds)"?[ :].*$"#, "$1 MASKED"),
    // A table is as wide as its widest cell.
    (r"[─╌]{2,}", "──"),
    (r"(?m) {2,}", "  "),
    (r"(?m) +$", ""),
];

pub(crate) fn masked(text: &str) -> Result<String, Failed> {
    let mut text = text.to_owned();
    for (mask, place) in MASKS {
        text = Regex::new(mask)?.replace_all(&text, *place).into_owned();
    }
    Ok(text)
}

/// Compares with what was kept under a name.
pub(crate) fn as_it_was(name: &str, told: &str) {
    insta::with_settings!({
        snapshot_path => "snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, told);
    });
}

/// What the command said, and its exit code.
pub(crate) fn said(arguments: &[&str], out: std::process::Output) -> Result<String, Failed> {
    let code = out.status.code().unwrap_or(-1);
    let (said, aside) = (String::from_utf8(out.stdout)?, String::from_utf8(out.stderr)?);
    Ok(format!("$ leasehold {}\n{said}{aside}[{code}]\n\n", arguments.join(" ")))
}

/// The help of the command and of all that it can do, down to the last: the words and what is printed.
pub(crate) fn helps() -> Result<Vec<(Vec<String>, String)>, Failed> {
    let (mut all, mut left) = (Vec::new(), vec![Vec::<String>::new()]);
    while let Some(words) = left.pop() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        let out = command.args(&words).arg("--help").env("COLUMNS", "100").output()?;
        let text = String::from_utf8(out.stdout)?;
        if !out.status.success() {
            return Err(format!("{words:?}: {}", String::from_utf8_lossy(&out.stderr)).into());
        }
        let listed = text.split("Commands:\n").nth(1).unwrap_or_default();
        let names = listed.lines().take_while(|line| !line.is_empty());
        let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
        let deeper = names.iter().rev().filter(|name| **name != "help");
        left.extend(deeper.map(|name| [&words[..], &[(*name).to_owned()]].concat()));
        all.push((words, text));
    }
    Ok(all)
}

/// Proves: CLI-1
pub(crate) fn every_help_is_as_it_was() -> Result<(), Failed> {
    let line = |(words, text): &(Vec<String>, String)| {
        format!("$ leasehold {} --help\n{text}\n", words.join(" "))
    };
    as_it_was("help", &helps()?.iter().map(line).collect::<String>());
    Ok(())
}

/// Proves: PAR-1
pub(crate) fn every_answer_is_as_it_was(desk: &Desk) -> Result<(), Failed> {
    let queue = QueueName::new("mail")?;
    let settings = QueueSettings::new().limit(Some(7)).log(Some(true));
    desk.wait(desk.store.control(leasehold::Control::SetQueue(queue, settings)))?;
    let ids = [desk.enqueue(job("mail")?)?, desk.enqueue(job("mail")?)?];
    desk.kill_one("mail")?;
    let event = NewEvent::new(Topic::new("sent")?, Json::parse("{\"n\":1}")?);
    let event = desk.wait(desk.store.publish(vec![event]))?.pop().ok_or("no event")?.event;
    let (dead, waits, event) = (ids[0].to_string(), ids[1].to_string(), event.to_string());
    let mut told = String::new();
    for words in [
        &["status"][..],
        &["jobs", "list"],
        &["jobs", "show", &dead],
        &["jobs", "show", &waits, "--payload"],
        &["jobs", "why", &waits],
        &["jobs", "wake", &waits],
        &["jobs", "cancel", &waits, "--reason", "not wanted"],
        &["queues", "list"],
        &["queues", "pause", "mail"],
        &["queues", "resume", "mail"],
        &["queues", "limit", "mail", "--leases", "8"],
        &["outbox", "list"],
        &["outbox", "show", &event, "--payload"],
        &["dead", "list"],
        &["dead", "show", &dead],
        &["dead", "replay", "--note", "n", "--safe-to-repeat", "--dry-run"],
        &["dead", "annotate", &dead, "--note", "seen"],
        &["dead", "escalate", &dead, "--note", "not ours"],
        &["dead", "resolve", &dead, "--note", "done by hand"],
        &["jobs", "retry", &dead],
        &["outbox", "replay", &event],
        &["queues", "lease", "mail", "45"],
        &["keys", "list"],
        &["verify"],
        &["prune"],
        &["audit"],
    ] {
        for form in [&[][..], &["--json"]] {
            let all = [words, form].concat();
            told.push_str(&said(&all, desk.run(&all)?)?);
        }
    }
    as_it_was("answers", &masked(&told)?);
    Ok(())
}
