//! Owns instants and lease lengths: whole microseconds, UTC, cut (never rounded) on entry, with a
//! checked range. Reads no clock: "now" is the store's.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// An instant in UTC: whole microseconds since 1970, years 1970 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const MIN: Self = Self(0);
    /// The last microsecond of the year 9999.
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// Takes microseconds since 1970.
    ///
    /// # Errors
    /// `Invalid` outside the years 1970 to 9999.
    pub fn from_micros(micros: i64) -> Result<Self> {
        if (Self::MIN.0..=Self::MAX.0).contains(&micros) {
            return Ok(Self(micros));
        }
        let why = format!("{micros} us since 1970 lies outside the years 1970 to 9999");
        Err(Error::new(ErrorKind::Invalid, "timestamp", why))
    }

    /// Takes microseconds since 1970, held within the range.
    pub fn saturating(micros: i64) -> Self {
        Self(micros.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Cuts a system time to the microsecond.
    ///
    /// # Errors
    /// `Invalid` outside the years 1970 to 9999.
    pub fn from_system_time(time: SystemTime) -> Result<Self> {
        let before = || Error::new(ErrorKind::Invalid, "timestamp", "lies before 1970");
        let since = time.duration_since(UNIX_EPOCH).map_err(|_| before())?;
        Self::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The same instant as a system time.
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.0.unsigned_abs())
    }

    /// The instant a while later, held within the range; parts of a microsecond are cut.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self::saturating(self.0.saturating_add(micros(by)))
    }

    /// The instant a while earlier, held within the range.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self::saturating(self.0.saturating_sub(micros(by)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A duration in whole microseconds, cut, at most `i64::MAX`.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    /// RFC 3339 with six digits, such as `2026-01-31T09:15:00.000250Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, in_day) = (self.0.div_euclid(86_400_000_000), self.0.rem_euclid(86_400_000_000));
        let (year, month, day) = civil(days);
        let (secs, us) = (in_day / 1_000_000, in_day % 1_000_000);
        let (h, m, s) = (secs / 3600, secs / 60 % 60, secs % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{us:06}Z")
    }
}

/// Days since 1970 as year, month, day of the proleptic Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let mut year = 1970;
    let mut left = days;
    let length = |y: i64| if y % 4 == 0 && (y % 100 != 0 || y % 400 == 0) { 366 } else { 365 };
    let cycles = left / 146_097; // 400 years
    year += cycles * 400;
    left -= cycles * 146_097;
    while left >= length(year) {
        left -= length(year);
        year += 1;
    }
    let february = length(year) - 337;
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    (year, month, left + 1)
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How long a claim owns its row without a renewal: 1 s to 24 h, whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct LeaseLength(u32);

impl LeaseLength {
    /// The lease of queues that set none: 30 s.
    pub const DEFAULT: Self = Self(30_000);
    /// The shortest lease: 1 s.
    pub const MIN: Self = Self(1_000);
    /// The longest lease: 24 h.
    pub const MAX: Self = Self(86_400_000);

    /// Takes a duration, cut to the millisecond.
    ///
    /// # Errors
    /// `Invalid` below 1 s or above 24 h.
    pub fn new(duration: Duration) -> Result<Self> {
        Self::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    /// Takes milliseconds.
    ///
    /// # Errors
    /// `Invalid` below 1,000 or above 86,400,000.
    pub fn from_millis(ms: u64) -> Result<Self> {
        match u32::try_from(ms) {
            Ok(ms) if (Self::MIN.0..=Self::MAX.0).contains(&ms) => Ok(Self(ms)),
            _ => Err(Error::new(
                ErrorKind::Invalid,
                "lease length",
                format!("{ms} ms lies outside 1,000 ms to 86,400,000 ms (24 h)"),
            )),
        }
    }

    /// The length in milliseconds.
    pub const fn as_millis(self) -> u32 {
        self.0
    }

    /// The length as a duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

impl TryFrom<u32> for LeaseLength {
    type Error = Error;

    fn try_from(ms: u32) -> Result<Self> {
        Self::from_millis(u64::from(ms))
    }
}

impl From<LeaseLength> for u32 {
    fn from(lease: LeaseLength) -> Self {
        lease.0
    }
}
