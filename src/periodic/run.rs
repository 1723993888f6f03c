//! Owns the making of ticks into jobs, round after round, on any number of nodes. Goes by what is
//! stored alone: schedules, what they have seen, and the store's clock.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::retry::random_unit;
use leasehold_core::{
    DeleteDocument, DocumentPage, Error, ErrorKind, Expected, ListDocuments, Namespace, Result,
    Store, Timestamp,
};
use tokio_util::sync::CancellationToken;

use super::row::{self, NAMESPACE, Stored};
use super::schedule::Schedule;
use super::ticks::TICKS_MAX;

/// How often a schedule is set anew because another node came between.
const TRIES_MAX: usize = 16;
/// The longest wait between two rounds: a schedule set elsewhere is seen after it.
const WAIT_MAX: Duration = Duration::from_secs(5);
const WAIT_MIN: Duration = Duration::from_millis(20);

/// Sets schedules, and makes their ticks into jobs. A worker's upkeep does the latter by itself.
#[derive(Clone, Debug)]
pub struct Periodic {
    store: Arc<dyn Store>,
}

/// A schedule as it stands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Planned {
    /// The schedule.
    pub schedule: Schedule,
    /// Its last tick that was made into a job.
    pub last: Option<Timestamp>,
    /// Its next tick.
    pub next: Option<Timestamp>,
}

/// What a round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Round {
    /// How many jobs it made; those of other nodes do not count.
    pub jobs: usize,
    /// How long until the next tick, or the next look.
    pub wait: Duration,
}

impl Periodic {
    /// Takes a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Stores a schedule in place of another of its name. One that is the same already writes nothing,
    /// so every node may do it at every start. Its first tick comes after it was first set.
    ///
    /// # Errors
    /// `Busy` when other nodes came between again and again; engine errors.
    pub async fn set(&self, schedule: &Schedule) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let found = self.store.records().get(row::id(schedule.name.as_str())?).await?;
            let stored = found.as_ref().map(Stored::read).transpose();
            let (seen, expected) = match (&found, stored) {
                (None, _) => (None, Expected::Absent),
                (Some(_), Ok(Some(stored))) if stored.schedule == *schedule => return Ok(()),
                (Some(document), Ok(stored)) => {
                    (stored.map(|stored| stored.seen), Expected::Version(document.version))
                }
                // What cannot be read is replaced, and begins anew.
                (Some(document), Err(_)) => {
                    (Some(document.updated_at), Expected::Version(document.version))
                }
            };
            let put = row::put(schedule, seen)?.expected(expected);
            match self.store.records().put(put).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done.map(|_| ()),
            }
        }
        let why = "other nodes set the schedule again and again";
        Err(Error::new(ErrorKind::Busy, "set schedule", why).about(&schedule.name))
    }

    /// Removes a schedule; whether there was one. Jobs that it made stay.
    ///
    /// # Errors
    /// Engine errors.
    pub async fn remove(&self, name: &str) -> Result<bool> {
        self.store.records().delete(DeleteDocument::new(row::id(name)?)).await
    }

    /// Lists the schedules by name; what cannot be read is left out.
    ///
    /// # Errors
    /// Engine errors.
    pub async fn list(&self) -> Result<Vec<Planned>> {
        let (stored, _) = self.stored().await?;
        let planned = stored.into_iter().map(|it| Planned {
            next: it.schedule.calendar().ok().and_then(|calendar| calendar.next(it.seen)),
            last: it.ticked.then_some(it.seen),
            schedule: it.schedule,
        });
        Ok(planned.collect())
    }

    /// Makes every tick that is due into a job.
    ///
    /// # Errors
    /// Engine errors. A schedule whose jobs are refused is logged, and keeps no other from running.
    pub async fn run_once(&self) -> Result<Round> {
        let (stored, now) = self.stored().await?;
        let mut round = Round { jobs: 0, wait: WAIT_MAX };
        for it in &stored {
            match self.tick(it, now).await {
                Ok((jobs, next)) => {
                    round.jobs += jobs;
                    round.wait = next.map_or(round.wait, |next| round.wait.min(next.since(now)));
                }
                Err(error) if error.is_retryable() => return Err(error),
                Err(error) => {
                    tracing::error!(%error, "schedule {} cannot run", it.schedule.name);
                }
            }
        }
        Ok(round)
    }

    /// Makes the due ticks of one schedule into jobs; how many, and when it is due again.
    async fn tick(&self, it: &Stored, now: Timestamp) -> Result<(usize, Option<Timestamp>)> {
        let calendar = it.schedule.calendar()?;
        let ticks = calendar.due(&it.schedule, it.seen, now);
        let Some(last) = ticks.last().copied() else {
            return Ok((0, calendar.next(now.max(it.seen))));
        };
        let jobs = ticks.iter().map(|tick| it.schedule.job(*tick)).collect::<Result<_>>()?;
        let mut made = 0;
        for answer in self.store.enqueue(jobs).await? {
            match answer {
                Ok(enqueued) => made += usize::from(enqueued.is_new()),
                // The tick has run with what the schedule said before it was changed.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        let put = row::put(&it.schedule, Some(last))?.expected(Expected::Version(it.version));
        match self.store.records().put(put).await {
            // Another node has done the same, or the schedule was changed.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            done => drop(done?),
        }
        let again = if ticks.len() < TICKS_MAX { calendar.next(now) } else { Some(now) };
        Ok((made, again))
    }

    /// Every schedule that can be read, and the store's now.
    async fn stored(&self) -> Result<(Vec<Stored>, Timestamp)> {
        let mut list = ListDocuments::new(Namespace::new(NAMESPACE)?).limit(1_000);
        let mut stored = Vec::new();
        loop {
            let DocumentPage { items, next, now, .. } =
                self.store.records().list(list.clone()).await?;
            for document in &items {
                match Stored::read(document) {
                    Ok(it) => stored.push(it),
                    Err(error) => {
                        tracing::error!(%error, "schedule {} cannot be read", document.id.key);
                    }
                }
            }
            match next {
                Some(next) => list = list.after(next),
                None => return Ok((stored, now)),
            }
        }
    }

    /// Does rounds until `shutdown` is cancelled, each at the next tick; a failed round is logged.
    pub async fn run(&self, shutdown: &CancellationToken) {
        loop {
            let wait = match self.run_once().await {
                Ok(round) => round.wait,
                Err(error) => {
                    tracing::warn!(%error, "a round of periodic jobs failed");
                    WAIT_MAX
                }
            };
            // Nodes that look at the same moment would only get in each other's way.
            let wait = wait.max(WAIT_MIN) + WAIT_MIN.mul_f64(random_unit());
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}
