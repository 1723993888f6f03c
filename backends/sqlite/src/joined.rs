//! Owns the verbs inside a transaction that somebody else began and will end: the caller's own, or
//! the writer's. Sends no wake-up and commits nothing.

use leasehold_core::rules::{EnqueueWants, SettleWants, Work};
use leasehold_core::{
    Enqueued, Error, ErrorKind, EventFence, EventSettlement, NewEvent, NewJob, Progress, Published,
    RenewRequest, Renewal, RequestHash, Result, Settled, Settlement,
};
use rusqlite::{Connection, Savepoint, Transaction};

use crate::error::named;
use crate::load::{self, Before, Facts, Shared};
use crate::statement::batch;
use crate::{deliver, ends, letters, waits, write};

mod sealed {
    pub trait Sealed {}
    impl Sealed for rusqlite::Transaction<'_> {}
    impl Sealed for rusqlite::Savepoint<'_> {}
}

/// A transaction that verbs can join: rusqlite's `Transaction` or `Savepoint`.
pub trait InTransaction: sealed::Sealed {
    /// The connection it runs on.
    fn connection(&self) -> &Connection;
}

impl InTransaction for Transaction<'_> {
    fn connection(&self) -> &Connection {
        self
    }
}

impl InTransaction for Savepoint<'_> {
    fn connection(&self) -> &Connection {
        self
    }
}

/// The verbs on a caller's transaction; they commit or roll back with the caller's own rows.
///
/// A verb that errs has written nothing. Begin the transaction as an immediate one: a deferred one
/// that reads first fails with a `Busy` that asks for a restart when another writer came between.
#[derive(Clone, Copy, Debug)]
pub struct Joined<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) shared: &'a Shared,
    /// Whether each verb needs a savepoint of its own; the writer sets one around the request.
    pub(crate) guarded: bool,
}

impl Joined<'_> {
    /// Adds jobs. Send [`Enqueued::wake`] after the commit, or pick-up takes up to one poll.
    ///
    /// # Errors
    /// As `Store::enqueue`.
    pub fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Result<Enqueued>>> {
        self.enqueue_hashed(jobs, &[])
    }

    /// The same, where the requests have been hashed already, on the caller's own thread.
    pub(crate) fn enqueue_hashed(
        &self,
        jobs: &[NewJob],
        hashes: &[RequestHash],
    ) -> Result<Vec<Result<Enqueued>>> {
        self.verb("enqueue", |facts| {
            let mut work = facts.work(self.shared);
            work.check_new_jobs(jobs)?;
            work.load_known(load::known(self.conn, &EnqueueWants::of(jobs))?);
            let hints = &self.shared.hints;
            waits::load_parents(self.conn, &mut work, jobs)?;
            let answers = work.enqueue_hashed(jobs, hashes, hints)?;
            self.write(facts, work)?;
            Ok(answers)
        })
    }

    /// Adds events to the outbox.
    ///
    /// # Errors
    /// As `Store::publish`.
    pub fn publish(&self, events: &[NewEvent]) -> Result<Vec<Published>> {
        self.verb("publish", |facts| {
            let mut work = facts.work(self.shared);
            let wants = SettleWants::of_events(events);
            let mut known = leasehold_core::rules::Known::default();
            known.events = load::wants(self.conn, &mut work, &wants)?.1;
            work.publish(events)?;
            let mut changes = work.into_changes();
            write::changes(self.conn, self.shared, facts.now, &mut changes, &Before::new())?;
            Ok(Work::published(events, &changes.events_new, &known))
        })
    }

    /// Stores reports of progress.
    ///
    /// # Errors
    /// As `Store::progress`.
    pub fn progress(&self, reports: &[Progress]) -> Result<Vec<Result<()>>> {
        self.verb("progress", |facts| {
            self.shared.limits.check_batch("progress", reports.len())?;
            let mut work = facts.work(self.shared);
            let _known = load::wants(self.conn, &mut work, &SettleWants::of_progress(reports))?;
            let answers = reports.iter().map(|report| work.progress(report)).collect();
            self.write(facts, work)?;
            Ok(answers)
        })
    }

    /// Ends claims.
    ///
    /// # Errors
    /// As `Store::settle`.
    pub fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        self.verb("settle", |facts| {
            self.shared.limits.check_batch("settle", settlements.len())?;
            if let Some(answers) = ends::succeed(self, facts, settlements)? {
                return Ok(answers);
            }
            let mut work = facts.work(self.shared);
            let wants = SettleWants::of(settlements);
            let (before, _) = load::wants(self.conn, &mut work, &wants)?;
            letters::load(self.conn, &mut work)?;
            waits::load_parents(self.conn, &mut work, settlements.iter().flat_map(|it| &it.jobs))?;
            let answers = settlements.iter().map(|item| work.settle(item)).collect();
            waits::resolve(self.conn, &mut work)?;
            let mut changes = work.into_changes();
            write::changes(self.conn, self.shared, facts.now, &mut changes, &before)?;
            Ok(answers)
        })
    }

    /// Ends one claim; a lost fence is an error, so that `?` rolls the caller back.
    ///
    /// # Errors
    /// As `Store::settle`, per item.
    pub fn settle_one(&self, settlement: &Settlement) -> Result<Settled> {
        let answers = self.settle(std::slice::from_ref(settlement))?;
        let none = || Error::new(ErrorKind::Corrupt, "settle", "the store gave no answer");
        answers.into_iter().next().ok_or_else(none)?
    }

    pub(crate) fn renew(&self, request: &RenewRequest) -> Result<Vec<Renewal>> {
        self.verb("renew", |facts| {
            self.shared.limits.check_batch("renew", request.fences.len())?;
            let mut work = facts.work(self.shared);
            let mut ids: Vec<_> = request.fences.iter().map(|fence| fence.job()).collect();
            ids.sort_unstable();
            ids.dedup();
            let _before = load::jobs(self.conn, &mut work, &ids)?;
            let answers = request.fences.iter().map(|fence| work.renew(fence, request)).collect();
            self.write(facts, work)?;
            Ok(answers)
        })
    }

    pub(crate) fn renew_events(&self, request: &RenewRequest<EventFence>) -> Result<Vec<Renewal>> {
        self.verb("renew", |facts| {
            self.shared.limits.check_batch("renew", request.fences.len())?;
            let mut work = facts.work(self.shared);
            deliver::load(self.conn, &mut work, request.fences.iter())?;
            let fences = request.fences.iter();
            let answers = fences.map(|fence| work.renew_event(fence, request)).collect();
            self.write(facts, work)?;
            Ok(answers)
        })
    }

    pub(crate) fn settle_events(&self, items: &[EventSettlement]) -> Result<Vec<Result<()>>> {
        self.verb("settle", |facts| {
            self.shared.limits.check_batch("settle", items.len())?;
            let mut work = facts.work(self.shared);
            deliver::load(self.conn, &mut work, items.iter().map(|item| &item.fence))?;
            let answers = items.iter().map(|item| work.settle_event(item)).collect();
            let delivered = work.delivered_of_jobs();
            self.write(facts, work)?;
            if !delivered.is_empty() {
                self.close_letters(facts, &delivered)?;
            }
            Ok(answers)
        })
    }

    /// Writes what a verb decided.
    pub(crate) fn write(&self, facts: &Facts, mut work: Work) -> Result<()> {
        waits::resolve(self.conn, &mut work)?;
        let changes = &mut work.into_changes();
        write::changes(self.conn, self.shared, facts.now, changes, &Before::new())
    }

    /// Runs a verb: facts first, whole or not at all, errors under the verb's name.
    pub(crate) fn verb<T>(
        &self,
        operation: &'static str,
        run: impl FnOnce(&Facts) -> Result<T>,
    ) -> Result<T> {
        let whole = || {
            if self.conn.is_autocommit() {
                let why = "the transaction has ended";
                return Err(Error::new(ErrorKind::Unavailable, operation, why));
            }
            if !self.guarded {
                return run(&Facts::load(self.conn, self.shared)?);
            }
            batch(self.conn, "savepoint", "savepoint leasehold_verb")?;
            let answer = Facts::load(self.conn, self.shared).and_then(|facts| run(&facts));
            if answer.is_err() && !self.conn.is_autocommit() {
                batch(self.conn, "rollback", "rollback to leasehold_verb")?;
            }
            if !self.conn.is_autocommit() {
                batch(self.conn, "release", "release leasehold_verb")?;
            }
            answer
        };
        whole().map_err(|error| named(error, operation))
    }
}
