//! Owns what a run of the command means for its job.

use std::process::ExitStatus;

use leasehold::{Failure, FailureCode, Handled, HandlerError};
use serde::Serialize;

use super::command::Command;
use super::tail::Kept;

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
