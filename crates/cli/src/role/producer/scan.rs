//! Owns the walk over the folder: which files the globs take, what a look at each says. Links are
//! not followed, so a walk ends, and stays inside its folder.

use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};

use super::super::file_job::Version;
use crate::config::{Config, Problem, Problems};

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
/// A folder that cannot be opened, a glob that is not understood, each with its key.
pub(super) fn walk(config: &Config) -> Result<Walk, Problems> {
    let given = config.text("producer.scan_dir");
    let refuse = |key: &str, value: &str, rule: String| {
        Problems(vec![Problem::of(config.origin(key), key, value, rule)])
    };
    let folder = std::fs::canonicalize(given).map_err(|error| {
        refuse("producer.scan_dir", given, format!("cannot be opened: {error}"))
    })?;
    if !folder.is_dir() {
        return Err(refuse("producer.scan_dir", given, "is no folder".to_owned()));
    }
    let globs = |key: &str| {
        let mut builder = OverrideBuilder::new(&folder);
        for glob in config.list(key) {
            if glob.starts_with('!') {
                return Err(refuse(
                    key,
                    glob,
                    "must not begin with !: use the other list".to_owned(),
                ));
            }
            builder.add(glob).map_err(|error| refuse(key, glob, format!("is no glob: {error}")))?;
        }
        builder.build().map_err(|error| refuse(key, "", format!("are no globs: {error}")))
    };
    let (include, exclude) = (globs("producer.include_globs")?, globs("producer.exclude_globs")?);
    Ok(Walk { folder, include, exclude })
}

impl Walk {
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
