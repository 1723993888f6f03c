//! Owns that one run tells all there is to tell: what is read, what values break, and what the machine lacks.

use super::{File, pairs};
use crate::role::{self, Role};

/// What a role is told of a file, each line from the key on.
fn told(role: Role, text: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let file = File::new("whole", text);
    let (_, loaded) = role::load(role, Some(&file.0), &pairs(environment));
    let problems = loaded.err().map_or_else(Vec::new, |problems| problems.0);
    problems.iter().map(|it| format!("{}: {}", it.key, it.rule)).collect()
}

#[track_caller]
fn same(told: &[String], wanted: &[&str]) {
    let fits = |(told, wanted): (&String, &&str)| told.starts_with(wanted);
    assert!(told.len() == wanted.len() && told.iter().zip(wanted).all(fits), "{told:#?}");
}

/// Proves: CFG-1
#[test]
fn one_run_tells_of_every_layer() {
    let text = "worker:\n  count: many\n  heartbeat_ttl: 1s\n  command: [/no/such/program]\n\
                store: {url: 'mysql://h/d'}\n\
                producer: {scan_dir: /no/such/folder, include_globs: ['a[']}\n\
                observability: {log_level: loud}\n";
    let wanted = [
        "worker.count: is not a whole number",
        "worker.heartbeat_ttl: must be at least 5s",
        "observability.log_level: must be one of",
        "store.url: ",
        "worker.command: is no program here",
        "producer.scan_dir: cannot be opened",
        "producer.include_globs: is no glob",
    ];
    same(&told(Role::All, text, &[]), &wanted);
    same(&told(Role::Worker, text, &[]), &wanted[..5]);
}

/// A default in the place of a value that is wrong breaks no rule that anybody could mend.
///
/// Proves: CFG-1
#[test]
fn what_follows_from_another_problem_is_not_told() {
    for (text, wanted) in [
        ("worker: {heartbeat_ttl: 8, brpoplpush_timeout: 20s}", &["worker.heartbeat_ttl: "][..]),
        ("worker: {backoff: {base: 2m, max: 3}}", &["worker.backoff.max: "]),
        (
            "worker: {priorities: [a], queues: 3}",
            &["worker.queues: ", "producer.default_priority: "],
        ),
        ("worker: {priorities: 3}\nproducer: {default_priority: a}", &["worker.priorities: "]),
        ("worker: {completed_list: ~, dead_letter_list: completed}", &["worker.completed_list: "]),
        ("worker: {queues: {high: h, low: ''}}", &["worker.queues: "]),
        ("worker: {comand: [sh]}", &["worker.comand: is no key"]),
        ("wroker: {command: [sh]}", &["wroker: is no key"]),
        ("redis: {addr: 'h:1'}", &["redis: there is no redis section"]),
        ("store: {url: ''}", &["store.url: must name"]),
        ("store: {addr: ~, db: d}", &["store.addr: has no value"]),
        ("producer: {scan_dir: ''}", &["producer.scan_dir: must name"]),
        (
            "observability: {tracing: {enabled: true, endpoint: ~}}",
            &["observability.tracing.endpoint: "],
        ),
        ("worker: [1", &[": is not YAML"]),
        ("worker: 1", &["worker: is a section"]),
    ] {
        let names_one = ["command", "comand"].iter().any(|name| text.contains(name));
        let environment = if names_one { &[][..] } else { &[("WORKER_COMMAND", "sh")] };
        same(&told(Role::All, text, environment), wanted);
    }
}

/// What the environment puts right is known, and a file that cannot be read leaves only what the environment says.
///
/// Proves: CFG-1
#[test]
fn the_environment_is_judged_beside_a_broken_file() {
    let text = "worker: {heartbeat_ttl: 8}";
    let both = [("WORKER_HEARTBEAT_TTL", "6s"), ("WORKER_BRPOPLPUSH_TIMEOUT", "4s")];
    let wanted =
        ["worker.heartbeat_ttl: has no unit", "worker.brpoplpush_timeout: must be at most"];
    same(&told(Role::Producer, text, &both), &wanted);
    let one = [("WORKER_HEARTBEAT_TTL", "1s")];
    same(
        &told(Role::All, "- a", &one),
        &[": must be sections", "worker.heartbeat_ttl: must be at least"],
    );
}
