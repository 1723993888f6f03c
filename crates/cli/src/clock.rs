//! Owns the clocks of the command: the wall for log lines and file jobs, and one that never goes back for how long
//! a scan takes. Decides nothing.

use std::time::SystemTime;

use leasehold::Timestamp;

/// Reads the wall clock; the epoch where the machine's time is out of range.
pub(crate) fn wall() -> Timestamp {
    Timestamp::from_system_time(SystemTime::now()).unwrap_or_else(|_| Timestamp::saturating(0))
}

/// Reads the steady clock of the runtime.
pub(crate) fn steady() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
