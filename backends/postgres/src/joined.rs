//! Owns the verbs inside a transaction that somebody else began and will end: the caller's own, or
//! one of the store's. Sends no wake-up and commits nothing.

use leasehold_core::rules::{EnqueueWants, Known, SettleWants, Work};
use leasehold_core::{
    Enqueued, Error, ErrorKind, EventFence, EventId, EventSettlement, JobId, LostReason, NewEvent,
    NewJob, Once, Progress, Published, Remembered, RenewRequest, Renewal, Result, Settled,
    Settlement,
};

use crate::error::{is_lost_race, named};
use crate::load::{self, Facts, Shared};
use crate::statement::Db;
use crate::write::{self, News};
use crate::{deliver, once};

/// How often a verb is planned anew because another transaction came first.
const PLANS_MAX: u32 = 5;

/// The verbs on a caller's transaction; they commit or roll back with the caller's own rows.
///
/// A verb that errs has written nothing, and the transaction can go on. A verb whose future was
/// dropped before its end may have written a part: roll back then. Under `REPEATABLE READ` and
/// stricter a race with another transaction is a `Busy` that asks for a restart of the whole.
#[derive(Clone, Copy, Debug)]
pub struct Joined<'a> {
    pub(crate) db: Db<'a>,
    pub(crate) shared: &'a Shared,
    /// The store's own transactions gather here whom to wake; a caller's has none, and each verb in
    /// it a savepoint of its own.
    pub(crate) news: Option<&'a News>,
}

impl Joined<'_> {
    /// Adds jobs. Send [`Enqueued::wake`] after the commit, or pick-up takes up to one poll.
    ///
    /// # Errors
    /// As `Store::enqueue`.
    pub async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Result<Enqueued>>> {
        self.verb("enqueue", async |facts: &Facts| {
            let mut work = facts.work(self.shared);
            work.check_new_jobs(jobs)?;
            work.load_known(load::known(&self.db, &EnqueueWants::of(jobs)).await?);
            let hints = &self.shared.hints;
            let answers = jobs.iter().map(|job| work.enqueue(job, hints)).collect();
            self.write(work).await?;
            Ok(answers)
        })
        .await
    }

    /// Adds events to the outbox.
    ///
    /// # Errors
    /// As `Store::publish`.
    pub async fn publish(&self, events: &[NewEvent]) -> Result<Vec<Published>> {
        self.verb("publish", async |facts: &Facts| {
            let wants = SettleWants::of_events(events);
            let mut facts = facts.clone();
            let (mut work, before) = load::wants(&self.db, self.shared, &mut facts, &wants).await?;
            let mut known = Known::default();
            known.events = before;
            work.publish(events)?;
            let now = work.now();
            let mut changes = work.into_changes();
            write::changes(&self.db, self.news, now, &mut changes).await?;
            Ok(Work::published(events, &changes.events_new, &known))
        })
        .await
    }

    /// Stores reports of progress.
    ///
    /// # Errors
    /// As `Store::progress`.
    pub async fn progress(&self, reports: &[Progress]) -> Result<Vec<Result<()>>> {
        self.verb("progress", async |facts: &Facts| {
            self.shared.limits.check_batch("progress", reports.len())?;
            let wants = SettleWants::of_progress(reports);
            let (mut work, _) =
                load::wants(&self.db, self.shared, &mut facts.clone(), &wants).await?;
            let answers = reports.iter().map(|report| work.progress(report)).collect();
            self.write(work).await?;
            Ok(answers)
        })
        .await
    }

    /// Ends claims.
    ///
    /// # Errors
    /// As `Store::settle`.
    pub async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        self.verb("settle", async |facts: &Facts| {
            self.shared.limits.check_batch("settle", settlements.len())?;
            let wants = SettleWants::of(settlements);
            let (mut work, _) =
                load::wants(&self.db, self.shared, &mut facts.clone(), &wants).await?;
            let answers = settlements.iter().map(|item| work.settle(item)).collect();
            self.write(work).await?;
            Ok(answers)
        })
        .await
    }

    /// Ends one claim; a lost fence is an error, so that `?` rolls the caller back.
    ///
    /// # Errors
    /// As `Store::settle`, per item.
    pub async fn settle_one(&self, settlement: &Settlement) -> Result<Settled> {
        let answers = self.settle(std::slice::from_ref(settlement)).await?;
        let none = || Error::new(ErrorKind::Corrupt, "settle", "the store gave no answer");
        answers.into_iter().next().ok_or_else(none)?
    }

    /// Answers a request once.
    ///
    /// # Errors
    /// As `Records::once`.
    pub async fn once(&self, request: &Once) -> Result<Remembered> {
        let run = async |facts: &Facts| once::once(&self.db, self.shared, facts, request).await;
        self.verb("once", run).await
    }

    pub(crate) async fn renew(&self, request: &RenewRequest) -> Result<Vec<Renewal>> {
        self.verb("renew", async |facts: &Facts| {
            self.shared.limits.check_batch("renew", request.fences.len())?;
            let ids = sorted(request.fences.iter().map(|fence| fence.job()));
            let mut facts = facts.clone();
            let rows = facts.lock_free_jobs(&self.db, self.shared, &ids).await?;
            let mut work = facts.work(self.shared);
            load::hand_over(&self.db, &mut work, &ids, rows).await?;
            let gone = |id: &JobId| work.job(*id).is_none();
            let held: Vec<JobId> = ids.iter().copied().filter(gone).collect();
            let held = load::present_jobs(&self.db, &held).await?;
            let renew = |fence: &leasehold_core::Fence| match held.contains(&fence.job()) {
                true if fence.epoch() != facts.epoch => Renewal::Lost(LostReason::EpochRaised),
                true => Renewal::Locked,
                false => work.renew(fence, request),
            };
            let answers = request.fences.iter().map(renew).collect();
            self.write(work).await?;
            Ok(answers)
        })
        .await
    }

    pub(crate) async fn renew_events(
        &self,
        request: &RenewRequest<EventFence>,
    ) -> Result<Vec<Renewal>> {
        self.verb("renew", async |facts: &Facts| {
            self.shared.limits.check_batch("renew", request.fences.len())?;
            let ids = sorted(request.fences.iter().map(|fence| fence.event()));
            let mut facts = facts.clone();
            let rows = facts.lock_free_events(&self.db, self.shared, &ids).await?;
            let mut work = facts.work(self.shared);
            work.load_events(rows);
            let gone = |id: &EventId| work.event(*id).is_none();
            let held: Vec<EventId> = ids.iter().copied().filter(gone).collect();
            let held = deliver::present(&self.db, &held).await?;
            let renew = |fence: &EventFence| match held.contains(&fence.event()) {
                true if fence.epoch() != facts.epoch => Renewal::Lost(LostReason::EpochRaised),
                true => Renewal::Locked,
                false => work.renew_event(fence, request),
            };
            let answers = request.fences.iter().map(renew).collect();
            self.write(work).await?;
            Ok(answers)
        })
        .await
    }

    pub(crate) async fn settle_events(&self, items: &[EventSettlement]) -> Result<Vec<Result<()>>> {
        self.verb("settle", async |facts: &Facts| {
            self.shared.limits.check_batch("settle", items.len())?;
            let ids = sorted(items.iter().map(|item| item.fence.event()));
            let mut facts = facts.clone();
            let rows = facts.lock_events(&self.db, self.shared, &ids).await?;
            let mut work = facts.work(self.shared);
            work.load_events(rows);
            let answers = items.iter().map(|item| work.settle_event(item)).collect();
            self.write(work).await?;
            Ok(answers)
        })
        .await
    }

    /// Writes what a verb decided.
    pub(crate) async fn write(&self, work: Work) -> Result<()> {
        let now = work.now();
        write::changes(&self.db, self.news, now, &mut work.into_changes()).await
    }

    /// Runs a verb: facts first, whole or not at all, errors under the verb's name.
    pub(crate) async fn verb<T, F>(&self, operation: &'static str, run: F) -> Result<T>
    where
        F: AsyncFn(&Facts) -> Result<T>,
    {
        let mut answer = self.whole(&run).await;
        for _ in 1..PLANS_MAX {
            match &answer {
                Err(error) if self.news.is_none() && is_lost_race(error) => {}
                _ => break,
            }
            answer = self.whole(&run).await;
        }
        answer.map_err(|error| named(error, operation))
    }

    async fn whole<T, F>(&self, run: &F) -> Result<T>
    where
        F: AsyncFn(&Facts) -> Result<T>,
    {
        if self.news.is_some() {
            return run(&Facts::load(&self.db, self.shared).await?).await;
        }
        self.db.batch("savepoint", "savepoint leasehold_verb").await?;
        let answer = match Facts::load(&self.db, self.shared).await {
            Ok(facts) => run(&facts).await,
            Err(error) => Err(error),
        };
        let end = match &answer {
            Ok(_) => "release savepoint leasehold_verb",
            Err(_) => "rollback to savepoint leasehold_verb; release savepoint leasehold_verb",
        };
        let ended = self.db.batch("release", end).await;
        answer.and_then(|answer| ended.map(|()| answer))
    }
}

fn sorted<Id: Ord>(ids: impl Iterator<Item = Id>) -> Vec<Id> {
    let mut ids: Vec<Id> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
