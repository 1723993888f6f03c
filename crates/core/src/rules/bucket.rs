//! Owns the arithmetic of buckets that fill with time, for rate tokens and for the starts of
//! partitions alike. Knows no rows and decides nothing.

use std::time::Duration;

use crate::record::Rate;
use crate::time::{Timestamp, micros};

/// One token, in the units a level is kept in: what one token an hour fills in an hour's
/// microseconds. So a rate of whole tokens an hour fills whole units a microsecond.
pub(super) const TOKEN: i128 = 3_600_000_000;

/// What a bucket held, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) level: i64,
    pub(super) at: Timestamp,
    pub(super) full_at: Timestamp,
}

/// A bucket at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    rate: i128,
    full: i128,
    now: Timestamp,
    held: i128,
}

impl Bucket {
    /// What a bucket holds now; full where nothing is known of it.
    pub(super) fn at(now: Timestamp, rate: Rate, burst: u32, found: Option<Level>) -> Self {
        let (rate, full) = (i128::from(rate.hourly()).max(1), i128::from(burst) * TOKEN);
        // Time never counts twice, nor back.
        let now = found.map_or(now, |before| now.max(before.at));
        let held = found.filter(|before| before.full_at > now).map_or(full, |before| {
            let filled = i128::from(micros(now.since(before.at))) * rate;
            full.min(i128::from(before.level) + filled)
        });
        Self { rate, full, now, held }
    }

    /// How many whole tokens it holds.
    pub(super) fn whole(&self) -> u64 {
        u64::try_from(self.held / TOKEN).unwrap_or(0)
    }

    /// How long until it holds so many, if nobody takes any.
    pub(super) fn wait(&self, tokens: u32) -> Duration {
        self.fills(i128::from(tokens) * TOKEN - self.held)
    }

    /// Takes tokens that it holds.
    pub(super) fn take(&mut self, tokens: u64) {
        self.held = (self.held - i128::from(tokens) * TOKEN).max(0);
    }

    /// What is to be kept of it.
    pub(super) fn level(&self) -> Level {
        let full_at = self.now.plus(self.fills(self.full - self.held));
        Level { level: i64::try_from(self.held).unwrap_or(i64::MAX), at: self.now, full_at }
    }

    fn fills(&self, units: i128) -> Duration {
        let us = (units.max(0) + self.rate - 1) / self.rate;
        Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
    }
}
