//! Owns the `bench` command: which workloads run, how large they are, and the line each prints.
//! Refuses to know how a workload does its work.

pub mod beside;
pub mod compare;
pub mod plot;
pub mod report;
pub mod workload;

use std::io::Write;
use std::path::PathBuf;

use leasehold::{Error, ErrorKind, QueueName, Result, Store};

use crate::connect::{Opened, connect};
use report::Line;
use workload::{Load, Workload, fresh_queue, is_bench_queue};

/// What is measured, and where.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The database: a path or sqlite: URL, or a postgres: URL. Its schema is brought up to date.
    #[arg(long, env = "LEASEHOLD_URL", hide_env_values = true)]
    url: String,
    /// What to measure; everything when none is named.
    #[arg(value_enum)]
    workloads: Vec<Workload>,
    #[command(flatten)]
    sizes: Sizes,
    /// Prints lines for people instead of one JSON object a line.
    #[arg(long)]
    text: bool,
    /// Holds each line against the lines of an earlier run, or of another program, in a file.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Writes a picture (SVG) of each workload into a folder.
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Runs beside jobs that are not a bench's.
    #[arg(long)]
    force: bool,
}

/// How large the workloads are.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    /// Jobs of each enqueue and drain, in place of a size for each workload.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    jobs: Option<u32>,
    /// Jobs of each pick-up measurement.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pickups: u32,
    /// How many jobs the draining workers run at once.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    slots: u32,
    /// Other rows of the queue in w5, in place of a million or ten.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    rows: Option<u32>,
    /// How many processes work at once in w6, one measurement each.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8",
        value_parser = clap::value_parser!(u8).range(1..=8))]
    processes: Vec<u8>,
    /// Jobs that the worker of `memory` has in hand.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    in_hand: u32,
    /// Keeps the transition log.
    #[arg(long)]
    log: bool,
}

/// Runs the workloads one after the other; each prints its line when it is done.
pub async fn run(arguments: Arguments) -> Result<()> {
    let peers = arguments.compare.as_deref().map(compare::read).transpose()?;
    let opened = connect(&arguments.url).await?;
    if !arguments.force {
        refuse_company(&*opened.store).await?;
    }
    let named = &arguments.workloads;
    let mut lines = peers.clone().unwrap_or_default();
    for workload in Workload::ALL.iter().filter(|it| named.is_empty() || named.contains(it)) {
        let load = arguments.sizes.load(&opened, *workload)?;
        for sample in workload.run(&load).await? {
            let line = Line::of(opened.engine, *workload, &sample);
            print(&if arguments.text { line.to_text() } else { line.to_json() })?;
            for ratio in compare::ratios(&line, peers.as_deref().unwrap_or_default()) {
                print(&if arguments.text { ratio.to_text() } else { ratio.to_json() })?;
            }
            lines.push(line);
        }
    }
    arguments.plot.map_or(Ok(()), |folder| plot::write(&folder, &lines))
}

impl Sizes {
    /// The load of one measurement, on a queue that nobody has used.
    pub fn load(&self, opened: &Opened, workload: Workload) -> Result<Load> {
        Ok(Load {
            opened: opened.clone(),
            queue: fresh_queue()?,
            jobs: as_size(self.jobs_of(workload)),
            slots: as_size(self.slots),
            rows: as_size(if workload.rows() == 0 { 0 } else { self.rows_of(workload) }),
            processes: self.processes.iter().copied().map(usize::from).collect(),
            log: self.log,
            partitions: 0,
        })
    }

    fn jobs_of(&self, workload: Workload) -> u32 {
        match workload {
            Workload::W4FromCall | Workload::W4FromCommit => self.pickups,
            Workload::Memory => self.in_hand,
            _ => self.jobs.unwrap_or(workload.jobs()),
        }
    }

    fn rows_of(&self, workload: Workload) -> u32 {
        self.rows.unwrap_or(workload.rows())
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
