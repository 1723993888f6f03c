//! Owns the roles of the command: which of producer and worker run, on what store, until when.
//! Refuses to know what either does.

mod file_job;
mod log;
#[doc(hidden)]
pub mod metrics;
mod producer;
pub(crate) mod signals;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use leasehold::circuit::CircuitBreakers;
use leasehold::metrics::Metrics;
use leasehold::{CancellationToken, Error, ErrorKind, Result, Store};

use crate::config::{self, Config};
use crate::failure::Fatal;
use crate::place;

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
    /// The configuration, a YAML file; a missing one means the defaults
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Scan once, work until nothing is due, and end
    #[arg(long, requires = "role")]
    pub once: bool,
}

/// Runs a role until a signal, or until nothing is left where `once` says so.
///
/// # Errors
/// A configuration that breaks a rule, a store that cannot be opened, a part that ended by itself.
pub async fn run(role: Role, arguments: &Arguments) -> Result<(), Fatal> {
    let environment = config::environment();
    let loaded = config::load(arguments.config.as_deref(), &environment)?;
    let config = Arc::new(loaded.config);
    log::install(config.text("observability.log_level"));
    for note in &loaded.notes {
        tracing::warn!("{note}");
    }
    let runs_worker = role != Role::Producer;
    if runs_worker {
        worker::check(&config)?;
    }
    if role != Role::Worker {
        producer::check(&config)?;
    }
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
    tracing::info!("{role:?} started");
    let process = Process { config, store, counts, breakers, shutdown };
    let done = if arguments.once { once(role, process).await } else { parts(role, process).await };
    tracing::info!("{role:?} ended");
    Ok(done?)
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

async fn once(role: Role, process: Process) -> Result<()> {
    if role != Role::Worker {
        producer::scan_once(&process).await?;
    }
    if role == Role::Producer { Ok(()) } else { worker::until_idle(&process).await }
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
