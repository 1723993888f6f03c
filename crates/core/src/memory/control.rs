//! Owns acts of control on the tables; what they do to jobs and events is a rule of the contract.

use std::sync::Arc;

use super::state::{Facts, State};
use crate::control::{Control, Controlled};
use crate::error::{Error, ErrorKind, Result};
use crate::hints::HintKind;
use crate::id::JobId;
use crate::lifecycle::Lifecycle;
use crate::name::QueueName;
use crate::row::QueueRow;
use crate::rules::Work;

impl State {
    pub(super) fn control(&mut self, facts: &Facts<'_>, act: &Control) -> Result<Controlled> {
        match act {
            Control::Pause(queue) => Ok(self.set_queue(facts, queue, |row| row.paused = true)),
            Control::Resume(queue) => Ok(self.set_queue(facts, queue, |row| row.paused = false)),
            Control::SetQueue(queue, settings) => Ok(self.set_queue(facts, queue, |row| {
                row.apply(settings);
            })),
            Control::SetStoreLimit(limit) => {
                let before = std::mem::replace(&mut self.limit, *limit);
                Ok(self.changed(before != *limit))
            }
            Control::SetTopic { topic, ordered } => {
                let before = self.topics.insert(topic.clone(), *ordered);
                Ok(self.changed(before != Some(*ordered)))
            }
            Control::Register(lifecycle) => self.register(lifecycle),
            Control::Introduce { worker, name } => {
                let known = self.workers.get(worker).is_some_and(|(old, _)| old == name);
                if !known {
                    let at = self.workers.get(worker).map_or(facts.now, |(_, at)| *at);
                    self.workers.insert(*worker, (name.clone(), at));
                }
                Ok(self.changed(!known))
            }
            Control::RequestCancel { job, actor, reason } => {
                let reason = reason.as_deref();
                self.on_job(facts, *job, |work| work.request_cancel(*job, actor, reason))
            }
            Control::Retry { job, actor } => {
                self.on_job(facts, *job, |work| work.reopen(*job, actor))
            }
            Control::Wake { job, actor } => self.on_job(facts, *job, |work| work.wake(*job, actor)),
            Control::Replay(replay) => self.replay(facts, replay),
            Control::NoteLetter { act, job, actor, note } => {
                self.on_letters(facts, *job, |_, work| work.note_letter(*act, *job, actor, note))
            }
            Control::ReplayEvent { event, actor } => {
                let mut work = self.work(facts);
                self.load_events(&mut work, [*event]);
                let done = work.replay_event(*event, actor)?;
                self.write(facts, work);
                Ok(done)
            }
            Control::BumpEpoch { actor } => {
                let mut work = self.work(facts);
                let epoch = work.bump_epoch(actor)?;
                self.write(facts, work);
                self.epoch = epoch;
                Ok(Controlled::Epoch(epoch))
            }
            // This clock follows the machine's from the start on; there is nothing to set.
            Control::ResetClock { .. } => Ok(Controlled::Unchanged),
        }
    }

    fn changed(&mut self, changed: bool) -> Controlled {
        if !changed {
            return Controlled::Unchanged;
        }
        self.news.push(HintKind::Jobs);
        Controlled::Done
    }

    fn set_queue(
        &mut self,
        facts: &Facts<'_>,
        name: &QueueName,
        change: impl FnOnce(&mut QueueRow),
    ) -> Controlled {
        let before = self.queues.get(name).cloned();
        let mut row = before.clone().unwrap_or_else(|| QueueRow::new(name.clone(), facts.now));
        change(&mut row);
        let changed = before.as_ref() != Some(&row);
        if before.is_some_and(|before| before.partition_rate != row.partition_rate) {
            self.starts.retain(|(queue, _), _| queue != name);
        }
        self.queues.insert(name.clone(), row);
        self.changed(changed)
    }

    fn register(&mut self, lifecycle: &Lifecycle) -> Result<Controlled> {
        let (name, revision) = (lifecycle.name(), lifecycle.revision());
        match self.lifecycles.get(name, revision) {
            Some(known) if known.hash()? == lifecycle.hash()? => Ok(Controlled::Unchanged),
            Some(_) => {
                let why = format!("lifecycle {name} revision {revision} has another definition");
                Err(Error::new(ErrorKind::Conflict, "register", why))
            }
            None => {
                Arc::make_mut(&mut self.lifecycles).insert(lifecycle.clone());
                #[cfg(feature = "lab")]
                {
                    self.shown_lifecycles = Arc::default();
                }
                Ok(self.changed(true))
            }
        }
    }

    fn on_job(
        &mut self,
        facts: &Facts<'_>,
        job: JobId,
        act: impl FnOnce(&mut Work) -> Result<Controlled>,
    ) -> Result<Controlled> {
        let mut work = self.work(facts);
        self.load_jobs(&mut work, [job]);
        self.load_letters(&mut work);
        let done = act(&mut work)?;
        self.conclude(facts, work)?;
        Ok(done)
    }
}
