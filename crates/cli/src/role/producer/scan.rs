//! Owns the walk over the folder: which files the globs take, what a look at each says. Links are
//! not followed, so a walk ends, and stays inside its folder.

use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};

use super::super::file_job::Version;
use crate::config::{Config, Problem, Problems};

/// The key of the folder.
const FOLDER: &str = "producer.scan_dir";

/// A folder and what is taken from it.
pub(super) struct Walk {
    folder: PathBuf,
    include: Override,
    exclude: Override,
}

/// Reads folder and globs. Globs are those of gitignore, from the folder: `*.pdf` is at any depth,
/// `/a/*.pdf` directly in `a`.
///
/// # Errors
/// A folder that cannot be opened, globs that are not understood, each with its key.
pub(super) fn walk(config: &Config) -> Result<Walk, Problems> {
    let folder = folder(config);
    let within = folder.as_deref().unwrap_or(Path::new("."));
    let globs = |key| globs(config, key, within);
    let (include, exclude) = (globs("producer.include_globs"), globs("producer.exclude_globs"));
    match (folder, include, exclude) {
        (Ok(folder), Ok(include), Ok(exclude)) => Ok(Walk { folder, include, exclude }),
        (folder, include, exclude) => {
            let problems = [folder.err(), include.err(), exclude.err()];
            Err(Problems(problems.into_iter().flatten().collect()))
        }
    }
}

fn refuse(config: &Config, key: &str, value: &str, rule: impl Into<String>) -> Problem {
    Problem::of(config.origin(key), key, value, rule)
}

fn folder(config: &Config) -> Result<PathBuf, Problem> {
    let given = config.text(FOLDER);
    let folder = std::fs::canonicalize(given)
        .map_err(|error| refuse(config, FOLDER, given, format!("cannot be opened: {error}")))?;
    if folder.is_dir() { Ok(folder) } else { Err(refuse(config, FOLDER, given, "is no folder")) }
}

fn globs(config: &Config, key: &str, folder: &Path) -> Result<Override, Problem> {
    let mut builder = OverrideBuilder::new(folder);
    for glob in config.list(key) {
        if glob.starts_with('!') {
            return Err(refuse(config, key, glob, "must not begin with !: use the other list"));
        }
        builder
            .add(glob)
            .map_err(|error| refuse(config, key, glob, format!("is no glob: {error}")))?;
    }
    builder.build().map_err(|error| refuse(config, key, "", format!("are no globs: {error}")))
}

impl Walk {
    /// Looks into the folder as a scan will. A scan itself goes on where it cannot: it may be only for now.
    ///
    /// # Errors
    /// A folder whose names cannot be read, or whose files cannot be looked at.
    pub(super) fn listed(&self, config: &Config) -> Result<(), Problems> {
        let refused = |what: &str, why: std::io::Error| {
            let rule = format!("{what}: {why}");
            Err(Problems(vec![refuse(config, FOLDER, config.text(FOLDER), rule)]))
        };
        let first = std::fs::read_dir(&self.folder).and_then(|mut names| names.next().transpose());
        if let Err(why) = first {
            return refused("cannot be listed", why);
        }
        #[cfg(unix)]
        if let Err(why) = rustix::fs::access(&self.folder, rustix::fs::Access::EXEC_OK) {
            return refused("its files cannot be looked at", why.into());
        }
        Ok(())
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Walks, and gives each file that is taken, in no order. What vanishes or cannot be read on the
    /// way is logged and left out; the next scan looks again.
    pub(super) fn versions(&self) -> impl Iterator<Item = Version> {
        let exclude = self.exclude.clone();
        let enters = move |entry: &DirEntry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || !takes(&exclude, entry.path(), is_folder)
        };
        let walk = WalkBuilder::new(&self.folder)
            .standard_filters(false)
            .follow_links(false)
            .filter_entry(enters)
            .build();
        walk.filter_map(|entry| match entry {
            Ok(entry) => self.look(&entry),
            Err(error) => {
                crate::log_line!(warn, error = error, "a part of the folder cannot be read");
                None
            }
        })
    }

    fn look(&self, entry: &DirEntry) -> Option<Version> {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if !is_file || !takes(&self.include, entry.path(), false) {
            return None;
        }
        match entry.path().symlink_metadata() {
            Ok(facts) if facts.is_file() => Some(Version::of(entry.path(), &facts)),
            Ok(_) => None,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                crate::log_line!(warn, error = error, "a file cannot be looked at");
                None
            }
        }
    }
}

fn takes(globs: &Override, path: &Path, is_folder: bool) -> bool {
    globs.matched(path, is_folder).is_whitelist()
}
