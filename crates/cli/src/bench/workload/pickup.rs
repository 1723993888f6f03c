//! Owns the pick-up workloads: one job at a time into an idle system with a running worker.

use std::time::{Duration, Instant};

use leasehold::{Error, ErrorKind, Handled, Result, StoreExt, Worker};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Load, Payload, Sample, job, kind, settle_log};

/// How long the system is left alone before each job, so that the one before is settled.
const IDLE: Duration = Duration::from_millis(30);
/// How long a handler may be waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the time to the handler's start is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Call,
    Return,
}

pub(super) async fn pick_up(load: &Load, from: From) -> Result<Sample> {
    settle_log(load).await?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = Worker::builder(load.opened.store.clone())
        .queue(load.queue.clone())
        .handler(kind()?, move |_, payload: Payload| {
            // Nobody listens any more only after the measurement.
            let _late = tell.send((payload.number, Instant::now()));
            async { Ok(Handled::done()) }
        })
        .build();
    let stop = CancellationToken::new();
    let running = tokio::spawn(worker.run(stop.clone()));
    let stops = stop.drop_guard();
    tokio::time::sleep(IDLE * 10).await;
    let begun = Instant::now();
    let mut each = Vec::with_capacity(load.jobs);
    for number in 0..load.jobs {
        tokio::time::sleep(IDLE).await;
        if running.is_finished() {
            return Err(failed("the worker ended"));
        }
        let job = job(load, number)?;
        let called = Instant::now();
        let _new = load.opened.store.enqueue_one(job).await?;
        let returned = Instant::now();
        let heard = tokio::time::timeout(PATIENCE, told.recv()).await;
        let Ok(Some((seen, started))) = heard else { return Err(failed("no handler began")) };
        if seen != number {
            return Err(failed("another job's handler began"));
        }
        each.push(milliseconds(started, if from == From::Call { called } else { returned }));
    }
    let elapsed = begun.elapsed();
    drop(stops);
    let ended =
        running.await.map_err(|stopped| failed("the worker stopped").with_source(stopped))?;
    ended.map(|()| Sample::new(load.jobs, elapsed, each))
}

fn milliseconds(to: Instant, from: Instant) -> f64 {
    let (ahead, behind) = (to.saturating_duration_since(from), from.saturating_duration_since(to));
    (ahead.as_secs_f64() - behind.as_secs_f64()) * 1_000.0
}

fn failed(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, "bench", why)
}
