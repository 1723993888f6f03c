//! Adds lines of evidence to those that are kept, and writes the page of them: what `scripts/evidence` runs.
//!
//! `evidence ROOT COMMIT PROFILE FILE…` reads `ROOT/docs/evidence.jsonl` and the files, whose lines take the
//! place of older ones of the same programme, engine and profile.

use std::error::Error;
use std::path::Path;

use leasehold_conformance::evidence::page::{is_same, text};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("evidence ROOT COMMIT PROFILE FILE…");
    let (root, commit, profile) = (next()?, next()?, next()?);
    let docs = Path::new(&root).join("docs");
    let kept = docs.join("evidence.jsonl");
    let mut lines = if kept.exists() { lines_of(&kept)? } else { Vec::new() };
    for file in arguments {
        for mut line in lines_of(Path::new(&file))? {
            line["commit"] = json!(commit);
            line["profile"] = json!(profile);
            lines.retain(|old| !is_same(old, &line));
            lines.push(line);
        }
    }
    let key = |line: &Value| {
        ["programme", "profile", "engine"].map(|name| line[name].as_str().unwrap_or("").to_owned())
    };
    lines.sort_by_key(key);
    let all: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(kept, all)?;
    std::fs::write(docs.join("evidence.md"), text(&lines))?;
    Ok(())
}

fn lines_of(file: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let lines = text.lines().map(|line| serde_json::from_str(line).map_err(Into::into));
    lines.collect()
}
