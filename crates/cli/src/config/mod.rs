//! Owns the configuration of the roles: which keys there are, where a value may come from, and
//! which values go together. Refuses to know what a role does with them.
//!
//! The order of precedence is environment, file, default. Each value keeps its origin, every
//! problem is reported at once, and nothing is guessed: an unknown key, a key given twice, a
//! number in quotes or a duration without a unit is an error that says where and what to write.

pub mod command;
mod duration;
mod file;
mod key;
mod overrides;
mod problem;
mod rules;
mod scalar;
mod secret;
mod show;
mod values;
mod yaml;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use key::{Effect, KEYS, Key, Kind};
pub use problem::{Note, Origin, Problem, Problems};
pub use secret::Secret;
pub use show::{defaults, diagnostics, json, yaml as show_yaml};
pub use values::{Config, Value};

/// A configuration that passed every rule, and what is worth knowing of it.
#[derive(Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What has no effect, or looks like a slip without being one for certain.
    pub notes: Vec<Note>,
}

/// Loads the defaults, the file over them, and the environment over both.
///
/// A file that is named must be there and be readable; without a name the defaults and the environment hold.
///
/// # Errors
/// Every problem found, each with its key, value, rule and place.
pub fn load(path: Option<&Path>, environment: &[(String, String)]) -> Result<Loaded, Problems> {
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    let mut config = Config::with_defaults();
    if let Some(path) = path {
        file::overlay(path, environment, &mut config, &mut problems);
    }
    overrides::overlay(environment, &mut config, &mut problems, &mut notes);
    // A rule over several keys says nothing useful of values that were not understood.
    if problems.is_empty() {
        rules::check(&config, &mut problems);
    }
    rules::note(&config, &mut notes);
    if problems.is_empty() { Ok(Loaded { config, notes }) } else { Err(Problems(problems)) }
}

/// Gives this process's environment; a variable that is not UTF-8 overrides nothing.
#[must_use]
pub fn environment() -> Vec<(String, String)> {
    let pairs = std::env::vars_os();
    pairs
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
        .collect()
}
