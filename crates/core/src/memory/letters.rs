//! Owns how dead letters are read and written back: those of a job, those that a job replays, and what
//! that job has yet to send. What becomes of them is a rule of the contract.

use std::collections::BTreeSet;

use super::state::{Facts, State};
use crate::control::Controlled;
use crate::error::Result;
use crate::event::{EventState, Ordering};
use crate::id::JobId;
use crate::letter::{LetterFilter, LetterState, Replay};
use crate::lifecycle::State as JobState;
use crate::row::DeadLetterRow;
use crate::rules::{EnqueueWants, Work};

impl State {
    /// Loads the letters that loaded jobs replay.
    pub(super) fn load_letters(&self, work: &mut Work) {
        let wanted = work.replays_wanted();
        if wanted.is_empty() {
            return;
        }
        let found: Vec<DeadLetterRow> = self.replayed_by(&wanted).cloned().collect();
        let jobs: BTreeSet<JobId> = found.iter().filter_map(|row| row.replay_job).collect();
        work.load_unsent(jobs.into_iter().filter(|job| self.has_unsent(*job)));
        work.load_letters(found);
    }

    /// The letters that some jobs (in order) replay.
    fn replayed_by(&self, jobs: &[JobId]) -> impl Iterator<Item = &DeadLetterRow> {
        let by = |row: &&DeadLetterRow| {
            row.state == LetterState::Replaying
                && row.replay_job.is_some_and(|job| jobs.binary_search(&job).is_ok())
        };
        self.dead_letters.values().map(|(row, _)| row).filter(by)
    }

    fn has_unsent(&self, job: JobId) -> bool {
        let own = Ordering::Job(job);
        self.events.values().any(|row| row.ordering == own && row.state != EventState::Delivered)
    }

    /// Closes the letters whose replays have now sent everything.
    pub(super) fn close_letters(&mut self, facts: &Facts<'_>, jobs: &[JobId]) {
        let succeeded =
            |job: JobId| self.jobs.get(&job).is_some_and(|row| row.state == JobState::Succeeded);
        let over = |row: &&DeadLetterRow| {
            row.replay_job.is_some_and(|job| succeeded(job) && !self.has_unsent(job))
        };
        let closed: Vec<DeadLetterRow> = self.replayed_by(jobs).filter(over).cloned().collect();
        let mut work = self.work(facts);
        work.close_letters(closed);
        self.write(facts, work);
    }

    /// Does an act on a job's letters.
    pub(super) fn on_letters(
        &mut self,
        facts: &Facts<'_>,
        job: JobId,
        act: impl FnOnce(&Self, &mut Work) -> Result<Controlled>,
    ) -> Result<Controlled> {
        let mut work = self.work(facts);
        self.load_jobs(&mut work, [job]);
        let own = self.dead_letters.range((job, i64::MIN)..=(job, i64::MAX));
        work.load_letters(own.map(|(_, (row, _))| row.clone()));
        let done = act(self, &mut work)?;
        self.conclude(facts, work)?;
        Ok(done)
    }

    pub(super) fn replay(&mut self, facts: &Facts<'_>, replay: &Replay) -> Result<Controlled> {
        self.on_letters(facts, replay.job, |state, work| {
            let asked = match work.replays_anew(replay.job) {
                true => {
                    let ids = EnqueueWants { ids: vec![replay.new_job], ..Default::default() };
                    work.load_known(state.known(&ids));
                    let outcome = state.outcomes.get(&replay.job);
                    let checkpoint = outcome.and_then(|outcome| outcome.row.checkpoint.clone());
                    state.requests.get(&replay.job).cloned().map(|it| (it, checkpoint))
                }
                false => None,
            };
            work.replay(replay, asked)
        })
    }
}

impl LetterFilter {
    /// Whether a letter fits.
    pub(super) fn fits(&self, row: &DeadLetterRow) -> bool {
        self.job.is_none_or(|job| job == row.job)
            && self.queue.as_ref().is_none_or(|queue| *queue == row.queue)
            && self.kind.as_ref().is_none_or(|kind| *kind == row.kind)
            && self.state.is_none_or(|state| state == row.state)
            && self.error_class.as_ref().is_none_or(|id| *id == row.error_class)
    }
}
