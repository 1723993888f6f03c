//! Owns what a workload measured: how many jobs, how long in all, and how long each call took.

use std::time::Duration;

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) jobs: usize,
    pub(crate) elapsed: Duration,
    /// Milliseconds of each call, ascending; less than nothing for a handler that began before the
    /// enqueue returned.
    each: Vec<f64>,
}

impl Sample {
    pub(crate) fn new(jobs: usize, elapsed: Duration, mut each: Vec<f64>) -> Self {
        each.sort_by(f64::total_cmp);
        Self { jobs, elapsed, each }
    }

    /// Jobs a second.
    pub(crate) fn rate(&self) -> f64 {
        let jobs = u32::try_from(self.jobs).unwrap_or(u32::MAX);
        f64::from(jobs) / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The least value that so many of a hundred do not exceed; `None` when no call was timed.
    pub(crate) fn percentile(&self, percent: usize) -> Option<f64> {
        let rank = (self.each.len() * percent).div_ceil(100);
        self.each.get(rank.saturating_sub(1)).copied()
    }
}
