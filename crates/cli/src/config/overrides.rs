//! Owns the overlay of environment variables. A variable that is no override but nearly reads like
//! one is a note, since it has no effect and is probably a slip.

use super::key::{KEYS, Key, Kind};
use super::problem::{Note, Origin, Problem};
use super::scalar;
use super::secret::Secret;
use super::values::{Config, Value};

pub(super) fn overlay(
    environment: &[(String, String)],
    config: &mut Config,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Note>,
) {
    for (variable, text) in environment {
        if let Some(key) = KEYS.iter().find(|key| key.variable() == *variable) {
            one(key, variable, text, config, problems);
        } else if let Some(near) = near_variable(variable) {
            let text = format!("has no effect; is {near} meant?");
            let origin = Origin::Environment(variable.clone());
            notes.push(Note { origin, key: variable.clone(), text });
        }
    }
}

fn one(
    key: &'static Key,
    variable: &str,
    text: &str,
    config: &mut Config,
    problems: &mut Vec<Problem>,
) {
    let origin = Origin::Environment(variable.to_owned());
    if key.kind == Kind::Secret {
        let secret = Some(text).filter(|text| !text.is_empty());
        let secret = secret.map(|text| Secret::new(text.to_owned(), format!("env:{variable}")));
        return config.set(key, Value::Secret(secret), origin);
    }
    match scalar::parse(key.kind, text) {
        Ok(value) => config.set(key, value, origin),
        // The one text key that may hold a password is not repeated.
        Err(rule) if key.path == "store.url" => problems.push(Problem::at(origin, key.path, rule)),
        Err(rule) => problems.push(Problem::of(origin, key.path, text, rule)),
    }
}

fn near_variable(variable: &str) -> Option<String> {
    let section = variable.split('_').next()?;
    let ours = ["STORE", "WORKER", "PRODUCER", "CIRCUIT", "OBSERVABILITY", "REAPER"];
    if !ours.contains(&section) || variable.len() == section.len() {
        return None;
    }
    let names: Vec<String> = KEYS.iter().map(Key::variable).collect();
    nearest(variable, names.iter().map(String::as_str)).map(str::to_owned)
}

/// Finds the name that a misspelt one was probably meant to be.
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= (name.len() / 4).clamp(1, 4))
        .min()
        .map(|(_, name)| name)
}
