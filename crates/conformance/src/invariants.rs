//! Owns what is true of every store at rest, whatever was done to it: judged on a dump, so that one
//! check serves every engine. Refuses to know how a row came to be there.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::lab::{Cell, Cells, Dump};
use leasehold_core::{IdempotencyKey, JobKind, Json, QueueName, Scope};
use uuid::Uuid;

/// The states in which a job has ended.
const ENDED: [&str; 4] = ["succeeded", "failed", "dead_letter", "cancelled"];
/// The states in which it has not.
const OPEN: [&str; 2] = ["waiting", "leased"];
/// What a leased job has and no other.
const LEASE: [&str; 4] = ["worker_id", "lease_expires_at", "heartbeat_at", "lease_ms"];
/// The tables in which a plain enqueue adds rows.
const ENQUEUED: [&str; 4] = ["jobs", "requests", "keys", "queues"];

/// Tells each invariant that a dump breaks, with the row that breaks it; nothing when all is well.
pub fn broken(dump: &Dump) -> Vec<String> {
    let jobs = jobs(dump);
    let mut said = Vec::new();
    for job in jobs.values() {
        let wrong = names(job).into_iter().chain(places(job)).chain(numbers(job));
        said.extend(wrong.chain(elsewhere(dump, job)).map(|why| format!("{why}: {}", line(job))));
    }
    said.extend(keys(dump, &jobs));
    said.extend(traces(dump, &jobs));
    said.extend(letters(dump, &jobs));
    said
}

/// Tells what enqueues have done to a store beyond adding jobs, keys and queues; nothing when that is all.
pub fn beyond_added(before: &Dump, after: &Dump) -> Vec<String> {
    let mut said = Vec::new();
    for line in before.difference(after).lines() {
        let added = ENQUEUED.iter().any(|table| line.starts_with(&format!("+ {table}: ")));
        if !added {
            said.push(line.to_owned());
        }
    }
    said
}

/// The jobs by their ids, each with what was asked for.
fn jobs(dump: &Dump) -> BTreeMap<Uuid, Cells> {
    let mut found: BTreeMap<Uuid, Cells> = BTreeMap::new();
    for row in dump.cells("jobs") {
        found.insert(id(row, "id").unwrap_or_default(), row.clone());
    }
    for row in dump.cells("requests") {
        // One without a job stays without a state, which is told below.
        let job = found.entry(id(row, "job_id").unwrap_or_default()).or_default();
        job.extend(row.iter().map(|(name, cell)| (name.clone(), cell.clone())));
    }
    found
}

fn line(row: &Cells) -> String {
    let cells: Vec<String> = row.iter().map(|(name, cell)| format!("{name}={cell}")).collect();
    cells.join(" ")
}

fn id(row: &Cells, column: &str) -> Option<Uuid> {
    match row.get(column) {
        Some(Cell::Id(id)) => Some(*id),
        _ => None,
    }
}

fn text<'a>(row: &'a Cells, column: &str) -> Option<&'a str> {
    match row.get(column) {
        Some(Cell::Text(text)) => Some(text),
        _ => None,
    }
}

fn int(row: &Cells, column: &str) -> Option<i64> {
    match row.get(column) {
        Some(Cell::Int(number)) => Some(*number),
        _ => None,
    }
}

fn is_there(row: &Cells, column: &str) -> bool {
    row.get(column).is_some_and(|cell| *cell != Cell::Null)
}

/// Keeps what is not so.
fn unless(rules: impl IntoIterator<Item = (bool, &'static str)>) -> Vec<&'static str> {
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, why)| why).collect()
}

fn names(job: &Cells) -> Vec<&'static str> {
    let fits = |column, takes: fn(&str) -> bool| text(job, column).is_some_and(takes);
    unless([
        (fits("queue", |it| QueueName::new(it).is_ok()), "the queue has no name"),
        (fits("kind", |it| JobKind::new(it).is_ok()), "the kind has no name"),
        (fits("scope", |it| Scope::new(it).is_ok()), "the scope is none"),
        (
            !is_there(job, "key") || fits("key", |it| IdempotencyKey::new(it).is_ok()),
            "the key is none",
        ),
        (is_there(job, "key") || text(job, "scope") == Some(""), "a scope without a key"),
        (fits("payload", |it| Json::parse(it).is_ok()), "the payload is no document"),
        (is_there(job, "subject") == is_there(job, "subject_version"), "half a subject"),
    ])
}

fn places(job: &Cells) -> Vec<&'static str> {
    let state = text(job, "state").unwrap_or("");
    let leased = state == "leased";
    let waits = state == "waiting";
    unless([
        (id(job, "id").is_some(), "no job's id"),
        (OPEN.contains(&state) || ENDED.contains(&state), "no state"),
        (LEASE.iter().all(|column| is_there(job, column) == leased), "a lease and its state"),
        (!leased || (id(job, "claim_id").is_some() && !is_there(job, "last_verdict")), "no claim"),
        (is_there(job, "finished_at") == ENDED.contains(&state), "an end and its state"),
        (waits || int(job, "held") == Some(0), "held, but not waiting"),
    ])
}

fn numbers(job: &Cells) -> Vec<&'static str> {
    let at = |column| int(job, column).unwrap_or(i64::MIN);
    let begun = id(job, "claim_id").is_some();
    unless([
        (at("attempts") >= 0 && at("attempts_max") >= 1, "an impossible budget"),
        (at("claim_version") >= 0 && (begun || at("executions") == 0), "begun without a claim"),
        (at("executions") >= 0 && at("step") >= 0 && at("stage") >= 0, "a number below zero"),
        ((0..=1).contains(&at("cancel_requested")), "asked to end, or not"),
        (i16::try_from(at("priority")).is_ok(), "an impossible priority"),
        (at("run_at") >= 0 && at("run_at") <= TIME_MAX, "an impossible time"),
        (at("created_at") <= at("updated_at"), "changed before it was made"),
    ])
}

/// The last instant of the year 9999.
const TIME_MAX: i64 = 253_402_300_799_999_999;

/// What a job needs in other tables.
fn elsewhere(dump: &Dump, job: &Cells) -> Vec<&'static str> {
    let same = |row: &Cells, theirs: &str, ours: &str| row.get(theirs) == job.get(ours);
    let queue = dump.cells("queues").iter().any(|row| same(row, "name", "queue"));
    let lifecycle = dump.cells("lifecycles").iter();
    let lifecycle = lifecycle
        .clone()
        .any(|row| same(row, "name", "lifecycle") && same(row, "revision", "revision"));
    let pruned = dump.cells("tombstones").iter().any(|row| same(row, "job_id", "id"));
    let dead = text(job, "state") == Some("dead_letter");
    let letter = dump.cells("dead_letters").iter().any(|row| same(row, "job_id", "id"));
    unless([
        (queue, "its queue is not there"),
        (lifecycle, "its lifecycle is not registered"),
        (!pruned, "there and pruned"),
        (!dead || letter, "no dead letter"),
    ])
}

/// A key is its job's: one that is there, or one that has been pruned.
fn keys(dump: &Dump, jobs: &BTreeMap<Uuid, Cells>) -> Vec<String> {
    let mut said = Vec::new();
    let pruned: BTreeMap<Uuid, &Cells> = dump
        .cells("tombstones")
        .iter()
        .filter_map(|row| id(row, "job_id").map(|job| (job, row)))
        .collect();
    let mut known = BTreeSet::new();
    for key in dump.cells("keys") {
        let job = id(key, "job_id").unwrap_or_default();
        let owner = jobs.get(&job).or_else(|| pruned.get(&job).copied());
        let is_its = owner.is_some_and(|job| {
            ["scope", "key"].iter().all(|column| job.get(*column) == key.get(*column))
        });
        // The tombstones themselves may be gone before a key that lasts.
        if !is_its && (owner.is_some() || jobs.contains_key(&job)) {
            said.push(format!("a key of another's: {}", line(key)));
        }
        if !known
            .insert((text(key, "scope").map(str::to_owned), text(key, "key").map(str::to_owned)))
        {
            said.push(format!("a key that stands twice: {}", line(key)));
        }
    }
    said
}

/// What is told of a job was told of one that is or was there, and no more than it counted.
fn traces(dump: &Dump, jobs: &BTreeMap<Uuid, Cells>) -> Vec<String> {
    let mut said = Vec::new();
    for row in dump.cells("transitions") {
        let counted = id(row, "job_id").and_then(|job| jobs.get(&job));
        let counted = counted.and_then(|job| int(job, "transition_seq"));
        if counted.is_some_and(|last| int(row, "sequence").unwrap_or(i64::MAX) > last) {
            said.push(format!("a transition that was not counted: {}", line(row)));
        }
    }
    for row in dump.cells("outcomes") {
        if !id(row, "job_id").is_some_and(|job| jobs.contains_key(&job)) {
            said.push(format!("an outcome without its job: {}", line(row)));
        }
    }
    said
}

/// A letter under way has a job that is under way or has something left to send, or is gone; one that
/// names no replay was never replayed. No job has two letters that wait for an operator.
fn letters(dump: &Dump, jobs: &BTreeMap<Uuid, Cells>) -> Vec<String> {
    let mut said = Vec::new();
    let mut waiting = BTreeSet::new();
    for row in dump.cells("dead_letters") {
        let (state, replay) = (text(row, "state").unwrap_or(""), id(row, "replay_job"));
        let by = replay.and_then(|job| jobs.get(&job));
        let by = by.and_then(|job| text(job, "state"));
        let is_over = by == Some("dead_letter") || by == Some("cancelled");
        let wants = matches!(state, "open" | "escalated");
        let twice = wants && !waiting.insert(id(row, "job_id"));
        said.extend(
            unless([
                (LETTERS.contains(&state), "no state of a letter"),
                (state != "replaying" || replay.is_some(), "under way, but by no job"),
                (state != "superseded" || replay.is_some(), "superseded without a replay"),
                (state != "replaying" || !is_over, "under way, but its replay has ended badly"),
                (!twice, "two letters of one job wait for an operator"),
                (
                    replay.is_none() || (is_there(row, "changed_by") && is_there(row, "note")),
                    "replayed, and nobody says why",
                ),
            ])
            .into_iter()
            .map(|why| format!("{why}: {}", line(row))),
        );
    }
    said
}

/// The states of a dead letter.
const LETTERS: [&str; 5] = ["open", "replaying", "superseded", "resolved", "escalated"];

#[cfg(test)]
mod tests;
