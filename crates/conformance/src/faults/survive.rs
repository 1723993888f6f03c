//! Owns the trial of a handler: its worker is harmed at each durable step in turn, in every way, another
//! worker takes over, and the handler's own judge looks at what is left. It refuses to know the handler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::lab::LabStore;
use leasehold_core::{Error, ErrorKind, Result, Store};

use super::harm::{Harm, Harmed};
use super::watched::Watched;

/// Longer than any lease of a trial.
const PAST_THE_LEASE: Duration = Duration::from_secs(3_600);
/// The most durable steps of one worker.
const STEPS_MAX: usize = 10_000;
/// How long a worker may take that was harmed and goes on.
const WAIT: Duration = Duration::from_secs(60);

/// A handler on trial, with all that belongs to it.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Makes a fresh store on a manual clock, with the jobs in it, and forgets all earlier effects.
    ///
    /// # Errors
    /// What the store says.
    async fn begin(&self) -> Result<Arc<dyn LabStore>>;

    /// Works off what is due, as a worker of its own; `harmed` takes the handler's own durable steps.
    ///
    /// # Errors
    /// What the worker says.
    async fn work(&self, store: Arc<dyn Store>, harmed: Arc<Harmed>) -> Result<()>;

    /// Tells what is wrong at the end; nothing when all is well.
    ///
    /// # Errors
    /// What the store says.
    async fn judge(&self, store: &dyn LabStore) -> Result<Vec<String>>;
}

/// What a harm brought to light.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was done to the worker.
    pub harm: Harm,
    /// At which durable step, from 1.
    pub step: usize,
    /// That step: a verb of the store, or the name of an effect.
    pub name: String,
    /// What was wrong afterwards.
    pub wrong: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { harm, step, name, wrong } = self;
        write!(f, "{harm:?} at step {step}, {name}: {}", wrong.join("; "))
    }
}

/// What a trial came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How often a worker was harmed.
    pub trials: usize,
    /// What was found, in order.
    pub findings: Vec<Finding>,
}

/// Tries a handler: every harm at every durable step.
///
/// # Errors
/// What the store or the worker says; `Invalid` for a store without a manual clock; `Busy` when a worker
/// that was harmed does not come to its end.
pub async fn survive(subject: &dyn Subject) -> Result<Report> {
    let mut report = Report::default();
    for harm in Harm::ALL {
        for step in 1..=STEPS_MAX {
            let Some((name, wrong)) = one(subject, harm, step).await? else { break };
            report.trials += 1;
            if !wrong.is_empty() {
                report.findings.push(Finding { harm, step, name, wrong });
            }
        }
    }
    Ok(report)
}

/// Harms once; the step's name and what was wrong, or `None` when the worker had ended before that step.
async fn one(
    subject: &dyn Subject,
    harm: Harm,
    step: usize,
) -> Result<Option<(String, Vec<String>)>> {
    let store = subject.begin().await?;
    let manual = || Error::invalid("survive", "the store has no manual clock");
    let clock = store.clock().ok_or_else(manual)?;
    let plain: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
    let harmed = Arc::new(Harmed::at(harm, step));
    let watched = Watched::new(Arc::clone(&plain), Arc::clone(&harmed) as _);
    let mut working = subject.work(watched, Arc::clone(&harmed));
    let name = tokio::select! {
        biased;
        name = harmed.until_struck() => name,
        ended = &mut working => {
            ended?;
            let struck = tokio::time::timeout(Duration::ZERO, harmed.until_struck()).await;
            let Ok(name) = struck else { return Ok(None) };
            let wrong = subject.judge(&*store).await?;
            return Ok(Some((name, wrong)));
        }
    };
    if harm == Harm::ReplyLost {
        in_time(working).await?;
    } else {
        let mut first = Some(working);
        if harm.kills() {
            first = None;
        }
        clock.advance(PAST_THE_LEASE);
        in_time(subject.work(plain, Arc::new(Harmed::not()))).await?;
        harmed.go_on();
        if let Some(working) = first {
            in_time(working).await?;
        }
    }
    Ok(Some((name, subject.judge(&*store).await?)))
}

async fn in_time(working: impl Future<Output = Result<()>>) -> Result<()> {
    let late = || Error::new(ErrorKind::Busy, "survive", "the worker does not come to its end");
    tokio::time::timeout(WAIT, working).await.map_err(|_| late())?
}
