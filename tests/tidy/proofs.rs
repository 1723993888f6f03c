//! Owns the link between the contract's ids and the tests that prove them. Knows the form of both,
//! and nothing of what any rule means.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{File, read};

pub(crate) const CONTRACT: &str = "docs/contract.md";
pub(crate) const NOT_BUILT: &str = "not built yet";
const MARK: &str = "/// Proves:";
const SCENARIOS: &str = "crates/conformance/src/";

/// A row of the contract.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) proofs: BTreeSet<String>,
    /// What the last column says beyond its proofs.
    pub(crate) remark: String,
}

/// A test that names the ids which it proves.
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) ids: Vec<String>,
}

/// Reads the rows `| Id | rule | proof |`.
pub(crate) fn rows() -> Vec<Row> {
    read(CONTRACT).lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let cells = cells(line)?;
    let [id, _, last] = cells.as_slice() else { return None };
    is_id(id).then(|| Row {
        id: id.to_string(),
        proofs: ticked(last).filter(|name| is_proof(name)).map(str::to_owned).collect(),
        remark: last
            .split("partly:")
            .nth(1)
            .map(|rest| format!("partly:{rest}"))
            .unwrap_or_default(),
    })
}

fn is_proof(name: &str) -> bool {
    name.contains("::") || name.ends_with(".rs")
}

/// The cells of a table's line; an escaped bar stays within its cell.
pub(crate) fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?.replace("\\|", "\u{1}");
    Some(inner.split('|').map(|cell| cell.trim().replace('\u{1}', "\\|")).collect())
}

/// What stands between backticks.
pub(crate) fn ticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Letters (a digit may follow), a dash, a number: `WQ-3`, `P4-1`.
pub(crate) fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(area, number)| {
        area.starts_with(|c: char| c.is_ascii_uppercase())
            && area.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
    })
}

/// Finds every function under a `Proves` line; a line that stands elsewhere is in the second list.
pub(crate) fn tests(files: &[File]) -> (Vec<Test>, Vec<String>) {
    let (mut found, mut stray) = (Vec::new(), Vec::new());
    for file in files.iter().filter(|file| file.is_rust() && !file.path.starts_with("tests/tidy")) {
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(list) = line.strip_prefix(MARK) else { continue };
            match function_below(&lines[at + 1..]) {
                Some(function) => found.push(Test {
                    name: name(&file.path, function),
                    ids: list.split(',').map(|id| whole_id(id.trim())).collect(),
                }),
                None => stray.push(format!("{}:{}", file.path, at + 1)),
            }
        }
    }
    (found, stray)
}

/// `PRM-2.5` cites the fifth point of PRM-2.
fn whole_id(id: &str) -> String {
    id.split('.').next().unwrap().to_owned()
}

/// The function that these comments and attributes belong to.
fn function_below<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let line = lines.iter().find(|line| !line.starts_with("//") && !line.starts_with("#["))?;
    let (before, after) = line.split_once("fn ")?;
    let is_head = before.split_whitespace().all(|word| word == "async" || word.starts_with("pub"));
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    is_head.then(|| &after[..end])
}

/// A scenario and an integration test go by their own names, unit tests by that of their file.
fn name(path: &str, function: &str) -> String {
    match path.strip_prefix(SCENARIOS) {
        Some(rest) if !rest.contains("tests") => format!("{}::{function}", group(rest)),
        None if path.starts_with("tests/") => format!("{path}::{function}"),
        _ => path.to_owned(),
    }
}

/// A scenario's group is its module below the suite, without a folder `scenarios`.
fn group(path: &str) -> String {
    let module = path.trim_end_matches(".rs").trim_end_matches("/mod");
    module.trim_start_matches("scenarios/").replace('/', "::")
}

/// Which tests prove which id.
pub(crate) fn by_id(tests: &[Test]) -> BTreeMap<&str, BTreeSet<String>> {
    let mut map: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for test in tests {
        for id in &test.ids {
            map.entry(id).or_default().insert(test.name.clone());
        }
    }
    map
}

/// The contract's text with its last column as the tests have it.
pub(crate) fn written_anew(tests: &[Test]) -> String {
    let proofs = by_id(tests);
    let mut text = String::new();
    for line in read(CONTRACT).lines() {
        match (row(line), cells(line)) {
            (Some(row), Some(cells)) => {
                let last = last_cell(proofs.get(row.id.as_str()), &row.remark);
                text.push_str(&format!("| {} | {} | {last} |\n", row.id, cells[1]));
            }
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    text
}

fn last_cell(proofs: Option<&BTreeSet<String>>, remark: &str) -> String {
    let Some(proofs) = proofs else { return NOT_BUILT.to_owned() };
    let mut list: Vec<String> = proofs.iter().map(|name| format!("`{name}`")).collect();
    list.extend((!remark.is_empty()).then(|| remark.to_owned()));
    list.join(", ")
}

/// What a page's table of tests names that does not exist: `file.rs`, `file.rs::function`, or
/// `group::function` for a scenario.
pub(crate) fn absent(page: &str, files: &[File]) -> Vec<String> {
    let text = read(page);
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let names = rows.flat_map(ticked).filter(|name| is_proof(name));
    names.filter(|name| !exists(name, files)).map(str::to_owned).collect()
}

fn exists(name: &str, files: &[File]) -> bool {
    let (place, function) = match name.split_once(".rs::") {
        Some((path, function)) => (format!("{path}.rs"), Some(function)),
        None if name.ends_with(".rs") => (name.to_owned(), None),
        None => (String::new(), name.rsplit("::").next()),
    };
    let holds = |file: &File| match function {
        None => file.path == place,
        Some(function) if place.is_empty() => {
            let rest = file.path.strip_prefix(SCENARIOS).unwrap_or_default();
            format!("{}::{function}", group(rest)) == name
                && file.text.contains(&format!("fn {function}("))
        }
        Some(function) => file.path == place && file.text.contains(&format!("fn {function}(")),
    };
    files.iter().any(holds)
}

/// How many lines of a page's tables name tests.
pub(crate) fn rows_of(page: &str) -> usize {
    read(page).lines().filter(|line| line.starts_with("| ") && line.contains('`')).count()
}
