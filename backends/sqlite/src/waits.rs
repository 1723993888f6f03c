//! Owns the jobs that wait for others: what new ones wait for, whom an end reaches, and how waits are
//! stored and read. What an end means is a rule of the contract.

use leasehold_core::lifecycle::State;
use leasehold_core::row::WaitRow;
use leasehold_core::rules::Work;
use leasehold_core::{JobId, NewJob, OnFailure, Paging, ParentCounts, Result, WaitView};
use rusqlite::{Connection, Row, params};

use crate::load::{self, bound};
use crate::row::Columns;
use crate::statement::{Sql, execute, id_list, rows, sql};
use crate::write::fresh;

/// Loads what new jobs wait for, by what is known of them.
pub(crate) fn load_parents<'a>(
    conn: &Connection,
    work: &mut Work,
    jobs: impl IntoIterator<Item = &'a NewJob> + Clone,
) -> Result<()> {
    let parents = work.parents_wanted(jobs);
    if parents.is_empty() {
        return Ok(());
    }
    load::jobs(conn, work, &parents).map(|_| ())
}

/// Lets every end of this transaction tell on the jobs that wait for it.
pub(crate) fn resolve(conn: &Connection, work: &mut Work) -> Result<()> {
    loop {
        let ended = work.take_ended();
        if ended.is_empty() {
            return Ok(());
        }
        let list = id_list(ended.iter().map(JobId::as_bytes));
        work.load_waits(rows(conn, sql!("load_waits"), params![list], |row| {
            wait(&mut Columns::of(row))
        })?);
        let children = work.waiting_for(&ended);
        if children.is_empty() {
            continue;
        }
        let missing: Vec<JobId> =
            children.iter().copied().filter(|id| work.job(*id).is_none()).collect();
        if !missing.is_empty() {
            let _before = load::jobs(conn, work, &missing)?;
        }
        let lists = params![
            id_list(children.iter().map(JobId::as_bytes)),
            id_list(work.looked_at().iter().map(JobId::as_bytes)),
        ];
        let blocked = rows(conn, sql!("load_blocked"), lists, |row| {
            Columns::of(row).id().map(JobId::from_uuid)
        })?;
        work.load_blocked(&children, blocked);
        work.resolve(&ended)?;
    }
}

fn wait(columns: &mut Columns<'_, '_>) -> Result<WaitRow> {
    Ok(WaitRow {
        job: JobId::from_uuid(columns.id()?),
        parent: JobId::from_uuid(columns.id()?),
        on_failure: columns.text(OnFailure::parse)?,
        open: columns.raw()?,
        outcome: columns.maybe(State::parse)?,
    })
}

/// Adds a wait.
pub(crate) fn add(conn: &Connection, row: &WaitRow) -> Result<()> {
    let values = params![
        row.job.as_bytes().as_slice(),
        row.parent.as_bytes().as_slice(),
        row.on_failure.as_str(),
        row.open,
        row.outcome.map(State::as_str),
    ];
    fresh(execute(conn, sql!("insert_wait"), values)?, "a wait")
}

/// Writes a wait back.
pub(crate) fn write(conn: &Connection, row: &WaitRow) -> Result<()> {
    let values = params![
        row.job.as_bytes().as_slice(),
        row.parent.as_bytes().as_slice(),
        row.open,
        row.outcome.map(State::as_str),
    ];
    fresh(execute(conn, sql!("write_wait"), values)?, "a wait")
}

/// A page of waits, one row too many where there is a next page.
pub(crate) fn page(
    conn: &Connection,
    sql: Sql,
    job: JobId,
    paging: &Paging,
) -> Result<Vec<WaitView>> {
    // Without a cursor the empty blob lies before every id.
    let begin = paging.after.map_or(Vec::new(), |cursor| cursor.id.as_bytes().to_vec());
    let values = params![job.as_bytes().as_slice(), begin, bound(paging.size + 1)];
    rows(conn, sql, values, |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        let wait = wait(&mut columns)?;
        WaitView::from_row(&wait, columns.text(State::parse)?, columns.maybe(State::parse)?)
    })
}

/// How many of a job's parents are where.
pub(crate) fn count_parents(conn: &Connection, job: JobId) -> Result<ParentCounts> {
    let mut counts = ParentCounts::default();
    let values = params![job.as_bytes().as_slice()];
    let found = rows(conn, sql!("count_parents"), values, |row| {
        let mut columns = Columns::of(row);
        Ok((columns.text(State::parse)?, columns.raw()?, columns.raw::<i64>()?))
    })?;
    for (state, open, parents) in found {
        counts.add(state, open, u64::try_from(parents).unwrap_or(0));
    }
    Ok(counts)
}
