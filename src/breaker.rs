//! Owns circuit breakers: whether the other side is asked at all, by how it answered lately. Takes
//! the time as an argument, and refuses to know what was asked.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The most results that one breaker remembers.
const RESULTS_MAX: usize = 1_000;
/// How long to wait while a probe is on its way.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BreakerPolicy {
    /// The share of failures from which it opens.
    pub(crate) failure_threshold: f64,
    /// How long a result counts.
    pub(crate) window: Duration,
    /// How long it stays open before one probe.
    pub(crate) cooldown: Duration,
    /// How many results it takes to judge.
    pub(crate) min_samples: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Closed,
    Open {
        until: Instant,
    },
    /// One probe is on its way.
    HalfOpen,
}

/// Closed, it lets everything through; open, nothing; half-open, one probe, which decides.
#[derive(Debug)]
pub(crate) struct Breaker {
    policy: BreakerPolicy,
    state: State,
    results: VecDeque<(Instant, bool)>,
}

impl Breaker {
    pub(crate) fn new(policy: BreakerPolicy) -> Self {
        Self { policy, state: State::Closed, results: VecDeque::new() }
    }

    /// Lets one request through, or says how long to wait.
    pub(crate) fn ask(&mut self, now: Instant) -> Result<(), Duration> {
        match self.state {
            State::Closed => Ok(()),
            State::Open { until } if until <= now => {
                self.state = State::HalfOpen;
                Ok(())
            }
            State::Open { until } => Err(until.saturating_duration_since(now)),
            State::HalfOpen => Err(PROBE_WAIT.min(self.policy.cooldown)),
        }
    }

    /// Takes in how a request ended.
    pub(crate) fn learn(&mut self, now: Instant, is_failure: bool) {
        match (self.state, is_failure) {
            (State::HalfOpen, true) => self.open(now),
            (State::HalfOpen, false) => {
                self.results.clear();
                self.state = State::Closed;
            }
            // Sent before it opened.
            (State::Open { .. }, _) => {}
            (State::Closed, _) => {
                self.results.push_back((now, is_failure));
                let is_past = |at: Instant| now.saturating_duration_since(at) > self.policy.window;
                while self.results.len() > RESULTS_MAX
                    || self.results.front().is_some_and(|(at, _)| is_past(*at))
                {
                    self.results.pop_front();
                }
                if self.is_bad() {
                    self.open(now);
                }
            }
        }
    }

    /// Takes back a request that was let through and never sent, or given up without an answer.
    pub(crate) fn forget(&mut self, now: Instant) {
        if self.state == State::HalfOpen {
            self.state = State::Open { until: now };
        }
    }

    fn is_bad(&self) -> bool {
        let (total, failed) =
            (self.results.len(), self.results.iter().filter(|(_, failed)| *failed).count());
        let rate = f64::from(u32::try_from(failed).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(total.max(1)).unwrap_or(u32::MAX));
        total >= self.policy.min_samples && rate >= self.policy.failure_threshold
    }

    fn open(&mut self, now: Instant) {
        self.results.clear();
        self.state = State::Open { until: now + self.policy.cooldown };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker() -> Breaker {
        Breaker::new(BreakerPolicy {
            failure_threshold: 0.5,
            window: 60 * SECOND,
            cooldown: 30 * SECOND,
            min_samples: 4,
        })
    }

    /// Proves: CB-1
    #[test]
    fn opens_at_the_rate_and_not_before_enough_results() {
        let (mut breaker, begun) = (breaker(), crate::clock::now());
        for failed in [true, true, false] {
            breaker.learn(begun, failed);
            assert_eq!(breaker.ask(begun), Ok(()));
        }
        breaker.learn(begun, false);
        assert_eq!(breaker.ask(begun), Err(30 * SECOND), "two of four");
    }

    /// Proves: CB-1
    #[test]
    fn a_result_counts_for_the_window_only() {
        let (mut breaker, begun) = (breaker(), crate::clock::now());
        for _ in 0..3 {
            breaker.learn(begun, true);
        }
        breaker.learn(begun + 61 * SECOND, true);
        assert_eq!(breaker.ask(begun + 61 * SECOND), Ok(()));
    }

    /// Proves: CB-1
    #[test]
    fn one_probe_decides_after_the_cooldown() {
        let begun = crate::clock::now();
        for (failed, after) in [(true, Err(30 * SECOND)), (false, Ok(()))] {
            let mut breaker = breaker();
            (0..4).for_each(|_| breaker.learn(begun, true));
            assert_eq!(breaker.ask(begun + 29 * SECOND), Err(SECOND));
            let later = begun + 30 * SECOND;
            assert_eq!(breaker.ask(later), Ok(()));
            assert_eq!(breaker.ask(later), Err(SECOND), "the probe is on its way");
            breaker.learn(later, failed);
            assert_eq!(breaker.ask(later), after);
        }
    }

    /// Proves: CB-1
    #[test]
    fn a_probe_that_was_given_up_is_sent_again() {
        let (mut breaker, begun) = (breaker(), crate::clock::now());
        (0..4).for_each(|_| breaker.learn(begun, true));
        let later = begun + 30 * SECOND;
        assert_eq!(breaker.ask(later), Ok(()));
        breaker.forget(later);
        assert_eq!(breaker.ask(later), Ok(()));
    }
}
