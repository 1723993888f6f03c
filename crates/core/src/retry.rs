//! How long to wait before the next attempt.
//!
//! Owns the ladder, the jitter and what `Retry-After` does to them. Refuses to know whether there
//! is a next attempt (class and budget decide) and what time it is.

use std::time::Duration;

use crate::{Error, ErrorKind, Failure, FailureClass, Result};

/// How far up the ladder an answer of "too many requests" starts.
const RATE_LIMIT_HEAD_START: u32 = 3;
/// The longest wait that the other side can impose.
const RETRY_AFTER_CAP: Duration = Duration::from_mins(5);

/// Sets the ladder of waits between attempts: 1 s, doubled, at most 60 s, full jitter.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leasehold_core::RetryPolicy;
///
/// let policy = RetryPolicy::default();
/// assert_eq!(policy.ceiling(1, false), Duration::from_secs(1));
/// assert_eq!(policy.ceiling(3, false), Duration::from_secs(4));
/// assert_eq!(policy.ceiling(u32::MAX, false), Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    first: Duration,
    factor: f64,
    cap: Duration,
    retry_after_cap: Duration,
    rate_limit_head_start: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            factor: 2.0,
            cap: Duration::from_mins(1),
            retry_after_cap: RETRY_AFTER_CAP,
            rate_limit_head_start: RATE_LIMIT_HEAD_START,
        }
    }
}

impl RetryPolicy {
    /// Makes a doubling ladder from its first and its longest wait.
    ///
    /// # Errors
    ///
    /// `Invalid` when the cap is below the first wait.
    pub fn new(first: Duration, cap: Duration) -> Result<Self> {
        if cap < first {
            return Err(invalid(format!("the cap {cap:?} is below the first wait {first:?}")));
        }
        Ok(Self { first, cap, ..Self::default() })
    }

    /// Sets what each step multiplies the wait by.
    ///
    /// # Errors
    ///
    /// `Invalid` unless the factor is a finite number of at least 1.
    pub fn factor(mut self, factor: f64) -> Result<Self> {
        if !factor.is_finite() || factor < 1.0 {
            return Err(invalid(format!("the factor {factor} is no finite number of at least 1")));
        }
        self.factor = factor;
        Ok(self)
    }

    /// Sets the longest wait that a `Retry-After` can impose; 5 minutes by default.
    #[must_use]
    pub fn retry_after_cap(mut self, cap: Duration) -> Self {
        self.retry_after_cap = cap;
        self
    }

    /// Sets how many steps up the ladder a rate limit starts; 3 by default.
    #[must_use]
    pub fn rate_limit_head_start(mut self, steps: u32) -> Self {
        self.rate_limit_head_start = steps;
        self
    }

    /// Gives the longest wait after an attempt; the first attempt is 1, and 0 counts as 1.
    ///
    /// Never falls as attempts rise, never exceeds the cap.
    #[must_use]
    pub fn ceiling(&self, attempt: u32, rate_limited: bool) -> Duration {
        let head_start = if rate_limited { self.rate_limit_head_start } else { 0 };
        let steps = attempt.saturating_sub(1).saturating_add(head_start);
        if self.first.is_zero() || steps == 0 {
            return self.first;
        }
        let secs = self.first.as_secs_f64() * self.factor.powf(f64::from(steps));
        let wait = Duration::try_from_secs_f64(secs).unwrap_or(self.cap);
        wait.clamp(self.first, self.cap)
    }

    /// Gives the wait before the next attempt.
    ///
    /// `attempt` is the one that just failed, from 1; `unit` lies in [0, 1) and picks a point
    /// between nothing and the ceiling ([`random_unit`] makes one). A larger `Retry-After` of the
    /// failure takes over, up to its own cap.
    #[must_use]
    pub fn delay(&self, attempt: u32, failure: &Failure, unit: f64) -> Duration {
        let ceiling = self.ceiling(attempt, failure.class() == FailureClass::RateLimit);
        let unit = if unit.is_nan() { 0.0 } else { unit.clamp(0.0, 1.0) };
        let jittered = Duration::try_from_secs_f64(ceiling.as_secs_f64() * unit);
        let asked = failure.retry_after().unwrap_or_default().min(self.retry_after_cap);
        jittered.unwrap_or(ceiling).min(ceiling).max(asked)
    }
}

/// Draws a number that is at least 0 and below 1, for [`RetryPolicy::delay`].
#[must_use]
pub fn random_unit() -> f64 {
    rand::random()
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, "retry policy", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCode;

    const SECOND: Duration = Duration::from_secs(1);
    const ATTEMPTS: [u32; 12] = [0, 1, 2, 3, 31, 32, 63, 64, 65, 1_000, u32::MAX - 1, u32::MAX];
    const UNITS: [f64; 8] = [0.0, 0.5, 0.999_999_999, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY];

    fn failure(code: FailureCode) -> Failure {
        Failure::new(code, "")
    }

    /// Proves: RT-2
    #[test]
    fn the_default_ladder_doubles_up_to_a_minute() {
        let policy = RetryPolicy::default();
        let secs: Vec<_> = (0..=9).map(|n| policy.ceiling(n, false).as_secs()).collect();
        assert_eq!(secs, [1, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    /// Proves: RT-6
    #[test]
    fn a_rate_limit_starts_three_steps_up_under_the_same_cap() {
        let policy = RetryPolicy::default();
        let secs: Vec<_> = (1..=5).map(|n| policy.ceiling(n, true).as_secs()).collect();
        assert_eq!(secs, [8, 16, 32, 60, 60]);
        assert_eq!(policy.rate_limit_head_start(u32::MAX).ceiling(u32::MAX, true).as_secs(), 60);
        assert_eq!(policy.delay(1, &failure(FailureCode::RateLimited), 0.5), SECOND * 4);
        assert_eq!(policy.delay(1, &failure(FailureCode::UpstreamError), 0.5), SECOND / 2);
    }

    /// Proves: RT-2
    #[test]
    fn no_attempt_panics_wraps_or_passes_the_cap() {
        let firsts = [Duration::ZERO, Duration::from_nanos(1), SECOND, SECOND * 3_600];
        let caps = [Duration::ZERO, Duration::from_nanos(7), SECOND * 60, SECOND * 3_600];
        for first in firsts {
            for cap in caps.into_iter().chain([Duration::MAX]).filter(|cap| *cap >= first) {
                for factor in [1.0, 1.000_000_1, 2.0, 1e300, f64::MAX] {
                    let policy = RetryPolicy::new(first, cap).and_then(|p| p.factor(factor));
                    check_bounds(&policy.expect("a valid policy"), cap);
                }
            }
        }
    }

    fn check_bounds(policy: &RetryPolicy, cap: Duration) {
        for limited in [false, true] {
            let rungs = ATTEMPTS.map(|attempt| policy.ceiling(attempt, limited));
            assert!(rungs.is_sorted(), "{policy:?}: {rungs:?}");
            assert!(rungs.iter().all(|rung| *rung <= cap), "{policy:?}: {rungs:?}");
        }
        for code in [FailureCode::RateLimited, FailureCode::NetworkTimeout] {
            for (attempt, unit) in ATTEMPTS.iter().flat_map(|a| UNITS.map(|u| (*a, u))) {
                assert!(policy.delay(attempt, &failure(code), unit) <= cap);
            }
        }
    }

    /// Proves: RT-2
    #[test]
    fn jitter_is_full() {
        let policy = RetryPolicy::default();
        let plain = failure(FailureCode::NetworkTimeout);
        assert_eq!(policy.delay(7, &plain, 0.0), Duration::ZERO);
        assert_eq!(policy.delay(7, &plain, 0.25), SECOND * 15);
        let top = policy.delay(7, &plain, 0.999_999);
        assert!(top < SECOND * 60 && top > SECOND * 59);
        assert!((0..1_000).map(|_| random_unit()).all(|unit| (0.0..1.0).contains(&unit)));
        assert!((0..10).any(|_| random_unit().to_bits() != random_unit().to_bits()));
    }

    /// Proves: RT-2, RT-6
    #[test]
    fn a_larger_retry_after_wins_up_to_five_minutes() {
        let policy = RetryPolicy::default();
        let asked = |secs| failure(FailureCode::RateLimited).with_retry_after(SECOND * secs);
        assert_eq!(policy.delay(1, &asked(0), 0.5), SECOND * 4);
        assert_eq!(policy.delay(1, &asked(3), 0.5), SECOND * 4);
        assert_eq!(policy.delay(1, &asked(90), 0.5), SECOND * 90);
        assert_eq!(policy.delay(1, &asked(300), 0.0), SECOND * 300);
        assert_eq!(policy.delay(1, &asked(86_400), 0.0), SECOND * 300);
        let endless = failure(FailureCode::UpstreamError).with_retry_after(Duration::MAX);
        assert_eq!(policy.delay(u32::MAX, &endless, 0.9), SECOND * 300);
        assert_eq!(policy.retry_after_cap(SECOND).delay(1, &endless, 0.0), SECOND);
    }

    /// Proves: RT-2, CFG-4
    #[test]
    fn a_policy_that_cannot_work_is_refused() {
        let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -2.0, 0.0, 0.5, 0.999_999];
        for factor in bad {
            let error = RetryPolicy::default().factor(factor).expect_err("must be refused");
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
        let error = RetryPolicy::new(SECOND, SECOND / 2).expect_err("cap below first");
        assert!(error.to_string().contains("below the first wait"), "{error}");
        assert!(RetryPolicy::new(SECOND, SECOND).is_ok());
    }
}
