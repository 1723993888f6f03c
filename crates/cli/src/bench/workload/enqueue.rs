//! Owns the enqueueing workloads: one by one, from many tasks, in batches.

use std::time::Instant;

use leasehold::{Error, ErrorKind, NewJob, Result};
use tokio::task::JoinSet;

use super::sample::milliseconds;
use super::{Load, Sample, job, settle_log};

/// One client, each call awaited.
pub(super) async fn one_by_one(load: &Load) -> Result<Sample> {
    in_batches(load, 1).await
}

/// One client, so many jobs a call, each call awaited.
pub(super) async fn in_batches(load: &Load, size: usize) -> Result<Sample> {
    settle_log(load).await?;
    let begun = Instant::now();
    let mut each = Vec::new();
    for first in (0..load.jobs).step_by(size) {
        let last = load.jobs.min(first + size);
        each.push(enqueue(load, first..last).await?);
    }
    Ok(Sample::new(load.jobs, begun.elapsed(), each))
}

/// Many clients, each with one job in flight.
pub(super) async fn from_tasks(load: &Load, tasks: usize) -> Result<Sample> {
    settle_log(load).await?;
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let load = load.clone();
        running.spawn(async move {
            let mut each = Vec::new();
            for number in (task..load.jobs).step_by(tasks) {
                each.push(enqueue(&load, number..number + 1).await?);
            }
            Ok::<_, Error>(each)
        });
    }
    let mut all = Vec::with_capacity(load.jobs);
    while let Some(ended) = running.join_next().await {
        all.extend(ended.map_err(|stopped| {
            Error::new(ErrorKind::Unavailable, "bench", "a client was stopped").with_source(stopped)
        })??);
    }
    Ok(Sample::new(load.jobs, begun.elapsed(), all))
}

/// Enqueues the jobs of some numbers in one call; how many milliseconds that took.
async fn enqueue(load: &Load, numbers: std::ops::Range<usize>) -> Result<f64> {
    let begun = Instant::now();
    let jobs = numbers.map(|number| job(load, number)).collect::<Result<Vec<NewJob>>>()?;
    for answer in load.opened.store.enqueue(jobs).await? {
        if !answer?.is_new() {
            return Err(Error::new(ErrorKind::Conflict, "bench", "a new job was known already"));
        }
    }
    Ok(milliseconds(begun.elapsed()))
}
