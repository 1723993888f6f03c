//! Owns the jobs that wait for others: what new ones wait for, whom an end reaches, and how waits are
//! stored and read. What an end means is a rule of the contract.
//!
//! A parent is locked by whoever adds a wait for it and by whoever ends it, and its waits are read by a
//! statement after that lock, so neither misses the other; a child likewise by whoever ends one of its
//! parents. A parent is marked by that: a transaction whose snapshot is older fails and begins anew, and the
//! quick settlement, which looks at no waits, passes over it.

use std::collections::BTreeSet;

use futures_util::future::try_join3;
use leasehold_core::row::WaitRow;
use leasehold_core::rules::{Changes, Work};
use leasehold_core::{JobId, NewJob, OnFailure, Paging, ParentCounts, Result, State, WaitView};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::bind::Params;
use crate::error::corrupt;
use crate::joined::Joined;
use crate::load;
use crate::row::Columns;
use crate::statement::{Db, Sql, sql};

/// Locks and loads what new jobs wait for, by what is known of them.
pub(crate) async fn load_parents<'a>(
    tx: &Joined<'_>,
    work: &mut Work,
    jobs: impl IntoIterator<Item = &'a NewJob> + Clone,
) -> Result<()> {
    let parents = work.parents_wanted(jobs);
    lock(tx, work, &parents).await
}

/// Locks and loads jobs; what was decided before the wait holds after it too.
async fn lock(tx: &Joined<'_>, work: &mut Work, ids: &[JobId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let wanted = Params::new().many(ids.iter().copied()).one(tx.shared.manual_now());
    let rows = tx.db.rows(sql!("lock_jobs"), wanted, |row| Columns::of(row).job()).await?;
    load::hand_over(&tx.db, work, ids, rows).await
}

/// The open waits for some jobs, which this transaction has locked.
pub(crate) async fn open(db: &Db<'_>, ended: &[JobId]) -> Result<Vec<WaitRow>> {
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let values = Params::new().many(ended.iter().copied());
    db.rows(sql!("load_waits"), values, |row| wait(&mut Columns::of(row))).await
}

/// Lets some ends tell on the jobs that wait for them; whether any does.
pub(crate) async fn resolve(
    tx: &Joined<'_>,
    work: &mut Work,
    ended: &[JobId],
    open: Vec<WaitRow>,
) -> Result<bool> {
    work.load_waits(open);
    let children = work.waiting_for(ended);
    if children.is_empty() {
        return Ok(false);
    }
    let missing: Vec<JobId> =
        children.iter().copied().filter(|id| work.job(*id).is_none()).collect();
    lock(tx, work, &missing).await?;
    // Only after the lock: another parent's end may have come between.
    let values = Params::new().many(children.iter().copied()).many(work.looked_at());
    let read = |row: &Row| Columns::of(row).id().map(JobId::from_uuid);
    let blocked = tx.db.rows(sql!("load_blocked"), values, read).await?;
    work.load_blocked(&children, blocked);
    work.resolve(ended)?;
    Ok(true)
}

fn wait(columns: &mut Columns<'_>) -> Result<WaitRow> {
    Ok(WaitRow {
        job: JobId::from_uuid(columns.id()?),
        parent: JobId::from_uuid(columns.id()?),
        on_failure: columns.text(OnFailure::parse)?,
        open: columns.raw()?,
        outcome: columns.maybe(State::parse)?,
    })
}

/// Whose end somebody waits for from now on.
pub(crate) fn parents(changes: &Changes) -> BTreeSet<JobId> {
    changes.waits_new.iter().filter(|row| row.open).map(|row| row.parent).collect()
}

/// Adds waits, writes waits back, and marks the parents that are there already.
pub(crate) async fn write(db: &Db<'_>, changes: &Changes, parents: &BTreeSet<JobId>) -> Result<()> {
    let (added, written) = (add(db, &changes.waits_new), back(db, &changes.waits));
    try_join3(added, written, mark(db, changes, parents)).await.map(|_| ())
}

async fn mark(db: &Db<'_>, changes: &Changes, parents: &BTreeSet<JobId>) -> Result<()> {
    let new: BTreeSet<JobId> = changes.jobs_new.iter().map(|(row, _)| row.id).collect();
    let there: Vec<JobId> = parents.difference(&new).copied().collect();
    if there.is_empty() {
        return Ok(());
    }
    db.execute(sql!("mark_parents"), Params::new().many(there)).await.map(|_| ())
}

async fn add(db: &Db<'_>, rows: &[WaitRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = Params::new()
        .many(rows.iter().map(|row| row.job))
        .many(rows.iter().map(|row| row.parent))
        .many(rows.iter().map(|row| row.on_failure.as_str()))
        .many(rows.iter().map(|row| row.open))
        .many(rows.iter().map(|row| row.outcome.map(State::as_str)));
    db.execute(sql!("insert_wait"), values).await.map(|_| ())
}

async fn back(db: &Db<'_>, rows: &[WaitRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = Params::new()
        .many(rows.iter().map(|row| row.job))
        .many(rows.iter().map(|row| row.parent))
        .many(rows.iter().map(|row| row.open))
        .many(rows.iter().map(|row| row.outcome.map(State::as_str)));
    let written = db.execute(sql!("write_wait"), values).await?;
    if usize::try_from(written) == Ok(rows.len()) { Ok(()) } else { Err(corrupt("a wait is gone")) }
}

/// Leaves out those of some locked jobs that somebody waits for by now.
pub(crate) async fn not_waited_for(db: &Db<'_>, ids: Vec<JobId>) -> Result<Vec<JobId>> {
    if ids.is_empty() {
        return Ok(ids);
    }
    let values = Params::new().many(ids.iter().copied());
    let read = |row: &Row| Columns::of(row).id().map(JobId::from_uuid);
    let waited: BTreeSet<JobId> =
        db.rows(sql!("prune_waited"), values, read).await?.into_iter().collect();
    Ok(ids.into_iter().filter(|id| !waited.contains(id)).collect())
}

/// A page of waits, one row too many where there is a next page.
pub(crate) async fn page(
    db: &Db<'_>,
    sql: Sql,
    job: JobId,
    paging: &Paging,
) -> Result<Vec<WaitView>> {
    let begin = paging.after.map_or(Uuid::nil(), |cursor| cursor.id);
    let values = Params::new().one(job).one(begin).one(paging.size + 1);
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        let wait = wait(&mut columns)?;
        WaitView::from_row(&wait, columns.text(State::parse)?, columns.maybe(State::parse)?)
    };
    db.rows(sql, values, read).await
}

/// How many of a job's parents are where.
pub(crate) async fn count_parents(db: &Db<'_>, job: JobId) -> Result<ParentCounts> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        Ok((columns.text(State::parse)?, columns.raw()?, columns.number()?))
    };
    let mut counts = ParentCounts::default();
    for (state, open, parents) in
        db.rows(sql!("count_parents"), Params::new().one(job), read).await?
    {
        counts.add(state, open, parents);
    }
    Ok(counts)
}
