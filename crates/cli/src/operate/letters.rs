//! Owns the listing of dead letters: which are shown, and what of each.

use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use leasehold::{
    Cursor, DeadLetterView, Failure, FailureClass, Found, JobId, LetterFilter, LetterState, Paging,
    Query, Result, Store,
};
use serde_json::{Value, json};

use super::answer::Answer;
use super::jobs::unreadable;

/// Which letters of those that were found.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub struct Shown {
    /// Only of this class of failure
    #[arg(long, value_parser = classes())]
    class: Option<FailureClass>,
    /// Closed ones too, superseded or resolved
    #[arg(long, conflicts_with = "state")]
    all: bool,
}

impl Shown {
    /// All of them.
    pub(super) const ALL: Self = Self { class: None, all: true };

    fn fits(&self, letter: &DeadLetterView, filter: &LetterFilter) -> bool {
        let is_closed = matches!(letter.state, LetterState::Superseded | LetterState::Resolved);
        let class = self.class.is_none_or(|class| class_of(letter) == Some(class));
        class && (self.all || filter.state.is_some() || !is_closed)
    }
}

/// Reads the class of a failure.
fn classes() -> impl TypedValueParser<Value = FailureClass> {
    let known = FailureClass::ALL.map(|class| class.id());
    let read = |name: String| FailureClass::parse(&name).ok_or("no class of failure");
    PossibleValuesParser::new(known).try_map(read)
}

/// Reads the state of a letter.
pub(super) fn states() -> impl TypedValueParser<Value = LetterState> {
    let known = LetterState::ALL.map(LetterState::as_str);
    PossibleValuesParser::new(known).try_map(|name| LetterState::parse(&name))
}

const COLUMNS: &[&str] = &[
    "job",
    "version",
    "queue",
    "kind",
    "stage",
    "error_class",
    "class",
    "attempts",
    "last_failure_at",
    "state",
];

/// Lists the dead letters of a filter that are to be shown, page by page until so many are found.
pub(super) async fn list(
    store: &Arc<dyn Store>,
    filter: LetterFilter,
    shown: &Shown,
    mut paging: Paging,
) -> Result<Answer> {
    let mut rows = Vec::new();
    loop {
        let page = store.find(Query::Letters(filter.clone(), paging.clone())).await?;
        let last = page.items.len().saturating_sub(1);
        for (at, found) in page.items.iter().enumerate() {
            match found {
                Found::DeadLetter(letter) if shown.fits(letter, &filter) => rows.push(row(letter)),
                Found::Unreadable(row) => rows.push(unreadable(row, COLUMNS, 5)),
                _ => continue,
            }
            if rows.len() == paging.size && at < last {
                return Ok(Answer::Rows { columns: COLUMNS, rows, next: place(found) });
            }
        }
        if page.next.is_none() || rows.len() == paging.size {
            return Ok(Answer::Rows { columns: COLUMNS, rows, next: page.next });
        }
        paging.after = page.next;
    }
}

/// Where a row stands in the listing.
fn place(found: &Found) -> Option<Cursor> {
    let (job, sequence) = match found {
        Found::DeadLetter(letter) => (letter.job, letter.claim_version.get()),
        Found::Unreadable(row) => {
            let (job, version) = row.id.split_once(' ').unwrap_or((&row.id, "0"));
            (job.parse::<JobId>().ok()?, version.parse().ok()?)
        }
        _ => return None,
    };
    Some(Cursor { id: job.as_uuid(), sequence })
}

fn class_of(letter: &DeadLetterView) -> Option<FailureClass> {
    Failure::from_json(&letter.failure).ok().map(|failure| failure.class())
}

fn row(it: &DeadLetterView) -> Vec<Value> {
    vec![
        json!(it.job.to_string()),
        json!(it.claim_version.get()),
        json!(it.queue.as_str()),
        json!(it.kind.as_str()),
        json!(it.stage.as_str()),
        json!(it.error_class),
        json!(class_of(it).map(|class| class.id())),
        json!(it.attempts),
        json!(it.last_failure_at.to_string()),
        json!(it.state.as_str()),
    ]
}
