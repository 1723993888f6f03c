//! Owns how dead letters are read and written back: those of a job, those that a job replays, and what
//! that job has yet to send. What becomes of them is a rule of the contract.

use leasehold_core::letter::Replay;
use leasehold_core::listing::{Listed, listed};
use leasehold_core::row::DeadLetterRow;
use leasehold_core::rules::{Changes, EnqueueWants, Work};
use leasehold_core::{
    Controlled, Cursor, DeadLetterView, JobId, LetterFilter, LetterState, Paging, Result,
};
use rusqlite::{Connection, params};

use crate::joined::Joined;
use crate::load::{self, Before, Facts, bound};
use crate::row::{Columns, micros};
use crate::statement::{Sql, execute, id_list, row, rows, sql};
use crate::write;

fn read(row: &rusqlite::Row<'_>) -> Result<DeadLetterRow> {
    Columns::of(row).dead_letter()
}

/// Loads the letters that loaded jobs replay.
pub(crate) fn load(conn: &Connection, work: &mut Work) -> Result<()> {
    let wanted = work.replays_wanted();
    if wanted.is_empty() {
        return Ok(());
    }
    let list = params![id_list(wanted.iter().map(JobId::as_bytes))];
    let found = rows(conn, sql!("load_replayed"), list, read)?;
    for job in found.iter().filter_map(|letter| letter.replay_job) {
        if has_unsent(conn, job)? {
            work.load_unsent([job]);
        }
    }
    work.load_letters(found);
    Ok(())
}

fn has_unsent(conn: &Connection, job: JobId) -> Result<bool> {
    let key = params![job.to_string()];
    let found = row(conn, sql!("load_unsent"), key, |row| Columns::of(row).raw())?;
    Ok(found.unwrap_or(true))
}

impl Joined<'_> {
    /// Closes the letters whose replays have now sent everything.
    pub(crate) fn close_letters(&self, facts: &Facts, jobs: &[JobId]) -> Result<()> {
        let mut work = facts.work(self.shared);
        for job in jobs {
            let values = params![job.as_bytes().as_slice(), job.to_string()];
            work.close_letters(rows(self.conn, sql!("load_sent"), values, read)?);
        }
        let changes = &mut work.into_changes();
        write::changes(self.conn, self.shared, facts.now, changes, &Before::new())
    }

    /// Does an act on a job's letters.
    pub(crate) fn on_letters(
        &self,
        facts: &Facts,
        job: JobId,
        act: impl FnOnce(&mut Work) -> Result<Controlled>,
    ) -> Result<Controlled> {
        let mut work = facts.work(self.shared);
        let _before = load::jobs(self.conn, &mut work, &[job])?;
        let key = params![job.as_bytes().as_slice()];
        work.load_letters(rows(self.conn, sql!("load_letters"), key, read)?);
        let done = act(&mut work)?;
        self.write(facts, work)?;
        Ok(done)
    }

    pub(crate) fn replay(&self, facts: &Facts, replay: &Replay) -> Result<Controlled> {
        self.on_letters(facts, replay.job, |work| {
            if !work.replays_anew(replay.job) {
                return work.replay(replay, None);
            }
            let mut wants = EnqueueWants::default();
            wants.ids.push(replay.new_job);
            work.load_known(load::known(self.conn, &wants)?);
            let mut asked = load::asked(self.conn, [replay.job].into_iter())?;
            work.replay(replay, asked.remove(&replay.job))
        })
    }
}

/// Keeps new letters, writes letters back, and what a replay changes beside its job's row.
pub(crate) fn write(conn: &Connection, changes: &Changes) -> Result<()> {
    changes.dead_letters.iter().try_for_each(|row| add(conn, row))?;
    changes.letters.iter().try_for_each(|row| back(conn, row))?;
    for job in &changes.checkpoints_dropped {
        execute(conn, sql!("drop_checkpoint"), params![job.as_bytes().as_slice()])?;
    }
    for row in &changes.replays {
        let values = params![row.job.as_bytes().as_slice(), row.replay_of.as_bytes().as_slice()];
        write::fresh(execute(conn, sql!("note_replay"), values)?, "a job")?;
    }
    for (holder, row) in &changes.keys_passed {
        let (job, holder) = (row.job.as_bytes().as_slice(), holder.as_bytes().as_slice());
        let values = params![row.scope.as_str(), row.key.as_str(), job, holder];
        execute(conn, sql!("pass_key"), values)?;
    }
    Ok(())
}

fn add(conn: &Connection, row: &DeadLetterRow) -> Result<()> {
    let values = params![
        row.job.as_bytes().as_slice(),
        row.version.get(),
        row.queue.as_str(),
        row.kind.as_str(),
        row.stage.as_str(),
        row.error_class,
        row.failure.as_str(),
        row.attempts,
        row.last_failure_at.as_micros(),
        row.state.as_str(),
    ];
    execute(conn, sql!("insert_dead_letter"), values).map(|_| ())
}

fn back(conn: &Connection, row: &DeadLetterRow) -> Result<()> {
    let values = params![
        row.job.as_bytes().as_slice(),
        row.version.get(),
        row.state.as_str(),
        row.replay_job.as_ref().map(|job| job.as_bytes().as_slice()),
        micros(row.changed_at),
        row.changed_by.as_ref().map(|by| by.as_str()),
        row.note,
    ];
    write::fresh(execute(conn, sql!("write_dead_letter"), values)?, "a dead letter")
}

/// A page of letters, one row too many where there is a next page.
pub(crate) fn page(
    conn: &Connection,
    filter: &LetterFilter,
    paging: &Paging,
) -> Result<Vec<Listed<DeadLetterView>>> {
    // Without a cursor the empty blob and -1 lie before every row.
    let mut begin = paging
        .after
        .map_or((Vec::new(), -1), |cursor| (cursor.id.as_bytes().to_vec(), cursor.sequence));
    let mut last = vec![0xff; 16];
    if let Some(job) = &filter.job {
        last = job.as_bytes().to_vec();
        begin = begin.max((last.clone(), -1));
    }
    let queue = filter.queue.as_ref().map(|queue| queue.as_str());
    let values = params![
        begin.0,
        begin.1,
        queue,
        bound(paging.size + 1),
        filter.kind.as_ref().map(|kind| kind.as_str()),
        filter.state.map(LetterState::as_str),
        filter.error_class,
        last,
    ];
    let sql: Sql =
        if queue.is_some() { sql!("find_dead_letters_of") } else { sql!("find_dead_letters") };
    rows(conn, sql, values, |row| {
        let mut columns = Columns::of(row);
        let mut read = || -> Result<_> {
            Ok(DeadLetterView::from_row(columns.dead_letter()?, columns.time()?))
        };
        listed(read(), || {
            let mut columns = Columns::of(row);
            Ok(Cursor { id: columns.id()?, sequence: columns.raw()? })
        })
    })
}
