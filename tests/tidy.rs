//! Checks the house itself: sizes, names, where SQL may stand, and that no page promises what no
//! test proves. Owns these rules; knows nothing of what the code does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first thing it cannot read"
)]

#[path = "tidy/charts.rs"]
mod charts;
#[path = "tidy/figures.rs"]
mod figures;
#[path = "tidy/logs.rs"]
mod logs;
#[path = "tidy/proofs.rs"]
mod proofs;
#[path = "tidy/seam.rs"]
mod seam;
#[path = "tidy/sides.rs"]
mod sides;
#[path = "tidy/tree.rs"]
mod tree;

use std::collections::BTreeSet;
use std::fs;

use leasehold::sanitize::{Redaction, redactions};
use proofs::{CONTRACT, by_id, cells, is_id, rows, ticked};
use tree::{File, files, read, root, take_apart};

const RUST_LINES_MAX: usize = 400;
const SQL_LINES_MAX: usize = 95;
const README_LINES_MAX: usize = 220;

/// Names that say nothing about what a file is for.
const EMPTY_NAMES: [&str; 9] =
    ["utils", "util", "common", "helpers", "helper", "types", "models", "misc", "shared"];

/// Where SQL may stand: the backends, and code that speaks to tables of its own.
const SQL_HOMES: [&str; 4] = ["backends/", "tests/", "examples/", "benches/"];

/// Openings of statements, in lower case.
const SQL_STARTS: [&str; 14] = [
    "select ",
    "insert into ",
    "update leasehold",
    "delete from ",
    "create table ",
    "create index ",
    "create view ",
    "create schema ",
    "alter table ",
    "drop table ",
    "begin immediate",
    "pragma ",
    "savepoint ",
    "with recursive ",
];

const WALL: &str = "SystemTime::now";
const STEADY: &str = "Instant::now";

/// Which reading of the machine's clocks may stand where: part of a path, the reading, the reason.
const CLOCK_HOMES: [(&str, &[&str], &str); 4] = [
    ("clock", &[WALL, STEADY], "a clock module"),
    ("src/worker/", &[STEADY], "a lease counts down on the worker's own steady clock"),
    ("src/relay/", &[STEADY], "as the worker's"),
    ("crates/cli/src/bench", &[STEADY], "a bench measures"),
];

/// Where made-up secrets stand, and what for.
const SECRET_SAMPLES: [(&str, &str); 4] = [
    ("crates/core/src/sanitize/", "what is masked"),
    ("crates/conformance/src/scenarios/content.rs", "what is masked in stored rows"),
    ("tests/vault/known.json", "known answers"),
    ("tests/webhook/", "known answers"),
];

fn none(problems: &[String], rule: &str) {
    assert!(problems.is_empty(), "{rule}:\n  {}", problems.join("\n  "));
}

/// Complains about each file for which `wrong` says something.
fn check(rule: &str, wrong: impl Fn(&File) -> Vec<String>) {
    let problems: Vec<String> = files().iter().flat_map(wrong).collect();
    none(&problems, rule);
}

fn lines_with<'a>(file: &File, text: &str, words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let words: Vec<&str> = words.collect();
    let hits = text.lines().enumerate().flat_map(|(at, line)| {
        let hit = words.iter().filter(move |word| line.contains(**word));
        hit.map(move |word| format!("{}:{}: {word}", file.path, at + 1))
    });
    hits.collect()
}

#[test]
fn code_is_told_from_text_and_comments() {
    let source = "let a = \"one \\\" // two\"; // three\n/* four\n*/ let b = br#\"fi\nve\"#;\nlet c: &'a u8 = &'\"';\n'\\'' six";
    let parts = take_apart(source);
    assert_eq!(parts.code, "let a = \"\"; \n\n let b = \"\"\n;\nlet c: &'a u8 = &;\n six");
    let texts: Vec<(usize, &str)> =
        parts.literals.iter().map(|(at, text)| (*at, text.as_str())).collect();
    assert_eq!(texts, [(1, "one \\\" // two"), (3, "fi\nve")]);
}

#[test]
fn no_file_outgrows_a_reader() {
    check("split by idea, not by length", |file| {
        let limit = match file.path.rsplit('.').next() {
            Some("rs") if !file.is_test() => RUST_LINES_MAX,
            Some("sql") if !file.path.starts_with("migrations-") => SQL_LINES_MAX,
            Some("md") if file.path == "README.md" => README_LINES_MAX,
            _ => return vec![],
        };
        let lines = file.lines();
        (lines > limit)
            .then(|| format!("{}: {lines} lines, limit {limit}", file.path))
            .into_iter()
            .collect()
    });
}

#[test]
fn every_file_name_says_what_it_owns() {
    check("a file is named after what it owns", |file| {
        let empty = EMPTY_NAMES
            .iter()
            .any(|name| file.stem() == *name || file.path.split('/').any(|folder| folder == *name));
        empty.then(|| file.path.clone()).into_iter().collect()
    });
}

#[test]
fn every_module_opens_with_what_it_owns() {
    check("a module opens with a paragraph: what it owns, what it refuses to know", |file| {
        let is_ours = file.is_rust() && !file.path.starts_with("tests/hosts/");
        let opens = file.text.starts_with("//!") || file.path.ends_with("tests.rs");
        (is_ours && !opens).then(|| file.path.clone()).into_iter().collect()
    });
}

#[test]
fn sql_stands_only_in_the_backends() {
    check("SQL belongs to backends/ and the migrations", |file| {
        if !file.is_rust() || SQL_HOMES.iter().any(|home| file.path.starts_with(home)) {
            return vec![];
        }
        let starts = |text: &str| {
            let text = text.trim_start().to_lowercase();
            SQL_STARTS.iter().any(|start| text.starts_with(start))
        };
        let hits = take_apart(&file.text).literals.into_iter().filter(|(_, text)| starts(text));
        hits.map(|(line, text)| format!("{}:{line}: {text}", file.path)).collect()
    });
}

#[test]
fn statements_lie_in_files_of_their_own() {
    check("one statement, one .sql file", |file| {
        let is_backend = file.path.starts_with("backends/") && !file.is_test();
        if !is_backend || !file.is_rust() {
            return vec![];
        }
        let is_statement = |text: &str| {
            let text = text.trim_start().to_lowercase();
            ["insert into ", "update leasehold", "delete from leasehold", "create table "]
                .iter()
                .any(|start| text.starts_with(start))
        };
        let hits =
            take_apart(&file.text).literals.into_iter().filter(|(_, text)| is_statement(text));
        hits.map(|(line, text)| format!("{}:{line}: {text}", file.path)).collect()
    });
}

#[test]
fn nothing_is_left_undone_or_switched_off() {
    let words = ["#[ignore", concat!("to", "do!("), concat!("unimple", "mented!("), "assert!(true"];
    check("finish it or take it out", |file| {
        let code = if file.is_rust() { take_apart(&file.text).code } else { String::new() };
        lines_with(file, &code, words.into_iter())
    });
}

#[test]
fn no_file_holds_the_marks_of_a_merge() {
    check("settle the conflict", |file| {
        let marked = |line: &&str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
        let hits = file.text.lines().filter(marked);
        hits.map(|line| format!("{}: {line}", file.path)).collect()
    });
}

/// Proves: SEC-2
#[test]
fn no_secret_stands_in_source_or_defaults() {
    let secrets = |file: &File| -> Vec<String> {
        let is_secret = |it: &Redaction| match it.kind() {
            "pem" => file.text[it.span()].contains(concat!("PRIVATE", " KEY")),
            kind => ["api_key", "jwt"].contains(&kind),
        };
        let found = redactions(&file.text).into_iter().filter(is_secret);
        found.map(|it| format!("{}: {}", file.path, it.kind())).collect()
    };
    let is_sample =
        |file: &File| SECRET_SAMPLES.iter().any(|(place, _)| file.path.starts_with(place));
    check("a secret comes from the environment or a file", |file| {
        if is_sample(file) { vec![] } else { secrets(file) }
    });
    let all = files();
    for (place, why) in SECRET_SAMPLES {
        let mut there = all.iter().filter(|file| file.path.starts_with(place));
        assert!(there.any(|file| !secrets(file).is_empty()), "{place} has none any more: {why}");
    }
}

#[test]
fn only_clocks_read_the_machines_time() {
    check("the time comes from the store's clock", |file| {
        if !file.is_rust() || file.is_test() || file.path.starts_with("examples/") {
            return vec![];
        }
        let homes = CLOCK_HOMES.iter().filter(|(home, ..)| file.path.contains(home));
        let allowed: Vec<&str> = homes.flat_map(|(_, words, _)| words.iter().copied()).collect();
        let words = [WALL, STEADY].into_iter().filter(|word| !allowed.contains(word));
        lines_with(file, &take_apart(&file.text).code, words)
    });
}

#[test]
fn nothing_speaks_of_one_machine() {
    let words = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
        concat!("index.cra", "tes.io"),
        concat!("static.cra", "tes.io"),
        concat!("crates.io-", "index"),
        concat!("pypi", ".org"),
        concat!("registry.", "npmjs"),
        concat!("deb.", "debian.org"),
    ];
    check("no path of a home folder and no registry's host", |file| {
        // The lockfile names its registry, and the sanitizer's samples show what people paste.
        let may = file.path.ends_with("Cargo.lock") || file.path.contains("/sanitize/");
        let text = if may { "" } else { file.text.as_str() };
        lines_with(file, text, words.into_iter())
    });
}

#[test]
fn every_proof_names_a_rule_of_the_contract() {
    let (tests, stray) = proofs::tests(&files());
    none(&stray, "a line `Proves:` stands directly above a test");
    let known: BTreeSet<String> = rows().into_iter().map(|row| row.id).collect();
    let mut problems = Vec::new();
    for test in &tests {
        for id in test.ids.iter().filter(|id| !known.contains(*id)) {
            problems.push(format!("{} proves {id:?}, which {CONTRACT} does not hold", test.name));
        }
    }
    none(&problems, "a test proves rules that exist");
}

/// With `LEASEHOLD_UPDATE_CONTRACT` set, writes the last column instead of complaining about it.
#[test]
fn the_contract_names_exactly_the_tests_that_prove_it() {
    let (tests, _) = proofs::tests(&files());
    if std::env::var_os("LEASEHOLD_UPDATE_CONTRACT").is_some() {
        fs::write(root().join(CONTRACT), proofs::written_anew(&tests)).unwrap();
    }
    let proven = by_id(&tests);
    let mut problems = Vec::new();
    for row in rows() {
        let expected = proven.get(row.id.as_str()).cloned().unwrap_or_default();
        let missing =
            expected.difference(&row.proofs).map(|name| format!("{} lacks {name}", row.id));
        let extra = row.proofs.difference(&expected);
        let extra = extra.map(|name| format!("{} names {name}, which does not prove it", row.id));
        problems.extend(missing.chain(extra));
    }
    none(
        &problems,
        "run LEASEHOLD_UPDATE_CONTRACT=1 cargo test --test tidy, and read the difference",
    );
}

#[test]
fn the_contract_lists_each_rule_once() {
    let mut seen = BTreeSet::new();
    for line in read(CONTRACT).lines().filter(|line| line.starts_with("| ")) {
        let cells = cells(line).unwrap_or_else(|| panic!("not a row: {line}"));
        if !is_id(&cells[0]) {
            continue;
        }
        assert_eq!(cells.len(), 3, "{} has {} columns", cells[0], cells.len());
        assert!(!cells[1].is_empty() && !cells[2].is_empty(), "{} has an empty column", cells[0]);
        assert!(seen.insert(cells[0].clone()), "{} stands twice", cells[0]);
    }
    assert!(seen.len() > 100, "only {} rules", seen.len());
}

#[test]
fn every_test_of_the_field_cases_exists() {
    let absent = proofs::absent("docs/field-cases.md", &files());
    none(&absent, "docs/field-cases.md names tests that exist");
    assert!(proofs::rows_of("docs/field-cases.md") > 15, "the cases are listed");
}

#[test]
fn each_guarantee_of_the_readme_is_proven() {
    let readme = read("README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with("Guarantees"));
    let section = section.unwrap_or_else(|| panic!("README.md has no section `## Guarantees`"));
    let (tests, _) = proofs::tests(&files());
    let known: BTreeSet<&str> = tests.iter().map(|test| test.name.as_str()).collect();
    let table = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut guarantees = 0;
    let mut problems = Vec::new();
    for line in table {
        guarantees += 1;
        let names: Vec<&str> = ticked(line).filter(|name| name.contains("::")).collect();
        if names.is_empty() {
            problems.push(format!("no proof: {line}"));
        }
        let unknown = names.into_iter().filter(|name| !known.contains(name));
        problems.extend(unknown.map(|name| format!("{name} proves nothing: {line}")));
    }
    assert!(guarantees > 0, "the section `## Guarantees` holds no table");
    none(&problems, "each guarantee names the scenario that proves it");
}

#[test]
fn each_example_is_named_in_the_readme() {
    let readme = read("README.md");
    let mut problems = Vec::new();
    let files = files();
    let examples = files.iter().filter_map(|file| file.path.strip_prefix("examples/"));
    for example in examples {
        let name = example.split('/').next().unwrap_or(example).trim_end_matches(".rs").to_owned();
        if !readme.contains(&name) {
            problems.push(name);
        }
    }
    none(&problems, "the README names every example");
}
