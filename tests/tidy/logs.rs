//! Owns what a log line of the crates may hold: a message and the ten keys. Whoever keeps the lines of the
//! command, or of a service, finds no key that its own list refuses.

use crate::check;
use crate::tree::{File, take_apart};

/// The keys, and the short names under which the crates write some of them. The reason of a failure joins the
/// message.
const KEYS: [&str; 11] = [
    "error",
    "stopped",
    "trace_id",
    "span_id",
    "job",
    "job_id",
    "queue",
    "worker",
    "worker_id",
    "request_id",
    "namespace",
];

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

#[test]
fn no_crate_logs_under_a_key_of_its_own() {
    let mut lines = 0;
    for file in crate::files().iter().filter(|file| is_code(file)) {
        lines += events(&take_apart(&file.text).code).len();
    }
    assert!(lines > 40, "{lines}");
    check("a log line has ten keys; anything else is said in its message", |file| {
        if !is_code(file) {
            return vec![];
        }
        let parts = take_apart(&file.text);
        let all = events(&parts.code);
        let keys = all.iter().flat_map(|event| keys(event));
        let other = keys.filter(|key| !KEYS.contains(&key.as_str()));
        other.map(|key| format!("{}: {key}", file.path)).collect()
    });
}

#[test]
fn keys_of_every_form_are_found() {
    let code = "tracing::warn!(target: \"\", %error, ?skew, row = fence.row(1, 2), jobs, \"\", a = 1); \
                tracing::info!(\"\"); tracing::error!(\n  %job,\n \"\"\n)";
    let found: Vec<Vec<String>> = events(code).iter().map(|event| keys(event)).collect();
    let wanted = [&["error", "skew", "row", "jobs"][..], &[], &["job"]];
    assert_eq!(found, wanted);
}

fn is_code(file: &File) -> bool {
    let is_src = file.path.starts_with("src/") || file.path.contains("/src/");
    file.is_rust() && is_src && !file.is_test()
}

/// The arguments of every event in code whose literals are left out.
fn events(code: &str) -> Vec<&str> {
    let calls = LEVELS.iter().flat_map(|level| {
        let call = format!("tracing::{level}!(");
        let starts: Vec<usize> = code.match_indices(&call).map(|(at, _)| at + call.len()).collect();
        starts
    });
    let mut starts: Vec<usize> = calls.collect();
    starts.sort_unstable();
    starts.into_iter().filter_map(|start| inside(code.get(start..)?)).collect()
}

/// What lies before the bracket that closes.
fn inside(code: &str) -> Option<&str> {
    let mut depth = 0_i32;
    let end = code.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth < 0
    });
    code.get(..end?.0)
}

/// The keys before the message.
fn keys(event: &str) -> Vec<String> {
    let mut depth = 0_i32;
    let parts = event.split(|c: char| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        c == ',' && depth == 0
    });
    let fields = parts.map(str::trim).take_while(|part| !part.starts_with('"'));
    let named = fields.filter(|part| !part.starts_with("target:") && !part.starts_with("parent:"));
    let key = |part: &str| part.split('=').next().unwrap_or(part).trim().to_owned();
    named.map(|part| key(part).trim_start_matches(['%', '?']).to_owned()).collect()
}
