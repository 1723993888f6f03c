//! Owns the children: how one is started, spoken to and ended, and what each role does.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use leasehold::{Context, Handled, Worker};
use leasehold_core::{
    ClaimRequest, JobKind, Json, LeaseLength, NewEvent, QueueName, Result, StoreExt, Topic,
    WorkerId,
};
use libtest_mimic::Failed;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;

const ROLE: &str = "LEASEHOLD_PROCESS_ROLE";
const URL: &str = "LEASEHOLD_PROCESS_URL";

/// A child process; ended when dropped.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Child {
    pub(crate) fn start(role: &str, engine: &Engine) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(ROLE, role).env(URL, engine.url());
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = pipes.spawn()?;
        let stdin = process.stdin.take().expect("a pipe");
        let stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = stdout.lines().map_while(std::result::Result::ok);
            lines.map(|line| sender.send(line)).take_while(std::result::Result::is_ok).count()
        });
        Ok(Self { process, stdin, lines })
    }

    /// Waits for a line that begins so.
    pub(crate) fn wait_for(&mut self, beginning: &str) -> Result<(), Failed> {
        let end = Instant::now() + Duration::from_secs(30);
        let mut heard = Vec::new();
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            match self.lines.recv_timeout(left) {
                Ok(line) if line.starts_with(beginning) => return Ok(()),
                Ok(line) => heard.push(line),
                Err(_) => break,
            }
        }
        Err(format!("the child never said {beginning:?}, but {heard:?}").into())
    }

    pub(crate) fn say(&mut self, line: &str) -> std::io::Result<()> {
        writeln!(self.stdin, "{line}")?;
        self.stdin.flush()
    }

    /// Ends the process as `kill -9` does.
    pub(crate) fn kill(&mut self) -> std::io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(|_| ())
    }

    /// Waits for the process's own end; how it was.
    pub(crate) fn end(&mut self, within: Duration) -> Result<std::process::ExitStatus, Failed> {
        let begun = Instant::now();
        while begun.elapsed() < within {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("the child still runs after {within:?}").into())
    }

    pub(crate) fn signal(&self, name: &str) -> Result<(), Failed> {
        let pid = self.process.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status()?;
        if status.success() { Ok(()) } else { Err(format!("kill -{name} failed").into()) }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Plays the role this process was started in, if it was.
pub(crate) fn play_role() -> Option<ExitCode> {
    let role = std::env::var(ROLE).ok()?;
    let url = std::env::var(URL).ok()?;
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let played = runtime.block_on(async {
        match role.as_str() {
            "worker" => work(&url).await,
            "drained" => drain(&url).await,
            _ => hold(&url).await,
        }
    });
    Some(match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    })
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A worker that says when it begins a job and publishes one event with each success.
async fn work(url: &str) -> Result<()> {
    let topic = Topic::new("counted")?;
    let worker = Worker::builder(leasehold::connect(url).await?)
        .handler(JobKind::new("count")?, move |context: Context, _number: u64| {
            let topic = topic.clone();
            async move {
                say(&format!("begun {}", context.job().id));
                tokio::time::sleep(Duration::from_millis(30)).await;
                Ok(Handled::done().event(NewEvent::new(topic, Json::null())))
            }
        })
        .slots(4)
        .lease(LeaseLength::from_millis(1_000)?)
        .upkeep(Some(Duration::from_millis(300)))
        .build();
    worker.run(CancellationToken::new()).await
}

/// A worker that SIGTERM drains: jobs with an odd number never end, the others within 300 ms.
async fn drain(url: &str) -> Result<()> {
    let shutdown = CancellationToken::new();
    let (stop, term) = (shutdown.clone(), tokio::signal::unix::SignalKind::terminate());
    let mut signals = tokio::signal::unix::signal(term).expect("a signal handler");
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            stop.cancel();
            say("told");
        }
    });
    let worker = Worker::builder(leasehold::connect(url).await?)
        .handler(JobKind::new("count")?, |_: Context, number: u64| async move {
            say(&format!("begun {number}"));
            match number % 2 {
                0 => tokio::time::sleep(Duration::from_millis(300)).await,
                _ => std::future::pending().await,
            }
            Ok(Handled::done())
        })
        .slots(8)
        .grace(Duration::from_millis(1_500))
        .upkeep(None)
        .build();
    worker.run(shutdown).await
}

/// Claims one job, and settles it only when told to.
async fn hold(url: &str) -> Result<()> {
    let store = leasehold::connect(url).await?;
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let claims = store.claim(request.lease(LeaseLength::from_millis(1_000)?)).await?;
    let claim = claims.first().expect("a job to hold");
    say("claimed");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a word from the parent");
    match store.succeed(claim.fence).await {
        Ok(settled) => say(&format!("settled: {settled:?}")),
        Err(error) => say(&format!("refused: {}: {error}", error.kind().words())),
    }
    Ok(())
}
