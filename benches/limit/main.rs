//! Holds Leasehold against raw loops that do the same work with the fewest statements and without a
//! fence, on the same engine, driver and disk. Owns the order of the measurements and the ratios;
//! knows no SQL.
//!
//! `cargo bench --bench limit -- [--jobs N] [--rounds N]`. SQLite files lie in `LEASEHOLD_BENCH_DIR`
//! (or the machine's folder for temporary files); PostgreSQL is measured where
//! `LEASEHOLD_TEST_POSTGRES_URL` names one, as `scripts/postgres-throwaway run --durable` does.

mod sqlite;
#[path = "../../crates/cli/src/bench/workload/mod.rs"]
#[allow(dead_code, reason = "the command line uses the rest")]
mod workload;

use std::error::Error as StdError;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use clap::Parser;
use leasehold::{QueueName, Store};
use workload::{Load, Sample, Workload, fresh_queue};

type Outcome<T> = Result<T, Box<dyn StdError + Send + Sync>>;

/// The raw loops of one engine.
#[async_trait]
trait Limit {
    /// Enqueues so many jobs, `batch` a transaction.
    async fn enqueue(&mut self, queue: &QueueName, jobs: usize, batch: usize) -> Outcome<()>;
    /// Claims, reads and completes until nothing is left, `batch` a transaction; how many there were.
    async fn drain(&mut self, queue: &QueueName, batch: usize) -> Outcome<usize>;
}

/// One engine: its raw loops, and Leasehold on it.
struct Engine {
    name: &'static str,
    limit: Box<dyn Limit>,
    store: Arc<dyn Store>,
}

/// A workload in one size.
#[derive(Clone, Copy, Debug)]
struct Course {
    workload: Workload,
    /// Jobs a call, or jobs in hand at once.
    batch: usize,
    jobs: usize,
}

#[derive(Debug, Parser)]
struct Arguments {
    /// Jobs of the batched enqueues and the drains; single enqueues take a tenth.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..))]
    jobs: u32,
    /// How often everything is measured; the medians count.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measures only this engine.
    #[arg(long)]
    engine: Option<String>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let place = Place::new();
    for mut engine in place.engines(arguments.engine.as_deref()).await? {
        for course in courses(usize::try_from(arguments.jobs)?) {
            let mut rates = (Vec::new(), Vec::new());
            for round in 0..arguments.rounds {
                // Taking turns at going first, so that neither always finds the warmer disk.
                if round % 2 == 0 {
                    rates.0.push(engine.raw(course).await?);
                }
                rates.1.push(engine.leasehold(course).await?);
                if round % 2 != 0 {
                    rates.0.push(engine.raw(course).await?);
                }
            }
            report(engine.name, course, median(rates.0), median(rates.1))?;
        }
    }
    Ok(())
}

fn courses(jobs: usize) -> [Course; 4] {
    [
        Course { workload: Workload::W1, batch: 1, jobs: jobs / 10 },
        Course { workload: Workload::W2By1000, batch: 1_000, jobs },
        Course { workload: Workload::W3, batch: 100, jobs },
        Course { workload: Workload::W3, batch: 1_000, jobs },
    ]
}

impl Engine {
    async fn raw(&mut self, course: Course) -> Outcome<f64> {
        let (queue, jobs) = (fresh_queue()?, course.jobs);
        let drains = course.workload == Workload::W3;
        let begun = Instant::now();
        self.limit.enqueue(&queue, jobs, if drains { 1_000 } else { course.batch }).await?;
        if !drains {
            return Ok(Sample::new(jobs, begun.elapsed(), Vec::new()).rate());
        }
        let begun = Instant::now();
        let drained = self.limit.drain(&queue, course.batch).await?;
        if drained != jobs {
            return Err(format!("{drained} of {jobs} jobs were drained").into());
        }
        Ok(Sample::new(jobs, begun.elapsed(), Vec::new()).rate())
    }

    async fn leasehold(&self, course: Course) -> Outcome<f64> {
        let (store, queue) = (self.store.clone(), fresh_queue()?);
        let load = Load { store, queue, jobs: course.jobs, slots: course.batch };
        Ok(course.workload.run(&load).await?.rate())
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

fn report(engine: &str, course: Course, raw: f64, ours: f64) -> Outcome<()> {
    let line = serde_json::json!({
        "engine": engine,
        "workload": course.workload.name(),
        "batch": course.batch,
        "n": course.jobs,
        "limit_rate": raw.round(),
        "leasehold_rate": ours.round(),
        "ratio": (ours / raw * 1_000.0).round() / 1_000.0,
    });
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}

/// A folder of this run's own, gone at its end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let folder = std::env::var_os("LEASEHOLD_BENCH_DIR");
        let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
        Self(folder.join(format!("leasehold-limit-{}", std::process::id())))
    }

    async fn engines(&self, only: Option<&str>) -> Outcome<Vec<Engine>> {
        std::fs::create_dir_all(&self.0)?;
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        let mut engines = Vec::new();
        if wanted("sqlite") {
            let path = self.0.join("leasehold.db");
            let store = Arc::new(leasehold_sqlite::open(&path.to_string_lossy()).await?);
            let limit = Box::new(sqlite::Raw::open(&self.0.join("limit.db"))?);
            engines.push(Engine { name: "sqlite", limit, store });
        }
        Ok(engines)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A file that cannot be removed is no reason to lose the figures.
        let _left = std::fs::remove_dir_all(&self.0);
    }
}
