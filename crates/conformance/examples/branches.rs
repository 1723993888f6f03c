//! Counts the branches that llvm-cov says were taken, crate by crate, and names those that were not: what
//! `scripts/coverage` runs.
//!
//! `branches ROOT FILE…` reads exports of llvm-cov. What only tests compile is not counted: modules of tests,
//! and the lab. A branch has two sides; one of several instances of a generic function counts for all. Files
//! of whose branches the exports say nothing are named too.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

use leasehold_conformance::evidence::Evidence;
use serde_json::Value;

/// The measured crates and where their sources lie.
const CRATES: [(&str, &str); 3] = [
    ("leasehold-core", "crates/core/src/"),
    ("leasehold-sqlite", "backends/sqlite/src/"),
    ("leasehold-postgres", "backends/postgres/src/"),
];

/// Where a branch stands: first line and column, last line and column.
type At = [u64; 4];

/// How often each side was taken, by file and place.
type Branches = BTreeMap<String, BTreeMap<At, [u64; 2]>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().ok_or("branches ROOT FILE…")?;
    let root = Path::new(&root);
    let mut branches = Branches::new();
    let mut is_incomplete = false;
    for file in arguments {
        // scripts/coverage leaves this beside the exports.
        is_incomplete |= Path::new(&file).with_file_name("incomplete").exists();
        let export: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        add(&mut branches, root, &export)?;
    }
    let mut evidence = Evidence::of("branch coverage", "none");
    let mut notes = Vec::new();
    if is_incomplete {
        notes
            .push("a test failed or was cut short: more may be taken than is told here".to_owned());
    }
    for (name, place) in CRATES {
        let files = branches.iter().filter(|(path, _)| path.starts_with(place));
        let (mut all, mut taken) = (0, 0);
        for (path, branches) in files {
            all += branches.len() * 2;
            let of_file = branches.values().flatten().filter(|count| **count > 0).count();
            taken += of_file;
            if of_file < branches.len() * 2 {
                notes.push(missing(path, branches));
            }
        }
        if all == 0 {
            return Err(format!("no branch of {name} is known").into());
        }
        let percent = taken * 1_000 / all;
        println!("{name}: {taken} of {all} sides of branches, {}.{} %", percent / 10, percent % 10);
        evidence = evidence.count(&format!("{name}: sides of branches"), all);
        evidence = evidence.count(&format!("{name}: taken"), taken);
        evidence = evidence.count(&format!("{name}: taken of a thousand"), percent);
    }
    notes.extend(untold(root, &branches)?);
    for note in notes {
        println!("{note}");
        evidence = evidence.note(note);
    }
    evidence.tell();
    Ok(())
}

/// The lines of a file whose branches have a side that was not taken.
fn missing(path: &str, branches: &BTreeMap<At, [u64; 2]>) -> String {
    let open = branches.iter().filter(|(_, sides)| sides.contains(&0));
    let lines: BTreeSet<u64> = open.map(|(at, _)| at[0]).collect();
    let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
    format!("`{path}`: a side is not taken in line {}", lines.join(", "))
}

/// The files whose branches no export tells of: llvm-cov ends by force over some.
fn untold(root: &Path, branches: &Branches) -> Result<Vec<String>, Box<dyn Error>> {
    let mut all = Vec::new();
    for (_, place) in CRATES {
        sources(&root.join(place), &mut all)?;
    }
    let mut notes = Vec::new();
    for path in all {
        let short = path.strip_prefix(root)?.to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path)?;
        let is_told = branches.get(&short).is_some_and(|of_file| !of_file.is_empty());
        if !is_told && !is_of_tests(&short) && has_branches(&text) {
            notes.push(format!(
                "`{short}`: llvm-cov cannot tell of its branches, so none is counted"
            ));
        }
    }
    Ok(notes)
}

fn has_branches(text: &str) -> bool {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let words = [" if ", " while ", " && ", " || "];
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.into_iter().any(|line| words.iter().any(|word| format!(" {line}").contains(word)))
}

fn sources(folder: &Path, all: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    entries.sort_unstable();
    for path in entries {
        if path.is_dir() {
            sources(&path, all)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
    Ok(())
}

fn add(branches: &mut Branches, root: &Path, export: &Value) -> Result<(), Box<dyn Error>> {
    let files = export["data"][0]["files"].as_array().ok_or("no export of llvm-cov")?;
    for file in files {
        let path = file["filename"].as_str().ok_or("a file without a name")?;
        let Ok(short) = Path::new(path).strip_prefix(root) else { continue };
        let short = short.to_string_lossy().into_owned();
        if is_of_tests(&short) {
            continue;
        }
        let text = std::fs::read_to_string(path)?;
        // Tests in the file stand at its end; those in a file of their own are only named here.
        let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let before = text[..tests].lines().count();
        let of_file = branches.entry(short).or_default();
        for branch in file["branches"].as_array().into_iter().flatten() {
            let number = |at: usize| branch[at].as_u64().unwrap_or(0);
            if number(0) > before as u64 {
                continue;
            }
            let sides = of_file.entry([number(0), number(1), number(2), number(3)]).or_default();
            sides[0] += number(4);
            sides[1] += number(5);
        }
    }
    Ok(())
}

/// Whether a file is compiled for tests alone.
fn is_of_tests(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.clone().any(|part| matches!(part, "tests" | "lab" | "failpoint"))
        || parts.next_back().is_some_and(|file| {
            matches!(file, "tests.rs" | "lab.rs" | "failpoint.rs" | "faults.rs")
        })
}
