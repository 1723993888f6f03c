//! Owns how old a key may grow before it ought to be replaced.

use std::time::Duration;

/// 90 days.
const AGE_MAX: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Whether a key of this age ought to be replaced.
pub(crate) fn is_overdue(age: Duration) -> bool {
    age > AGE_MAX
}
