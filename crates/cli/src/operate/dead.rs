//! Owns the commands about dead letters of jobs.

use std::sync::Arc;

use clap::Subcommand;
use leasehold::{
    DeadLetterView, Error, ErrorKind, Found, JobId, Paging, Query, QueueName, Result, Store,
};
use serde_json::{Value, json};

use super::PageOf;
use super::answer::Answer;
use super::jobs::document;

/// What is done with dead letters.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Lists dead letters, by job.
    List {
        /// Only of this queue
        #[arg(long)]
        queue: Option<QueueName>,
        #[command(flatten)]
        page: PageOf,
    },
    /// Shows the dead letters of one job.
    Show {
        /// The job
        job: JobId,
    },
}

const COLUMNS: &[&str] =
    &["job", "version", "queue", "kind", "stage", "error_class", "attempts", "last_failure_at"];

/// Does it.
pub(super) async fn act(store: &Arc<dyn Store>, action: Action) -> Result<Answer> {
    match action {
        Action::List { queue, page } => {
            let found = store.find(Query::DeadLetters(queue, page.paging())).await?;
            let rows = found.items.iter().filter_map(letter).map(row);
            Ok(Answer::Rows { columns: COLUMNS, rows: rows.collect(), next: found.next })
        }
        Action::Show { job } => show(store, job).await,
    }
}

fn letter(found: &Found) -> Option<&DeadLetterView> {
    match found {
        Found::DeadLetter(letter) => Some(letter),
        _ => None,
    }
}

async fn show(store: &Arc<dyn Store>, job: JobId) -> Result<Answer> {
    // Letters are listed by job; the cursor before this one's first begins right there.
    let before = leasehold::Cursor { id: job.as_uuid(), sequence: 0 };
    let found = store.find(Query::DeadLetters(None, Paging::first(100).after(before))).await?;
    let of_job = found.items.iter().filter_map(letter).filter(|letter| letter.job == job);
    let parts: Vec<_> = of_job.map(|letter| ("dead letter", facts(letter))).collect();
    if parts.is_empty() {
        let why = "the job has no dead letter";
        return Err(Error::new(ErrorKind::NotFound, "find", why).about(format!("job {job}")));
    }
    Ok(Answer::Parts(parts))
}

fn row(it: &DeadLetterView) -> Vec<Value> {
    vec![
        json!(it.job.to_string()),
        json!(it.claim_version.get()),
        json!(it.queue.as_str()),
        json!(it.kind.as_str()),
        json!(it.stage.as_str()),
        json!(it.error_class),
        json!(it.attempts),
        json!(it.last_failure_at.to_string()),
    ]
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
        ("failure", document(Some(&it.failure))),
    ])
}
