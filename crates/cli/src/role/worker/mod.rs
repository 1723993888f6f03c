//! Owns the worker role: which queues it serves and how a file's job becomes a run of the command.
//! Refuses to know how a command is run.

mod child;
mod command;
mod once;
mod outcome;
mod program;
mod secrets;
mod tail;

use std::sync::Arc;
use std::time::Duration;

use leasehold::circuit::CircuitBreakers;
use leasehold::{
    Context, Failure, FailureCode, Handled, HandlerError, JobKind, LeaseLength, QueueName, Result,
    RetryPolicy, Worker, WorkerBuilder,
};

#[cfg(unix)]
pub(super) use self::child::kill_all;
use self::command::Command;
use super::Process;
use super::file_job::{self, FileJob};
use crate::config::{Config, Problem, Problems};

/// How long a job is put off that found no room for its command.
const NO_ROOM: Duration = Duration::from_secs(5);

/// Checks what this role needs and others do not.
///
/// # Errors
/// A command that names no program, or one that is not there.
pub(super) fn check(config: &Config) -> Result<(), Problems> {
    let command = config.list("worker.command");
    let origin = config.origin("worker.command");
    let problem = match command.first() {
        None => {
            let rule = "must name a program and its arguments, such as [gzip, -k, \"{path}\"]";
            Problem::at(origin, "worker.command", rule)
        }
        Some(program) => match program::missing(config, program) {
            None => return Ok(()),
            Some(why) => Problem::of(origin, "worker.command", program, why),
        },
    };
    Err(Problems(vec![problem]))
}

/// Works until `shutdown`; then commands have the grace time to end, and the rest is given back.
///
/// # Errors
/// As [`Worker::run`].
pub(super) async fn run(process: &Process) -> Result<()> {
    builder(process)?.build().run(process.shutdown.clone()).await
}

/// Works until no job of the folder is left that runs, is due, or is tried again soon, or until `shutdown`.
///
/// # Errors
/// As [`Worker::run`].
pub(super) async fn until_idle(process: &Process) -> Result<()> {
    let done = process.shutdown.child_token();
    let watch = once::when_empty(process, done.clone());
    let (worked, watched) = tokio::join!(builder(process)?.build().run(done), watch);
    worked.and(watched)
}

fn builder(process: &Process) -> Result<WorkerBuilder> {
    let config = &process.config;
    let backoff = (config.duration("worker.backoff.base"), config.duration("worker.backoff.max"));
    let command = Arc::new(Command::new(config));
    let mut builder = Worker::builder(process.store.clone())
        .observer(process.counts.clone())
        .breakers(process.breakers.clone())
        .slots(usize::try_from(config.int("worker.count")).unwrap_or(1))
        .lease(LeaseLength::new(config.duration("worker.heartbeat_ttl"))?)
        .retry(RetryPolicy::new(backoff.0, backoff.1)?)
        .poll(config.duration("worker.brpoplpush_timeout"))
        .grace(config.duration("worker.grace"))
        .upkeep(Some(config.duration("reaper.interval")));
    for queue in queues(config) {
        builder = builder.queue(queue?);
    }
    let handler = move |context: Context, job: FileJob| handle(context, job, command.clone());
    Ok(builder.handler(JobKind::new(file_job::KIND)?, handler))
}

/// The circuit breakers of the queues.
///
/// # Errors
/// `Invalid` for a threshold that the configuration would have refused.
pub(super) fn breakers(config: &Config) -> Result<Arc<CircuitBreakers>> {
    let samples = usize::try_from(config.int("circuit_breaker.min_samples")).unwrap_or(usize::MAX);
    let breakers = CircuitBreakers::new()
        .failure_threshold(config.fraction("circuit_breaker.failure_threshold"))?
        .window(config.duration("circuit_breaker.window"))
        .cooldown(config.duration("circuit_breaker.cooldown_period"))
        .min_samples(samples);
    Ok(Arc::new(breakers))
}

/// The queues, in the order of their priorities.
pub(super) fn queues(config: &Config) -> impl Iterator<Item = Result<QueueName>> {
    let queues = config.map("worker.queues");
    let of = move |name: &String| queues.iter().find(|(have, _)| have == name);
    config.list("worker.priorities").iter().filter_map(of).map(|(_, queue)| QueueName::new(queue))
}

async fn handle(
    context: Context,
    job: FileJob,
    command: Arc<Command>,
) -> Result<Handled, HandlerError> {
    let Some(version) = job.version() else {
        return Err(Failure::new(FailureCode::PayloadInvalid, "filepath_hex is no path").into());
    };
    match version.holds()? {
        None => return Ok(Handled::done_with(&outcome::Skipped::new("vanished"))),
        Some(false) => return Ok(Handled::done_with(&outcome::Skipped::new("changed"))),
        Some(true) => {}
    }
    let Some(ran) = command.run(&context, &version.path).await? else {
        return Ok(Handled::snooze(NO_ROOM));
    };
    let changed = version.holds()? != Some(true);
    ran.into_handled(&command, changed)
}
