//! Owns idempotency records: the stored answer to a request, by whose key it was, and the mark of a
//! request that is being answered.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::job::Limits;
use crate::json::Json;
use crate::name::{IdempotencyKey, Scope};
use crate::request_hash::RequestHash;

/// A request to be answered once: in one step with its response, or begun first and answered later.
///
/// ```
/// use leasehold_core::{Json, Once, Records, Remembered, RequestHash, Scope, memory::MemoryStore};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let (key, hash) = ("payment-7".parse()?, RequestHash::of_job("pay", "", &Json::parse("7")?));
/// let begin = || Once::begin(Scope::global(), "payment-7".parse().unwrap(), hash);
/// assert_eq!(store.once(begin()).await?, Remembered::New); // it is ours to do
/// assert_eq!(store.once(begin()).await?, Remembered::InProgress); // and nobody else's
///
/// let response = Json::parse("\"paid\"")?;
/// let finish = Once::new(Scope::global(), key, hash, response.clone());
/// assert_eq!(store.once(finish).await?, Remembered::New);
/// assert_eq!(store.once(begin()).await?, Remembered::Stored(response));
/// # Ok::<(), leasehold_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Once {
    /// Whose key it is.
    pub scope: Scope,
    /// The key.
    pub key: IdempotencyKey,
    /// What tells a repeat of this request from another request.
    pub hash: RequestHash,
    /// The answer to store; `None` marks the request as being answered.
    pub response: Option<Json>,
    /// How long the answer (or the mark) is kept; afterwards the key is as new.
    pub ttl: Duration,
}

impl Once {
    /// Begins a record whose answer is kept for a day.
    pub fn new(scope: Scope, key: IdempotencyKey, hash: RequestHash, response: Json) -> Self {
        let (response, ttl) = (Some(response), Duration::from_secs(24 * 3600));
        Self { scope, key, hash, response, ttl }
    }

    /// Marks a request as being answered, for a minute unless set: longer than the answer takes.
    /// The answer follows by [`Once::new`]; the first one counts.
    pub fn begin(scope: Scope, key: IdempotencyKey, hash: RequestHash) -> Self {
        Self { scope, key, hash, response: None, ttl: Duration::from_secs(60) }
    }

    /// Sets how long the answer (or the mark) is kept.
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
        let (has, max) = (self.response.as_ref().map_or(0, Json::len), limits.payload_bytes_max);
        if has <= max {
            return Ok(());
        }
        Err(Error::invalid("once", format!("the response has {has} bytes, at most {max} allowed")))
    }
}

/// The answer to [`Once`]; another request under the same key is an `Err(Conflict)`.
#[derive(Clone, Debug, PartialEq)]
pub enum Remembered {
    /// The key was free or past its end, or marked and the answer outstanding: what was given is
    /// stored now.
    New,
    /// The same request was begun before and is not answered yet.
    InProgress,
    /// The same request was answered before: this is the stored response.
    Stored(Json),
}
