//! Owns how kept lines of evidence become `docs/evidence.md`: a table for each programme. Refuses to judge
//! a figure, and to know where the lines are kept.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

/// The page's first lines.
pub const HEAD: &str = "# Evidence\n\n\
<!-- Written by `scripts/evidence` from docs/evidence.jsonl, never by hand. -->\n\n\
What the programmes of tests told of themselves when they last passed: each line of figures was printed by the\n\
programme that is named, on the commit that is named. `scripts/evidence` runs them again and writes this page anew.\n\
*ci* is the size that every change is tested at, *nightly* that of `scripts/nightly`.\n";

/// The page of all lines; the latter of two of one programme, engine and profile stands.
pub fn text(lines: &[Value]) -> String {
    let mut programmes: BTreeMap<&str, BTreeMap<(&str, &str), &Value>> = BTreeMap::new();
    for line in lines {
        let of = programmes.entry(word(line, "programme")).or_default();
        of.insert((word(line, "profile"), word(line, "engine")), line);
    }
    let mut out = String::from(HEAD);
    for (name, columns) in &programmes {
        let _ = writeln!(out, "\n## {name}\n");
        add_table(&mut out, &columns.values().copied().collect::<Vec<_>>());
        columns.values().for_each(|line| add_notes(&mut out, line));
    }
    out
}

/// Whether two lines are of one programme, engine and profile.
pub fn is_same(one: &Value, other: &Value) -> bool {
    ["programme", "engine", "profile"].iter().all(|name| one[name] == other[name])
}

fn word<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or("")
}

fn figures(line: &Value) -> Vec<(&str, u64)> {
    let pairs = line["figures"].as_array().into_iter().flatten();
    pairs.filter_map(|pair| Some((pair[0].as_str()?, pair[1].as_u64()?))).collect()
}

fn add_table(out: &mut String, columns: &[&Value]) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in columns.iter().flat_map(|line| figures(line)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let head = columns.iter().map(|line| match word(line, "engine") {
        "none" => word(line, "profile").to_owned(),
        engine => format!("{engine}, {}", word(line, "profile")),
    });
    add_row(out, "", head);
    let _ = writeln!(out, "|---|{}", "--:|".repeat(columns.len()));
    for name in names {
        let cell = |line: &&Value| {
            let found = figures(line).into_iter().find(|(of, _)| *of == name);
            found.map_or_else(|| "-".to_owned(), |(_, number)| grouped(number))
        };
        add_row(out, name, columns.iter().map(cell));
    }
    let seeds = |line: &&Value| match line["seeds"].as_array().map(Vec::as_slice) {
        Some([first, end]) => format!("{first} to {}", end.as_u64().unwrap_or(1).saturating_sub(1)),
        _ => "-".to_owned(),
    };
    if columns.iter().any(|line| line["seeds"].is_array()) {
        add_row(out, "seeds", columns.iter().map(seeds));
    }
    add_row(out, "seconds", columns.iter().map(|line| line["seconds"].to_string()));
    add_row(out, "commit", columns.iter().map(|line| word(line, "commit").to_owned()));
}

fn add_row(out: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
}

fn add_notes(out: &mut String, line: &Value) {
    let notes: Vec<&str> =
        line["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !notes.is_empty() {
        let _ = writeln!(out, "\n- {}", notes.join("\n- "));
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_programme_has_a_column_for_each_engine() {
        let line = |engine: &str, kills: u64| {
            json!({
                "programme": "outages", "engine": engine, "profile": "ci", "commit": "abc", "seconds": 1.5,
                "figures": [["kills", kills]], "seeds": [1, 4], "notes": ["one note"],
            })
        };
        let page = text(&[line("sqlite", 7), line("postgres", 1_234_567), line("sqlite", 8)]);
        assert!(page.starts_with(HEAD));
        let table = "## outages\n\n|  | postgres, ci | sqlite, ci |\n|---|--:|--:|\n\
                     | kills | 1,234,567 | 8 |\n| seeds | 1 to 3 | 1 to 3 |\n\
                     | seconds | 1.5 | 1.5 |\n| commit | abc | abc |\n\n- one note\n";
        assert!(page.contains(table), "{page}");
        assert!(is_same(&line("sqlite", 1), &line("sqlite", 2)));
        assert!(!is_same(&line("sqlite", 1), &line("memory", 1)));
    }
}
