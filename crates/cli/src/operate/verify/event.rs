//! Owns the rules of one event of the outbox: its own numbers and times, and its turn within its key.

use std::sync::Arc;

use leasehold::{
    EventFilter, EventId, EventState, EventView, Found, Ordering, Paging, Query, Result, Store,
};

use super::unless;

/// Reads an event, and those before it where it is being delivered, and tells what cannot be.
pub(super) async fn wrong(store: &Arc<dyn Store>, id: EventId, quick: bool) -> Result<Vec<String>> {
    let Some(event) = read(store, id).await? else { return Ok(Vec::new()) };
    let mut wrong = alone(&event);
    if !quick && event.state == EventState::Leased && event.ordering != Ordering::Unordered {
        let before = is_behind_another(store, &event).await?;
        // Only if it is still being delivered did it overtake.
        if before && read(store, id).await?.as_ref() == Some(&event) {
            wrong.push("is delivered before an earlier one of its key".to_owned());
        }
    }
    Ok(wrong)
}

/// What the row itself says.
pub(super) fn alone(event: &EventView) -> Vec<String> {
    let ended = matches!(event.state, EventState::Delivered | EventState::DeadLetter);
    let keyed = event.ordering != Ordering::Unordered;
    let version = u64::try_from(event.claim_version.get()).unwrap_or(0);
    unless([
        (event.finished_at.is_some() == ended, "an end against its state"),
        (event.max_attempts >= 1, "a budget of no attempts"),
        (u64::from(event.attempts) <= version, "tried more often than claimed"),
        (event.sequence.is_some() == keyed, "a place in no order"),
        (event.sequence.is_none_or(|at| at >= 1), "a place before the first"),
        (event.finished_at.is_none_or(|at| at >= event.created_at), "ended before it was made"),
    ])
}

async fn read(store: &Arc<dyn Store>, id: EventId) -> Result<Option<EventView>> {
    let query = Query::Events(EventFilter::new().id(id), Paging::first(1));
    Ok(store.find(query).await?.items.pop().and_then(|found| match found {
        Found::Event(event) => Some(*event),
        _ => None,
    }))
}

async fn is_behind_another(store: &Arc<dyn Store>, event: &EventView) -> Result<bool> {
    for state in [EventState::Waiting, EventState::Leased] {
        let filter = EventFilter::new().ordering(event.ordering.clone()).state(state);
        let mut after = None;
        loop {
            let paging = Paging { size: super::PAGE, after };
            let page = store.find(Query::Events(filter.clone(), paging)).await?;
            let is_before = |found: &Found| match found {
                Found::Event(other) => other.sequence < event.sequence,
                _ => false,
            };
            if page.items.iter().any(is_before) {
                return Ok(true);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(false)
}
