//! Owns acts of control: settings are compared and written here, acts on a job or event are rules of
//! the contract.

use async_trait::async_trait;
use leasehold_core::row::QueueRow;
use leasehold_core::rules::Work;
use leasehold_core::{
    Actor, Control, Controlled, Error, ErrorKind, EventId, JobId, Lifecycle, QueueName, Result,
};

use crate::bind::Params;
use crate::error::corrupt;
use crate::joined::{Joined, Verb};
use crate::letters;
use crate::load::{self, Facts};
use crate::row::Columns;
use crate::statement::{Db, sql};
use crate::write;

#[async_trait]
impl Verb for Control {
    const NAME: &'static str = "control";
    type Answer = Controlled;

    async fn on(&self, tx: &Joined<'_>) -> Result<Controlled> {
        let facts = tx.facts().await?;
        tx.act(&facts, self).await
    }
}

impl Joined<'_> {
    async fn act(&self, facts: &Facts, act: &Control) -> Result<Controlled> {
        match act {
            Control::Pause(queue) => self.set_queue(facts, queue, |row| row.paused = true).await,
            Control::Resume(queue) => self.set_queue(facts, queue, |row| row.paused = false).await,
            Control::SetQueue(queue, settings) => {
                let apply = |row: &mut QueueRow| {
                    row.apply(settings);
                };
                self.set_queue(facts, queue, apply).await
            }
            Control::SetStoreLimit(limit) => self
                .changed(self.db.execute(sql!("control_limit"), Params::new().one(*limit)).await?),
            Control::SetTopic { topic, ordered } => {
                let values = Params::new().one(topic.as_str()).one(*ordered);
                self.changed(self.db.execute(sql!("control_topic"), values).await?)
            }
            Control::Register(lifecycle) => {
                let done = register(&self.db, lifecycle).await?;
                self.changed(u64::from(done == Controlled::Done))
            }
            Control::Introduce { worker, name } => {
                let values = Params::new().one(*worker).one(name.as_str()).one(facts.now);
                self.changed(self.db.execute(sql!("control_introduce"), values).await?)
            }
            Control::RequestCancel { job, actor, reason } => {
                let act = |work: &mut Work| work.request_cancel(*job, actor, reason.as_deref());
                self.on_job(facts, *job, act).await
            }
            Control::Retry { job, actor } => {
                self.on_job(facts, *job, |work| work.reopen(*job, actor)).await
            }
            Control::Wake { job, actor } => {
                self.on_job(facts, *job, |work| work.wake(*job, actor)).await
            }
            Control::Replay(replay) => self.replay(facts, replay).await,
            Control::NoteLetter { act, job, actor, note } => {
                let mut work = self.on_letters(facts, *job).await?;
                let done = work.note_letter(*act, *job, actor, note)?;
                self.write(work).await?;
                Ok(done)
            }
            Control::ReplayEvent { event, actor } => self.replay_event(facts, *event, actor).await,
            Control::BumpEpoch { actor } => self.bump_epoch(facts, actor).await,
            // The server keeps the clock.
            Control::ResetClock { .. } => Ok(Controlled::Unchanged),
            _ => Err(Error::invalid("control", "this version does not know the act")),
        }
    }

    fn changed(&self, rows: u64) -> Result<Controlled> {
        if rows == 0 {
            return Ok(Controlled::Unchanged);
        }
        if let Some(own) = self.own {
            own.news.of_jobs();
        }
        Ok(Controlled::Done)
    }

    async fn set_queue(
        &self,
        facts: &Facts,
        name: &QueueName,
        change: impl FnOnce(&mut QueueRow),
    ) -> Result<Controlled> {
        let mut facts = facts.clone();
        let before = facts.lock_queues(&self.db, self.shared, &[name]).await?.pop();
        let mut row = match &before {
            Some(row) => row.clone(),
            None => {
                write::make_queues(&self.db, std::slice::from_ref(name), facts.now).await?;
                let made = facts.lock_queues(&self.db, self.shared, &[name]).await?.pop();
                made.ok_or_else(|| corrupt("a queue that was just made is gone"))?
            }
        };
        change(&mut row);
        if before.as_ref() == Some(&row) {
            return Ok(Controlled::Unchanged);
        }
        let values = Params::new()
            .one(row.name.as_str())
            .one(row.paused)
            .one(row.limit)
            .one(row.lease.map(|lease| lease.as_millis()))
            .one(row.log)
            .one(row.keep_succeeded_s)
            .one(row.keep_failed_s)
            .one(row.keep_dead_s)
            .one(row.partition_limit)
            .one(row.partition_rate.map(|it| i64::try_from(it.rate().hourly()).unwrap_or(i64::MAX)))
            .one(row.partition_rate.map(|it| it.burst()));
        if before.is_some_and(|before| before.partition_rate != row.partition_rate) {
            self.db.execute(sql!("control_starts"), Params::new().one(row.name.as_str())).await?;
        }
        self.changed(self.db.execute(sql!("control_queue"), values).await?)
    }

    async fn on_job(
        &self,
        facts: &Facts,
        job: JobId,
        act: impl FnOnce(&mut Work) -> Result<Controlled>,
    ) -> Result<Controlled> {
        let mut work = load::on_jobs(&self.db, self.shared, &mut facts.clone(), &[job]).await?;
        letters::load(&self.db, &mut work).await?;
        let done = act(&mut work)?;
        self.write(work).await?;
        Ok(done)
    }

    async fn replay_event(
        &self,
        facts: &Facts,
        event: EventId,
        actor: &Actor,
    ) -> Result<Controlled> {
        let mut facts = facts.clone();
        let rows = facts.lock_events(&self.db, self.shared, &[event]).await?;
        let mut work = facts.work(self.shared);
        work.load_events(rows);
        let done = work.replay_event(event, actor)?;
        self.write(work).await?;
        Ok(done)
    }

    async fn bump_epoch(&self, facts: &Facts, actor: &Actor) -> Result<Controlled> {
        let mut facts = facts.clone();
        facts.lock_store(&self.db, self.shared).await?;
        let mut work = facts.work(self.shared);
        let epoch = work.bump_epoch(actor)?;
        let values = Params::new().one(i64::from(epoch.get()));
        self.db.execute(sql!("control_epoch"), values).await?;
        self.write(work).await?;
        Ok(Controlled::Epoch(epoch))
    }
}

/// Makes a lifecycle known; the same definition again changes nothing.
pub(crate) async fn register(db: &Db<'_>, lifecycle: &Lifecycle) -> Result<Controlled> {
    let (name, revision) = (lifecycle.name().as_str(), lifecycle.revision());
    let hash = lifecycle.hash()?;
    let text = lifecycle.to_json()?;
    let key = || Params::new().one(name).one(revision);
    let values = key().one(hash.as_slice()).one(text.as_str());
    if db.execute(sql!("control_register"), values).await? == 1 {
        return Ok(Controlled::Done);
    }
    let known: Option<Vec<u8>> =
        db.row(sql!("control_registered"), key(), |row| Columns::of(row).raw()).await?;
    if known.as_deref() == Some(hash.as_slice()) {
        return Ok(Controlled::Unchanged);
    }
    let why = format!("lifecycle {name} revision {revision} has another definition");
    Err(Error::new(ErrorKind::Conflict, "register", why))
}
