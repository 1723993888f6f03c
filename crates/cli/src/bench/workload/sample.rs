//! Owns what a workload measured: how many jobs, how long in all, and how long each call took.

use std::time::Duration;

/// One measurement.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What sets it apart from the others of its workload, as `_held`.
    pub part: &'static str,
    pub jobs: usize,
    pub elapsed: Duration,
    /// Bytes resident in memory beyond the payloads, where that is what was measured.
    pub bytes: Option<u64>,
    /// The share of the jobs that the worst off of several processes had, of a fair one.
    pub least_share: Option<f64>,
    /// Milliseconds of each call, ascending; less than nothing for a handler that began before the
    /// enqueue returned.
    each: Vec<f64>,
}

impl Sample {
    pub fn new(jobs: usize, elapsed: Duration, mut each: Vec<f64>) -> Self {
        each.sort_by(f64::total_cmp);
        Self { part: "", jobs, elapsed, bytes: None, least_share: None, each }
    }

    pub fn part(mut self, part: &'static str) -> Self {
        self.part = part;
        self
    }

    /// Jobs a second.
    pub fn rate(&self) -> f64 {
        let jobs = u32::try_from(self.jobs).unwrap_or(u32::MAX);
        f64::from(jobs) / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The least value that so many of a hundred do not exceed; `None` when no call was timed.
    pub fn percentile(&self, percent: usize) -> Option<f64> {
        let rank = (self.each.len() * percent).div_ceil(100);
        self.each.get(rank.saturating_sub(1)).copied()
    }
}

/// Milliseconds of a duration.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
