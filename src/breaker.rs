//! Owns the rules of a circuit breaker: whether the other side is asked at all, by how it answered
//! lately. Takes the time as an argument, and refuses to know what was asked and who waits.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The results that one breaker remembers, unless it takes more to judge.
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

/// Leave to ask once, given in one era of a breaker. Whatever comes of it counts in that era only: an
/// answer to a question from before the breaker opened must not decide in place of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leave {
    era: u64,
}

/// Closed, it lets everything through; open, nothing; half-open, one probe, which decides.
#[derive(Debug)]
pub(crate) struct Breaker {
    policy: BreakerPolicy,
    state: State,
    /// Rises with every change of state.
    era: u64,
    results: VecDeque<(Instant, bool)>,
    failed: usize,
}

impl Breaker {
    pub(crate) fn new(policy: BreakerPolicy) -> Self {
        Self { policy, state: State::Closed, era: 0, results: VecDeque::new(), failed: 0 }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    pub(crate) fn is_half_open(&self) -> bool {
        self.state == State::HalfOpen
    }

    /// Lets one request through, or says how long to wait.
    pub(crate) fn ask(&mut self, now: Instant) -> Result<Leave, Duration> {
        match self.state {
            State::Closed => {}
            State::Open { until } if until <= now => self.go(State::HalfOpen),
            State::Open { until } => return Err(until.saturating_duration_since(now)),
            State::HalfOpen => return Err(PROBE_WAIT.min(self.policy.cooldown)),
        }
        Ok(Leave { era: self.era })
    }

    /// Takes in how a request ended.
    pub(crate) fn learn(&mut self, now: Instant, leave: Leave, is_failure: bool) {
        if leave.era != self.era {
            return;
        }
        match (self.state, is_failure) {
            (State::HalfOpen, true) => self.open(now),
            (State::HalfOpen, false) => self.go(State::Closed),
            (State::Open { .. }, _) => {}
            (State::Closed, _) => {
                self.results.push_back((now, is_failure));
                self.failed += usize::from(is_failure);
                self.let_go(now);
                if self.is_bad() {
                    self.open(now);
                }
            }
        }
    }

    /// Takes back a request that was let through and never sent, or given up without an answer.
    pub(crate) fn forget(&mut self, now: Instant, leave: Leave) {
        if leave.era == self.era && self.state == State::HalfOpen {
            self.go(State::Open { until: now });
        }
    }

    /// Lets go of results that count no longer.
    fn let_go(&mut self, now: Instant) {
        let most = RESULTS_MAX.max(self.policy.min_samples);
        while let Some((at, failed)) = self.results.front().copied() {
            let is_past = now.saturating_duration_since(at) > self.policy.window;
            if !is_past && self.results.len() <= most {
                break;
            }
            self.results.pop_front();
            self.failed -= usize::from(failed);
        }
    }

    fn is_bad(&self) -> bool {
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let total = self.results.len();
        total >= self.policy.min_samples.max(1)
            && number(self.failed) / number(total) >= self.policy.failure_threshold
    }

    fn open(&mut self, now: Instant) {
        self.go(State::Open { until: now + self.policy.cooldown });
    }

    fn go(&mut self, state: State) {
        self.state = state;
        self.era += 1;
        self.results.clear();
        self.failed = 0;
    }
}
