//! Owns the link between the verbs as they are declared and the table that crosses them with stale
//! fences: what the suite does not know of cannot be added.

use leasehold_conformance::{JOINED, Presents, VERBS};

use crate::tree::read;

/// The verbs declared below a line, up to the brace that closes its block: all that is async, but short forms of a
/// trait, which come with their body.
fn verbs(path: &str, head: &str) -> Vec<String> {
    let text = read(path);
    let block = text.lines().skip_while(|line| !line.starts_with(head)).skip(1);
    let lines = block.take_while(|line| *line != "}").map(str::trim);
    let names =
        lines.filter_map(|line| line.strip_prefix("async fn ")).filter(|it| it.ends_with(';'));
    names.map(|rest| rest.split(['(', '<']).next().unwrap_or(rest).to_owned()).collect()
}

fn listed(table: &[(&str, Presents)]) -> Vec<String> {
    table.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn every_verb_is_crossed_with_stale_fences() {
    let declared = verbs("crates/core/src/store.rs", "pub trait Store:");
    assert_eq!(declared, listed(&VERBS), "crates/conformance/src/scenarios/crossed.rs");
    for engine in ["sqlite", "postgres"] {
        let path = format!("backends/{engine}/src/joined.rs");
        let text = read(&path);
        let public = text.lines().map(str::trim).filter(|line| line.starts_with("pub "));
        let verbs = public.filter(|line| line.contains("Result<") && line.contains("&self"));
        let names: Vec<String> = verbs.filter_map(name_of).collect();
        for name in names.iter().filter(|name| presents(&text, name)) {
            assert!(listed(&JOINED).contains(name), "{path}: {name} is not crossed");
        }
        for name in listed(&JOINED) {
            assert!(names.contains(&name), "{path} has no {name}");
        }
    }
}

fn name_of(line: &str) -> Option<String> {
    let rest = line.split_once("fn ")?.1;
    Some(rest.split('(').next().unwrap_or(rest).to_owned())
}

/// Whether a joined verb takes what carries a fence, or is one that the table lists anyway.
fn presents(text: &str, name: &str) -> bool {
    let head = text.split(&format!("fn {name}(")).nth(1).unwrap_or_default();
    let head = head.split('{').next().unwrap_or(head);
    ["Fence", "Progress", "Settlement", "RenewRequest"].iter().any(|word| head.contains(word))
}
