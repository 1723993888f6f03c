//! Owns the wall clock for log lines and file jobs. Decides nothing.

use std::time::SystemTime;

use leasehold::Timestamp;

/// Reads the wall clock; the epoch where the machine's time is out of range.
pub(crate) fn wall() -> Timestamp {
    Timestamp::from_system_time(SystemTime::now()).unwrap_or_else(|_| Timestamp::saturating(0))
}
