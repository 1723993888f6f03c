//! What survives the end of a process, asked for or not.

use std::collections::{BTreeMap, BTreeSet};

use leasehold::State;
use leasehold_conformance::evidence::Evidence;
use libtest_mimic::Failed;

use super::yard::{Running, Yard, runs, same};

/// Proves: WQ-20, CLI-1
pub(crate) fn sigterm_burns_no_attempt(yard: &Yard) -> Result<(), Failed> {
    let begun = yard.beside("begun").display().to_string();
    yard.configure(
        &["sh", "-c", "echo x >> \"$1\"; exec sleep 300", "sh", &begun],
        "worker: grace: 500ms
         worker: count: 4
         worker: max_retries: 0",
    )?;
    for number in 0..8 {
        yard.put(number.to_string(), "x")?;
    }
    for round in 1..=2 {
        let mut running = yard.start(&["--role=all"])?;
        yard.until("4 commands run", |_| {
            let lines = std::fs::read_to_string(&begun).unwrap_or_default().lines().count();
            Ok(lines >= 4 * round)
        })?;
        same("exit code", running.terminate()?, Some(0))?;
        for job in yard.jobs()? {
            same("after SIGTERM", (job.state, job.attempts), (State::Waiting, 0))?;
        }
    }
    Ok(())
}

/// Commands come and go when the signal comes: it ends in time, whatever had not ended is waiting again with its
/// whole budget, and nothing is leased.
///
/// Proves: WQ-20, CLI-1
pub(crate) fn sigterm_under_load_leaves_nothing_leased(yard: &Yard) -> Result<(), Failed> {
    let done = yard.beside("done").display().to_string();
    yard.configure(
        &["sh", "-c", "sleep 0.1; printf '%s\\0' \"$1\" >> \"$2\"", "sh", "{path}", &done],
        "worker: grace: 50ms
         worker: count: 8
         worker: max_retries: 0",
    )?;
    for number in 0..120 {
        yard.put(number.to_string(), "x")?;
    }
    for round in 1..=2 {
        let mut running = yard.start(&["--role=all"])?;
        yard.until("commands come and go", |yard| Ok(yard.done().len() >= 30 * round))?;
        same("exit code", running.terminate()?, Some(0))?;
        for job in yard.jobs()? {
            let is_well = job.state == State::Succeeded
                || (job.state == State::Waiting && job.attempts == 0 && job.worker.is_none());
            same(&format!("{job:?}"), is_well, true)?;
        }
    }
    yard.run(&["--role=all", "--once"])?;
    let jobs = yard.jobs()?;
    same("jobs", jobs.len(), 120)?;
    same("succeeded", jobs.iter().all(|job| job.state == State::Succeeded), true)
}

/// An idle process ends as well, by SIGINT as by SIGTERM. A second signal ends one at once that waits for its
/// commands; their jobs are taken up again when the leases have lapsed.
///
/// Proves: WQ-20, CLI-1
pub(crate) fn each_signal_ends_it_and_a_second_one_at_once(yard: &Yard) -> Result<(), Failed> {
    let begun = yard.beside("begun").display().to_string();
    yard.configure(
        &["sh", "-c", "echo $$ >> \"$1\"; exec sleep 300", "sh", &begun],
        "worker: grace: 300s",
    )?;
    let log = |yard: &Yard, text: &str| -> Result<usize, Failed> {
        Ok(std::fs::read_to_string(yard.beside("log"))?.matches(text).count())
    };
    for (number, signal) in ["INT", "TERM"].into_iter().enumerate() {
        let mut idle = yard.start(&["--role=all"])?;
        yard.until("started", |yard| Ok(log(yard, "All started")? > number))?;
        idle.send(signal)?;
        same(signal, idle.end()?, Some(0))?;
    }
    yard.put("a", "x")?;
    let mut busy = yard.start(&["--role=all"])?;
    let mut command = String::new();
    yard.until("a command runs", |_| {
        command = std::fs::read_to_string(&begun).unwrap_or_default().trim().to_owned();
        Ok(!command.is_empty())
    })?;
    busy.send("TERM")?;
    yard.until("it waits", |yard| Ok(log(yard, "asked to end")? == 3))?;
    busy.send("INT")?;
    same("at once", busy.end()?, Some(130))?;
    yard.until("the command is ended too", |_| Ok(!runs(&command)))
}

/// Three processes on one folder; every moment one is killed and another takes its place.
///
/// Proves: WQ-11, PRD-1
pub(crate) fn kill_9_loses_no_file(yard: &Yard) -> Result<(), Failed> {
    let files = std::env::var("LEASEHOLD_FOLDER_FILES").ok().and_then(|text| text.parse().ok());
    let files: usize = files.unwrap_or(300);
    let evidence = Evidence::of("folder workers killed by SIGKILL", yard.engine());
    yard.configure_to_record("worker: count: 4")?;
    for number in 0..files {
        yard.put(format!("{}/{number}", number % 17), &number.to_string())?;
    }
    let arguments = ["--role=all"];
    let mut processes: Vec<Running> = Vec::new();
    for _ in 0..3 {
        processes.push(yard.start(&arguments)?);
    }
    let (mut kills, mut newest) = (0, 0);
    while yard.succeeded()? < files {
        // The next one is killed once the others have got on, or all is done. Each file has a minute of its own.
        let (before, step) = (yard.done().len(), (files / 20 + 1).min(100));
        for more in 1..=step {
            yard.until("the others get on", |yard| {
                Ok(yard.done().len() >= before + more || yard.succeeded()? == files)
            })?;
        }
        let victim = kills % processes.len();
        if let Some(running) = processes.get_mut(victim) {
            running.kill()?;
            *running = yard.start(&arguments)?;
            newest = victim;
        }
        kills += 1;
    }
    for (at, running) in processes.iter_mut().enumerate() {
        let code = running.terminate()?;
        // The newest may not have come to listen for signals yet.
        let ended_well = code == Some(0) || (at == newest && code.is_none());
        same(&format!("exit code {code:?} is good"), ended_well, true)?;
    }
    let mut per_file: BTreeMap<String, usize> = BTreeMap::new();
    for job in yard.jobs()? {
        same("state", job.state, State::Succeeded)?;
        *per_file.entry(job.key.map(|key| key.to_string()).unwrap_or_default()).or_default() += 1;
    }
    same("processes were killed at work", kills >= 5, true)?;
    same("jobs of different files", per_file.len(), files)?;
    same("jobs of one file", per_file.values().max().copied(), Some(1))?;
    let seen = yard.done();
    let done: BTreeSet<_> = seen.iter().collect();
    same("files that a command saw", done.len(), files)?;
    evidence
        .count("files", files)
        .count("processes at once", 3)
        .count("kills", kills)
        .count("commands run anew after a kill", seen.len() - files)
        .count("files lost", 0)
        .count("files with two jobs", 0)
        .tell();
    Ok(())
}
