//! Owns the temporary files of jobs: a folder for each, limits while they are written, and their removal
//! on every way out. Refuses to know what the files hold.
//!
//! A folder goes when its [`Workspace`] is dropped: by return, error, panic or cancel. What a killed
//! process leaves is swept when the next one opens the same root. A living process holds a lock on a
//! file of its own, and nobody sweeps its files.
//!
//! ```
//! use std::io::Write;
//!
//! use leasehold::workspace::{Limits, Workspaces};
//!
//! # fn main() -> std::io::Result<()> {
//! # let root = std::env::temp_dir().join(format!("leasehold-doc-{}", std::process::id()));
//! let mut limits = Limits::default();
//! limits.source_bytes_max = 4;
//! let workspaces = Workspaces::open(&root, limits)?;
//! let workspace = workspaces.begin()?;
//! let mut source = workspace.source("in.wav", None)?;
//! source.write_all(b"RIFF")?; // exactly at the limit
//! assert!(source.write_all(b"!").is_err()); // and not a byte more
//! let path = workspace.path("in.wav")?;
//! drop(workspace);
//! assert!(!path.exists());
//! # drop(workspaces);
//! # std::fs::remove_dir_all(root)
//! # }
//! ```

mod bounded;
mod sweep;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use bounded::{Bounded, Exceeded, failure};
use sweep::Home;

/// How large the files of a job may be.
///
/// A size exactly at a limit passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest source, in bytes; 5 * 10^9 unless set.
    pub source_bytes_max: u64,
    /// From which source on outputs are limited, in bytes: larger ones than this; 10^9 unless set.
    pub output_limited_above: u64,
    /// The largest output then, in percent of the source; 200 unless set.
    pub output_percent_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes_max: 5_000_000_000,
            output_limited_above: 1_000_000_000,
            output_percent_max: 200,
        }
    }
}

impl Limits {
    /// Sets the largest source.
    #[must_use]
    pub fn source_bytes_max(mut self, bytes: u64) -> Self {
        self.source_bytes_max = bytes;
        self
    }

    /// Sets from which source on outputs are limited, and to how many percent of it.
    #[must_use]
    pub fn outputs(mut self, above: u64, percent: u64) -> Self {
        (self.output_limited_above, self.output_percent_max) = (above, percent);
        self
    }

    /// The largest output of a source; `None` where it is not limited.
    #[must_use]
    pub fn output_bytes_max(&self, source: u64) -> Option<u64> {
        let percent = u128::from(source) * u128::from(self.output_percent_max) / 100;
        (source > self.output_limited_above).then(|| u64::try_from(percent).unwrap_or(u64::MAX))
    }
}

/// The workspaces of this process, below a root that any number of processes of one machine share.
#[derive(Debug)]
pub struct Workspaces {
    home: Arc<Home>,
    limits: Limits,
    next: AtomicU64,
}

impl Workspaces {
    /// Opens the root, makes it where it is not there, and sweeps what dead processes left.
    ///
    /// The root must lie on a file system of this machine, since locks of files tell who lives.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(root: impl AsRef<Path>, limits: Limits) -> io::Result<Self> {
        let home = Arc::new(Home::open(root.as_ref())?);
        Ok(Self { home, limits, next: AtomicU64::new(0) })
    }

    /// Makes an empty workspace.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn begin(&self) -> io::Result<Workspace> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.home.folder().join(number.to_string());
        fs::create_dir(&folder)?;
        let closed = Arc::default();
        Ok(Workspace { folder, limits: self.limits, closed, _home: self.home.clone() })
    }
}

/// A folder of one job; it goes with this value.
///
/// A thread that still writes when it is dropped is refused from then on.
#[derive(Debug)]
pub struct Workspace {
    folder: PathBuf,
    limits: Limits,
    closed: Arc<AtomicBool>,
    _home: Arc<Home>,
}

impl Workspace {
    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of a file in the folder.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is not one plain part of a path.
    pub fn path(&self, name: &str) -> io::Result<PathBuf> {
        let mut parts = Path::new(name).components();
        match (parts.next(), parts.next()) {
            (Some(std::path::Component::Normal(part)), None) if part == name => {
                Ok(self.folder.join(part))
            }
            _ => {
                let why = format!("{name:?} is no name of a file");
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
        }
    }

    /// Makes a file for a source, no larger than allowed; refuses a known size above that at once.
    ///
    /// # Errors
    /// `FileTooLarge` holding [`Exceeded`]; those of the file system.
    pub fn source(&self, name: &str, size: Option<u64>) -> io::Result<Bounded> {
        let max = self.limits.source_bytes_max;
        match size {
            Some(size) if size > max => Err(Exceeded::new(max).into()),
            _ => self.file(name, max),
        }
    }

    /// Makes a file for an output of a source of so many bytes, no larger than allowed.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn output(&self, name: &str, source: u64) -> io::Result<Bounded> {
        self.file(name, self.limits.output_bytes_max(source).unwrap_or(u64::MAX))
    }

    fn file(&self, name: &str, max: u64) -> io::Result<Bounded> {
        let file = File::options().write(true).create_new(true).open(self.path(name)?)?;
        Ok(Bounded::new(file, max, self.closed.clone()))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            // The next start sweeps it.
            tracing::warn!(%error, "workspace {} not removed", self.folder.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: DSK-1
    #[test]
    fn outputs_are_limited_behind_large_sources_only() {
        let limits = Limits::default();
        assert_eq!(limits.source_bytes_max, 5_000_000_000);
        assert_eq!(limits.output_bytes_max(1_000_000_000), None);
        assert_eq!(limits.output_bytes_max(1_000_000_001), Some(2_000_000_002));
        assert_eq!(Limits::default().outputs(0, 300).output_bytes_max(u64::MAX), Some(u64::MAX));
    }
}
