//! Owns the worker process's side: it opens the store, waits for a line, works, reports, and ends.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold::{CancellationToken, Error, ErrorKind, Handled, QueueName, Result, Worker};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

use super::{Payload, kind};

/// The environment variable that makes this program a worker.
pub(super) const ORDER: &str = "LEASEHOLD_BENCH_WORKER";

/// What a process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) url: String,
    pub(super) queue: String,
    pub(super) slots: usize,
    /// How many jobs to have in hand at once before any ends; 0 to end each at once.
    pub(super) hold: usize,
}

/// What a process says at the end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) jobs: usize,
    /// Bytes resident while all jobs were in hand.
    pub(super) resident: Option<u64>,
}

/// Works, when this program was started as a worker; `None` when it was not.
pub async fn work_if_asked() -> Option<Result<()>> {
    let order = std::env::var(ORDER).ok()?;
    Some(work(&order).await)
}

async fn work(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order).map_err(unusable)?;
    let store = leasehold::connect(&order.url).await?;
    say(&"ready")?;
    let mut input = BufReader::new(stdin()).lines();
    input.next_line().await.map_err(unusable)?;
    let (handled, enough) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
    let (count, wait, hold) = (handled.clone(), enough.clone(), order.hold);
    let worker = Worker::builder(store)
        .queue(QueueName::new(order.queue)?)
        .slots(order.slots)
        .handler(kind()?, move |_, payload: Payload| {
            let before = count.fetch_add(1, Ordering::Relaxed);
            let wait = wait.clone();
            async move {
                std::hint::black_box(payload.number);
                if hold > 0 {
                    if before + 1 == hold {
                        // The whole crowd is in hand: this is the moment to look.
                        wait.cancel();
                    }
                    wait.cancelled().await;
                }
                Ok(Handled::done())
            }
        })
        .build();
    let looks = tokio::spawn(async move {
        enough.cancelled().await;
        resident()
    });
    worker.run_until_idle().await?;
    let resident = if order.hold > 0 { looks.await.map_err(unusable)? } else { None };
    say(&Report { jobs: handled.load(Ordering::Relaxed), resident })?;
    // Nobody may end while others are still measured.
    let _closed = input.next_line().await;
    Ok(())
}

/// The largest size that this process has had in memory, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1_024)
}

fn say(what: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(what).map_err(unusable)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(unusable)
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Unavailable, "bench worker", error.to_string()).with_source(error)
}
