//! Owns the verbs inside a transaction that somebody else began and will end: the caller's own, or
//! one of the store's. Sends no wake-up and commits nothing.

use async_trait::async_trait;
use futures_util::future::{try_join, try_join3};
use leasehold_core::row::JobRow;
use leasehold_core::rules::{EnqueueWants, Known, SettleWants, Work};
use leasehold_core::{
    Enqueued, Error, ErrorKind, Fence, JobId, LostReason, NewEvent, NewJob, Progress, Published,
    RenewRequest, Renewal, Result, Settled, Settlement,
};

use crate::error::{is_lost_race, named};
use crate::load::{self, Facts, Shared};
use crate::own::Own;
use crate::statement::Db;
use crate::write::{self, Spared};
use crate::{ends, letters, marks, waits};

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
    /// The transaction where it is the store's own; in a caller's each verb has a savepoint.
    pub(crate) own: Option<&'a Own<'a>>,
}

/// One verb: its name, what it answers, and what it does inside a transaction.
#[async_trait]
pub(crate) trait Verb: Send + Sync {
    const NAME: &'static str;
    type Answer: Send;

    /// Gets the facts, with which the transaction begins, decides and writes. What else it reads or locks
    /// first is sent along with the facts.
    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer>;
}

impl Joined<'_> {
    /// Adds jobs. Send [`Enqueued::wake`] after the commit, or pick-up takes up to one poll.
    ///
    /// # Errors
    /// As `Store::enqueue`.
    pub async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Result<Enqueued>>> {
        self.run(jobs).await
    }

    /// Adds events to the outbox.
    ///
    /// # Errors
    /// As `Store::publish`.
    pub async fn publish(&self, events: &[NewEvent]) -> Result<Vec<Published>> {
        self.run(events).await
    }

    /// Stores reports of progress.
    ///
    /// # Errors
    /// As `Store::progress`.
    pub async fn progress(&self, reports: &[Progress]) -> Result<Vec<Result<()>>> {
        self.run(reports).await
    }

    /// Ends claims.
    ///
    /// # Errors
    /// As `Store::settle`.
    pub async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        self.run(settlements).await
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

    /// Writes what a verb decided.
    pub(crate) async fn write(&self, work: Work) -> Result<()> {
        self.write_sparing(work, &Spared::default()).await
    }

    /// Writes what a verb decided, without what it knows to be needless.
    pub(crate) async fn write_sparing(&self, mut work: Work, spared: &Spared) -> Result<()> {
        let now = work.now();
        loop {
            // Who waits for what has ended is asked along with the write; the ended are locked.
            let ended = work.take_ended();
            let mut changes = work.take_changes();
            let written = write::changes(self, spared, now, &mut changes);
            let (_, open) = try_join(written, waits::open(&self.db, &ended)).await?;
            if !waits::resolve(self, &mut work, &ended, open).await? {
                return Ok(());
            }
        }
    }

    /// Gets the facts and some jobs' rows, locked; the facts are those after the locks.
    async fn facts_and(&self, ids: &[JobId]) -> Result<(Facts, Vec<JobRow>)> {
        let locked = load::lock_jobs(&self.db, self.shared, ids);
        let (mut facts, locked) = try_join(self.facts(), locked).await?;
        let rows = facts.take_in(locked);
        Ok((facts, rows))
    }

    /// Gets the facts; the store's own transaction begins with that.
    pub(crate) async fn facts(&self) -> Result<Facts> {
        let facts = Facts::load(&self.db, self.shared);
        match self.own {
            Some(own) => try_join(own.begin(), facts).await.map(|((), facts)| facts),
            None => facts.await,
        }
    }

    /// Runs a verb: facts first, whole or not at all, errors under the verb's name.
    pub(crate) async fn run<V: Verb + ?Sized>(&self, verb: &V) -> Result<V::Answer> {
        let mut answer = self.whole(verb).await;
        for _ in 1..PLANS_MAX {
            match &answer {
                // The store's own transactions are run again as a whole.
                Err(error) if self.own.is_none() && is_lost_race(error) => {}
                _ => break,
            }
            answer = self.whole(verb).await;
        }
        answer.map_err(|error| named(error, V::NAME))
    }

    async fn whole<V: Verb + ?Sized>(&self, verb: &V) -> Result<V::Answer> {
        if self.own.is_some() {
            return verb.on(self).await;
        }
        self.db.batch("savepoint", "savepoint leasehold_verb").await?;
        let answer = verb.on(self).await;
        let end = match &answer {
            Ok(_) => "release savepoint leasehold_verb",
            Err(_) => "rollback to savepoint leasehold_verb; release savepoint leasehold_verb",
        };
        let ended = self.db.batch("release", end).await;
        answer.and_then(|answer| ended.map(|()| answer))
    }
}

#[async_trait]
impl Verb for [NewJob] {
    const NAME: &'static str = "enqueue";
    type Answer = Vec<Result<Enqueued>>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        enqueue(tx, self, true).await
    }
}

/// Enqueues jobs; as the last verb of a transaction of the store's own, its commit goes along.
pub(crate) async fn enqueue(
    tx: &Joined<'_>,
    jobs: &[NewJob],
    is_last: bool,
) -> Result<Vec<Result<Enqueued>>> {
    let limits = &tx.shared.limits;
    let fit = jobs.len() <= limits.batch_max && jobs.iter().all(|job| job.check(limits).is_ok());
    // What does not fit is refused below, before anything is asked about it.
    let wants = if fit { EnqueueWants::of(jobs) } else { EnqueueWants::default() };
    let known = load::known(&tx.db, &wants);
    let (facts, known) = match tx.own {
        Some(_) => {
            let lock = marks::lock(&tx.db);
            let (facts, (), known) = try_join3(tx.facts(), lock, known).await?;
            (facts, known)
        }
        // A caller's transaction may go on for long, and may have nothing new.
        None => try_join(tx.facts(), known).await?,
    };
    let queues = known.queue_logs.keys().cloned().collect();
    let spared = Spared { marks_locked: tx.own.is_some(), queues, is_last, ..Spared::default() };
    let mut work = facts.work(tx.shared);
    work.check_new_jobs(jobs)?;
    work.load_known(known);
    let hints = &tx.shared.hints;
    waits::load_parents(tx, &mut work, jobs).await?;
    let answers = work.enqueue(jobs, hints)?;
    tx.write_sparing(work, &spared).await?;
    Ok(answers)
}

#[async_trait]
impl Verb for [NewEvent] {
    const NAME: &'static str = "publish";
    type Answer = Vec<Published>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        let wants = SettleWants::of_events(self);
        let (facts, rows) = tx.facts_and(&wants.jobs).await?;
        let (mut work, before) = load::wants(&tx.db, tx.shared, &facts, &wants, rows).await?;
        let mut known = Known::default();
        known.events = before;
        work.publish(self)?;
        let now = work.now();
        let mut changes = work.into_changes();
        write::changes(tx, &Spared::default(), now, &mut changes).await?;
        Ok(Work::published(self, &changes.events_new, &known))
    }
}

#[async_trait]
impl Verb for [Progress] {
    const NAME: &'static str = "progress";
    type Answer = Vec<Result<()>>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        tx.shared.limits.check_batch(Self::NAME, self.len())?;
        let wants = SettleWants::of_progress(self);
        let (facts, rows) = tx.facts_and(&wants.jobs).await?;
        let (mut work, _) = load::wants(&tx.db, tx.shared, &facts, &wants, rows).await?;
        let answers = self.iter().map(|report| work.progress(report)).collect();
        tx.write(work).await?;
        Ok(answers)
    }
}

#[async_trait]
impl Verb for [Settlement] {
    const NAME: &'static str = "settle";
    type Answer = Vec<Result<Settled>>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        tx.shared.limits.check_batch(Self::NAME, self.len())?;
        let wants = SettleWants::of(self);
        let (facts, rows) = tx.facts_and(&wants.jobs).await?;
        let spared = Spared { before: ends::before(&rows), ..Spared::default() };
        let (mut work, _) = load::wants(&tx.db, tx.shared, &facts, &wants, rows).await?;
        letters::load(&tx.db, &mut work).await?;
        let follow_on = self.iter().flat_map(|item| &item.jobs);
        waits::load_parents(tx, &mut work, follow_on).await?;
        let answers = self.iter().map(|item| work.settle(item)).collect();
        tx.write_sparing(work, &spared).await?;
        Ok(answers)
    }
}

#[async_trait]
impl Verb for RenewRequest {
    const NAME: &'static str = "renew";
    type Answer = Vec<Renewal>;

    async fn on(&self, tx: &Joined<'_>) -> Result<Self::Answer> {
        tx.shared.limits.check_batch(Self::NAME, self.fences.len())?;
        let ids = sorted(self.fences.iter().map(|fence| fence.job()));
        let free = load::lock_free_jobs(&tx.db, tx.shared, &ids);
        let (mut facts, free) = try_join(tx.facts(), free).await?;
        let rows = facts.take_in(free);
        let mut work = facts.work(tx.shared);
        load::hand_over(&tx.db, &mut work, &ids, rows).await?;
        let absent: Vec<JobId> = ids.iter().copied().filter(|id| work.job(*id).is_none()).collect();
        let held = load::present_jobs(&tx.db, &absent).await?;
        let renew = |fence: &Fence| match held.contains(&fence.job()) {
            true if fence.epoch() != facts.epoch => Renewal::Lost(LostReason::EpochRaised),
            true => Renewal::Locked,
            false => work.renew(fence, self),
        };
        let answers = self.fences.iter().map(renew).collect();
        tx.write(work).await?;
        Ok(answers)
    }
}

/// A set of ids in the order in which rows are locked.
pub(crate) fn sorted<Id: Ord>(ids: impl Iterator<Item = Id>) -> Vec<Id> {
    let mut ids: Vec<Id> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
