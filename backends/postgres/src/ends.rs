//! Owns the short way to write back jobs that ended: those that did so in one way and changed in nothing
//! else are one statement. Which rows end, and how, was decided before.

use std::collections::BTreeMap;

use leasehold_core::row::JobRow;
use leasehold_core::settle::VerdictKind;
use leasehold_core::{JobId, Result, State, Timestamp};

use crate::bind::Params;
use crate::error::corrupt;
use crate::statement::{Db, sql};

/// Rows as they were when they were locked.
pub(crate) type Before = BTreeMap<JobId, JobRow>;

/// The jobs of one end.
struct End {
    state: State,
    verdict: VerdictKind,
    jobs: Vec<JobId>,
}

/// Keeps rows as they are before anything is decided.
pub(crate) fn before(rows: &[JobRow]) -> Before {
    rows.iter().map(|row| (row.id, row.clone())).collect()
}

/// Writes the plain ends among some rows, and gives back the other rows.
pub(crate) async fn write<'r>(
    db: &Db<'_>,
    now: Timestamp,
    rows: &'r [JobRow],
    before: &Before,
) -> Result<Vec<&'r JobRow>> {
    let mut ends: Vec<End> = Vec::new();
    let mut others = Vec::new();
    for row in rows {
        let Some(verdict) = plain_end(row, before.get(&row.id), now) else {
            others.push(row);
            continue;
        };
        match ends.iter_mut().find(|end| end.state == row.state && end.verdict == verdict) {
            Some(end) => end.jobs.push(row.id),
            None => ends.push(End { state: row.state, verdict, jobs: vec![row.id] }),
        }
    }
    for end in &ends {
        let values = Params::new()
            .many(end.jobs.iter().copied())
            .one(end.state.as_str())
            .one(end.verdict.as_str())
            .one(now);
        let written = db.execute(sql!("end_jobs"), values).await?;
        if usize::try_from(written) != Ok(end.jobs.len()) {
            return Err(corrupt("a locked job is gone"));
        }
    }
    Ok(others)
}

/// How a row ended now that is otherwise what was locked.
pub(crate) fn alike(
    row: &JobRow,
    before: Option<&JobRow>,
    now: Timestamp,
) -> Option<(State, VerdictKind)> {
    plain_end(row, before, now).map(|verdict| (row.state, verdict))
}

/// The verdict of a row that ended now and is otherwise what was locked.
fn plain_end(row: &JobRow, before: Option<&JobRow>, now: Timestamp) -> Option<VerdictKind> {
    let before = before.filter(|before| before.state == State::Leased)?;
    let verdict = row.last_verdict?;
    let ended = JobRow {
        state: row.state,
        last_verdict: row.last_verdict,
        lease: None,
        updated_at: now,
        finished_at: Some(now),
        ..before.clone()
    };
    (row.state.is_terminal() && *row == ended).then_some(verdict)
}
