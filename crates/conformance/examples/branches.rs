//! Counts the branches that llvm-cov says were taken, crate by crate, and names those that were not: what
//! `scripts/coverage` runs.
//!
//! `branches ROOT FILE…` reads exports of llvm-cov, and its listings of single files (`.listing`). What only
//! tests compile is not counted: modules of tests,
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
        let text = std::fs::read_to_string(&file)?;
        match file.ends_with(".listing") {
            true => add_listed(&mut branches, root, &text)?,
            false => add(&mut branches, root, &serde_json::from_str(&text)?)?,
        }
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
        // An export without any says nothing; what is listed may have none.
        let is_told = branches.contains_key(&short);
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
        let before = lines_before_tests(Path::new(path))?;
        let told: Vec<&Value> = file["branches"].as_array().into_iter().flatten().collect();
        if told.is_empty() {
            continue;
        }
        let of_file = branches.entry(short).or_default();
        for branch in told {
            let number = |at: usize| branch[at].as_u64().unwrap_or(0);
            if number(0) > before {
                continue;
            }
            let sides = of_file.entry([number(0), number(1), number(2), number(3)]).or_default();
            sides[0] += number(4);
            sides[1] += number(5);
        }
    }
    Ok(())
}

/// Reads a listing: the file's path, then its text with lines like `|  Branch (69:12): [True: 699, False: 2.41k]`.
fn add_listed(branches: &mut Branches, root: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    let (path, listing) = text.split_once('\n').ok_or("a listing without a name")?;
    let short = Path::new(path).strip_prefix(root)?.to_string_lossy().into_owned();
    if is_of_tests(&short) {
        return Ok(());
    }
    let before = lines_before_tests(Path::new(path))?;
    let of_file = branches.entry(short).or_default();
    for line in listing.lines() {
        let Some(branch) = line.trim_start().strip_prefix("|  Branch (") else { continue };
        let (at, sides) = branch.split_once("): [").ok_or("a branch without sides")?;
        let (line, column) = at.split_once(':').ok_or("a branch without a place")?;
        let (line, column): (u64, u64) = (line.parse()?, column.parse()?);
        if line > before {
            continue;
        }
        let taken = of_file.entry([line, column, 0, 0]).or_default();
        // Large numbers are rounded, and only whether there are any is of interest. Where a function was never
        // called the listing has no numbers.
        for (at, name) in ["True: ", "False: "].into_iter().enumerate() {
            let count = sides.split_once(name).map(|(_, count)| count);
            taken[at] += u64::from(
                count.is_some_and(|count| !count.starts_with("0,") && !count.starts_with("0]")),
            );
        }
    }
    Ok(())
}

/// Tests in a file stand at its end; those in a file of their own are only named there.
fn lines_before_tests(path: &Path) -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    Ok(text[..tests].lines().count() as u64)
}

/// Whether a file is compiled for tests alone.
fn is_of_tests(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.clone().any(|part| matches!(part, "tests" | "lab" | "failpoint"))
        || parts.next_back().is_some_and(|file| {
            matches!(file, "tests.rs" | "lab.rs" | "failpoint.rs" | "faults.rs")
        })
}
