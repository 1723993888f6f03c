//! Owns the commands about dead letters of jobs: what they hold, and what an operator does about them.

use std::sync::Arc;

use clap::{Args, Subcommand};
use leasehold::{
    Actor, Control, DeadLetterView, Error, ErrorKind, Found, JobId, JobKind, LetterAct,
    LetterFilter, LetterState, Paging, Query, QueueName, ReplayBatch, ReplayOutcome, ReplayReport,
    ReplayedRow, Result, Store, StoreExt,
};
use serde_json::json;

use super::PageOf;
use super::answer::Answer;
use super::jobs::{document, done};
use super::letters::{Shown, list, states};

/// What is done with dead letters.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Lists the dead letters that are not closed, by job.
    List {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        shown: Shown,
        #[command(flatten)]
        page: PageOf,
    },
    /// Shows the dead letters of one job.
    Show {
        /// The job
        job: JobId,
    },
    /// Runs dead-lettered jobs again, each with a fresh budget; reports every one.
    Replay {
        #[command(flatten)]
        which: Which,
        /// What was done about the cause
        #[arg(long)]
        note: String,
        /// Vouch that what the jobs did so far may happen again
        #[arg(long)]
        safe_to_repeat: bool,
        /// Begin at the first stage, without the checkpoint
        #[arg(long)]
        from_start: bool,
        /// Only report what would be asked for
        #[arg(long)]
        dry_run: bool,
    },
    /// Adds a note to a job's newest letter.
    Annotate(Noted),
    /// Closes a job's newest letter by hand.
    Resolve(Noted),
    /// Says that a job's newest letter wants more than a replay.
    Escalate(Noted),
}

impl Action {
    /// Whether it changes nothing.
    pub(super) fn looks(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Show { .. })
    }
}

/// Which letters.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub struct Which {
    /// Only of this job
    #[arg(long)]
    job: Option<JobId>,
    /// Only of this queue
    #[arg(long)]
    queue: Option<QueueName>,
    /// Only of this kind
    #[arg(long)]
    kind: Option<JobKind>,
    /// Only at this state
    #[arg(long, value_parser = states())]
    state: Option<LetterState>,
    /// Only of this failure, such as NETWORK_TIMEOUT
    #[arg(long, value_name = "ID")]
    failure: Option<String>,
}

impl Which {
    fn filter(self) -> LetterFilter {
        let mut filter = LetterFilter::new();
        (filter.job, filter.queue, filter.kind) = (self.job, self.queue, self.kind);
        (filter.state, filter.error_class) = (self.state, self.failure);
        filter
    }
}

/// A job and a word about it.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub struct Noted {
    /// The job
    job: JobId,
    /// Why
    #[arg(long)]
    note: String,
}

const REPORT: &[&str] = &["job", "version", "outcome", "runs_as"];

/// Does it; tells beside the answer how many letters were to be replayed and were refused.
pub(super) async fn act(
    store: &Arc<dyn Store>,
    action: Action,
    actor: Actor,
) -> Result<(Answer, usize)> {
    let (act, Noted { job, note }) = match action {
        Action::List { which, shown, page } => {
            return Ok((list(store, which.filter(), &shown, page.paging()).await?, 0));
        }
        Action::Show { job } => return Ok((show(store, job).await?, 0)),
        Action::Replay { which, note, safe_to_repeat, from_start, dry_run } => {
            let job = which.job;
            let mut batch = ReplayBatch::new(which.filter(), actor).note(note);
            batch = if safe_to_repeat { batch.safe_to_repeat() } else { batch };
            batch = if from_start { batch.from_start() } else { batch };
            batch = if dry_run { batch.dry_run() } else { batch };
            let report = batch.all(&**store).await?;
            let is_refused = |row: &&ReplayedRow| matches!(row.outcome, ReplayOutcome::Refused(_));
            let refused = report.rows.iter().filter(is_refused).count();
            return match (report.stopped.clone(), job) {
                (Some(error), _) if report.rows.is_empty() => Err(error),
                (None, Some(job)) if report.rows.is_empty() => Ok((none_of(store, job).await?, 0)),
                _ => Ok((told(report), refused)),
            };
        }
        Action::Annotate(noted) => (LetterAct::Annotate, noted),
        Action::Resolve(noted) => (LetterAct::Resolve, noted),
        Action::Escalate(noted) => (LetterAct::Escalate, noted),
    };
    Ok((done(store.control(Control::NoteLetter { act, job, actor, note }).await?)?, 0))
}

/// Says why no letter of one job waits to be replayed.
///
/// # Errors
/// `NotFound` for a job that is not there, `IllegalTransition` for one without a dead letter; the store's.
async fn none_of(store: &Arc<dyn Store>, job: JobId) -> Result<Answer> {
    let filter = LetterFilter::new().job(job);
    let found = store.find(Query::Letters(filter, Paging::first(1_000))).await?;
    let Some(letter) = found.items.iter().rev().find_map(letter) else {
        let refused = |kind, why: String| {
            Err(Error::new(kind, "dead replay", why).about(format!("job {job}")))
        };
        return match store.job(job).await? {
            None => refused(ErrorKind::NotFound, "there is no such job".to_owned()),
            Some(job) => {
                let why = format!("it is {}, there is no dead letter", job.state);
                refused(ErrorKind::IllegalTransition, why)
            }
        };
    };
    let outcome = match letter.state {
        LetterState::Replaying => "is being replayed already",
        LetterState::Superseded => "has a newer letter in its place",
        LetterState::Resolved if letter.replay_job.is_some() => "was replayed and is resolved",
        LetterState::Resolved => "is resolved and stays closed",
        // What waits for an operator was not among those that were asked for.
        _ => return Ok(Answer::Rows { columns: REPORT, rows: Vec::new(), next: None }),
    };
    let runs_as = letter.replay_job.map(|job| job.to_string());
    let version = letter.claim_version.get();
    let row = vec![json!(job.to_string()), json!(version), json!(outcome), json!(runs_as)];
    Ok(Answer::Rows { columns: REPORT, rows: vec![row], next: None })
}

fn told(report: ReplayReport) -> Answer {
    let rows = report.rows.into_iter().map(|row| {
        let (outcome, job) = match row.outcome {
            ReplayOutcome::Planned => ("would be replayed".to_owned(), None),
            ReplayOutcome::Replayed(job) => ("replayed".to_owned(), Some(job)),
            ReplayOutcome::Repeated(job) => ("is being replayed already".to_owned(), Some(job)),
            ReplayOutcome::Refused(error) => (format!("refused: {error}"), None),
            _ => ("ended in a way this command does not know".to_owned(), None),
        };
        let job = job.map(|job| job.to_string());
        vec![json!(row.job.to_string()), json!(row.letter.get()), json!(outcome), json!(job)]
    });
    let rows = Answer::Rows { columns: REPORT, rows: rows.collect(), next: report.next };
    match report.stopped {
        None => rows,
        Some(error) => {
            let why = Answer::facts([("ended_early", json!(error.to_string()))]);
            Answer::Parts(vec![("letters", rows), ("rest", why)])
        }
    }
}

fn letter(found: &Found) -> Option<&DeadLetterView> {
    match found {
        Found::DeadLetter(letter) => Some(letter),
        _ => None,
    }
}

async fn show(store: &Arc<dyn Store>, job: JobId) -> Result<Answer> {
    let found =
        store.find(Query::Letters(LetterFilter::new().job(job), Paging::first(1_000))).await?;
    let letters: Vec<_> = found.items.iter().filter_map(letter).map(facts).collect();
    if letters.is_empty() {
        let why = "the job has no dead letter";
        return Err(Error::new(ErrorKind::NotFound, "find", why).about(format!("job {job}")));
    }
    Ok(Answer::Several("letters", letters))
}

fn facts(it: &DeadLetterView) -> Answer {
    Answer::facts([
        ("job", json!(it.job.to_string())),
        ("claim_version", json!(it.claim_version.get())),
        ("queue", json!(it.queue.as_str())),
        ("kind", json!(it.kind.as_str())),
        ("stage", json!(it.stage.as_str())),
        ("error_class", json!(it.error_class)),
        ("attempts", json!(it.attempts)),
        ("first_failure_at", json!(it.first_failure_at.to_string())),
        ("last_failure_at", json!(it.last_failure_at.to_string())),
        ("state", json!(it.state.as_str())),
        ("replay_job", json!(it.replay_job.map(|job| job.to_string()))),
        ("changed_at", json!(it.changed_at.map(|at| at.to_string()))),
        ("changed_by", json!(it.changed_by.as_ref().map(Actor::as_str))),
        ("note", json!(it.note)),
        ("failure", document(Some(&it.failure))),
    ])
}
