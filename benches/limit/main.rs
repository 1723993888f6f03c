//! Prints the speed table: Leasehold held against raw loops that do the same work with the fewest
//! statements and without a fence, on the same engine, driver and disk, the two taking turns; and
//! against itself, where the question is whether it stays as fast. Owns the order of the
//! measurements; knows no SQL.
//!
//! `scripts/postgres-throwaway run --durable -- cargo bench --bench limit`. SQLite files lie in
//! `LEASEHOLD_BENCH_DIR` (or the machine's folder for temporary files); PostgreSQL is measured where
//! `LEASEHOLD_TEST_POSTGRES_URL` names one. `-- --small` takes a minute and says little.

mod course;
mod engine;
mod measure;
mod postgres;
mod reapers;
mod sqlite;
mod table;

use std::error::Error as StdError;
use std::path::PathBuf;
use std::process::ExitCode;

use async_trait::async_trait;
use clap::Parser;

use engine::Place;
use leasehold_cli::bench;
use leasehold_cli::bench::report::Line;
use table::{Row, Table};

pub(crate) type Outcome<T> = Result<T, Box<dyn StdError + Send + Sync>>;

/// One pick-up: milliseconds to the start of the work, from the enqueue's call and its return.
pub(crate) type Pickup = (f64, f64);

/// What a raw drain does beyond the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    Nothing,
    /// A row of a log for each step.
    Log,
    /// A claim id that every completion has to present.
    Fence,
}

/// The raw loops of one engine.
#[async_trait]
pub(crate) trait Limit: Send {
    /// Enqueues so many jobs, `batch` a transaction.
    async fn enqueue(&mut self, queue: &str, jobs: usize, batch: usize) -> Outcome<()>;
    /// Enqueues so many jobs one by one, from so many connections at once.
    async fn enqueue_from(&mut self, queue: &str, jobs: usize, clients: usize) -> Outcome<()>;
    /// Claims, reads and completes until nothing is left, `batch` a transaction; how many there were.
    async fn drain(&mut self, queue: &str, batch: usize, extra: Extra) -> Outcome<usize>;
    /// Enqueues one job at a time into an idle system, and claims it elsewhere.
    async fn pick_up(&mut self, queue: &str, jobs: usize) -> Outcome<Vec<Pickup>>;
}

#[derive(Debug, Parser)]
struct Arguments {
    /// How often everything is measured; the medians count.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Jobs of the batched enqueues and the drains; other workloads are scaled alike.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    jobs: u32,
    /// Rows of the crowds of w5, in place of a million and ten.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    rows: Option<u32>,
    /// Few rounds of few jobs: shows that everything runs, and little about speed.
    #[arg(long)]
    small: bool,
    /// Measures only this engine.
    #[arg(long, value_parser = ["sqlite", "postgres"])]
    engine: Option<String>,
    /// Measures only workloads whose names begin so; several with commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Writes the table as Markdown into a file.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Writes the medians as the bench's JSON lines into a file, for `leasehold bench --compare`.
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
    /// Holds the medians against the JSON lines of another run or program.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Writes a picture (SVG) of each workload into a folder.
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match bench::workload::child::work_if_asked().await {
        Some(worked) => worked.map_err(Into::into),
        None => run(Arguments::parse()).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("limit: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(mut arguments: Arguments) -> Outcome<()> {
    if arguments.small {
        arguments.rounds = arguments.rounds.min(2);
        arguments.jobs = arguments.jobs.min(1_000);
        arguments.rows = Some(arguments.rows.unwrap_or(5_000));
    }
    let peers = arguments.compare.as_deref().map(bench::compare::read).transpose()?;
    let place = Place::new()?;
    let mut table = Table::default();
    for engine in place.engines(arguments.engine.as_deref())? {
        let sizes = course::Sizes::of(arguments.jobs, arguments.rows)?;
        let rounds = usize::try_from(arguments.rounds)?;
        for course in course::all(engine) {
            if !arguments.only.is_empty() && !arguments.only.iter().any(|it| course.is(it)) {
                continue;
            }
            course.measure(&place, engine, sizes, rounds, &mut table).await?;
        }
    }
    let mut lines: Vec<Line> = table.lines();
    for line in &lines {
        for ratio in bench::compare::ratios(line, peers.as_deref().unwrap_or_default()) {
            table::print(&ratio.to_json())?;
        }
    }
    if let Some(path) = arguments.lines {
        let text: Vec<String> = lines.iter().map(Line::to_json).collect();
        std::fs::write(path, text.join("\n") + "\n")?;
    }
    if let Some(path) = arguments.markdown {
        std::fs::write(path, table.rows.iter().map(Row::to_markdown).collect::<String>())?;
    }
    lines.extend(peers.unwrap_or_default());
    arguments.plot.map_or(Ok(()), |folder| bench::plot::write(&folder, &lines).map_err(Into::into))
}
