//! Owns the charts of the pages: each is the one that its lifecycle draws of itself. Knows the marks
//! around them, and nothing of what an edge means.

use std::collections::BTreeSet;
use std::fs;

use crate::none;
use crate::tree::{read, root};

/// With `LEASEHOLD_UPDATE_CONTRACT` set, draws the charts anew instead of complaining about them.
///
/// Proves: WQ-1
#[test]
fn the_charts_are_those_of_the_shipped_lifecycles() {
    let shipped = leasehold_core::Lifecycle::shipped();
    let mut drawn = BTreeSet::new();
    let mut problems = Vec::new();
    for page in ["DESIGN.md", "docs/lifecycles.md"] {
        let text = read(page);
        let mut made = text.clone();
        for lifecycle in &shipped {
            let name = lifecycle.name().as_str();
            if let Some(anew) = with_chart(&made, name, &lifecycle.mermaid()) {
                made = anew;
                drawn.insert(name.to_owned());
            }
        }
        if made != text {
            problems.push(format!("{page} draws another chart"));
            if std::env::var_os("LEASEHOLD_UPDATE_CONTRACT").is_some() {
                fs::write(root().join(page), made).unwrap();
                problems.pop();
            }
        }
    }
    none(&problems, "run LEASEHOLD_UPDATE_CONTRACT=1 cargo test --test tidy");
    assert_eq!(drawn.len(), shipped.len(), "only {drawn:?} are drawn");
}

/// The page with this chart between the lifecycle's marks, where it has them.
fn with_chart(page: &str, name: &str, chart: &str) -> Option<String> {
    let mark = format!("<!-- lifecycle:{name} -->\n");
    let (before, rest) = page.split_once(&mark)?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}{mark}```mermaid\n{chart}```\n<!-- end -->{after}"))
}
