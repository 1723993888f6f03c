//! Owns acts of control: settings are compared and written here, acts on a job or event are rules of
//! the contract.

use leasehold_core::rules::Work;
use leasehold_core::{
    Actor, Control, Controlled, Error, ErrorKind, EventId, JobId, Lifecycle, QueueName, Result,
};
use rusqlite::{Connection, params};

use crate::error::corrupt;
use crate::joined::Joined;
use crate::letters;
use crate::load::{self, Facts};
use crate::row::Columns;
use crate::statement::{execute, row, sql};
use crate::write::{self, News};

impl Joined<'_> {
    pub(crate) fn control(&self, act: &Control) -> Result<Controlled> {
        self.verb("control", |facts| match act {
            Control::Pause(queue) => self.set_queue(facts, queue, |row| row.paused = true),
            Control::Resume(queue) => self.set_queue(facts, queue, |row| row.paused = false),
            Control::SetQueue(queue, settings) => self.set_queue(facts, queue, |row| {
                row.apply(settings);
            }),
            Control::SetStoreLimit(limit) => {
                self.changed(facts, execute(self.conn, sql!("control_limit"), params![limit])?)
            }
            Control::SetTopic { topic, ordered } => {
                let values = params![topic.as_str(), ordered];
                self.changed(facts, execute(self.conn, sql!("control_topic"), values)?)
            }
            Control::Register(lifecycle) => self.register(facts, lifecycle),
            Control::Introduce { worker, name } => {
                let values = params![worker.as_bytes().as_slice(), name, facts.now.as_micros()];
                self.changed(facts, execute(self.conn, sql!("control_introduce"), values)?)
            }
            Control::RequestCancel { job, actor, reason } => {
                self.on_job(facts, *job, |work| work.request_cancel(*job, actor, reason.as_deref()))
            }
            Control::Retry { job, actor } => {
                self.on_job(facts, *job, |work| work.reopen(*job, actor))
            }
            Control::Wake { job, actor } => self.on_job(facts, *job, |work| work.wake(*job, actor)),
            Control::Replay(replay) => self.replay(facts, replay),
            Control::NoteLetter { act, job, actor, note } => {
                self.on_letters(facts, *job, |work| work.note_letter(*act, *job, actor, note))
            }
            Control::ReplayEvent { event, actor } => self.replay_event(facts, *event, actor),
            Control::BumpEpoch { actor } => self.bump_epoch(facts, actor),
            Control::ResetClock { actor } => self.reset_clock(facts, actor),
            _ => Err(Error::invalid("control", "this version does not know the act")),
        })
    }

    fn changed(&self, facts: &Facts, rows: usize) -> Result<Controlled> {
        if rows == 0 {
            return Ok(Controlled::Unchanged);
        }
        self.shared.clock.keep(self.conn, facts.now)?;
        News::of_jobs();
        Ok(Controlled::Done)
    }

    fn set_queue(
        &self,
        facts: &Facts,
        name: &QueueName,
        change: impl FnOnce(&mut leasehold_core::row::QueueRow),
    ) -> Result<Controlled> {
        let before = load::queue(self.conn, name)?;
        if before.is_none() {
            write::make_queue(self.conn, name, facts.now)?;
        }
        let missing = || corrupt("a queue that was just made is gone");
        let mut row = load::queue(self.conn, name)?.ok_or_else(missing)?;
        change(&mut row);
        if before.as_ref() == Some(&row) {
            return Ok(Controlled::Unchanged);
        }
        let values = params![
            row.name.as_str(),
            row.paused,
            row.limit,
            row.lease.map(|lease| lease.as_millis()),
            row.log,
            row.keep_succeeded_s,
            row.keep_failed_s,
            row.keep_dead_s,
            row.partition_limit,
            row.partition_rate.map(|it| i64::try_from(it.rate().hourly()).unwrap_or(i64::MAX)),
            row.partition_rate.map(|it| it.burst()),
        ];
        if before.is_some_and(|before| before.partition_rate != row.partition_rate) {
            execute(self.conn, sql!("control_starts"), params![row.name.as_str()])?;
        }
        self.changed(facts, execute(self.conn, sql!("control_queue"), values)?)
    }

    fn register(&self, facts: &Facts, lifecycle: &Lifecycle) -> Result<Controlled> {
        let done = register(self.conn, lifecycle)?;
        self.changed(facts, usize::from(done == Controlled::Done))
    }

    fn on_job(
        &self,
        facts: &Facts,
        job: JobId,
        act: impl FnOnce(&mut Work) -> Result<Controlled>,
    ) -> Result<Controlled> {
        let mut work = facts.work(self.shared);
        let _before = load::jobs(self.conn, &mut work, &[job])?;
        letters::load(self.conn, &mut work)?;
        let done = act(&mut work)?;
        self.write(facts, work)?;
        Ok(done)
    }

    fn replay_event(&self, facts: &Facts, event: EventId, actor: &Actor) -> Result<Controlled> {
        let mut work = facts.work(self.shared);
        load::events(self.conn, &mut work, &[event])?;
        let done = work.replay_event(event, actor)?;
        self.write(facts, work)?;
        Ok(done)
    }

    fn bump_epoch(&self, facts: &Facts, actor: &Actor) -> Result<Controlled> {
        let mut work = facts.work(self.shared);
        let epoch = work.bump_epoch(actor)?;
        execute(self.conn, sql!("control_epoch"), params![i64::from(epoch.get())])?;
        self.write(facts, work)?;
        Ok(Controlled::Epoch(epoch))
    }

    fn reset_clock(&self, facts: &Facts, actor: &Actor) -> Result<Controlled> {
        let mut work = facts.work(self.shared);
        work.note_clock_reset(actor);
        if self.shared.clock.is_fixed(self.conn, facts.now)? {
            return Ok(Controlled::Unchanged);
        }
        self.write(facts, work)?;
        self.shared.clock.reset(self.conn)?;
        Ok(Controlled::Done)
    }
}

/// Makes a lifecycle known; the same definition again changes nothing.
pub(crate) fn register(conn: &Connection, lifecycle: &Lifecycle) -> Result<Controlled> {
    let (name, revision) = (lifecycle.name().as_str(), lifecycle.revision());
    let hash = lifecycle.hash()?;
    let known: Option<Vec<u8>> =
        row(conn, sql!("control_registered"), params![name, revision], |row| {
            Columns::of(row).raw()
        })?;
    match known {
        Some(known) if known == hash => Ok(Controlled::Unchanged),
        Some(_) => {
            let why = format!("lifecycle {name} revision {revision} has another definition");
            Err(Error::new(ErrorKind::Conflict, "register", why))
        }
        None => {
            let values = params![name, revision, hash.as_slice(), lifecycle.to_json()?];
            execute(conn, sql!("control_register"), values)?;
            Ok(Controlled::Done)
        }
    }
}
