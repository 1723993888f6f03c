//! Owns the draining workload: a worker takes what is queued until the database has nothing left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use leasehold::{Error, ErrorKind, Handled, Result, Worker};

use super::{Load, Payload, Sample, enqueue, kind};

/// Queues the jobs untimed, then times the worker. Finished rows stay.
pub(super) async fn drain(load: &Load) -> Result<Sample> {
    enqueue::in_batches(load, 1_000).await?;
    let (handled, numbers) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, sum) = (handled.clone(), numbers.clone());
    let worker = Worker::builder(load.opened.store.clone())
        .queue(load.queue.clone())
        .slots(load.slots)
        .handler(kind()?, move |_, payload: Payload| {
            count.fetch_add(1, Ordering::Relaxed);
            sum.fetch_add(payload.number, Ordering::Relaxed);
            async { Ok(Handled::done()) }
        })
        .build();
    let begun = Instant::now();
    worker.run_until_idle().await?;
    let elapsed = begun.elapsed();
    let seen = (handled.load(Ordering::Relaxed), numbers.load(Ordering::Relaxed));
    let stats = load.opened.store.stats().await?;
    let ended = stats.queue(&load.queue).map_or(0, |queue| queue.succeeded);
    let wanted = load.jobs * (load.jobs - 1) / 2;
    if seen != (load.jobs, wanted) || usize::try_from(ended) != Ok(load.jobs) {
        let why = format!("of {} jobs {} were handled, {ended} succeeded", load.jobs, seen.0);
        return Err(Error::new(ErrorKind::Corrupt, "bench", why));
    }
    Ok(Sample::new(load.jobs, elapsed, Vec::new()))
}
