//! Owns the commands about jobs. Refuses to know why a job waits; that is told elsewhere.

use std::sync::Arc;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use leasehold::{
    Actor, Control, Controlled, Error, ErrorKind, Found, IdempotencyKey, JobFilter, JobId, JobKind,
    JobView, Json, Paging, PartitionName, Query, QueueName, Result, Scope, State, Store,
    TransitionView, UnreadableView,
};
use serde_json::{Value, json};

use super::PageOf;
use super::answer::Answer;
use super::why;

/// Reads the state of a job.
fn states() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.map(State::as_str)).try_map(|name| State::parse(&name))
}

/// What is done with jobs.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Lists jobs, the oldest first.
    List {
        /// Only of this queue
        #[arg(long)]
        queue: Option<QueueName>,
        /// Only in this state
        #[arg(long, value_parser = states())]
        state: Option<State>,
        /// Only of this kind
        #[arg(long)]
        kind: Option<JobKind>,
        /// Only of this partition
        #[arg(long)]
        partition: Option<PartitionName>,
        /// Only the one that holds this idempotency key
        #[arg(long)]
        key: Option<IdempotencyKey>,
        /// The scope of the key
        #[arg(long, requires = "key", default_value = "")]
        scope: String,
        #[command(flatten)]
        page: PageOf,
    },
    /// Shows everything about one job.
    Show {
        /// The job
        job: JobId,
        /// Show payload, result and checkpoint too, which may hold personal data
        #[arg(long)]
        payload: bool,
    },
    /// Says why a job does not run.
    Why {
        /// The job
        job: JobId,
    },
    /// Calls a job off: a waiting one at once, a running one at its worker's next heartbeat.
    Cancel {
        /// The job
        job: JobId,
        /// Why, for the audit log
        #[arg(long)]
        reason: Option<String>,
    },
    /// Lets a job that rests, or is due later, be claimed at once.
    Wake {
        /// The job
        job: JobId,
    },
    /// Takes a failed job back to waiting while its budget lasts.
    Retry {
        /// The job
        job: JobId,
    },
}

impl Action {
    /// Whether it changes nothing.
    pub(super) fn looks(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Show { .. } | Self::Why { .. })
    }
}

const JOB: &[&str] = &[
    "job",
    "queue",
    "kind",
    "status",
    "attempts",
    "of",
    "priority",
    "run_at",
    "updated_at",
    "partition",
];
const TRANSITION: &[&str] = &["sequence", "at", "verb", "from", "to", "version", "worker", "actor"];

/// Does it.
pub(super) async fn act(store: &Arc<dyn Store>, action: Action, actor: Actor) -> Result<Answer> {
    match action {
        Action::List { queue, state, kind, partition, key, scope, page } => {
            let mut filter = JobFilter::new();
            filter.queue = queue;
            filter.state = state;
            filter.kind = kind;
            filter.partition = partition;
            filter.key = match key {
                Some(key) => Some((Scope::new(scope)?, key)),
                None => None,
            };
            list(store, filter, page.paging()).await
        }
        Action::Show { job, payload } => show(store, job, payload).await,
        Action::Why { job } => why::tell(store, &one(store, job).await?).await,
        Action::Cancel { job, reason } => {
            done(store.control(Control::RequestCancel { job, actor, reason }).await?)
        }
        Action::Wake { job } => done(store.control(Control::Wake { job, actor }).await?),
        Action::Retry { job } => done(store.control(Control::Retry { job, actor }).await?),
    }
}

/// Lists the jobs of a filter.
pub(super) async fn list(
    store: &Arc<dyn Store>,
    filter: JobFilter,
    paging: Paging,
) -> Result<Answer> {
    let page = store.find(Query::Jobs(filter, paging)).await?;
    let row = |job: &JobView| {
        vec![
            json!(job.id.to_string()),
            json!(job.queue.as_str()),
            json!(job.kind.as_str()),
            json!(job.status),
            json!(job.attempts),
            json!(job.max_attempts),
            json!(job.priority),
            json!(job.run_at.to_string()),
            json!(job.updated_at.to_string()),
            json!(job.partition.as_ref().map(PartitionName::as_str)),
        ]
    };
    let jobs = page.items.iter().filter_map(|found| match found {
        Found::Job(job) => Some(row(job)),
        Found::Unreadable(row) => Some(unreadable(row, JOB, 3)),
        _ => None,
    });
    Ok(Answer::Rows { columns: JOB, rows: jobs.collect(), next: page.next })
}

/// A row of which nothing but its id can be shown; why stands in one of the columns.
pub(super) fn unreadable(row: &UnreadableView, columns: &[&str], at: usize) -> Vec<Value> {
    let cell = |number: usize| match number {
        0 => json!(row.id),
        _ if number == at => json!(format!("cannot be read: {}", row.why)),
        _ => Value::Null,
    };
    (0..columns.len()).map(cell).collect()
}

async fn show(store: &Arc<dyn Store>, id: JobId, with_payload: bool) -> Result<Answer> {
    let job = one(store, id).await?;
    let found = store.find(Query::Transitions(id, Paging::first(1_000))).await?;
    let log = found.items.iter().filter_map(|found| match found {
        Found::Transition(transition) => Some(transition_row(transition)),
        _ => None,
    });
    let log = Answer::Rows { columns: TRANSITION, rows: log.collect(), next: found.next };
    Ok(Answer::Parts(vec![("job", facts(&job, with_payload)), ("transitions", log)]))
}

fn facts(job: &JobView, with_payload: bool) -> Answer {
    let time = |at: Option<leasehold::Timestamp>| json!(at.map(|at| at.to_string()));
    let mut facts = vec![
        ("id", json!(job.id.to_string())),
        ("queue", json!(job.queue.as_str())),
        ("kind", json!(job.kind.as_str())),
        ("lifecycle", json!(job.lifecycle.as_str())),
        ("state", json!(job.state.as_str())),
        ("status", json!(job.status)),
        ("stage", json!(job.stage.as_str())),
        ("priority", json!(job.priority)),
        ("partition", json!(job.partition.as_ref().map(PartitionName::as_str))),
        ("attempts", json!(job.attempts)),
        ("max_attempts", json!(job.max_attempts)),
        ("executions", json!(job.executions)),
        ("claim_version", json!(job.claim_version.get())),
        ("worker", json!(job.worker.map(|worker| worker.to_string()))),
        ("lease_expires_at", time(job.lease_expires_at)),
        ("cancel_requested", json!(job.cancel_requested)),
        ("blocked", json!(job.blocked)),
        ("scope", json!(job.scope.as_str())),
        ("key", json!(job.key.as_ref().map(IdempotencyKey::as_str))),
        ("subject", json!(job.subject.as_ref().map(|subject| subject.name.clone()))),
        ("created_at", time(Some(job.created_at))),
        ("run_at", time(Some(job.run_at))),
        ("started_at", time(job.started_at)),
        ("finished_at", time(job.finished_at)),
        ("updated_at", time(Some(job.updated_at))),
        ("failure", document(job.failure.as_ref())),
    ];
    if with_payload {
        facts.push(("payload", document(Some(&job.payload))));
        facts.push(("result", document(job.result.as_ref())));
        facts.push(("checkpoint", document(job.checkpoint.as_ref())));
    }
    Answer::Facts(facts)
}

/// A document as text: JSON within JSON would not keep its numbers as they were written.
pub(super) fn document(json: Option<&Json>) -> Value {
    json!(json.map(Json::as_str))
}

fn transition_row(it: &TransitionView) -> Vec<Value> {
    vec![
        json!(it.sequence),
        json!(it.at.to_string()),
        json!(it.verb.as_str()),
        json!(it.from),
        json!(it.to),
        json!(it.claim_version.get()),
        json!(it.worker.map(|worker| worker.to_string())),
        json!(it.actor.as_ref().map(Actor::as_str)),
    ]
}

/// Reads one job.
///
/// # Errors
/// `NotFound` where there is none.
async fn one(store: &Arc<dyn Store>, id: JobId) -> Result<JobView> {
    let filter = JobFilter::new().id(id);
    let found = store.find(Query::Jobs(filter, Paging::first(1))).await?.items.pop();
    match found {
        Some(Found::Job(job)) => Ok(*job),
        _ => Err(Error::new(ErrorKind::NotFound, "find", "there is no such job")
            .about(format!("job {id}"))),
    }
}

/// Says what an act of control did.
pub(super) fn done(controlled: Controlled) -> Result<Answer> {
    let what = match controlled {
        Controlled::Done => "done",
        Controlled::Unchanged => "it was so already",
        Controlled::Cancelled => "cancelled",
        Controlled::CancelRequested => "its worker will be told at the next heartbeat",
        _ => "done, in a way this command does not know",
    };
    Ok(Answer::facts([("outcome", json!(what))]))
}
