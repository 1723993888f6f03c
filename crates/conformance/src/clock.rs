//! Owns the one reading of the machine's steady clock in this crate: how long a programme took. Nothing that is judged depends on it.

use std::time::Instant;

/// Begins to count.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since a beginning, with one decimal.
pub(crate) fn seconds_since(begun: Instant) -> f64 {
    let tenths = now().saturating_duration_since(begun).as_millis() / 100;
    f64::from(u32::try_from(tenths).unwrap_or(u32::MAX)) / 10.0
}

/// What has passed since.
#[cfg(feature = "schedules")]
pub(crate) fn since(then: Instant) -> std::time::Duration {
    then.elapsed()
}
