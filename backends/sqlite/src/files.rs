//! Owns the watch over a database's two files: whether what lies at their paths is still what was
//! opened, and how large the write-ahead log is. Looks at names and sizes only and opens nothing,
//! since closing a second handle would drop SQLite's locks.
//!
//! A log that was deleted or replaced while it is open would take further commits into a file that
//! nobody can find again. So every commit looks first, and nothing is written from then on.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use leasehold_core::{Error, ErrorKind, Result};
use rusqlite::Connection;

use crate::error::UNNAMED;

/// From this size on the log is emptied as soon as no reader needs it.
pub(crate) const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The two files of a database as they were opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    main: File,
    log: File,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    path: PathBuf,
    identity: Identity,
}

/// Tells one file from another that took its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), number: metadata.ino() }
    }

    /// Elsewhere an open file cannot lose its name.
    #[cfg(not(unix))]
    fn of(_metadata: &Metadata) -> Self {
        Self { device: 0, number: 0 }
    }
}

/// What follows a path in the name of the copy that is being made for it.
pub(crate) const PART: &str = ".part";

/// Refuses a file with two names, before it is opened: the log goes by the name, so that two
/// processes could each write a log of their own. The name under which a copy was made is none: nobody
/// opens it, and it is left where its maker ended just before the last step. Who may write takes it away.
pub(crate) fn refuse_second_name(path: &Path, writes: bool) -> Result<()> {
    let found = std::fs::metadata(path);
    if let Ok(metadata) = &found
        && names_of(metadata) == 2
        && let Some(part) = left_name_of(path, metadata)
    {
        let is_gone = !writes || std::fs::remove_file(part).is_ok();
        return if is_gone { Ok(()) } else { Err(second_name(path)) };
    }
    match found {
        Ok(metadata) if metadata.is_dir() => {
            let why = format!("{} is a folder, not a database file", path.display());
            Err(Error::new(ErrorKind::Invalid, UNNAMED, why))
        }
        Ok(metadata) if names_of(&metadata) > 1 => Err(second_name(path)),
        // What cannot be looked at is refused by the open.
        _ => Ok(()),
    }
}

fn second_name(path: &Path) -> Error {
    let path = path.display();
    let why = format!("{path} has more than one name (a hard link), and each has its own log");
    Error::new(ErrorKind::Invalid, UNNAMED, why)
}

/// The name that a whole copy still has from its making, unless there is a log of that name.
fn left_name_of(path: &Path, metadata: &Metadata) -> Option<PathBuf> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let part = beside(PART);
    let is_same = std::fs::symlink_metadata(&part)
        .is_ok_and(|found| Identity::of(&found) == Identity::of(metadata));
    let has_log = std::fs::metadata(beside(".part-wal")).is_ok_and(|log| log.len() > 0);
    (is_same && !has_log).then_some(part)
}

impl Files {
    /// What a connection has open; `None` for a database in memory.
    pub(crate) fn of(conn: &Connection) -> Result<Option<Self>> {
        let Some(main) = conn.path().filter(|path| !path.is_empty()) else { return Ok(None) };
        let log = PathBuf::from(format!("{main}-wal"));
        let main = PathBuf::from(main);
        let metadata = std::fs::metadata(&main).map_err(|error| unseen(&main, error))?;
        let main = File { identity: Identity::of(&metadata), path: main };
        let metadata = std::fs::metadata(&log).map_err(|error| unseen(&log, error))?;
        let log = File { identity: Identity::of(&metadata), path: log };
        Ok(Some(Self { main, log }))
    }

    /// Refuses once a path holds another file than the one that is open, or none.
    pub(crate) fn check(&self) -> Result<()> {
        self.main.check("the database")?;
        self.log.check("the database's write-ahead log")
    }

    /// How many bytes the log takes up; 0 when it is gone.
    pub(crate) fn log_bytes(&self) -> u64 {
        std::fs::metadata(&self.log.path).map_or(0, |metadata| metadata.len())
    }

    /// What an operator should know of the files.
    pub(crate) fn warning(&self) -> Option<String> {
        if let Err(error) = self.check() {
            return Some(error.message().to_owned());
        }
        let bytes = self.log_bytes();
        (bytes > LOG_BYTES_MAX).then(|| {
            let mib = bytes / (1024 * 1024);
            format!("the write-ahead log has {mib} MiB; an open reader keeps it from shrinking")
        })
    }
}

impl File {
    fn check(&self, what: &str) -> Result<()> {
        let why = match std::fs::metadata(&self.path) {
            Ok(metadata) if Identity::of(&metadata) == self.identity => return Ok(()),
            Ok(_) => "was replaced by another file",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "was deleted or moved",
            Err(error) => return Err(unseen(&self.path, error)),
        };
        let path = self.path.display();
        let why = format!("{what} {why} while it was open ({path}); nothing more is written");
        Err(Error::new(ErrorKind::Unavailable, UNNAMED, why))
    }
}

#[cfg(unix)]
fn names_of(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn names_of(_metadata: &Metadata) -> u64 {
    1
}

fn unseen(path: &Path, error: io::Error) -> Error {
    let why = format!("{} cannot be looked at", path.display());
    Error::new(ErrorKind::Unavailable, UNNAMED, why).with_source(error)
}
