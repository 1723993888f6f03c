//! Owns the book of plans: what the planner makes of each statement on a crowded schema with statistics and
//! its own settings, written as Markdown into the file that `LEASEHOLD_PLAN_FILE` names.

use std::fmt::Write as _;

use serde_json::Value;

use crate::crowd::rows;

/// The file, where one is asked for.
pub(crate) fn wanted() -> Option<String> {
    std::env::var("LEASEHOLD_PLAN_FILE").ok()
}

/// Writes one entry for each statement.
pub(crate) fn write(path: &str, version: &str, plans: &[(String, Value)]) {
    let mut text = format!(
        "# Plans on PostgreSQL\n\n\
         Written by `scripts/plans`, never by hand. Server {version}; {} jobs, as many ended ones in \
         proportion and every other table that grows filled alike, after `vacuum analyze`, with the \
         planner's defaults. Each statement was run for a hundred items and rolled back: *rows* are the \
         rows that its scans looked at, *pages* the pages of 8 KiB that it touched, in memory or not.\n",
        rows() * 5 + 1_000,
    );
    for (name, plan) in plans {
        let pages = number(plan, "Shared Hit Blocks") + number(plan, "Shared Read Blocks");
        let (mut shape, mut looked_at) = (String::new(), 0.0);
        draw(plan, 0, &mut shape, &mut looked_at);
        write!(text, "\n## {name}\n\n{looked_at} rows, {pages} pages\n\n```text\n{shape}```\n")
            .expect("a string takes all");
    }
    std::fs::write(path, text).expect("the book of plans");
}

fn number(node: &Value, name: &str) -> f64 {
    node[name].as_f64().unwrap_or(0.0)
}

/// A condition whose lists of a hundred ids are told as such.
fn without_lists(condition: &str) -> String {
    let mut parts = condition.split('\'');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let list = part.len() > 80 && part.starts_with('{');
        text.push('\'');
        text.push_str(if list { "{…}" } else { part });
    }
    text
}

/// A node on a line, what feeds it indented below.
fn draw(node: &Value, depth: usize, shape: &mut String, looked_at: &mut f64) {
    let word = |name: &str| node[name].as_str();
    let mut line = word("Node Type").unwrap_or("?").to_owned();
    if line == "ModifyTable" {
        line = word("Operation").unwrap_or("?").to_owned();
    }
    for (name, before) in [
        ("Relation Name", " on "),
        ("Index Name", " by "),
        ("CTE Name", " of "),
        ("Function Name", " of "),
        ("Subplan Name", " as "),
    ] {
        if let Some(found) = word(name) {
            write!(line, "{before}{}", found.trim_start_matches("CTE "))
                .expect("a string takes all");
        }
    }
    if let Some(condition) = word("Index Cond") {
        write!(line, "  {}", without_lists(condition)).expect("a string takes all");
    }
    let loops = number(node, "Actual Loops");
    if loops == 0.0 {
        line.push_str("  (never needed)");
    }
    writeln!(shape, "{:width$}{line}", "", width = 2 * depth).expect("a string takes all");
    if word("Relation Name").is_some() && word("Node Type") != Some("ModifyTable") {
        let each = ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"];
        *looked_at += each.iter().map(|name| number(node, name)).sum::<f64>() * loops;
    }
    for below in node["Plans"].as_array().into_iter().flatten() {
        draw(below, depth + 1, shape, looked_at);
    }
}
