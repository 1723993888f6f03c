//! Owns a file that takes so many bytes and not one more, and nothing once its workspace is gone.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold_core::{Failure, FailureCode};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at once of what streams in, in bytes.
const PIECE: usize = 64 * 1024;

/// A file would have grown above its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    max: u64,
}

impl Exceeded {
    pub(super) fn new(max: u64) -> Self {
        Self { max }
    }

    /// The limit, in bytes.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file is larger than the {} bytes that are allowed", self.max)
    }
}

impl std::error::Error for Exceeded {}

impl From<Exceeded> for io::Error {
    fn from(exceeded: Exceeded) -> Self {
        Self::new(io::ErrorKind::FileTooLarge, exceeded)
    }
}

/// The failure of an attempt that could not write its files: a limit is for good, the rest may pass.
#[must_use]
pub fn failure(error: &io::Error) -> Failure {
    let exceeds = error.get_ref().is_some_and(|inner| inner.is::<Exceeded>());
    let code = if exceeds { FailureCode::SizeExceeded } else { FailureCode::HandlerFailed };
    Failure::new(code, error.to_string())
}

/// A file of a workspace that takes no more than its limit. Write large files from a thread that may
/// block, or let them stream in by [`Bounded::fill`].
#[derive(Debug)]
pub struct Bounded {
    file: File,
    at: u64,
    size: u64,
    max: u64,
    closed: Arc<AtomicBool>,
}

impl Bounded {
    pub(super) fn new(file: File, max: u64, closed: Arc<AtomicBool>) -> Self {
        Self { file, at: 0, size: 0, max, closed }
    }

    /// How large the file is, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Refuses a size that is known before anything comes.
    ///
    /// # Errors
    /// `FileTooLarge` holding [`Exceeded`].
    pub fn admit(&self, size: u64) -> io::Result<()> {
        match size > self.max {
            true => Err(Exceeded::new(self.max).into()),
            false => Ok(()),
        }
    }

    /// Writes all that comes; how large the file is then. It stops at the limit, before the rest is read.
    ///
    /// # Errors
    /// `FileTooLarge` holding [`Exceeded`]; the reader's and the file system's own.
    pub async fn fill(&mut self, mut from: impl AsyncRead + Unpin) -> io::Result<u64> {
        let mut piece = vec![0; PIECE];
        loop {
            let count = from.read(&mut piece).await?;
            if count == 0 {
                return Ok(self.size);
            }
            self.write_all(piece.get(..count).unwrap_or_default())?;
        }
    }
}

impl Write for Bounded {
    /// Takes all of it or none.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the workspace is gone"));
        }
        let end = self.at.saturating_add(bytes.len() as u64);
        if end > self.max {
            return Err(Exceeded::new(self.max).into());
        }
        self.file.write_all(bytes)?;
        self.at = end;
        self.size = self.size.max(end);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// For formats that write their head last.
impl Seek for Bounded {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}
