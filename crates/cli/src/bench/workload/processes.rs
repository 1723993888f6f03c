//! Owns the workloads of worker processes: several that drain one database, and one that holds many
//! jobs in memory. A process of ours is this very program, told by its environment what to be.

use std::process::Stdio;
use std::time::Instant;

use leasehold::{Error, ErrorKind, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::child::{ORDER, Order, Report};
use super::{Load, Sample, enqueue, payload};

/// One worker process, and the lines it prints.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Queues the jobs untimed, then times so many processes from their start signal to the last one's
/// end.
pub(super) async fn drain(load: &Load, count: usize) -> Result<Sample> {
    enqueue::in_batches(load, 1_000).await?;
    let mut processes = Vec::with_capacity(count);
    for _ in 0..count {
        processes.push(Process::start(load, 0).await?);
    }
    let begun = Instant::now();
    for process in &mut processes {
        process.go().await?;
    }
    let mut shares = Vec::with_capacity(count);
    for process in &mut processes {
        shares.push(process.report().await?.jobs);
    }
    let elapsed = begun.elapsed();
    for process in processes {
        process.end().await?;
    }
    if shares.iter().sum::<usize>() != load.jobs {
        let why = format!("of {} jobs the processes handled {shares:?}", load.jobs);
        return Err(Error::new(ErrorKind::Corrupt, "bench", why));
    }
    let mut sample = Sample::new(load.jobs, elapsed, Vec::new()).part(name(count)?);
    let least = shares.into_iter().min().unwrap_or(0) * count;
    sample.least_share = Some(float(least) / float(load.jobs).max(1.0));
    Ok(sample)
}

/// Lets one process hold all jobs at once, and asks how large it is.
pub(super) async fn hold(load: &Load) -> Result<Sample> {
    enqueue::in_batches(load, 1_000).await?;
    let mut process = Process::start(load, load.jobs).await?;
    let begun = Instant::now();
    process.go().await?;
    let report = process.report().await?;
    let elapsed = begun.elapsed();
    process.end().await?;
    let payloads: usize = (0..load.jobs).map(|number| payload(number).len()).sum();
    let resident =
        report.resident.ok_or_else(|| failed("the process did not say how large it is"))?;
    let mut sample = Sample::new(load.jobs, elapsed, Vec::new());
    sample.bytes = Some(resident.saturating_sub(u64::try_from(payloads).unwrap_or(0)));
    Ok(sample)
}

impl Process {
    /// Starts a process and waits until it has opened the store.
    async fn start(load: &Load, hold: usize) -> Result<Self> {
        let order = Order {
            url: load.opened.url.clone(),
            queue: load.queue.to_string(),
            slots: if hold > 0 { hold } else { load.slots },
            hold,
        };
        let order = serde_json::to_string(&order).map_err(unusable)?;
        let program = std::env::current_exe().map_err(unusable)?;
        let mut child = Command::new(program)
            .env(ORDER, order)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(unusable)?;
        let out = child.stdout.take().ok_or_else(|| failed("a worker process has no output"))?;
        let mut process = Self { child, lines: BufReader::new(out).lines() };
        process.line().await?;
        Ok(process)
    }

    async fn go(&mut self) -> Result<()> {
        let Some(input) = self.child.stdin.as_mut() else {
            return Err(failed("a worker process has no input"));
        };
        input.write_all(b"go\n").await.map_err(unusable)?;
        input.flush().await.map_err(unusable)
    }

    async fn report(&mut self) -> Result<Report> {
        serde_json::from_str(&self.line().await?).map_err(unusable)
    }

    async fn line(&mut self) -> Result<String> {
        let line = self.lines.next_line().await.map_err(unusable)?;
        line.ok_or_else(|| failed("a worker process ended early; its reason stands above"))
    }

    async fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let ended = self.child.wait().await.map_err(unusable)?;
        if ended.success() { Ok(()) } else { Err(failed("a worker process failed")) }
    }
}

fn name(count: usize) -> Result<&'static str> {
    let names = ["_1", "_2", "_3", "_4", "_5", "_6", "_7", "_8"];
    let name = count.checked_sub(1).and_then(|at| names.get(at));
    name.copied().ok_or_else(|| Error::invalid("bench", "1 to 8 processes can be measured"))
}

fn float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn failed(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, "bench", why)
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    failed("a worker process could not be used").with_source(error)
}
