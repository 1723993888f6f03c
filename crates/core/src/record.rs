//! Owns idempotency records: the stored answer to a request, by whose key it was.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::job::Limits;
use crate::json::Json;
use crate::name::{IdempotencyKey, Scope};
use crate::request_hash::RequestHash;

/// A request to be answered once.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Once {
    /// Whose key it is.
    pub scope: Scope,
    /// The key.
    pub key: IdempotencyKey,
    /// What tells a repeat of this request from another request.
    pub hash: RequestHash,
    /// The answer to store.
    pub response: Json,
    /// How long the answer is kept; afterwards the key is as new.
    pub ttl: Duration,
}

impl Once {
    /// Begins a record whose answer is kept for a day.
    pub fn new(scope: Scope, key: IdempotencyKey, hash: RequestHash, response: Json) -> Self {
        Self { scope, key, hash, response, ttl: Duration::from_secs(24 * 3600) }
    }

    /// Sets how long the answer is kept.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` naming the limit.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        if self.response.len() <= limits.payload_bytes_max {
            return Ok(());
        }
        let (has, max) = (self.response.len(), limits.payload_bytes_max);
        Err(Error::invalid("once", format!("the response has {has} bytes, at most {max} allowed")))
    }
}

/// The answer to [`Once`]; another request under the same key is an `Err(Conflict)`.
#[derive(Clone, Debug, PartialEq)]
pub enum Remembered {
    /// The key was free (or past its end): the response is stored now.
    New,
    /// The same request was answered before: this is the stored response.
    Stored(Json),
}
