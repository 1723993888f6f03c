//! Owns the command that is run for a file: its argument vector, its environment, its bounds. There
//! is no shell anywhere.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use leasehold::{Context, Failure, FailureClass, FailureCode, HandlerError};

use super::child::Group;
use super::outcome::Ran;
use super::secrets::Secrets;
use super::tail::{self, Kept};
use crate::config::Config;

/// How long a command that was asked to end has before it is killed.
const MERCY: Duration = Duration::from_secs(5);
/// How long the ends of its output are waited for once it is gone.
const DRAIN: Duration = Duration::from_secs(1);

/// What is run, and within which bounds.
#[derive(Debug)]
pub(super) struct Command {
    arguments: Vec<String>,
    environment: Vec<(String, OsString)>,
    timeout: Duration,
    output_max: usize,
    classes: Vec<(i32, FailureClass)>,
    /// What must not be kept of its output.
    secrets: Secrets,
}

impl Command {
    pub(super) fn new(config: &Config) -> Self {
        let passes = |name: &String| std::env::var_os(name).map(|value| (name.clone(), value));
        let class = |(code, class): &(String, String)| {
            let class = FailureClass::ALL.into_iter().find(|known| known.id() == class)?;
            Some((code.parse().ok()?, class))
        };
        Self {
            arguments: config.list("worker.command").to_vec(),
            environment: config.list("worker.command_env").iter().filter_map(passes).collect(),
            timeout: config.duration("worker.command_timeout"),
            output_max: usize::try_from(config.int("worker.command_output_max")).unwrap_or(0),
            classes: config.map("worker.exit_codes").iter().filter_map(class).collect(),
            secrets: Secrets::of(config),
        }
    }

    /// The class of failure of an exit code.
    pub(super) fn class(&self, code: i32) -> FailureClass {
        let known = self.classes.iter().find(|(known, _)| *known == code);
        known.map_or(FailureClass::Upstream, |(_, class)| *class)
    }

    /// What must not be kept of its output.
    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Runs the command to its end, or ends it: after its time, and when the handler is to stop. `None` where the
    /// machine has no room for one more process.
    ///
    /// # Errors
    /// A program that cannot be started, a command that ran too long or was stopped.
    pub(super) async fn run(
        &self,
        context: &Context,
        path: &Path,
    ) -> Result<Option<Ran>, HandlerError> {
        let mut command = self.prepared(context, path)?;
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if lacks_room(&error) => {
                let job = context.job().id;
                crate::log_line!(
                    warn,
                    error = error,
                    job_id = job,
                    "put off: no room for a process"
                );
                return Ok(None);
            }
            Err(error) => return Err(self.not_started(&error)),
        };
        let group = Group::of(&child);
        let keep = |from| tail::keep(from, self.output_max);
        let out = child.stdout.take().map(|pipe| tokio::spawn(keep(tail::Pipe::Out(pipe))));
        let err = child.stderr.take().map(|pipe| tokio::spawn(keep(tail::Pipe::Err(pipe))));
        let status = tokio::select! {
            status = child.wait() => status,
            () = tokio::time::sleep(self.timeout) => {
                group.end(&mut child, MERCY).await;
                let why = format!("the command ran longer than {:?} and was ended", self.timeout);
                return Err(Failure::new(FailureCode::DeadlineExceeded, why).into());
            }
            () = context.cancellation().cancelled() => {
                group.end(&mut child, MERCY).await;
                return Err(Failure::new(FailureCode::HandlerFailed, "the command was ended").into());
            }
        };
        let status = status.map_err(|error| {
            Failure::new(FailureCode::HandlerFailed, format!("the command was lost: {error}"))
        })?;
        // Whoever it left behind may hold the pipes open for ever.
        let (out, err) = (drained(out).await, drained(err).await);
        Ok(Some(Ran { status, out, err }))
    }

    fn prepared(
        &self,
        context: &Context,
        path: &Path,
    ) -> Result<tokio::process::Command, HandlerError> {
        let job = context.job();
        let fill = |argument: &String| -> OsString {
            let text = argument
                .replace("{job_id}", &job.id.to_string())
                .replace("{token}", &context.fencing_token().to_string())
                .replace("{attempt}", &job.attempt.to_string());
            with_path(&text, path)
        };
        let mut arguments = self.arguments.iter().map(fill);
        let program = arguments.next().ok_or_else(|| {
            Failure::new(FailureCode::InvariantBroken, "worker.command names no program")
        })?;
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("LEASEHOLD_JOB_ID", job.id.to_string())
            .env("LEASEHOLD_TOKEN", context.fencing_token().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        Ok(command)
    }

    fn not_started(&self, error: &std::io::Error) -> HandlerError {
        let program = self.arguments.first().map_or("", String::as_str);
        let why = format!("the program {program} cannot be started: {error}");
        // A program that is not there does not come by itself.
        let code = match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                FailureCode::ConfigInvalid
            }
            _ => FailureCode::HandlerFailed,
        };
        Failure::new(code, why).into()
    }
}

/// Whether there are too many files or processes, or too little memory: that passes, and is no fault of the job.
#[cfg(unix)]
fn lacks_room(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| known.contains(&error))
}

#[cfg(not(unix))]
fn lacks_room(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::OutOfMemory
}

/// Puts the path, which need not be text, in the place of `{path}`.
fn with_path(text: &str, path: &Path) -> OsString {
    let mut filled = OsString::new();
    for (at, part) in text.split("{path}").enumerate() {
        if at > 0 {
            filled.push(path.as_os_str());
        }
        filled.push(OsStr::new(part));
    }
    filled
}

async fn drained(reading: Option<tokio::task::JoinHandle<Kept>>) -> Kept {
    let Some(mut reading) = reading else { return Kept::default() };
    match tokio::time::timeout(DRAIN, &mut reading).await {
        Ok(Ok(kept)) => kept,
        Ok(Err(_)) => Kept::default(),
        Err(_) => {
            reading.abort();
            Kept::unfinished()
        }
    }
}
