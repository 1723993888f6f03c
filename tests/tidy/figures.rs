//! Owns the link between the programmes that tell figures and the page that holds them.

use std::collections::BTreeSet;

use leasehold_conformance::evidence::page::text;
use serde_json::Value;

use crate::tree::{files, read};

const PAGE: &str = "docs/evidence.md";
const KEPT: &str = "docs/evidence.jsonl";
const MAKING: &str = "Evidence::of(";

/// Programmes by their names in the source; one that ends in a variable part, by what stands before it.
fn programmes() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        // The crate that has the type shows its use.
        if file.path.ends_with("src/evidence.rs") || file.path.starts_with("tests/tidy/") {
            continue;
        }
        for rest in file.text.split(MAKING).skip(1) {
            let name = rest.split('"').nth(1).unwrap_or_default();
            names.insert(name.split('{').next().unwrap_or(name).to_owned());
        }
    }
    names
}

#[test]
fn the_page_of_evidence_is_written_by_its_program() {
    let kept = read(KEPT);
    let lines = kept.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    assert!(!lines.is_empty(), "{KEPT} is empty");
    assert_eq!(read(PAGE), text(&lines), "{PAGE} is not what scripts/evidence makes of {KEPT}");
}

#[test]
fn every_programme_that_tells_figures_is_on_the_page() {
    let page = read(PAGE);
    let names = programmes();
    assert!(names.len() > 8 && names.iter().all(|name| name.len() > 3), "{names:?}");
    let absent: Vec<&String> =
        names.iter().filter(|name| !page.contains(&format!("\n## {name}"))).collect();
    assert!(
        absent.is_empty(),
        "not in {PAGE}: {absent:?}; `scripts/evidence run TARGET` adds them"
    );
}
