//! Owns listings: pages by id (or number), and the views readers get. Writes nothing.

use leasehold_core::listing::{self, Listed, listed, page, page_past};
use leasehold_core::row::QueueRow;
use leasehold_core::rules::Lifecycles;
use leasehold_core::{
    Cursor, DeadLetterView, Error, EventFilter, EventView, Found, JobFilter, JobId, JobView,
    LetterFilter, Page, Paging, Query, Result, TransitionView, UnreadableView, WaitView,
};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::error::{corrupt, engine};
use crate::load::{self, Shared, bound};
use crate::row::Columns;
use crate::statement::{Sql, row, rows, sql};
use crate::{letters, places, waits};

/// Reads a page; the connection is inside a transaction, so that all of it is of one instant.
pub(crate) fn find(conn: &Connection, shared: &Shared, query: &Query) -> Result<Page<Found>> {
    match query {
        Query::Jobs(filter, paging) => {
            paging.check()?;
            let lifecycles = load::lifecycles(conn, shared)?;
            let found = jobs(conn, &lifecycles, filter, paging)?;
            let cursor = |job: &JobView| Cursor { id: job.id.as_uuid(), sequence: 0 };
            Ok(page_past(found, paging, cursor, |job| Found::Job(Box::new(job))))
        }
        Query::Events(filter, paging) => {
            paging.check()?;
            let found = events(conn, filter, paging)?;
            let cursor = |event: &EventView| Cursor { id: event.id.as_uuid(), sequence: 0 };
            Ok(page_past(found, paging, cursor, |event| Found::Event(Box::new(event))))
        }
        Query::DeadLetters(queue, paging) => {
            let mut filter = LetterFilter::new();
            filter.queue.clone_from(queue);
            letter_page(conn, &filter, paging)
        }
        Query::Letters(filter, paging) => letter_page(conn, filter, paging),
        Query::Transitions(job, paging) => {
            paging.check()?;
            let found = transitions(conn, *job, paging)?;
            let cursor =
                |at: &TransitionView| Cursor { id: at.job.as_uuid(), sequence: at.sequence };
            Ok(page(found, paging, cursor, Found::Transition))
        }
        Query::Parents(job, paging) => {
            paging.check()?;
            let found = waits::page(conn, sql!("find_parents"), *job, paging)?;
            let cursor = |wait: &WaitView| Cursor { id: wait.parent.as_uuid(), sequence: 0 };
            Ok(page(found, paging, cursor, Found::Wait))
        }
        Query::Children(job, paging) => {
            paging.check()?;
            let found = waits::page(conn, sql!("find_children"), *job, paging)?;
            let cursor = |wait: &WaitView| Cursor { id: wait.job.as_uuid(), sequence: 0 };
            Ok(page(found, paging, cursor, Found::Wait))
        }
        Query::ParentCounts(job) => {
            let counts = waits::count_parents(conn, *job)?;
            Ok(Page::from_parts(vec![Found::ParentCounts(counts)], None))
        }
        Query::Tombstone(job) => {
            let key = params![job.as_bytes().as_slice()];
            let read = |row: &rusqlite::Row<'_>| Columns::of(row).tombstone();
            let found = row(conn, sql!("load_tombstones"), key, read)?;
            let found = found.map(|row| Found::Tombstone(row.into()));
            Ok(Page::from_parts(found.into_iter().collect(), None))
        }
        Query::Queues => {
            let found = queues_past(conn)?.into_iter().map(|row| match row {
                Ok(row) => Found::Queue(row.into()),
                Err(row) => Found::Unreadable(row),
            });
            Ok(Page::from_parts(found.collect(), None))
        }
        _ => Err(Error::invalid("find", "this version does not know the query")),
    }
}

/// Reads a row that begins with its id.
fn by_id<T>(
    row: &rusqlite::Row<'_>,
    read: impl Fn(&rusqlite::Row<'_>) -> Result<T>,
) -> Result<Listed<T>> {
    listed(read(row), || Ok(Cursor { id: place_of(row)?, sequence: 0 }))
}

/// Where a row stands in the order of ids, also where its id is none: behind it, and before the next.
fn place_of(row: &rusqlite::Row<'_>) -> Result<Uuid> {
    let bytes = row.get_ref(0).map_err(engine)?.as_blob().map_err(|e| corrupt(e.to_string()))?;
    if let Ok(id) = Uuid::from_slice(bytes) {
        return Ok(id);
    }
    let mut place = [0; 16];
    place.iter_mut().zip(bytes).for_each(|(at, byte)| *at = *byte);
    let behind = u128::from(bytes.len() > 16);
    Ok(Uuid::from_u128(u128::from_be_bytes(place).saturating_add(behind)))
}

/// What a page of ids begins after. Without a cursor a text, which lies before every blob, also before an empty
/// one that somebody made of an id.
fn after(id: Option<&Uuid>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(id.map_or(ValueRef::Text(b""), |id| ValueRef::Blob(id.as_bytes())))
}

fn jobs(
    conn: &Connection,
    lifecycles: &Lifecycles,
    filter: &JobFilter,
    paging: &Paging,
) -> Result<Vec<Listed<JobView>>> {
    let cursor = paging.after.map(|cursor| cursor.id);
    let begin = after(cursor.as_ref());
    let mut only = filter.id;
    if let Some((scope, key)) = &filter.key {
        let values = params![scope.as_str(), key.as_str()];
        let held = row(conn, sql!("find_key"), values, |row| Columns::of(row).id())?;
        match held.map(JobId::from_uuid) {
            Some(holder) if only.is_none_or(|id| id == holder) => only = Some(holder),
            _ => return Ok(Vec::new()),
        }
    }
    let queue = filter.queue.as_ref().map(|queue| queue.as_str());
    let (state, kind) =
        (filter.state.map(|state| state.as_str()), filter.kind.as_ref().map(|kind| kind.as_str()));
    let subject = filter.subject.as_deref();
    let partition = filter.partition.as_ref().map(|name| name.as_str());
    let view = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let job = columns.job()?;
        let request = columns.request(job.id)?;
        let mut view = JobView::from_rows(lifecycles, job, request, columns.outcome()?)?;
        view.replay_of = columns.maybe_id()?.map(JobId::from_uuid);
        Ok(view)
    };
    if let Some(id) = only {
        if cursor.is_some_and(|cursor| id.as_uuid() <= cursor) {
            return Ok(Vec::new());
        }
        let values = params![id.as_bytes().as_slice(), queue, state, kind, subject, partition];
        // Whoever asks for one job is told why it cannot be read.
        return Ok(rows(conn, sql!("find_job"), values, view)?.into_iter().map(Ok).collect());
    }
    let view = |row: &rusqlite::Row<'_>| by_id(row, view);
    let size = bound(paging.size + 1);
    let values = params![begin, queue, state, kind, subject, size, partition];
    if subject.is_some() {
        return rows(conn, sql!("find_jobs_about"), values, view);
    }
    let placed = queue.is_some() || state.is_some() || kind.is_some();
    if !placed || partition.is_some() {
        return rows(conn, sql!("find_jobs"), values, view);
    }
    let mut found = Vec::with_capacity(paging.size + 1);
    for id in places::job_ids(conn, filter, &begin, paging.size + 1)? {
        found.extend(row(
            conn,
            sql!("find_job"),
            params![id, queue, state, kind, subject, partition],
            view,
        )?);
    }
    Ok(found)
}

fn events(
    conn: &Connection,
    filter: &EventFilter,
    paging: &Paging,
) -> Result<Vec<Listed<EventView>>> {
    let cursor = paging.after.map(|cursor| cursor.id);
    let begin = after(cursor.as_ref());
    let of_key = filter.ordering.as_ref().is_some_and(|ordering| ordering.key_text().is_some());
    if filter.id.is_none() && !of_key && (filter.topic.is_some() || filter.state.is_some()) {
        let mut found = Vec::with_capacity(paging.size + 1);
        for id in places::event_ids(conn, filter, &begin, paging.size + 1)? {
            found.extend(events_by(conn, sql!("find_event"), filter, (&begin, Some(&id), 1))?);
        }
        return Ok(found);
    }
    let sql: Sql = match filter.id {
        Some(_) => sql!("find_event"),
        None if of_key => sql!("find_events_of"),
        None => sql!("find_events"),
    };
    let id = filter.id.as_ref().map(|id| id.as_bytes().as_slice());
    events_by(conn, sql, filter, (&begin, id, paging.size + 1))
}

fn events_by(
    conn: &Connection,
    sql: Sql,
    filter: &EventFilter,
    (begin, id, limit): (&ToSqlOutput<'_>, Option<&[u8]>, usize),
) -> Result<Vec<Listed<EventView>>> {
    let values = params![
        begin,
        id,
        filter.topic.as_ref().map(|topic| topic.as_str()),
        filter.state.map(|state| state.as_str()),
        filter.ordering.as_ref().map(|ordering| ordering.namespace()),
        filter.ordering.as_ref().and_then(|ordering| ordering.key_text()),
        bound(limit),
    ];
    let view = |row: &rusqlite::Row<'_>| Ok(EventView::from(Columns::of(row).event()?));
    if filter.id.is_some() {
        return Ok(rows(conn, sql, values, view)?.into_iter().map(Ok).collect());
    }
    rows(conn, sql, values, |row| by_id(row, view))
}

fn letter_page(conn: &Connection, filter: &LetterFilter, paging: &Paging) -> Result<Page<Found>> {
    paging.check()?;
    let found = letters::page(conn, filter, paging)?;
    let cursor = |letter: &DeadLetterView| Cursor {
        id: letter.job.as_uuid(),
        sequence: letter.claim_version.get(),
    };
    Ok(page_past(found, paging, cursor, |letter| Found::DeadLetter(Box::new(letter))))
}

fn transitions(conn: &Connection, job: JobId, paging: &Paging) -> Result<Vec<TransitionView>> {
    let number = paging.after.map_or(-1, |cursor| cursor.sequence);
    let values = params![job.as_bytes().as_slice(), number, bound(paging.size + 1)];
    rows(conn, sql!("find_transitions"), values, |row| Ok(Columns::of(row).transition()?.into()))
}

/// Every queue that can be read, by name.
pub(crate) fn queues(conn: &Connection) -> Result<Vec<QueueRow>> {
    Ok(queues_past(conn)?.into_iter().flatten().collect())
}

/// Every queue by name, and what stands in the place of one that cannot be read.
pub(crate) fn queues_past(conn: &Connection) -> Result<Vec<Result<QueueRow, UnreadableView>>> {
    rows(conn, sql!("find_queues"), [], |row| {
        listing::named(Columns::of(row).queue(), Columns::of(row).raw())
    })
}
