//! Owns the overlay of a file over the defaults: which names it may hold, which value fits which
//! key. Refuses to know how YAML is read or a text becomes a number.

use std::io::{ErrorKind, Read};
use std::path::Path;

use leasehold_sqlite::mask_url;

use super::key::{KEYS, Key, Kind};
use super::overrides::nearest;
use super::problem::{Origin, Problem};
use super::scalar;
use super::secret::Secret;
use super::values::{Config, Value};
use super::yaml::{self, Node, Place};

/// The longest file that is read, in bytes.
const BYTES_MAX: usize = 1024 * 1024;

/// What stands in the place of a section that another program has.
const REDIS: &str = "there is no redis section: write `store:` with a `url:`, such as \
    `url: postgres://user@host/database` or `url: sqlite:jobs.db`; addr, username, db, \
    pool_size_multiplier and dial_timeout keep their names there, and the password is \
    `password: env:NAME`";

pub(super) fn overlay(
    path: &Path,
    environment: &[(String, String)],
    config: &mut Config,
    problems: &mut Vec<Problem>,
) {
    let name = path.display().to_string();
    let at = |(line, column): Place| Origin::File { path: name.clone(), line, column };
    let bytes = match beginning(path) {
        Ok(bytes) => bytes,
        // Whoever names a file means it: the defaults would scan another folder into another store.
        Err(error) => {
            let why = match error.kind() {
                ErrorKind::NotFound => {
                    "there is no such file; without --config the defaults and the environment hold"
                        .to_owned()
                }
                _ => format!("cannot be read: {error}"),
            };
            problems.push(Problem::at(at((1, 1)), "", why));
            return;
        }
    };
    match tree(&bytes) {
        Ok(Node::Map { entries, .. }) => {
            let mut reading = Reading { at: &at, environment, config, problems };
            for (key, place, node) in entries {
                reading.entry(&key, place, node);
            }
        }
        Ok(other) => {
            problems.push(Problem::at(at(other.place()), "", "must be sections with keys in them"));
        }
        Err((place, why)) => problems.push(Problem::at(at(place), "", why)),
    }
}

/// As much of a file as is read, and a byte more where there is one: it need not have an end.
fn beginning(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn tree(bytes: &[u8]) -> Result<Node, yaml::Fault> {
    if bytes.len() > BYTES_MAX {
        return Err(((1, 1), format!("is too long: at most {BYTES_MAX} bytes are read")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        ((line, 1), "is not UTF-8 text".to_owned())
    })?;
    yaml::parse(text.strip_prefix('\u{feff}').unwrap_or(text))
}

struct Reading<'a> {
    at: &'a dyn Fn(Place) -> Origin,
    environment: &'a [(String, String)],
    config: &'a mut Config,
    problems: &'a mut Vec<Problem>,
}

impl Reading<'_> {
    fn entry(&mut self, path: &str, place: Place, node: Node) {
        if path == "redis" {
            self.problems.push(Problem::at((self.at)(place), "redis", REDIS));
            return;
        }
        if let Some(key) = Key::find(path) {
            return self.value(key, node);
        }
        let inside = format!("{path}.");
        if !KEYS.iter().any(|key| key.path.starts_with(&inside)) {
            return self.unknown(path, place);
        }
        match node {
            Node::Map { entries, .. } => {
                for (name, place, node) in entries {
                    self.entry(&format!("{inside}{name}"), place, node);
                }
            }
            ref empty if empty.is_null() => {}
            other => self.problems.push(Problem::at(
                (self.at)(other.place()),
                path,
                "is a section: its keys stand below it, further to the right",
            )),
        }
    }

    fn unknown(&mut self, path: &str, place: Place) {
        let known = KEYS.iter().flat_map(|key| prefixes(key.path));
        let hint = nearest(path, known).map_or_else(
            || {
                "is no key of this configuration; `leasehold config show --defaults` lists them"
                    .to_owned()
            },
            |near| format!("is no key of this configuration; is {near} meant?"),
        );
        self.problems.push(Problem::at((self.at)(place), path, hint));
    }

    fn value(&mut self, key: &'static Key, node: Node) {
        let origin = (self.at)(node.place());
        let shown = match &node {
            Node::Scalar { text, .. } => text.clone(),
            Node::List { .. } => "a list".to_owned(),
            Node::Map { .. } => "a mapping".to_owned(),
        };
        match self.read(key, node) {
            Ok(value) => self.config.set(key, value, origin),
            Err(rule) if key.kind == Kind::Secret => {
                self.problems.push(Problem::at(origin, key.path, rule));
            }
            Err(rule) => {
                self.problems.push(Problem::of(origin, key.path, &mask_url(&shown), rule));
            }
        }
    }

    fn read(&self, key: &Key, node: Node) -> Result<Value, String> {
        if node.is_null() {
            return Err(
                "has no value: leave the key out, or write \"\" for an empty text".to_owned()
            );
        }
        match (key.kind, node) {
            (Kind::List, Node::List { items, .. }) => {
                items.iter().map(entry).collect::<Result<_, _>>().map(Value::List)
            }
            (Kind::Map, Node::Map { entries, .. }) => entries
                .iter()
                .map(|(name, _, node)| Ok((scalar::item(name)?, entry(node)?)))
                .collect::<Result<_, _>>()
                .map(Value::Map),
            (Kind::List, _) => Err("must be a list, such as [a, b]".to_owned()),
            (Kind::Map, _) => Err("must be a mapping of names to texts".to_owned()),
            (Kind::Secret, Node::Scalar { text, .. }) if text.is_empty() => Ok(Value::Secret(None)),
            (Kind::Secret, Node::Scalar { text, .. }) => {
                Secret::follow(&text, self.environment).map(|secret| Value::Secret(Some(secret)))
            }
            (kind, Node::Scalar { quoted: true, .. }) if !scalar::takes_quotes(kind) => {
                Err("must stand without quotes".to_owned())
            }
            (kind, Node::Scalar { text, .. }) => scalar::parse(kind, &text),
            _ => Err("must be a single value".to_owned()),
        }
    }
}

fn entry(node: &Node) -> Result<String, String> {
    match node {
        Node::Scalar { text, .. } if !node.is_null() => scalar::item(text),
        _ => Err("holds an entry that is not a text".to_owned()),
    }
}

/// Gives a key and the sections that it lies in.
pub(super) fn prefixes(path: &'static str) -> impl Iterator<Item = &'static str> {
    let sections = path.match_indices('.').filter_map(move |(end, _)| path.get(..end));
    sections.chain(std::iter::once(path))
}
