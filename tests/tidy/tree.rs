//! Owns reading the tree: which files there are, and what in a Rust file is code, text or comment.
//! Knows no rule.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
pub(crate) struct File {
    /// From the root, with `/` between folders.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file holds nothing but tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs" || part == "benches")
    }

    /// The file's name without its ending.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap();
        name.split('.').next().unwrap()
    }
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every text file that is ours, in order of path. Symlinks are not followed.
pub(crate) fn files() -> Vec<File> {
    let mut found = Vec::new();
    walk(&root(), "", &mut found);
    assert!(found.len() > 20, "the tree is nowhere near {}", root().display());
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The names of the files below a folder, from that folder, in order.
pub(crate) fn names_below(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    assert!(root().join(folder).is_dir(), "{folder} is missing");
    walk(&root().join(folder), "", &mut found);
    let mut names: Vec<String> = found.into_iter().map(|file| file.path).collect();
    names.retain(|name| name.ends_with(ending));
    names.sort();
    names
}

/// The symlinks of the repository, from its root, in order.
pub(crate) fn links() -> Vec<String> {
    let mut found = Vec::new();
    walk_links(&root(), "", &mut found);
    found.sort();
    found
}

fn walk_links(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() {
            found.push(format!("{prefix}{name}"));
        } else if kind.is_dir() && name != "target" && name != ".git" {
            walk_links(&entry.path(), &format!("{prefix}{name}/"), found);
        }
    }
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let kind = entry.file_type().unwrap();
        let path = format!("{prefix}{name}");
        if kind.is_dir() && name != "target" && name != ".git" {
            walk(&entry.path(), &format!("{path}/"), found);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            found.push(File { path, text });
        }
    }
}

/// A Rust source taken apart. Lines keep their numbers in all parts.
pub(crate) struct Parts {
    /// Without comments, and with the text of literals left out.
    pub(crate) code: String,
    /// The text of each string literal, with the line it begins on.
    pub(crate) literals: Vec<(usize, String)>,
}

pub(crate) fn take_apart(source: &str) -> Parts {
    let chars: Vec<char> = source.chars().collect();
    let mut parts = Parts { code: String::new(), literals: Vec::new() };
    let mut at = 0;
    let mut line = 1;
    while at < chars.len() {
        let end = match (chars[at], chars.get(at + 1)) {
            ('/', Some('/')) => end_of_line(&chars, at),
            ('/', Some('*')) => end_of_block(&chars, at),
            ('r' | 'b', _) if !is_word_before(&chars, at) => match raw_string(&chars, at) {
                Some((from, to, end)) => {
                    parts.literals.push((line, chars[from..to].iter().collect()));
                    parts.code.push_str("\"\"");
                    end
                }
                None => keep(&chars, at, &mut parts.code),
            },
            ('"', _) => {
                let end = end_of_string(&chars, at);
                parts.literals.push((line, chars[at + 1..end - 1].iter().collect()));
                parts.code.push_str("\"\"");
                end
            }
            ('\'', Some('\\')) => end_of_char(&chars, at + 3),
            ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => at + 3,
            _ => keep(&chars, at, &mut parts.code),
        };
        let newlines = chars[at..end].iter().filter(|c| **c == '\n').count();
        if end > at + 1 {
            parts.code.extend(std::iter::repeat_n('\n', newlines)); // a literal's or a comment's
        }
        line += newlines;
        at = end;
    }
    parts
}

fn keep(chars: &[char], at: usize, code: &mut String) -> usize {
    code.push(chars[at]);
    at + 1
}

fn is_word_before(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| at + n)
}

fn end_of_block(chars: &[char], at: usize) -> usize {
    let close = chars[at + 2..].windows(2).position(|pair| pair == ['*', '/']);
    close.map_or(chars.len(), |n| at + n + 4)
}

fn end_of_string(chars: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(chars.len())
}

fn end_of_char(chars: &[char], from: usize) -> usize {
    chars[from..].iter().position(|c| *c == '\'').map_or(chars.len(), |n| from + n + 1)
}

/// The text's bounds and the literal's end, if a raw string begins here.
fn raw_string(chars: &[char], at: usize) -> Option<(usize, usize, usize)> {
    let r = if chars[at] == 'b' { at + 1 } else { at };
    if chars.get(r) != Some(&'r') {
        return None;
    }
    let hashes = chars[r + 1..].iter().take_while(|c| **c == '#').count();
    let from = r + 1 + hashes + 1;
    if chars.get(from - 1) != Some(&'"') {
        return None;
    }
    let closes = |i: &usize| {
        chars[*i] == '"'
            && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    let to = (from..chars.len()).find(closes)?;
    Some((from, to, to + 1 + hashes))
}
