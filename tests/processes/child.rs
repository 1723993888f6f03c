//! Owns the children: how one is started, spoken to and ended, and what each role does.

use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::process::{Command, ExitCode};
use std::time::Duration;

use leasehold::{Context, Handled, Worker};
use leasehold_conformance::faults::process::Victim;
use leasehold_core::{
    ClaimRequest, JobKind, Json, LeaseLength, NewEvent, QueueName, Result, StoreExt, Topic,
    WorkerId,
};
use libtest_mimic::Failed;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;

const ROLE: &str = "LEASEHOLD_PROCESS_ROLE";
const URL: &str = "LEASEHOLD_PROCESS_URL";

/// A child process in a role; killed when dropped.
#[derive(Debug)]
pub(crate) struct Child(pub(crate) Victim);

impl Child {
    pub(crate) fn start(role: &str, engine: &Engine) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Victim::start(command.env(ROLE, role).env(URL, engine.url())).map(Self)
    }

    /// Waits for a line that begins so; the line.
    pub(crate) fn wait_for(&mut self, beginning: &str) -> Result<String, Failed> {
        Ok(self.0.wait_for(beginning, Duration::from_secs(90))?)
    }
}

impl Deref for Child {
    type Target = Victim;

    fn deref(&self) -> &Victim {
        &self.0
    }
}

impl DerefMut for Child {
    fn deref_mut(&mut self) -> &mut Victim {
        &mut self.0
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
            "contender" => crate::bound::contend(&url).await,
            "gated" => crate::awaits::work_gated(&url).await,
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

pub(crate) fn say(line: &str) {
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
        .grace(Duration::from_secs(4))
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
