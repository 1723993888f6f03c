//! Owns the short way to write back jobs that ended: those that did so in one way and changed in nothing
//! else are one statement. Which rows end, and how, was decided before.

use leasehold_core::row::JobRow;
use leasehold_core::settle::VerdictKind;
use leasehold_core::{JobId, Result, State, Timestamp};
use rusqlite::{Connection, params};

use crate::error::corrupt;
use crate::load::Before;
use crate::statement::{execute, id_list, sql};

/// The jobs of one end.
struct End<'a> {
    state: State,
    verdict: VerdictKind,
    jobs: Vec<&'a JobId>,
}

/// Writes the plain ends among some rows, and gives back the other rows.
pub(crate) fn write<'a>(
    conn: &Connection,
    now: Timestamp,
    rows: &'a [JobRow],
    before: &Before,
) -> Result<Vec<&'a JobRow>> {
    let mut ends: Vec<End<'a>> = Vec::new();
    let mut others = Vec::new();
    for row in rows {
        let Some(verdict) = plain_end(row, before.get(&row.id), now) else {
            others.push(row);
            continue;
        };
        match ends.iter_mut().find(|end| end.state == row.state && end.verdict == verdict) {
            Some(end) => end.jobs.push(&row.id),
            None => ends.push(End { state: row.state, verdict, jobs: vec![&row.id] }),
        }
    }
    for end in &ends {
        let list = id_list(end.jobs.iter().map(|id| id.as_bytes()));
        let values = params![list, end.state.as_str(), end.verdict.as_str(), now.as_micros()];
        if execute(conn, sql!("end_jobs"), values)? != end.jobs.len() {
            return Err(corrupt("a job changed under the write lock"));
        }
    }
    Ok(others)
}

/// The verdict of a row that ended now and is otherwise what was loaded.
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
