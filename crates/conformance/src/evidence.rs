//! Owns the line by which a programme of tests tells its figures: one JSON object, printed and, where
//! `LEASEHOLD_EVIDENCE` names a file, added to it. `scripts/evidence` makes `docs/evidence.md` of such
//! files. Refuses to judge: a programme that fails prints no line.

pub mod page;

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::clock;

/// The variable that names the file of a run.
pub const RECORD: &str = "LEASEHOLD_EVIDENCE";
/// What a line begins with.
pub const MARK: &str = "evidence: ";

/// The figures of one programme on one engine; the seconds count from its making.
///
/// ```
/// # use leasehold_conformance::evidence::Evidence;
/// let evidence = Evidence::of("outages", "postgres");
/// // … the programme runs …
/// let line = evidence.count("kills", 100).count("acknowledged and lost", 0).seeds(0..40);
/// assert!(line.text().starts_with("evidence: {"));
/// line.tell();
/// ```
#[derive(Clone, Debug)]
pub struct Evidence {
    programme: String,
    engine: String,
    figures: Vec<(String, u64)>,
    seeds: Option<(u64, u64)>,
    notes: Vec<String>,
    begun: Instant,
}

impl Evidence {
    /// Begins the line of a programme on an engine: `memory`, `sqlite`, `postgres`, or `none`.
    pub fn of(programme: &str, engine: &str) -> Self {
        Self {
            programme: programme.to_owned(),
            engine: engine.to_owned(),
            figures: Vec::new(),
            seeds: None,
            notes: Vec::new(),
            begun: clock::now(),
        }
    }

    /// Adds a figure, named in plain words: `commit replies dropped`.
    #[must_use]
    pub fn count(mut self, what: &str, number: impl TryInto<u64>) -> Self {
        self.figures.push((what.to_owned(), number.try_into().unwrap_or(u64::MAX)));
        self
    }

    /// Names the seeds, from the first to before the second.
    #[must_use]
    pub fn seeds(mut self, seeds: std::ops::Range<u64>) -> Self {
        self.seeds = Some((seeds.start, seeds.end));
        self
    }

    /// Adds what figures cannot say, in one sentence.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// The object of the line.
    pub fn object(&self) -> Value {
        let figures: Vec<Value> = self.figures.iter().map(|(what, n)| json!([what, n])).collect();
        let mut object = Map::new();
        object.insert("programme".into(), json!(self.programme));
        object.insert("engine".into(), json!(self.engine));
        object.insert("figures".into(), Value::Array(figures));
        if let Some((first, end)) = self.seeds {
            object.insert("seeds".into(), json!([first, end]));
        }
        if !self.notes.is_empty() {
            object.insert("notes".into(), json!(self.notes));
        }
        object.insert("seconds".into(), json!(clock::seconds_since(self.begun)));
        Value::Object(object)
    }

    /// The line.
    pub fn text(&self) -> String {
        format!("{MARK}{}", self.object())
    }

    /// Prints the line past any capture, and adds the object to the run's file if there is one.
    pub fn tell(&self) {
        let object = self.object();
        let mut out = std::io::stdout().lock();
        let _closed = writeln!(out, "{MARK}{object}").and_then(|()| out.flush());
        let Some(file) = std::env::var_os(RECORD) else { return };
        let opened = OpenOptions::new().create(true).append(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(format!("{object}\n").as_bytes()));
        if let Err(error) = written {
            panic!("the evidence cannot be kept in {}: {error}", file.to_string_lossy());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_what_was_counted() {
        let line = Evidence::of("outages", "sqlite").count("kills", 7_usize).seeds(3..5);
        let object = line.object();
        assert_eq!(object["figures"], json!([["kills", 7]]));
        assert_eq!(object["seeds"], json!([3, 5]));
        assert!(object["seconds"].is_number());
    }
}
