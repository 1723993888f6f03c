//! Owns what a run of the command means for its job, and when a worker that runs once is done.

use std::process::ExitStatus;
use std::time::Duration;

use leasehold::{
    CancellationToken, Failure, FailureCode, Handled, HandlerError, JobFilter, Paging, Query,
    Result, State, Store,
};
use serde::Serialize;
use std::sync::Arc;

use super::command::Command;
use super::tail::Kept;
use crate::config::Config;

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
            let (stdout, stderr) = (mask(&self.out.text()), mask(&self.err.text()));
            return Ok(Handled::done_with(&Done { stdout, stderr, truncated, changed }));
        }
        let text = self.err.text();
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

fn mask(text: &str) -> String {
    leasehold::sanitize::sanitize(text)
}

/// Cancels `done` once no queue holds a job that waits or is leased.
pub(super) async fn when_empty(
    config: &Arc<Config>,
    store: Arc<dyn Store>,
    done: CancellationToken,
) -> Result<()> {
    while !done.is_cancelled() {
        tokio::select! {
            () = done.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
        match is_empty(config, &store).await {
            Ok(false) => {}
            Ok(true) => done.cancel(),
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, "cannot count what is left")
            }
            Err(error) => {
                done.cancel();
                return Err(error);
            }
        }
    }
    Ok(())
}

async fn is_empty(config: &Config, store: &Arc<dyn Store>) -> Result<bool> {
    for queue in super::queues(config) {
        let queue = queue?;
        for state in [State::Waiting, State::Leased] {
            let filter = JobFilter::new().queue(queue.clone()).state(state);
            let found = store.find(Query::Jobs(filter, Paging::first(1))).await?;
            if !found.items.is_empty() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
