//! Owns requests for rate tokens, which all processes of a store share: how fast a bucket fills,
//! how much it holds, how many are wanted.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::name::BucketName;

/// The most tokens a bucket may hold, and the most that may come in a second.
const TOKENS_MAX: u32 = 1_000_000_000;

/// How fast a bucket fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(u64);

impl Rate {
    /// So many tokens a second.
    pub const fn per_second(tokens: u32) -> Self {
        Self(tokens as u64 * 3_600)
    }

    /// So many tokens a minute.
    pub const fn per_minute(tokens: u32) -> Self {
        Self(tokens as u64 * 60)
    }

    /// So many tokens an hour.
    pub const fn per_hour(tokens: u32) -> Self {
        Self(tokens as u64)
    }

    pub(crate) const fn of_hourly(tokens: u64) -> Self {
        Self(tokens)
    }

    /// Tokens an hour.
    pub const fn hourly(self) -> u64 {
        self.0
    }
}

/// Refuses a bucket that never fills, or that no row could hold.
pub(crate) fn check_bucket(rate: Rate, burst: u32) -> Result<(), String> {
    let rate_max = u64::from(TOKENS_MAX) * 3_600;
    if (1..=rate_max).contains(&rate.0) && (1..=TOKENS_MAX).contains(&burst) {
        return Ok(());
    }
    Err("rate and burst must lie between 1 and 1,000,000,000".to_owned())
}

/// A wish for tokens of a bucket. A bucket that nobody took from, or that is full again, is full to
/// the burst of whoever takes next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Take {
    /// The bucket.
    pub bucket: BucketName,
    /// How fast it fills.
    pub rate: Rate,
    /// The most it holds.
    pub burst: u32,
    /// How many are wanted: all of them or none. One unless set.
    pub tokens: u32,
}

impl Take {
    /// Wishes for one token.
    pub fn new(bucket: BucketName, rate: Rate, burst: u32) -> Self {
        Self { bucket, rate, burst, tokens: 1 }
    }

    /// Sets how many are wanted.
    #[must_use]
    pub fn tokens(mut self, tokens: u32) -> Self {
        self.tokens = tokens;
        self
    }

    /// Checks everything that needs no database.
    ///
    /// # Errors
    /// `Invalid` for a rate, a burst or a wish of 0, a wish above the burst, and a burst or a rate a
    /// second above 1,000,000,000.
    pub fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::invalid("take", why).about(&self.bucket));
        check_bucket(self.rate, self.burst).or_else(refuse)?;
        if self.tokens == 0 || self.tokens > self.burst {
            let (wanted, burst) = (self.tokens, self.burst);
            return refuse(format!("{wanted} tokens, 1 to the burst of {burst} can be granted"));
        }
        Ok(())
    }
}

/// The answer to a wish for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// They are taken.
    Granted,
    /// None is taken; so long until enough are there, if nobody else takes any.
    Wait(Duration),
}
