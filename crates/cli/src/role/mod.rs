//! Owns the roles of the command: which of producer and worker run, on what store, until when.
//! Refuses to know what either does.

mod file_job;
mod log;
#[doc(hidden)]
pub mod metrics;
mod producer;
pub(crate) mod signals;
mod traces;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use leasehold::circuit::CircuitBreakers;
use leasehold::metrics::Metrics;
use leasehold::{CancellationToken, Error, ErrorKind, QueueName, Result, Store};

use crate::config::{self, Config, Examined, Note, Problems, Unknown};

use crate::failure::Fatal;
use crate::place;
pub use log::KEYS as LOG_KEYS;

/// What this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Scans a folder and enqueues a job for each new version of a file.
    Producer,
    /// Runs a command for each of these jobs.
    Worker,
    /// Both.
    All,
}

/// The arguments of the roles.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// What this process does
    #[arg(long)]
    pub role: Option<Role>,
    /// The configuration, a YAML file; the environment comes before it, and without one there are the defaults
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Scan once, work until nothing is left that may run or is tried again soon, and end: with 6 where jobs were given up meanwhile
    #[arg(long, requires = "role")]
    pub once: bool,
}

/// Runs a role until a signal, or until nothing is left where `once` says so.
///
/// # Errors
/// A configuration that breaks a rule, a store that cannot be opened, a part that ended by itself.
pub async fn run(role: Role, arguments: &Arguments) -> Result<(), Fatal> {
    let (notes, loaded) = load(role, arguments.config.as_deref(), &config::environment());
    let config = Arc::new(loaded?);
    let traces = traces::Traces::of(&config)?;
    log::install(config.text("observability.log_level"), &traces);
    for note in &notes {
        crate::log_line!(warn, "{note}");
    }
    if let Some(note) = traces.note() {
        crate::log_line!(warn, "{note}");
    }
    let done = start(role, arguments, config).await;
    traces.end().await;
    done
}

async fn start(role: Role, arguments: &Arguments, config: Arc<Config>) -> Result<(), Fatal> {
    let shutdown = CancellationToken::new();
    signals::listen(&shutdown)?;
    let breakers = worker::breakers(&config)?;
    let counts = metrics::of(&config, &breakers)?;
    let listener = if arguments.once { None } else { metrics::listen(&config).await? };
    let url = place::url(&config)?;
    let opening = leasehold::connect(&url);
    let store = tokio::select! {
        store = opening => store?,
        () = shutdown.cancelled() => return Ok(()),
    };
    metrics::start(&config, listener, store.clone(), counts.clone(), &shutdown);
    crate::log_line!(info, "{role:?} started");
    let process = Process { config, store, counts, breakers, shutdown };
    let done = match arguments.once {
        true => once(role, process).await,
        false => parts(role, process).await.map_err(Fatal::from),
    };
    crate::log_line!(info, "{role:?} ended");
    done
}

/// Loads a role's configuration, with everything that is to say of it: what keys and rules refuse, and what the
/// machine does, in one go.
///
/// # Errors
/// Every problem found.
pub fn load(
    role: Role,
    path: Option<&Path>,
    environment: &[(String, String)],
) -> (Vec<Note>, Result<Config, Problems>) {
    let Examined { config, notes, mut problems } = config::examine(path, environment);
    if let Err(Problems(more)) = check(role, &config) {
        let unknown = Unknown::of(&problems, &config);
        problems.extend(more.into_iter().filter(|it| unknown.has_none_of(rests_on(&it.key))));
    }
    let loaded = if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) };
    (notes, loaded)
}

/// The keys without which nothing can be said of one.
fn rests_on(key: &str) -> &[&str] {
    match key {
        "store.url" | "store.addr" => &["store"],
        "worker.command" => &["worker.command", "worker.command_env"],
        "producer.scan_dir" => &["producer.scan_dir"],
        "producer.include_globs" => &["producer.include_globs"],
        "producer.exclude_globs" => &["producer.exclude_globs"],
        _ => &[],
    }
}

/// Checks everything that a role needs before it starts, but whether the store can be reached.
///
/// # Errors
/// Every problem found.
pub fn check(role: Role, config: &Config) -> Result<(), Problems> {
    let mut problems = Vec::new();
    let mut note =
        |found: Result<(), Problems>| problems.extend(found.err().into_iter().flat_map(|it| it.0));
    note(place::check(config));
    if role != Role::Producer {
        note(worker::check(config));
    }
    if role != Role::Worker {
        note(producer::check(config));
    }
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

/// What the parts of one process share.
#[derive(Clone)]
struct Process {
    config: Arc<Config>,
    store: Arc<dyn Store>,
    counts: Arc<Metrics>,
    breakers: Arc<CircuitBreakers>,
    shutdown: CancellationToken,
}

/// How many jobs of the worker's queues are given up.
async fn given_up(process: &Process) -> Result<u64> {
    let queues: Vec<QueueName> = worker::queues(&process.config).collect::<Result<_>>()?;
    let stats = process.store.stats().await?;
    let ours = stats.queues.iter().filter(|queue| queues.contains(&queue.name));
    Ok(ours.map(|queue| queue.dead_letter).sum())
}

async fn once(role: Role, process: Process) -> Result<(), Fatal> {
    let before = given_up(&process).await?;
    passes(role, &process).await?;
    match given_up(&process).await?.saturating_sub(before) {
        0 => Ok(()),
        jobs => Err(Fatal::GivenUp(jobs)),
    }
}

async fn passes(role: Role, process: &Process) -> Result<()> {
    if role != Role::Worker {
        producer::scan_once(process).await?;
    }
    if role == Role::Producer { Ok(()) } else { worker::until_idle(process).await }
}

async fn parts(role: Role, process: Process) -> Result<()> {
    let produce = role != Role::Worker;
    let work = role != Role::Producer;
    let shutdown = &process.shutdown;
    // Whichever part ends first takes the other with it: half a role is worse than none.
    let producing =
        async { if produce { producer::run(&process).await } else { park(shutdown).await } };
    let working = async { if work { worker::run(&process).await } else { park(shutdown).await } };
    let (produced, worked) =
        tokio::join!(ends_all(producing, shutdown), ends_all(working, shutdown),);
    produced.and(worked)
}

async fn park(shutdown: &CancellationToken) -> Result<()> {
    shutdown.cancelled().await;
    Ok(())
}

async fn ends_all(part: impl Future<Output = Result<()>>, all: &CancellationToken) -> Result<()> {
    let done = part.await;
    let was_asked = all.is_cancelled();
    all.cancel();
    match done {
        Ok(()) if !was_asked => {
            Err(Error::new(ErrorKind::Unavailable, "run role", "a part ended by itself"))
        }
        done => done,
    }
}
