//! Owns how new jobs become rows. In the store's own transactions the many that differ only in id and
//! payload are one statement of few arrays, and an id that is taken is an error there; in a caller's
//! transaction, which an error would spoil, it is a row that is missing. Decides nothing.

use std::collections::BTreeSet;

use futures_util::future::{join_all, try_join};
use leasehold_core::fence::ClaimVersion;
use leasehold_core::row::{JobRow, RequestRow};
use leasehold_core::{JobId, Result, State};

use crate::bind::Params;
use crate::error::came_first;
use crate::joined::Joined;
use crate::statement::{Db, Sql, sql};
use crate::write::{all, lease};

type New = (JobRow, RequestRow);

/// The most statements of jobs that are alike.
const GROUPS_MAX: usize = 8;

/// Writes new jobs, in the order of their ids; `waited` are those whose end others wait for.
///
/// # Errors
/// The error of a lost race when an id is taken.
pub(crate) async fn insert(tx: &Joined<'_>, rows: &[New], waited: &BTreeSet<JobId>) -> Result<()> {
    let db = &tx.db;
    if tx.own.is_none() {
        return each(db, &rows.iter().collect::<Vec<_>>(), waited).await;
    }
    let (groups, others) = grouped(rows, waited);
    let groups = join_all(groups.iter().map(|group| same(db, group, waited)));
    let written = async { groups.await.into_iter().collect::<Result<()>>() };
    try_join(written, each(db, &others, waited)).await.map(|_| ())
}

/// The jobs that are alike, and those that are like too few.
fn grouped<'r>(rows: &'r [New], waited: &BTreeSet<JobId>) -> (Vec<Vec<&'r New>>, Vec<&'r New>) {
    let (mut groups, mut others): (Vec<Vec<&New>>, Vec<&New>) = (Vec::new(), Vec::new());
    let is_waited = |row: &JobRow| waited.contains(&row.id);
    for new in rows {
        let is_like = |(row, _): &&New| alike(row, &new.0) && is_waited(row) == is_waited(&new.0);
        let like = |group: &&mut Vec<&New>| group.first().is_some_and(is_like);
        if !is_plain(&new.0) {
            others.push(new);
        } else if let Some(group) = groups.iter_mut().find(like) {
            group.push(new);
        } else if groups.len() < GROUPS_MAX {
            groups.push(vec![new]);
        } else {
            others.push(new);
        }
    }
    (groups, others)
}

/// Whether two new jobs differ in their id, and maybe their partition, only.
fn alike(one: &JobRow, other: &JobRow) -> bool {
    one.kind == other.kind
        && one.run_at == other.run_at
        && *one == JobRow { id: one.id, partition: one.partition.clone(), ..other.clone() }
}

/// Whether a row has of everything what a new job begins with.
fn is_plain(row: &JobRow) -> bool {
    *row == JobRow {
        state: State::Waiting,
        stage: 0,
        again: false,
        attempts: 0,
        executions: 0,
        version: ClaimVersion::ZERO,
        claim: None,
        last_verdict: None,
        lease: None,
        step: 0,
        cancel_requested: false,
        transition_seq: 0,
        event_seq: 0,
        updated_at: row.created_at,
        started_at: None,
        finished_at: None,
        ..row.clone()
    }
}

fn is_bare((row, request): &New) -> bool {
    row.partition.is_none()
        && request.scope.as_str().is_empty()
        && request.key.is_none()
        && request.subject.is_none()
        && request.traceparent.is_none()
}

/// What inserts all of some jobs where they are alike, and nobody waits for them.
pub(crate) fn only_statement(rows: &[New]) -> Option<(Sql, Params)> {
    let none = BTreeSet::new();
    match grouped(rows, &none) {
        (groups, others) if groups.len() == 1 && others.is_empty() => {
            statement(groups.first()?, &none)
        }
        _ => None,
    }
}

/// A row like all of some new ones, where they are alike.
pub(crate) fn all_alike(rows: &[New]) -> Option<&JobRow> {
    let (like, _) = rows.first()?;
    let same = |new: &New| alike(like, &new.0);
    rows.iter().all(same).then_some(like)
}

async fn same(db: &Db<'_>, rows: &[&New], waited: &BTreeSet<JobId>) -> Result<()> {
    match statement(rows, waited) {
        Some((sql, values)) => db.insert(sql, values).await,
        None => Ok(()),
    }
}

/// What inserts jobs that are alike.
fn statement(rows: &[&New], waited: &BTreeSet<JobId>) -> Option<(Sql, Params)> {
    let (like, _) = rows.first()?;
    let requests = || rows.iter().map(|(_, request)| request);
    let values = Params::new()
        .many(requests().map(|row| row.job))
        .many(requests().map(|row| &row.payload))
        .many(requests().map(|row| &row.hash))
        .one(like.queue.as_str())
        .one(like.kind.as_str())
        .one(like.lifecycle.as_str())
        .one(like.revision)
        .one(like.priority)
        .one(like.run_at)
        .one(like.held)
        .one(like.log)
        .one(like.attempts_max)
        .one(like.created_at)
        .one(waited.contains(&like.id));
    if rows.iter().all(|new| is_bare(new)) {
        return Some((sql!("insert_same"), values));
    }
    Some((sql!("insert_same_named"), names(values, rows)))
}

/// Adds the names that a job may have.
fn names(values: Params, rows: &[&New]) -> Params {
    let requests = || rows.iter().map(|(_, request)| request);
    values
        .many(requests().map(|row| row.scope.as_str()))
        .many(requests().map(|row| row.key.as_ref().map(|key| key.as_str())))
        .many(requests().map(|row| row.subject.as_ref().map(|subject| subject.name.as_str())))
        .many(requests().map(|row| row.subject.as_ref().map(|subject| subject.version)))
        .many(requests().map(|row| row.traceparent.as_deref()))
        .many(rows.iter().map(|(row, _)| row.partition.as_ref().map(|name| name.as_str())))
}

async fn each(db: &Db<'_>, rows: &[&New], waited: &BTreeSet<JobId>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let jobs = || rows.iter().map(|(row, _)| row);
    let values = Params::new()
        .many(jobs().map(|row| row.id))
        .many(jobs().map(|row| row.queue.as_str()))
        .many(jobs().map(|row| row.kind.as_str()))
        .many(jobs().map(|row| row.lifecycle.as_str()))
        .many(jobs().map(|row| row.revision))
        .many(jobs().map(|row| row.state.as_str()))
        .many(jobs().map(|row| row.stage))
        .many(jobs().map(|row| row.priority))
        .many(jobs().map(|row| row.run_at))
        .many(jobs().map(|row| row.held))
        .many(jobs().map(|row| row.again))
        .many(jobs().map(|row| row.log))
        .many(jobs().map(|row| row.attempts))
        .many(jobs().map(|row| row.attempts_max))
        .many(jobs().map(|row| row.executions))
        .many(jobs().map(|row| row.version))
        .many(jobs().map(|row| row.claim))
        .many(jobs().map(|row| row.last_verdict.map(|kind| kind.as_str())));
    let values = lease(values, jobs().map(|row| row.lease.as_ref()))
        .many(jobs().map(|row| row.step))
        .many(jobs().map(|row| row.cancel_requested))
        .many(jobs().map(|row| row.transition_seq))
        .many(jobs().map(|row| row.event_seq))
        .many(jobs().map(|row| row.created_at))
        .many(jobs().map(|row| row.updated_at))
        .many(jobs().map(|row| row.started_at))
        .many(jobs().map(|row| row.finished_at));
    let requests = || rows.iter().map(|(_, request)| request);
    let values =
        values.many(requests().map(|row| &row.payload)).many(requests().map(|row| &row.hash));
    let values = names(values, rows).many(jobs().map(|row| waited.contains(&row.id)));
    let written = db.execute(sql!("insert_job"), values).await?;
    if all(written, rows.len()) { Ok(()) } else { Err(came_first()) }
}
