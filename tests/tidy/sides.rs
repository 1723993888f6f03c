//! Owns what the two engines' folders must share by name, and what only one of them needs, with the
//! reason. Knows nothing of what the files hold.

use std::collections::BTreeSet;
use std::fs;

use crate::none;
use crate::tree::{links, names_below, root};

/// Files that one backend has and the other has not, each with its reason.
const SQL_OF_ONE_ENGINE: &[(&str, &str)] = &[
    ("add_marks.sql", "only PostgreSQL keeps dead rows for an old snapshot"),
    ("check_copy.sql", "PostgreSQL's own tools make its copies"),
    ("claim_alone.sql", "SQLite's calls share one transaction"),
    ("claim_below.sql", "PostgreSQL walks the priorities inside partitions.sql"),
    ("claim_in.sql", "PostgreSQL claims from many partitions at once, in claim_turns.sql"),
    ("claim_jobs.sql", "PostgreSQL claims in claim.sql"),
    ("claim_priority.sql", "PostgreSQL walks the priorities inside claim.sql"),
    ("claim_turns.sql", "SQLite reads one partition after the other, by claim_in.sql"),
    ("clock_keep.sql", "PostgreSQL's server keeps the clock"),
    ("clock_kept.sql", "PostgreSQL's server keeps the clock"),
    ("clock_leased.sql", "PostgreSQL's server keeps the clock"),
    ("clock_load.sql", "PostgreSQL's server keeps the clock"),
    ("clock_reset.sql", "PostgreSQL's server keeps the clock"),
    ("document_lock.sql", "SQLite's transaction holds the one write lock"),
    ("end_alone.sql", "SQLite's calls share one transaction"),
    ("enqueue_answer.sql", "PostgreSQL's migration has a function for it"),
    ("enqueue_clock.sql", "PostgreSQL's migration has a function for it"),
    ("enqueue_job.sql", "PostgreSQL's migration has a function for it"),
    ("enqueue_key.sql", "PostgreSQL's migration has a function for it"),
    ("enqueue_payload.sql", "PostgreSQL's migration has a function for it"),
    ("enqueue_queue.sql", "PostgreSQL's migration has a function for it"),
    ("enqueue.sql", "SQLite has no functions, and takes several statements"),
    ("find_marks.sql", "only PostgreSQL keeps dead rows for an old snapshot"),
    ("find_dead_letters_of.sql", "PostgreSQL's planner needs no form of its own for each filter"),
    ("find_event_ids.sql", "PostgreSQL's planner needs no form of its own for each filter"),
    ("find_events_of.sql", "PostgreSQL's planner needs no form of its own for each filter"),
    ("find_ids.sql", "PostgreSQL's planner needs no form of its own for each filter"),
    ("find_kind.sql", "PostgreSQL's planner needs no form of its own for each filter"),
    ("find_topic.sql", "PostgreSQL's planner needs no form of its own for each filter"),
    ("hold_odd.sql", "PostgreSQL's columns hold nothing else than ids and texts"),
    ("load_odd.sql", "PostgreSQL's columns hold nothing else than ids and texts"),
    ("insert_same.sql", "SQLite binds each row anew, so what is alike spares nothing"),
    ("insert_same_named.sql", "SQLite binds each row anew, so what is alike spares nothing"),
    ("lock_marks.sql", "only PostgreSQL keeps dead rows for an old snapshot"),
    ("insert_payload.sql", "PostgreSQL's own TOAST keeps long payloads apart"),
    ("lab_first.sql", "SQLite's stores in memory are made anew as cheaply"),
    ("lab_jobs.sql", "PostgreSQL's dump knows the columns of a row"),
    ("lab_requests.sql", "PostgreSQL's dump knows the columns of a row"),
    ("load_checkpoint.sql", "SQLite reads it with the request"),
    ("load_facts.sql", "PostgreSQL reads these apart, as it locks them"),
    ("load_store.sql", "SQLite reads it with the other facts"),
    ("load_taken.sql", "PostgreSQL's insert tells what is taken"),
    ("raise_epoch.sql", "PostgreSQL's own tools make its copies"),
    ("load_present.sql", "only PostgreSQL passes over locked rows"),
    ("load_present_events.sql", "only PostgreSQL passes over locked rows"),
    ("lock_events_free.sql", "only PostgreSQL passes over locked rows"),
    ("lock_jobs_free.sql", "only PostgreSQL passes over locked rows"),
    ("lock_queues.sql", "SQLite's transaction holds the one write lock"),
    ("lock_store.sql", "SQLite's transaction holds the one write lock"),
    ("migrate_lock.sql", "SQLite's transaction holds the one write lock"),
    ("notify.sql", "SQLite watches its file for the commits of others"),
    ("notify_pid.sql", "SQLite watches its file for the commits of others"),
    ("prune_payload.sql", "PostgreSQL's own TOAST keeps long payloads apart"),
    ("put_jobs.sql", "SQLite's calls share one transaction"),
    ("raise_marks.sql", "only PostgreSQL keeps dead rows for an old snapshot"),
    ("prune_waited.sql", "SQLite sees it when it looks for the jobs"),
    ("succeed_jobs.sql", "PostgreSQL's end_alone.sql is the like, and a transaction by itself"),
    ("mark_parents.sql", "SQLite has one writer at a time, who looks at waits"),
    ("without_due.sql", "SQLite asks claim.sql for one row"),
    ("stats_health.sql", "SQLite's library tells its own version"),
];
const RUST_OF_ONE_ENGINE: &[(&str, &str)] = &[
    ("bind.rs", "SQLite's driver needs no types for parameters"),
    ("uptime.rs", "PostgreSQL's server keeps the clock"),
    ("clock.rs", "PostgreSQL's server keeps the clock"),
    ("faults.rs", "SQLite's faults are the driver's codes, which statement.rs gives"),
    ("group.rs", "SQLite's one writer groups all calls"),
    ("backup.rs", "PostgreSQL's own tools make its copies"),
    ("lab_again.rs", "SQLite's stores in memory are made anew as cheaply"),
    ("fork.rs", "PostgreSQL's connections hold no file locks"),
    ("marks.rs", "only PostgreSQL keeps dead rows for an old snapshot"),
    ("new_jobs.rs", "SQLite binds each row anew, so what is alike spares nothing"),
    ("own.rs", "SQLite's one writer begins and ends for all calls"),
    ("notify.rs", "SQLite watches its file for the commits of others"),
    ("files.rs", "PostgreSQL looks after its own files"),
    ("places.rs", "PostgreSQL's planner needs no form of its own for each filter"),
    ("quick/end.rs", "SQLite's calls share one transaction"),
    ("quick/mod.rs", "SQLite's calls share one transaction"),
    ("quick/put.rs", "SQLite's calls share one transaction"),
    ("quick/take.rs", "SQLite's calls share one transaction"),
    ("schema.rs", "SQLite's tables have a prefix"),
    ("step.rs", "SQLite's steps wait in their thread, in statement.rs"),
    ("url.rs", "PostgreSQL's driver reads its URLs, and its errors repeat none"),
    ("writer.rs", "PostgreSQL takes many writers"),
];

/// Compares two folders by name, but for what the list excuses; a stale excuse is a problem too.
fn same_names(left: &str, right: &str, ending: &str, excused: &[(&str, &str)]) {
    let lists = [left, right].map(|folder| BTreeSet::from_iter(names_below(folder, ending)));
    let differing: BTreeSet<&String> = lists[0].symmetric_difference(&lists[1]).collect();
    let mut problems: Vec<String> = Vec::new();
    for name in &differing {
        if !excused.iter().any(|(excuse, _)| excuse == name) {
            let owner = if lists[0].contains(*name) { left } else { right };
            problems.push(format!("{name} is only in {owner}"));
        }
    }
    for (name, reason) in excused {
        if !differing.iter().any(|found| found == name) {
            problems.push(format!("{name} needs no excuse any more ({reason})"));
        }
    }
    none(&problems, "both engines have the same files");
}

#[test]
fn both_backends_have_the_same_statements() {
    let [left, right] = ["backends/sqlite/src/sql", "backends/postgres/src/sql"];
    same_names(left, right, ".sql", SQL_OF_ONE_ENGINE);
}

#[test]
fn both_backends_have_the_same_modules() {
    same_names("backends/sqlite/src", "backends/postgres/src", ".rs", RUST_OF_ONE_ENGINE);
}

#[test]
fn both_engines_have_the_same_migrations() {
    same_names("migrations-sqlite", "migrations-postgres", ".sql", &[]);
    let names = names_below("migrations-sqlite", ".sql");
    for (at, name) in names.iter().enumerate() {
        assert!(name.starts_with(&format!("{:04}_", at + 1)), "{name} is not number {}", at + 1);
    }
}

#[test]
fn each_backend_packages_its_migrations_through_a_symlink() {
    for engine in ["sqlite", "postgres"] {
        let link = root().join(format!("backends/{engine}/migrations"));
        let target =
            fs::read_link(&link).unwrap_or_else(|error| panic!("{}: {error}", link.display()));
        assert_eq!(target.to_str(), Some(format!("../../migrations-{engine}").as_str()));
        assert!(link.is_dir(), "{} points nowhere", link.display());
    }
}

/// A stray link breaks packaging, and only there.
#[test]
fn nothing_else_is_a_symlink() {
    assert_eq!(links(), ["backends/postgres/migrations", "backends/sqlite/migrations"]);
}
