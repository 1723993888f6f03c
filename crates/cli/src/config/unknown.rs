//! Owns which keys' values nobody knows since what was given for them is wrong: a rule that needs one of them
//! would tell of a default that nobody meant.

use std::collections::BTreeSet;

use super::key::KEYS;
use super::overrides::nearest;
use super::problem::{Origin, Problem};
use super::values::Config;

/// The keys whose values are not known.
#[derive(Debug)]
pub(crate) struct Unknown(BTreeSet<&'static str>);

impl Unknown {
    /// Reads them off the problems. What is wrong in the file but right in the environment is known.
    pub(crate) fn of(problems: &[Problem], config: &Config) -> Self {
        let mut unknown = BTreeSet::new();
        for problem in problems {
            let wrong = KEYS.iter().map(|key| key.path).filter(|path| concerns(problem, path));
            let in_file = matches!(problem.origin, Origin::File { .. });
            let overridden =
                |path: &&str| in_file && matches!(config.origin(path), Origin::Environment(_));
            unknown.extend(wrong.filter(|path| !overridden(path)));
        }
        Self(unknown)
    }

    /// Says whether all of these are known. A section stands for all of its keys.
    pub(crate) fn has_none_of(&self, paths: &[&str]) -> bool {
        !self.0.iter().any(|unknown| paths.iter().any(|path| is_within(unknown, path)))
    }
}

/// Whether a problem is about a key: by its name, its section's, a name that was probably meant to be one of
/// these, or the whole file.
fn concerns(problem: &Problem, path: &str) -> bool {
    let given = problem.key.as_str();
    if given.is_empty() {
        return true;
    }
    if given == "redis" {
        return is_within(path, "store");
    }
    let known = || KEYS.iter().flat_map(|key| super::file::prefixes(key.path));
    let meant = known().find(|name| *name == given).or_else(|| nearest(given, known()));
    meant.is_some_and(|meant| is_within(path, meant))
}

fn is_within(path: &str, section: &str) -> bool {
    path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
