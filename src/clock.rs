//! Owns the machine's clocks: the monotonic one that leases are counted on, and one look at the
//! wall to compare it with the store's. Decides nothing.

use std::time::{Instant, SystemTime};

use leasehold_core::{Result, Timestamp};

/// Reads the monotonic clock.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Reads the wall clock.
pub(crate) fn wall() -> Result<Timestamp> {
    Timestamp::from_system_time(SystemTime::now())
}
