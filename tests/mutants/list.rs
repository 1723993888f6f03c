//! Owns the lists of alterations, as the engines' folders hold them, and how one is made. Refuses to know
//! whether anybody notices.

use std::fs;
use std::path::{Path, PathBuf};

/// One alteration of one statement.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) engine: &'static str,
    /// What the store calls the statement.
    pub(crate) statement: String,
    pub(crate) name: String,
    /// Why nothing notices, where that is right.
    pub(crate) reason: Option<String>,
    /// The file that holds the statement.
    file: String,
    edits: Vec<Edit>,
}

#[derive(Clone, Debug)]
struct Edit {
    /// Which of several; `None`: there is one.
    nth: Option<usize>,
    old: String,
    new: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every alteration of an engine.
pub(crate) fn of(engine: &'static str) -> Vec<Mutant> {
    let path = root().join("backends").join(engine).join("tests/mutants.txt");
    let text = fs::read_to_string(path).expect("the list");
    let blocks = text.split("\n\n").map(str::trim_start);
    blocks
        .filter(|block| !block.is_empty() && !block.starts_with('#'))
        .map(|block| read(engine, block))
        .collect()
}

fn read(engine: &'static str, block: &str) -> Mutant {
    let mut lines = block.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(' ').collect();
    let (file, statement, name) = match head[..] {
        [file, name] => (format!("sql/{file}"), file.trim_end_matches(".sql"), name),
        [file, statement, name] => (file.to_owned(), statement, name),
        _ => panic!("a head is FILE NAME or FILE STATEMENT NAME: {block}"),
    };
    let mut mutant = Mutant {
        engine,
        statement: statement.to_owned(),
        name: name.to_owned(),
        reason: None,
        file: format!("backends/{engine}/src/{file}"),
        edits: Vec::new(),
    };
    for line in lines {
        let (mark, text) = line.split_once(' ').unwrap_or((line, ""));
        match (mark, mutant.edits.last_mut()) {
            ("?", _) => mutant.reason = Some(text.to_owned()),
            ("+", Some(edit)) => text.clone_into(&mut edit.new),
            (mark, _) => {
                let nth = mark.strip_prefix('-').unwrap_or_else(|| panic!("not an edit: {line}"));
                let nth = (!nth.is_empty()).then(|| nth.parse().expect("a number"));
                mutant.edits.push(Edit { nth, old: text.to_owned(), new: String::new() });
            }
        }
    }
    assert!(!mutant.edits.is_empty(), "nothing is altered: {block}");
    mutant
}

impl Mutant {
    pub(crate) fn full_name(&self) -> String {
        format!("{}::{}::{}", self.engine, self.statement, self.name)
    }

    /// The altered text.
    ///
    /// # Errors
    /// When the file does not hold what is to be altered.
    pub(crate) fn altered(&self) -> Result<String, String> {
        let path: PathBuf = root().join(&self.file);
        let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", self.file))?;
        let is_sql = self.file.ends_with(".sql");
        let says = |line: &&str| !is_sql || !line.starts_with("--");
        let mut text: String = text.lines().filter(says).map(|it| format!("{it}\n")).collect();
        for edit in &self.edits {
            let found: Vec<usize> = text.match_indices(&edit.old).map(|(at, _)| at).collect();
            let at = match (edit.nth, &found[..]) {
                (None, [at]) => *at,
                (Some(nth), found) if nth >= 1 && nth <= found.len() => found[nth - 1],
                _ => {
                    let why = format!("{:?} stands there {} times", edit.old, found.len());
                    return Err(format!("{} in {}: {why}", self.full_name(), self.file));
                }
            };
            if is_sql {
                text.replace_range(at..at + edit.old.len(), &edit.new);
            } else {
                // What is made in code is another text as a whole.
                text.clone_from(&edit.new);
            }
        }
        Ok(text)
    }

    /// The edits, for people.
    pub(crate) fn shown(&self) -> String {
        let edits = self.edits.iter().map(|edit| match edit.new.trim() {
            "" => format!("without `{}`", edit.old.trim()),
            new => format!("`{}` → `{new}`", edit.old.trim()),
        });
        edits.collect::<Vec<_>>().join(", ").replace('|', "\\|")
    }
}
