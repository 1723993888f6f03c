//! Owns the short ways to end jobs. Rows that ended in one way and changed in nothing else are written by
//! one statement; which rows end, and how, was decided before. And where a whole call does nothing but end
//! jobs well, the fence is compared by the statement that writes: if it finds all of them, there was
//! nothing to decide, and if it misses one, nothing was done and the rules are asked.

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_core::lifecycle::Place;
use leasehold_core::row::{JobRow, OutcomePatch};
use leasehold_core::settle::VerdictKind;
use leasehold_core::{Fence, JobId, Json, Result, Settled, Settlement, State, Timestamp, Verdict};
use rusqlite::{Connection, params};

use crate::error::corrupt;
use crate::joined::Joined;
use crate::load::{Before, Facts};
use crate::row::Columns;
use crate::statement::{batch, execute, id_list, rows, sql};
use crate::write;

/// How many calls go the long way after one to which the short one was closed.
const LONG_WAYS: u32 = 16;
/// A call of more claims than this and a part of its jobs goes the long way.
const CLAIMS_MAX: usize = 4;
const JOBS_PER_CLAIM: usize = 8;

/// How many of the next settlements do not try the short way.
#[derive(Debug, Default)]
pub(crate) struct Detour(AtomicU32);

impl Detour {
    fn is_over(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    fn begin(&self) {
        self.0.store(LONG_WAYS, Ordering::Relaxed);
    }
}

/// The jobs of one claim that ended well.
struct Success<'a> {
    fence: &'a Fence,
    jobs: Vec<JobId>,
}

/// Settles a call of nothing but successes; `None` where that is not all there is to it.
pub(crate) fn succeed(
    joined: &Joined<'_>,
    facts: &Facts,
    settlements: &[Settlement],
) -> Result<Option<Vec<Result<Settled>>>> {
    let conn = joined.conn;
    let Some(claims) = successes(joined, facts, settlements) else { return Ok(None) };
    if !joined.shared.detour.is_over() {
        return Ok(None);
    }
    let mut lifecycles = String::from("\n");
    for it in facts.lifecycles.plain_in_success() {
        lifecycles.push_str(&format!("{} {}\n", it.name(), it.revision()));
    }
    let all = id_list(claims.iter().flat_map(|it| &it.jobs).map(JobId::as_bytes));
    let waited_for = |row: &rusqlite::Row<'_>| Columns::of(row).id();
    if !rows(conn, sql!("load_waits"), params![all], waited_for)?.is_empty() {
        return Ok(None);
    }
    batch(conn, "savepoint", "savepoint leasehold_ends")?;
    let mut ended = 0;
    for claim in &claims {
        let (claim_id, worker) = (claim.fence.claim(), claim.fence.worker());
        let values = params![
            id_list(claim.jobs.iter().map(JobId::as_bytes)),
            facts.now.as_micros(),
            claim_id.as_bytes().as_slice(),
            claim.fence.version().get(),
            worker.as_bytes().as_slice(),
            lifecycles,
        ];
        ended += execute(conn, sql!("succeed_jobs"), values)?;
    }
    if ended != settlements.len() {
        batch(conn, "rollback", "rollback to leasehold_ends")?;
        batch(conn, "release", "release leasehold_ends")?;
        joined.shared.detour.begin();
        return Ok(None);
    }
    batch(conn, "release", "release leasehold_ends")?;
    joined.shared.clock.keep(conn, facts.now)?;
    for (settlement, result) in settlements.iter().filter_map(|it| Some((it, result(it)?))) {
        let job = settlement.fence.job();
        let result = Some(result.clone());
        let patch = OutcomePatch { job, checkpoint: None, result, failure: None, failed_at: None };
        write::outcome(conn, &patch)?;
    }
    let settled = || Ok(Settled::from_parts(Place::Succeeded, false));
    Ok(Some(settlements.iter().map(|_| settled()).collect()))
}

fn result(settlement: &Settlement) -> Option<&Json> {
    match &settlement.verdict {
        Verdict::Succeed { result } => result.as_ref(),
        _ => None,
    }
}

/// The claims that a call ends well, if it does nothing else.
fn successes<'a>(
    joined: &Joined<'_>,
    facts: &Facts,
    settlements: &'a [Settlement],
) -> Option<Vec<Success<'a>>> {
    let claims_max = CLAIMS_MAX.max(settlements.len() / JOBS_PER_CLAIM);
    let bytes_max = joined.shared.limits.payload_bytes_max;
    let plain = |it: &Settlement| {
        matches!(it.verdict, Verdict::Succeed { .. })
            && result(it).is_none_or(|result| result.len() <= bytes_max)
            && it.checkpoint.is_none()
            && it.events.is_empty()
            && it.jobs.is_empty()
            && it.fence.epoch() == facts.epoch
    };
    let mut claims: Vec<Success<'a>> = Vec::new();
    for it in settlements {
        if !plain(it) {
            return None;
        }
        let (claim, version) = (it.fence.claim(), it.fence.version());
        let worker = it.fence.worker();
        let same = |other: &Fence| {
            other.claim() == claim && other.version() == version && other.worker() == worker
        };
        let full = claims.len() >= claims_max;
        match claims.iter_mut().find(|it| same(it.fence)) {
            Some(known) => known.jobs.push(it.fence.job()),
            None if full => return None,
            None => claims.push(Success { fence: &it.fence, jobs: vec![it.fence.job()] }),
        }
    }
    for claim in &mut claims {
        claim.jobs.sort_unstable();
    }
    Some(claims)
}

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
