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
mod unknown;
mod values;
mod yaml;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use key::{Effect, KEYS, Key, Kind};
pub use problem::{Note, Origin, Problem, Problems};
pub use secret::Secret;
pub use show::{defaults, diagnostics, json, yaml as show_yaml};
pub(crate) use unknown::Unknown;
pub use values::{Config, Value};

/// A configuration that passed every rule, and what is worth knowing of it.
#[derive(Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What has no effect, or looks like a slip without being one for certain.
    pub notes: Vec<Note>,
}

/// A configuration as far as it was understood, and everything there is to say of it.
#[derive(Debug)]
pub struct Examined {
    /// The values; a default where what was given is not understood.
    pub config: Config,
    /// As [`Loaded::notes`].
    pub notes: Vec<Note>,
    /// Every breach of a rule.
    pub problems: Vec<Problem>,
}

/// Loads the defaults, the file over them, and the environment over both.
///
/// A file that is named must be there and be readable; without a name the defaults and the environment hold.
///
/// # Errors
/// Every problem found, each with its key, value, rule and place.
pub fn load(path: Option<&Path>, environment: &[(String, String)]) -> Result<Loaded, Problems> {
    let Examined { config, notes, problems } = examine(path, environment);
    if problems.is_empty() { Ok(Loaded { config, notes }) } else { Err(Problems(problems)) }
}

/// Loads what can be loaded, as [`load`], and tells at once whatever can be told of it.
#[must_use]
pub fn examine(path: Option<&Path>, environment: &[(String, String)]) -> Examined {
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    let mut config = Config::with_defaults();
    if let Some(path) = path {
        file::overlay(path, environment, &mut config, &mut problems);
    }
    overrides::overlay(environment, &mut config, &mut problems, &mut notes);
    let unknown = Unknown::of(&problems, &config);
    rules::check(&config, &unknown, &mut problems);
    rules::note(&config, &unknown, &mut notes);
    Examined { config, notes, problems }
}

/// Gives this process's environment; a variable that is not UTF-8 overrides nothing.
#[must_use]
pub fn environment() -> Vec<(String, String)> {
    let pairs = std::env::vars_os();
    pairs
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
        .collect()
}
