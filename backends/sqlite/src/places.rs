//! Owns the walk over the listing indexes. Each place there (a state, a queue and a kind; or a state
//! and a topic) holds its ids in order, so a filtered page takes a page from every place that fits and
//! keeps the smallest ids: it reads as much as the pages it gathers, however large the tables are.

use leasehold_core::{
    EventFilter, EventState, JobFilter, JobKind, QueueName, Result, State, Topic,
};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, params};

use crate::find;
use crate::load::bound;
use crate::row::Columns;
use crate::statement::{row, rows, sql};

/// The ids of the first jobs after one that fit a filter's queue, state and kind.
pub(crate) fn job_ids(
    conn: &Connection,
    filter: &JobFilter,
    begin: &ToSqlOutput<'_>,
    limit: usize,
) -> Result<Vec<Vec<u8>>> {
    let queues = match &filter.queue {
        Some(queue) => vec![queue.clone()],
        None => find::queues(conn)?.into_iter().map(|queue| queue.name).collect(),
    };
    let mut found = Vec::new();
    for queue in &queues {
        for state in State::ALL.into_iter().filter(|it| filter.state.is_none_or(|only| only == *it))
        {
            let kinds = match &filter.kind {
                Some(kind) => vec![kind.clone()],
                None => kinds(conn, state, queue)?,
            };
            for kind in kinds {
                let values =
                    params![state.as_str(), queue.as_str(), kind.as_str(), begin, bound(limit)];
                found.extend(ids(conn, values)?);
            }
        }
    }
    Ok(smallest(found, limit))
}

fn ids(conn: &Connection, values: impl rusqlite::Params) -> Result<Vec<Vec<u8>>> {
    rows(conn, sql!("find_ids"), values, |row| Columns::of(row).raw())
}

/// The ids of the first events after one that fit a filter's topic and state.
pub(crate) fn event_ids(
    conn: &Connection,
    filter: &EventFilter,
    begin: &ToSqlOutput<'_>,
    limit: usize,
) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for state in
        EventState::ALL.into_iter().filter(|it| filter.state.is_none_or(|only| only == *it))
    {
        let topics = match &filter.topic {
            Some(topic) => vec![topic.clone()],
            None => topics(conn, state)?,
        };
        for topic in topics {
            let values = params![state.as_str(), topic.as_str(), begin, bound(limit)];
            found.extend(rows(conn, sql!("find_event_ids"), values, |row| Columns::of(row).raw())?);
        }
    }
    Ok(smallest(found, limit))
}

fn smallest(mut found: Vec<Vec<u8>>, limit: usize) -> Vec<Vec<u8>> {
    found.sort_unstable();
    found.truncate(limit);
    found
}

/// The kinds that a queue has at a state, one step of the index each.
fn kinds(conn: &Connection, state: State, queue: &QueueName) -> Result<Vec<JobKind>> {
    let mut found: Vec<JobKind> = Vec::new();
    loop {
        let after = found.last().map_or("", JobKind::as_str);
        let values = params![state.as_str(), queue.as_str(), after];
        let read = |row: &rusqlite::Row<'_>| Columns::of(row).text(|text| JobKind::new(text));
        match row(conn, sql!("find_kind"), values, read)? {
            Some(kind) => found.push(kind),
            None => return Ok(found),
        }
    }
}

/// The topics that have events at a state, one step of the index each.
pub(crate) fn topics(conn: &Connection, state: EventState) -> Result<Vec<Topic>> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let read = |row: &rusqlite::Row<'_>| Columns::of(row).raw::<String>();
        match row(conn, sql!("find_topic"), params![state.as_str(), after], read)? {
            // A name that is none holds up no other.
            Some(name) => {
                found.extend(Topic::new(name.as_str()));
                after = name;
            }
            None => return Ok(found),
        }
    }
}
