//! Owns what a run of the command means for its job, and when a worker that runs once is done.

use std::collections::HashSet;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use leasehold::circuit::{Circuit, CircuitBreakers};
use leasehold::{
    CancellationToken, Failure, FailureCode, Found, Handled, HandlerError, JobFilter, JobView,
    Paging, Query, QueueName, Result, State, Stats, StatsScope, Store, Timestamp,
};
use serde::Serialize;

use super::command::Command;
use super::tail::Kept;
use crate::config::Config;
use crate::role::Process;

/// A command that came to its own end.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) status: ExitStatus,
    pub(super) out: Kept,
    pub(super) err: Kept,
}

/// The result of a job whose file is no longer the one it was about.
#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    skipped: &'static str,
}

impl Skipped {
    pub(super) fn new(why: &'static str) -> Self {
        Self { skipped: why }
    }
}

/// The result of a job whose command did its work.
#[derive(Debug, Serialize)]
struct Done {
    stdout: String,
    stderr: String,
    /// Whether a part of the output was left out.
    truncated: bool,
    /// Whether the file changed meanwhile; its new version has a job of its own.
    changed: bool,
}

impl Ran {
    /// Exit code 0 is success, any other a failure of its class, a signal one that is tried again.
    pub(super) fn into_handled(
        self,
        command: &Command,
        changed: bool,
    ) -> Result<Handled, HandlerError> {
        if self.status.success() {
            let truncated = self.out.is_cut() || self.err.is_cut();
            let secrets = command.secrets();
            let (stdout, stderr) = (secrets.mask(&self.out), secrets.mask(&self.err));
            return Ok(Handled::done_with(&Done { stdout, stderr, truncated, changed }));
        }
        let text = command.secrets().mask(&self.err);
        let message = match self.status.code() {
            Some(code) => format!("exit code {code}: {text}"),
            None => format!("{}: {text}", self.status),
        };
        let failure = Failure::new(FailureCode::HandlerFailed, message);
        Err(match self.status.code() {
            Some(code) => failure.reclassify(command.class(code)).into(),
            None => failure.into(),
        })
    }
}

/// Cancels `done` once no queue holds a job that is leased or may run without anybody's word. Says so when
/// a circuit breaker is what keeps it waiting.
pub(super) async fn when_empty(process: &Process, done: CancellationToken) -> Result<()> {
    let Process { config, store, breakers, .. } = process;
    let mut open = HashSet::new();
    while !done.is_cancelled() {
        tell_of_breakers(breakers, &mut open);
        tokio::select! {
            () = done.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
        match is_empty(config, store).await {
            Ok(false) => {}
            Ok(true) => done.cancel(),
            Err(error) if error.is_retryable() => {
                crate::log_line!(warn, error = error, "cannot count what is left")
            }
            Err(error) => {
                done.cancel();
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Logs each queue once whenever its breaker opens.
fn tell_of_breakers(breakers: &CircuitBreakers, open: &mut HashSet<QueueName>) {
    for (queue, circuit) in breakers.states() {
        match circuit {
            Circuit::Closed => drop(open.remove(&queue)),
            _ if open.insert(queue.clone()) => crate::log_line!(
                warn,
                queue = queue,
                "the circuit breaker is open: jobs wait until one of them has gone well"
            ),
            _ => {}
        }
    }
}

/// Whether no job of the queues runs, or may without anybody's word; what rests does not.
async fn is_empty(config: &Config, store: &Arc<dyn Store>) -> Result<bool> {
    let queues = super::queues(config).collect::<Result<Vec<_>>>()?;
    let mut rest = false;
    for queue in &queues {
        for state in [State::Leased, State::Waiting] {
            let filter = JobFilter::new().queue(queue.clone()).state(state);
            let page = store.find(Query::Jobs(filter, Paging::first(1))).await?;
            match page.items.first() {
                Some(Found::Job(job)) if !rests(job) => return Ok(false),
                first => rest |= first.is_some(),
            }
        }
    }
    // Behind one that rests there may be others: their counts tell, however many they are.
    Ok(!rest || queues_rest(&queues, &store.look(StatsScope::Live).await?))
}

fn rests(job: &JobView) -> bool {
    job.blocked || job.run_at == Timestamp::MAX
}

fn queues_rest(queues: &[QueueName], stats: &Stats) -> bool {
    let ours = stats.queues.iter().filter(|queue| queues.contains(&queue.name));
    ours.into_iter()
        .all(|queue| queue.leased == 0 && queue.first_due.is_none_or(|due| due == Timestamp::MAX))
}
