//! Owns the commands about the outbox.

use std::sync::Arc;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use leasehold::{
    Actor, Control, Error, ErrorKind, EventFilter, EventId, EventState, EventView, Found, Paging,
    Query, Result, Store, Topic,
};
use serde_json::{Value, json};

use super::PageOf;
use super::answer::Answer;
use super::jobs::{document, done, unreadable};

/// Reads the state of an event.
fn states() -> impl TypedValueParser<Value = EventState> {
    let known = EventState::ALL.map(EventState::as_str);
    PossibleValuesParser::new(known).try_map(|name| EventState::parse(&name))
}

/// What is done with events.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Lists events, the oldest first.
    List {
        /// Only of this topic
        #[arg(long)]
        topic: Option<Topic>,
        /// Only in this state
        #[arg(long, value_parser = states())]
        state: Option<EventState>,
        #[command(flatten)]
        page: PageOf,
    },
    /// Shows everything about one event.
    Show {
        /// The event
        event: EventId,
        /// Show the payload too, which may hold personal data
        #[arg(long)]
        payload: bool,
    },
    /// Sends a dead-lettered event again, with a fresh budget.
    Replay {
        /// The event
        event: EventId,
    },
}

impl Action {
    /// Whether it changes nothing.
    pub(super) fn looks(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Show { .. })
    }
}

const COLUMNS: &[&str] =
    &["event", "topic", "key", "sequence", "state", "attempts", "of", "run_at"];

/// Does it.
pub(super) async fn act(store: &Arc<dyn Store>, action: Action, actor: Actor) -> Result<Answer> {
    match action {
        Action::List { topic, state, page } => {
            let mut filter = EventFilter::new();
            filter.topic = topic;
            filter.state = state;
            let found = store.find(Query::Events(filter, page.paging())).await?;
            let rows = found.items.iter().filter_map(|found| match found {
                Found::Event(event) => Some(row(event)),
                Found::Unreadable(row) => Some(unreadable(row, COLUMNS, 4)),
                _ => None,
            });
            Ok(Answer::Rows { columns: COLUMNS, rows: rows.collect(), next: found.next })
        }
        Action::Show { event: id, payload } => {
            let filter = EventFilter::new().id(id);
            let found = store.find(Query::Events(filter, Paging::first(1))).await?;
            let it = found.items.first().and_then(event).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "find", "there is no such event")
                    .about(format!("event {id}"))
            })?;
            Ok(facts(it, payload))
        }
        Action::Replay { event } => {
            done(store.control(Control::ReplayEvent { event, actor }).await?)
        }
    }
}

fn event(found: &Found) -> Option<&EventView> {
    match found {
        Found::Event(event) => Some(event),
        _ => None,
    }
}

fn row(it: &EventView) -> Vec<Value> {
    vec![
        json!(it.id.to_string()),
        json!(it.topic.as_str()),
        json!(it.ordering.key_text()),
        json!(it.sequence),
        json!(it.state.as_str()),
        json!(it.attempts),
        json!(it.max_attempts),
        json!(it.run_at.to_string()),
    ]
}

fn facts(it: &EventView, with_payload: bool) -> Answer {
    let mut facts = vec![
        ("id", json!(it.id.to_string())),
        ("topic", json!(it.topic.as_str())),
        ("key", json!(it.ordering.key_text())),
        ("sequence", json!(it.sequence)),
        ("state", json!(it.state.as_str())),
        ("attempts", json!(it.attempts)),
        ("max_attempts", json!(it.max_attempts)),
        ("claim_version", json!(it.claim_version.get())),
        ("created_at", json!(it.created_at.to_string())),
        ("run_at", json!(it.run_at.to_string())),
        ("finished_at", json!(it.finished_at.map(|at| at.to_string()))),
        ("failure", document(it.failure.as_ref())),
    ];
    if with_payload {
        facts.push(("payload", document(Some(&it.payload))));
    }
    Answer::Facts(facts)
}
