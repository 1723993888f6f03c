//! Owns listings: pages by id (or number), and the views readers get. Writes nothing.

use leasehold_core::listing::{self, Listed, listed, page, page_past};
use leasehold_core::row::QueueRow;
use leasehold_core::rules::Lifecycles;
use leasehold_core::{
    Cursor, DeadLetterView, Error, EventFilter, EventView, Found, JobFilter, JobId, JobView,
    LetterFilter, Page, Paging, Query, Result, TransitionView, UnreadableView, WaitView,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::bind::Params;
use crate::load::{self, Shared};
use crate::row::Columns;
use crate::statement::{Db, Sql, sql};
use crate::{letters, waits};

/// Reads a page; the connection is inside a transaction, so that all of it is of one instant.
pub(crate) async fn find(db: &Db<'_>, shared: &Shared, query: &Query) -> Result<Page<Found>> {
    match query {
        Query::Jobs(filter, paging) => {
            paging.check()?;
            let lifecycles = load::lifecycles(db, shared).await?;
            let found = jobs(db, &lifecycles, filter, paging).await?;
            let cursor = |job: &JobView| Cursor { id: job.id.as_uuid(), sequence: 0 };
            Ok(page_past(found, paging, cursor, |job| Found::Job(Box::new(job))))
        }
        Query::Events(filter, paging) => {
            paging.check()?;
            let found = events(db, filter, paging).await?;
            let cursor = |event: &EventView| Cursor { id: event.id.as_uuid(), sequence: 0 };
            Ok(page_past(found, paging, cursor, |event| Found::Event(Box::new(event))))
        }
        Query::DeadLetters(queue, paging) => {
            let mut filter = LetterFilter::new();
            filter.queue.clone_from(queue);
            letter_page(db, &filter, paging).await
        }
        Query::Letters(filter, paging) => letter_page(db, filter, paging).await,
        Query::Transitions(job, paging) => {
            paging.check()?;
            let found = transitions(db, *job, paging).await?;
            let cursor =
                |at: &TransitionView| Cursor { id: at.job.as_uuid(), sequence: at.sequence };
            Ok(page(found, paging, cursor, Found::Transition))
        }
        Query::Parents(job, paging) => {
            paging.check()?;
            let found = waits::page(db, sql!("find_parents"), *job, paging).await?;
            let cursor = |wait: &WaitView| Cursor { id: wait.parent.as_uuid(), sequence: 0 };
            Ok(page(found, paging, cursor, Found::Wait))
        }
        Query::Children(job, paging) => {
            paging.check()?;
            let found = waits::page(db, sql!("find_children"), *job, paging).await?;
            let cursor = |wait: &WaitView| Cursor { id: wait.job.as_uuid(), sequence: 0 };
            Ok(page(found, paging, cursor, Found::Wait))
        }
        Query::ParentCounts(job) => {
            let counts = waits::count_parents(db, *job).await?;
            Ok(Page::from_parts(vec![Found::ParentCounts(counts)], None))
        }
        Query::Tombstone(job) => {
            let ids = Params::new().many([*job]);
            let read = |row: &Row| Columns::of(row).tombstone();
            let found = db.rows(sql!("load_tombstones"), ids, read).await?;
            let found = found.into_iter().map(|row| Found::Tombstone(row.into()));
            Ok(Page::from_parts(found.collect(), None))
        }
        Query::Queues => {
            let found = queues_past(db).await?.into_iter().map(|row| match row {
                Ok(row) => Found::Queue(row.into()),
                Err(row) => Found::Unreadable(row),
            });
            Ok(Page::from_parts(found.collect(), None))
        }
        _ => Err(Error::invalid("find", "this version does not know the query")),
    }
}

/// Reads a row that begins with its id.
fn by_id<T>(row: &Row, read: impl Fn(&Row) -> Result<T>) -> Result<Listed<T>> {
    listed(read(row), || Ok(Cursor { id: Columns::of(row).id()?, sequence: 0 }))
}

fn after(paging: &Paging) -> (Uuid, i64) {
    // Without a cursor the nil id, which no row has, lies before every row.
    paging.after.map_or((Uuid::nil(), -1), |cursor| (cursor.id, cursor.sequence))
}

async fn jobs(
    db: &Db<'_>,
    lifecycles: &Lifecycles,
    filter: &JobFilter,
    paging: &Paging,
) -> Result<Vec<Listed<JobView>>> {
    let (begin, _) = after(paging);
    let mut only = filter.id;
    if let Some((scope, key)) = &filter.key {
        let values = Params::new().one(scope.as_str()).one(key.as_str());
        let held = db.row(sql!("find_key"), values, |row| Columns::of(row).id()).await?;
        match held.map(JobId::from_uuid) {
            Some(holder) if only.is_none_or(|id| id == holder) => only = Some(holder),
            _ => return Ok(Vec::new()),
        }
    }
    let view = |row: &Row| {
        let mut columns = Columns::of(row);
        let job = columns.job()?;
        let request = columns.request(job.id)?;
        let mut view = JobView::from_rows(lifecycles, job, request, columns.outcome()?)?;
        view.replay_of = columns.maybe_id()?.map(JobId::from_uuid);
        Ok(view)
    };
    let subject = filter.subject.as_deref();
    let filters = |values: Params| {
        values
            .one(filter.queue.as_ref().map(|queue| queue.as_str()))
            .one(filter.state.map(|state| state.as_str()))
            .one(filter.kind.as_ref().map(|kind| kind.as_str()))
            .one(subject)
    };
    let partition = filter.partition.as_ref().map(|name| name.as_str());
    if let Some(id) = only {
        if id.as_uuid() <= begin {
            return Ok(Vec::new());
        }
        // Whoever asks for one job is told why it cannot be read.
        let values = filters(Params::new().one(id)).one(partition);
        return Ok(db.rows(sql!("find_job"), values, view).await?.into_iter().map(Ok).collect());
    }
    let view = |row: &Row| by_id(row, view);
    let sql: Sql = if subject.is_some() { sql!("find_jobs_about") } else { sql!("find_jobs") };
    db.rows(sql, filters(Params::new().one(begin)).one(paging.size + 1).one(partition), view).await
}

async fn events(
    db: &Db<'_>,
    filter: &EventFilter,
    paging: &Paging,
) -> Result<Vec<Listed<EventView>>> {
    let (begin, _) = after(paging);
    let sql: Sql = if filter.id.is_some() { sql!("find_event") } else { sql!("find_events") };
    let values = Params::new()
        .one(begin)
        .one(filter.id)
        .one(filter.topic.as_ref().map(|topic| topic.as_str()))
        .one(filter.state.map(|state| state.as_str()))
        .one(filter.ordering.as_ref().map(|ordering| ordering.namespace()))
        .one(filter.ordering.as_ref().and_then(|ordering| ordering.key_text()))
        .one(paging.size + 1);
    let view = |row: &Row| Ok(EventView::from(Columns::of(row).event()?));
    if filter.id.is_some() {
        return Ok(db.rows(sql, values, view).await?.into_iter().map(Ok).collect());
    }
    db.rows(sql, values, |row| by_id(row, view)).await
}

async fn letter_page(db: &Db<'_>, filter: &LetterFilter, paging: &Paging) -> Result<Page<Found>> {
    paging.check()?;
    let found = letters::page(db, filter, paging).await?;
    let cursor = |letter: &DeadLetterView| Cursor {
        id: letter.job.as_uuid(),
        sequence: letter.claim_version.get(),
    };
    Ok(page_past(found, paging, cursor, |letter| Found::DeadLetter(Box::new(letter))))
}

async fn transitions(db: &Db<'_>, job: JobId, paging: &Paging) -> Result<Vec<TransitionView>> {
    let (_, number) = after(paging);
    let values = Params::new().one(job).one(number).one(paging.size + 1);
    let read = |row: &Row| Ok(Columns::of(row).transition()?.into());
    db.rows(sql!("find_transitions"), values, read).await
}

/// Every queue that can be read, by name.
pub(crate) async fn queues(db: &Db<'_>) -> Result<Vec<QueueRow>> {
    Ok(queues_past(db).await?.into_iter().flatten().collect())
}

/// Every queue by name, and what stands in the place of one that cannot be read.
pub(crate) async fn queues_past(db: &Db<'_>) -> Result<Vec<Result<QueueRow, UnreadableView>>> {
    let read = |row: &Row| listing::named(Columns::of(row).queue(), Columns::of(row).raw());
    db.rows(sql!("find_queues"), Params::new(), read).await
}
