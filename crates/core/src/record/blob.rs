//! Owns blobs: bytes under a name, written over as a whole, with an end if one is set.

use std::fmt;
use std::time::Duration;

use super::RecordId;
use crate::error::{Error, Result};
use crate::job::Limits;

/// Bytes to be kept under a name, in place of what is there.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PutBlob {
    /// Its name; blobs and documents do not share names.
    pub id: RecordId,
    /// The bytes, at most [`Limits::blob_bytes_max`].
    pub bytes: Vec<u8>,
    /// How long they are kept from now; without end unless set.
    pub ttl: Option<Duration>,
}

impl fmt::Debug for PutBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PutBlob({}, {} bytes, {:?})", self.id, self.bytes.len(), self.ttl)
    }
}

impl PutBlob {
    /// Begins a blob without end.
    pub fn new(id: RecordId, bytes: impl Into<Vec<u8>>) -> Self {
        Self { id, bytes: bytes.into(), ttl: None }
    }

    /// Lets the blob end a while after the put.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` naming the limit.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let (has, max) = (self.bytes.len(), limits.blob_bytes_max);
        if has <= max {
            return Ok(());
        }
        let why = format!("the blob has {has} bytes, at most {max} are allowed");
        Err(Error::invalid("put blob", why).about(&self.id))
    }
}
