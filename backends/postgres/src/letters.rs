//! Owns how dead letters are read and written back: those of a job, those that a job replays, and what
//! that job has yet to send. What becomes of them is a rule of the contract.
//!
//! Letters are locked after the jobs they belong to or that replay them, never before.

use leasehold_core::letter::Replay;
use leasehold_core::listing::{Listed, listed};
use leasehold_core::row::DeadLetterRow;
use leasehold_core::rules::{Changes, EnqueueWants, Work};
use leasehold_core::{
    Controlled, Cursor, DeadLetterView, JobId, Json, LetterFilter, LetterState, Paging, Result,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::bind::Params;
use crate::error::corrupt;
use crate::joined::Joined;
use crate::load::{self, Facts};
use crate::row::Columns;
use crate::statement::{Db, sql};
use crate::write::all;

fn read(row: &Row) -> Result<DeadLetterRow> {
    Columns::of(row).dead_letter()
}

/// Loads the letters that loaded jobs replay.
pub(crate) async fn load(db: &Db<'_>, work: &mut Work) -> Result<()> {
    let wanted = work.replays_wanted();
    if wanted.is_empty() {
        return Ok(());
    }
    let found = db.rows(sql!("load_replayed"), Params::new().many(wanted), read).await?;
    let jobs: Vec<JobId> = found.iter().filter_map(|letter| letter.replay_job).collect();
    if !jobs.is_empty() {
        let read = |row: &Row| Columns::of(row).id().map(JobId::from_uuid);
        work.load_unsent(db.rows(sql!("load_unsent"), Params::new().many(jobs), read).await?);
    }
    work.load_letters(found);
    Ok(())
}

impl Joined<'_> {
    /// Closes the letters whose replays have now sent everything.
    pub(crate) async fn close_letters(&self, facts: &Facts, jobs: Vec<JobId>) -> Result<()> {
        let sent = self.db.rows(sql!("load_sent"), Params::new().many(jobs), read).await?;
        if sent.is_empty() {
            return Ok(());
        }
        let mut work = facts.work(self.shared);
        work.close_letters(sent);
        self.write(work).await
    }

    /// Begins an act on a job's letters: both are locked.
    pub(crate) async fn on_letters(&self, facts: &Facts, job: JobId) -> Result<Work> {
        let mut work = load::on_jobs(&self.db, self.shared, &mut facts.clone(), &[job]).await?;
        // A statement of its own: what happened before the lock was granted must show.
        work.load_letters(self.db.rows(sql!("load_letters"), Params::new().one(job), read).await?);
        Ok(work)
    }

    pub(crate) async fn replay(&self, facts: &Facts, replay: &Replay) -> Result<Controlled> {
        let mut work = self.on_letters(facts, replay.job).await?;
        let mut asked = None;
        if work.replays_anew(replay.job) {
            let mut wants = EnqueueWants::default();
            wants.ids.push(replay.new_job);
            work.load_known(load::known(&self.db, &wants).await?);
            let read = |row: &Row| {
                let mut columns = Columns::of(row);
                let id = JobId::from_uuid(columns.id()?);
                let request = columns.request(id)?;
                let checkpoint: Option<Json> = columns.maybe_json()?;
                Ok((request, checkpoint))
            };
            let ids = Params::new().many([replay.job]);
            asked = self.db.row(sql!("load_request"), ids, read).await?;
        }
        let done = work.replay(replay, asked)?;
        self.write(work).await?;
        Ok(done)
    }
}

/// Keeps new letters, writes letters back, and what a replay changes beside its job's row.
pub(crate) async fn write(db: &Db<'_>, changes: &Changes) -> Result<()> {
    add(db, &changes.dead_letters).await?;
    back(db, &changes.letters).await?;
    if !changes.checkpoints_dropped.is_empty() {
        let jobs = Params::new().many(changes.checkpoints_dropped.iter().copied());
        db.execute(sql!("drop_checkpoint"), jobs).await?;
    }
    if !changes.replays.is_empty() {
        let values = Params::new()
            .many(changes.replays.iter().map(|row| row.job))
            .many(changes.replays.iter().map(|row| row.replay_of));
        db.execute(sql!("note_replay"), values).await?;
    }
    if !changes.keys_passed.is_empty() {
        let rows = || changes.keys_passed.iter();
        let values = Params::new()
            .many(rows().map(|(_, row)| row.scope.as_str()))
            .many(rows().map(|(_, row)| row.key.as_str()))
            .many(rows().map(|(_, row)| row.job))
            .many(rows().map(|(holder, _)| *holder));
        db.execute(sql!("pass_key"), values).await?;
    }
    Ok(())
}

async fn add(db: &Db<'_>, rows: &[DeadLetterRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = Params::new()
        .many(rows.iter().map(|row| row.job))
        .many(rows.iter().map(|row| row.version))
        .many(rows.iter().map(|row| row.queue.as_str()))
        .many(rows.iter().map(|row| row.kind.as_str()))
        .many(rows.iter().map(|row| row.stage.as_str()))
        .many(rows.iter().map(|row| row.error_class.as_str()))
        .many(rows.iter().map(|row| &row.failure))
        .many(rows.iter().map(|row| row.attempts))
        .many(rows.iter().map(|row| row.last_failure_at))
        .many(rows.iter().map(|row| row.state.as_str()));
    db.execute(sql!("insert_dead_letter"), values).await.map(|_| ())
}

async fn back(db: &Db<'_>, rows: &[DeadLetterRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = Params::new()
        .many(rows.iter().map(|row| row.job))
        .many(rows.iter().map(|row| row.version))
        .many(rows.iter().map(|row| row.state.as_str()))
        .many(rows.iter().map(|row| row.replay_job))
        .many(rows.iter().map(|row| row.changed_at))
        .many(rows.iter().map(|row| row.changed_by.as_ref().map(|by| by.as_str())))
        .many(rows.iter().map(|row| row.note.as_deref()));
    let written = db.execute(sql!("write_dead_letter"), values).await?;
    if all(written, rows.len()) { Ok(()) } else { Err(corrupt("a locked dead letter is gone")) }
}

/// A page of letters, one row too many where there is a next page.
pub(crate) async fn page(
    db: &Db<'_>,
    filter: &LetterFilter,
    paging: &Paging,
) -> Result<Vec<Listed<DeadLetterView>>> {
    // Without a cursor the nil id, which no row has, lies before every row.
    let mut begin = paging.after.map_or((Uuid::nil(), -1), |cursor| (cursor.id, cursor.sequence));
    let mut last = Uuid::max();
    if let Some(job) = filter.job {
        last = job.as_uuid();
        begin = begin.max((last, -1));
    }
    let values = Params::new()
        .one(begin.0)
        .one(begin.1)
        .one(filter.queue.as_ref().map(|queue| queue.as_str()))
        .one(paging.size + 1)
        .one(filter.kind.as_ref().map(|kind| kind.as_str()))
        .one(filter.state.map(LetterState::as_str))
        .one(filter.error_class.as_deref())
        .one(last);
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        let mut read = || -> Result<_> {
            Ok(DeadLetterView::from_row(columns.dead_letter()?, columns.time()?))
        };
        listed(read(), || {
            let mut columns = Columns::of(row);
            Ok(Cursor { id: columns.id()?, sequence: columns.raw()? })
        })
    };
    db.rows(sql!("find_dead_letters"), values, read).await
}
