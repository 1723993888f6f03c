//! Owns the verbs of callers and holders: load, ask the rules per item, write.

use super::state::{Facts, State};
use crate::claim::{RenewRequest, Renewal};
use crate::error::Result;
use crate::event::{NewEvent, Published};
use crate::job::{Enqueued, NewJob};
use crate::rules::{EnqueueWants, SettleWants, Work};
use crate::settle::{Progress, Settled, Settlement};

impl State {
    pub(super) fn enqueue(
        &mut self,
        facts: &Facts<'_>,
        jobs: &[NewJob],
    ) -> Result<Vec<Result<Enqueued>>> {
        let mut work = self.work(facts);
        work.check_new_jobs(jobs)?;
        work.load_known(self.known(&EnqueueWants::of(jobs)));
        self.load_parents(&mut work, jobs);
        let answers = work.enqueue(jobs, facts.hints)?;
        self.write(facts, work);
        Ok(answers)
    }

    /// Enqueues all of the jobs or none.
    pub(super) fn enqueue_all(
        &mut self,
        facts: &Facts<'_>,
        jobs: &[NewJob],
    ) -> Result<Vec<Enqueued>> {
        let mut work = self.work(facts);
        work.check_new_jobs(jobs)?;
        work.load_known(self.known(&EnqueueWants::of(jobs)));
        self.load_parents(&mut work, jobs);
        let answers = work.enqueue(jobs, facts.hints)?;
        let answers = answers.into_iter().collect::<Result<_>>()?;
        self.write(facts, work);
        Ok(answers)
    }

    pub(super) fn renew(
        &mut self,
        facts: &Facts<'_>,
        request: &RenewRequest,
    ) -> Result<Vec<Renewal>> {
        facts.limits.check_batch("renew", request.fences.len())?;
        let mut work = self.work(facts);
        self.load_jobs(&mut work, request.fences.iter().map(|fence| fence.job()));
        let answers = request.fences.iter().map(|fence| work.renew(fence, request)).collect();
        self.write(facts, work);
        Ok(answers)
    }

    pub(super) fn progress(
        &mut self,
        facts: &Facts<'_>,
        reports: &[Progress],
    ) -> Result<Vec<Result<()>>> {
        facts.limits.check_batch("progress", reports.len())?;
        let mut work = self.work(facts);
        self.load_wants(&mut work, &SettleWants::of_progress(reports));
        let answers = reports.iter().map(|report| work.progress(report)).collect();
        self.write(facts, work);
        Ok(answers)
    }

    pub(super) fn settle(
        &mut self,
        facts: &Facts<'_>,
        settlements: &[Settlement],
    ) -> Result<Vec<Result<Settled>>> {
        facts.limits.check_batch("settle", settlements.len())?;
        let mut work = self.work(facts);
        self.load_wants(&mut work, &SettleWants::of(settlements));
        self.load_letters(&mut work);
        self.load_parents(&mut work, settlements.iter().flat_map(|it| &it.jobs));
        let answers = settlements.iter().map(|settlement| work.settle(settlement)).collect();
        self.conclude(facts, work)?;
        Ok(answers)
    }

    pub(super) fn publish(
        &mut self,
        facts: &Facts<'_>,
        events: &[NewEvent],
    ) -> Result<Vec<Published>> {
        let mut work = self.work(facts);
        let known = self.load_wants(&mut work, &SettleWants::of_events(events));
        work.publish(events)?;
        let written = self.write(facts, work);
        Ok(Work::published(events, &written, &known))
    }
}
