//! Owns the `bench` command: which workloads run, how large they are, and the line each prints.
//! Refuses to know how a workload does its work.

mod report;
pub(crate) mod workload;

use std::io::Write;

use leasehold::{Error, ErrorKind, QueueName, Result, Store};

use crate::connect::connect;
use report::Line;
use workload::{Load, Workload, fresh_queue, is_bench_queue};

/// What is measured, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The database: a path or sqlite: URL, or a postgres: URL. Its schema is brought up to date.
    #[arg(long, env = "LEASEHOLD_URL", hide_env_values = true)]
    url: String,
    /// What to measure; everything when none is named.
    #[arg(value_enum)]
    workloads: Vec<Workload>,
    /// Jobs of each enqueue and drain, in place of a size for each.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: Option<u32>,
    /// Jobs of each pick-up measurement.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pickups: u32,
    /// How many jobs the draining worker runs at once.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    slots: u32,
    /// Prints one JSON object a line.
    #[arg(long)]
    json: bool,
    /// Runs beside jobs that are not a bench's.
    #[arg(long)]
    force: bool,
}

/// Runs the workloads one after the other; each prints its line when it is done.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let opened = connect(&arguments.url).await?;
    if !arguments.force {
        refuse_company(&*opened.store).await?;
    }
    let named = &arguments.workloads;
    for workload in Workload::ALL.iter().filter(|it| named.is_empty() || named.contains(it)) {
        let load = Load {
            store: opened.store.clone(),
            queue: fresh_queue()?,
            jobs: arguments.size_of(*workload),
            slots: as_size(arguments.slots),
        };
        let sample = workload.run(&load).await?;
        let line = Line::of(opened.engine, *workload, &sample);
        print(&if arguments.json { line.to_json() } else { line.to_text() })?;
    }
    Ok(())
}

impl Arguments {
    fn size_of(&self, workload: Workload) -> usize {
        let jobs = self.jobs.map(as_size);
        match workload {
            Workload::W1 => jobs.unwrap_or(1_000),
            Workload::W1C64 => jobs.unwrap_or(5_000),
            Workload::W4FromCall | Workload::W4FromCommit => as_size(self.pickups),
            _ => jobs.unwrap_or(10_000),
        }
    }
}

fn as_size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A bench writes thousands of rows, which belong in no database that somebody uses.
async fn refuse_company(store: &dyn Store) -> Result<()> {
    let stats = store.stats().await?;
    let others: Vec<&QueueName> =
        stats.queues.iter().map(|queue| &queue.name).filter(|name| !is_bench_queue(name)).collect();
    let Some(first) = others.first() else { return Ok(()) };
    let why = format!(
        "the database has {} other queue(s), such as {first}; name an empty one, or pass --force",
        others.len()
    );
    Err(Error::invalid("bench", why))
}

fn print(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| {
        let why = "the line could not be printed";
        Error::new(ErrorKind::Unavailable, "bench", why).with_source(error)
    })
}
