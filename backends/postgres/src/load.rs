//! Owns what a transaction reads before it decides: the store's facts, rows by id, and what exists
//! under new ids and keys. What does not wait for another answer is sent along with it. Decides
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{try_join, try_join4};
#[cfg(feature = "lab")]
use leasehold_core::lab::ManualClock;
use leasehold_core::row::{EventRow, JobRow, QueueRow};
use leasehold_core::rules::{
    EnqueueWants, Ids, Known, KnownEvent, KnownJob, KnownKey, Lifecycles, SettleWants, Work,
};
use leasehold_core::{
    Epoch, EventId, Hints, IdempotencyKey, JobId, Json, Limits, QueueName, Result, Scope, State,
    Timestamp, Topic,
};
use tokio_postgres::Row;

use crate::bind::Params;
use crate::error::corrupt;
use crate::quick::Plain;
use crate::row::Columns;
use crate::schema::Schema;
use crate::statement::{Db, Sql, sql};
use crate::subject;

/// What tells one set of registered lifecycles from another, they, and what the quick ways need of them.
type Registered = (String, Arc<Lifecycles>, Arc<Plain>);

/// What every connection of one store shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) ids: Ids,
    pub(crate) hints: Hints,
    pub(crate) schema: Arc<Schema>,
    #[cfg(feature = "lab")]
    pub(crate) clock: Option<ManualClock>,
    pub(crate) lifecycles: Mutex<Option<Registered>>,
    /// The queues whose last claim could not go the quick way, for limits or partitions.
    pub(crate) long: Mutex<BTreeSet<QueueName>>,
}

impl Shared {
    /// The lifecycles as they were known last; others may be registered by now.
    pub(crate) fn known_lifecycles(&self) -> Option<(Arc<Lifecycles>, Arc<Plain>)> {
        let known = self.lifecycles.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|(_, all, plain)| (Arc::clone(all), Arc::clone(plain)))
    }

    /// Notes of some queues whether their claims need the long way.
    pub(crate) fn needs_long<'q>(&self, queues: impl Iterator<Item = (&'q QueueName, bool)>) {
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        for (queue, needs_long) in queues {
            if !needs_long {
                long.remove(queue);
            } else if !long.contains(queue) {
                long.insert(queue.clone());
            }
        }
    }

    /// Whether the last claim from a queue needed the long way; if the next does not, that notes it.
    pub(crate) fn needed_long(&self, queue: &QueueName) -> bool {
        self.long.lock().unwrap_or_else(PoisonError::into_inner).contains(queue)
    }

    /// The time in tests; the server's counts where it is `None`.
    pub(crate) fn manual_now(&self) -> Option<Timestamp> {
        #[cfg(feature = "lab")]
        return self.clock.as_ref().map(ManualClock::now);
        #[cfg(not(feature = "lab"))]
        None
    }
}

/// What a transaction knows of its store.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) now: Timestamp,
    pub(crate) epoch: Epoch,
    pub(crate) limit: Option<u32>,
    pub(crate) lifecycles: Arc<Lifecycles>,
}

impl Facts {
    pub(crate) async fn load(db: &Db<'_>, shared: &Shared) -> Result<Self> {
        let found = db.row(sql!("load_store"), Params::new().one(shared.manual_now()), |row| {
            let mut columns = Columns::of(row);
            let epoch = Epoch::new(columns.raw()?)?;
            Ok((epoch, columns.maybe_number()?, columns.time()?, columns.raw()?))
        });
        let gone = || corrupt("the store's row is gone");
        let (epoch, limit, now, stamp): (_, _, _, String) = found.await?.ok_or_else(gone)?;
        let lifecycles = lifecycles_of(db, shared, stamp).await?;
        Ok(Self { now, epoch, limit, lifecycles })
    }

    pub(crate) fn work(&self, shared: &Shared) -> Work {
        let (limits, ids) = (shared.limits.clone(), shared.ids.clone());
        Work::new(self.now, self.epoch, limits, Arc::clone(&self.lifecycles), ids)
    }

    /// Locks the store's row, and goes on from what it says after the wait.
    pub(crate) async fn lock_store(&mut self, db: &Db<'_>, shared: &Shared) -> Result<()> {
        let found = db.row(sql!("lock_store"), Params::new().one(shared.manual_now()), |row| {
            let mut columns = Columns::of(row);
            Ok((Epoch::new(columns.raw()?)?, columns.maybe_number()?, columns.time()?))
        });
        let gone = || corrupt("the store's row is gone");
        let (epoch, limit, now) = found.await?.ok_or_else(gone)?;
        (self.epoch, self.limit, self.now) = (epoch, limit, self.now.max(now));
        Ok(())
    }

    /// Locks queues by name; the time goes on to after the wait.
    pub(crate) async fn lock_queues(
        &mut self,
        db: &Db<'_>,
        shared: &Shared,
        names: &[&QueueName],
    ) -> Result<Vec<QueueRow>> {
        let values = Params::new().many(names.iter().map(|name| name.as_str()));
        let found = db.rows(sql!("lock_queues"), values.one(shared.manual_now()), |row| {
            let mut columns = Columns::of(row);
            Ok((columns.queue()?, columns.time()?))
        });
        let mut queues = Vec::new();
        for (queue, now) in found.await? {
            self.now = self.now.max(now);
            queues.push(queue);
        }
        Ok(queues)
    }

    /// Takes in what a lock told: the time and the epoch are the last lock's.
    pub(crate) fn take_in<T>(&mut self, locked: Locked<T>) -> Vec<T> {
        if let Some((now, epoch)) = locked.after {
            (self.now, self.epoch) = (self.now.max(now), epoch);
        }
        locked.rows
    }

    /// Event rows by id, locked after a wait.
    pub(crate) async fn lock_events(
        &mut self,
        db: &Db<'_>,
        shared: &Shared,
        ids: &[EventId],
    ) -> Result<Vec<EventRow>> {
        let ids = Params::new().many(ids.iter().copied());
        let found = lock(db, shared, (sql!("lock_events"), ids), |columns| columns.event());
        Ok(self.take_in(found.await?))
    }

    /// Event rows by id, locked where they are free.
    pub(crate) async fn lock_free_events(
        &mut self,
        db: &Db<'_>,
        shared: &Shared,
        ids: &[EventId],
    ) -> Result<Vec<EventRow>> {
        let ids = Params::new().many(ids.iter().copied());
        let found = lock(db, shared, (sql!("lock_events_free"), ids), |columns| columns.event());
        Ok(self.take_in(found.await?))
    }
}

/// Locked rows, and the time and the epoch after the last lock.
#[derive(Debug)]
pub(crate) struct Locked<T> {
    rows: Vec<T>,
    after: Option<(Timestamp, Epoch)>,
}

async fn lock<T>(
    db: &Db<'_>,
    shared: &Shared,
    (sql, ids): (Sql, Params),
    read: impl Fn(&mut Columns<'_>) -> Result<T>,
) -> Result<Locked<T>> {
    let mut after: Option<(Timestamp, Epoch)> = None;
    let found = db.rows(sql, ids.one(shared.manual_now()), |row| {
        let mut columns = Columns::of(row);
        let (row, now) = (read(&mut columns)?, columns.time()?);
        let now = after.map_or(now, |(before, _)| before.max(now));
        after = Some((now, Epoch::new(columns.raw()?)?));
        Ok(row)
    });
    let rows = found.await?;
    Ok(Locked { rows, after })
}

/// Job rows by id, locked after a wait.
pub(crate) async fn lock_jobs(
    db: &Db<'_>,
    shared: &Shared,
    ids: &[JobId],
) -> Result<Locked<JobRow>> {
    if ids.is_empty() {
        return Ok(Locked { rows: Vec::new(), after: None });
    }
    let wanted = (sql!("lock_jobs"), Params::new().many(ids.iter().copied()));
    lock(db, shared, wanted, |columns| columns.job()).await
}

/// Job rows by id, locked where they are free.
pub(crate) async fn lock_free_jobs(
    db: &Db<'_>,
    shared: &Shared,
    ids: &[JobId],
) -> Result<Locked<JobRow>> {
    let wanted = (sql!("lock_jobs_free"), Params::new().many(ids.iter().copied()));
    lock(db, shared, wanted, |columns| columns.job()).await
}

/// The registered lifecycles, parsed again only when the table has changed.
pub(crate) async fn lifecycles(db: &Db<'_>, shared: &Shared) -> Result<Arc<Lifecycles>> {
    let stamp: Option<String> =
        db.row(sql!("load_lifecycle_stamp"), Params::new(), |row| Columns::of(row).raw()).await?;
    lifecycles_of(db, shared, stamp.unwrap_or_default()).await
}

/// The lifecycles of a stamp.
async fn lifecycles_of(db: &Db<'_>, shared: &Shared, stamp: String) -> Result<Arc<Lifecycles>> {
    let cached = || shared.lifecycles.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, parsed, _)) = &*cached()
        && *known == stamp
    {
        return Ok(Arc::clone(parsed));
    }
    let texts: Vec<String> =
        db.rows(sql!("load_lifecycles"), Params::new(), |row| Columns::of(row).raw()).await?;
    let parsed = Arc::new(Lifecycles::from_stored(texts.iter().map(String::as_str))?);
    let plain = Arc::new(Plain::of(&parsed));
    *cached() = Some((stamp, Arc::clone(&parsed), plain));
    Ok(parsed)
}

/// Hands over locked rows, and the tombstones of jobs that have none.
pub(crate) async fn hand_over(
    db: &Db<'_>,
    work: &mut Work,
    ids: &[JobId],
    rows: Vec<JobRow>,
) -> Result<()> {
    let found: BTreeSet<JobId> = rows.iter().map(|row| row.id).collect();
    let missing: Vec<JobId> = ids.iter().copied().filter(|id| !found.contains(id)).collect();
    work.load_jobs(rows);
    if missing.is_empty() {
        return Ok(());
    }
    let ids = Params::new().many(missing);
    work.load_tombstones(
        db.rows(sql!("load_tombstones"), ids, |row| Columns::of(row).tombstone()).await?,
    );
    Ok(())
}

/// Begins the decisions on some jobs, locked.
pub(crate) async fn on_jobs(
    db: &Db<'_>,
    shared: &Shared,
    facts: &mut Facts,
    ids: &[JobId],
) -> Result<Work> {
    let rows = facts.take_in(lock_jobs(db, shared, ids).await?);
    let mut work = facts.work(shared);
    hand_over(db, &mut work, ids, rows).await?;
    Ok(work)
}

/// Begins the decisions on reports and settlements; what is known of events is given back too.
pub(crate) async fn wants(
    db: &Db<'_>,
    shared: &Shared,
    facts: &Facts,
    wants: &SettleWants,
    rows: Vec<JobRow>,
) -> Result<(Work, BTreeMap<EventId, KnownEvent>)> {
    let mut work = facts.work(shared);
    hand_over(db, &mut work, &wants.jobs, rows).await?;
    let (mut known, events) =
        try_join(known(db, &wants.enqueue), known_events(db, &wants.events)).await?;
    known.events.clone_from(&events);
    work.load_known(known);
    Ok((work, events))
}

/// What exists under the ids and keys of new jobs.
pub(crate) async fn known(db: &Db<'_>, wants: &EnqueueWants) -> Result<Known> {
    let names: Vec<&QueueName> = wants.queues.iter().collect();
    let jobs = known_jobs(db, &wants.ids);
    let subjects = subject::load(db, &wants.subjects);
    let (jobs, keys, queues, subjects) =
        try_join4(jobs, known_keys(db, &wants.keys), queues(db, &names), subjects).await?;
    let mut known = Known::default();
    known.subjects = subjects;
    known.jobs.extend(jobs);
    known.keys.extend(keys);
    known.queue_logs.extend(queues.into_iter().map(|queue| (queue.name, queue.log)));
    Ok(known)
}

async fn known_jobs(db: &Db<'_>, ids: &[JobId]) -> Result<Vec<(JobId, KnownJob)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Params::new().many(ids.iter().copied());
    let found = db.rows(sql!("load_known_jobs"), ids, |row| {
        let mut columns = Columns::of(row);
        let id = JobId::from_uuid(columns.id()?);
        Ok((id, KnownJob { hash: columns.hash()?, state: columns.text(State::parse)? }))
    });
    found.await
}

async fn known_events(db: &Db<'_>, ids: &[EventId]) -> Result<BTreeMap<EventId, KnownEvent>> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = Params::new().many(ids.iter().copied());
    let found = db.rows(sql!("load_known_events"), ids, |row| {
        let mut columns = Columns::of(row);
        let id = EventId::from_uuid(columns.id()?);
        let topic = columns.text(|text| Topic::new(text))?;
        Ok((id, KnownEvent { topic, payload: columns.json()?, sequence: columns.raw()? }))
    });
    Ok(found.await?.into_iter().collect())
}

async fn known_keys(
    db: &Db<'_>,
    keys: &[(Scope, IdempotencyKey)],
) -> Result<Vec<((Scope, IdempotencyKey), KnownKey)>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let names = Params::new()
        .many(keys.iter().map(|(scope, _)| scope.as_str()))
        .many(keys.iter().map(|(_, key)| key.as_str()));
    db.rows(sql!("load_keys"), names, known_key).await
}

fn known_key(row: &Row) -> Result<((Scope, IdempotencyKey), KnownKey)> {
    let mut columns = Columns::of(row);
    let scope = columns.text(|text| Scope::new(text))?;
    let key = columns.text(|text| IdempotencyKey::new(text))?;
    let held = KnownKey {
        job: JobId::from_uuid(columns.id()?),
        hash: columns.hash()?,
        expires_at: columns.maybe_time()?,
        state: columns.maybe(State::parse)?,
    };
    Ok(((scope, key), held))
}

/// Queues by name, in no order.
pub(crate) async fn queues(db: &Db<'_>, names: &[&QueueName]) -> Result<Vec<QueueRow>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let names = Params::new().many(names.iter().map(|name| name.as_str()));
    db.rows(sql!("load_queues"), names, |row| Columns::of(row).queue()).await
}

/// What earlier executions left for claimed jobs.
pub(crate) async fn checkpoints(db: &Db<'_>, ids: &[JobId]) -> Result<BTreeMap<JobId, Json>> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = Params::new().many(ids.iter().copied());
    let found = db.rows(sql!("load_checkpoint"), ids, |row| {
        let mut columns = Columns::of(row);
        Ok((JobId::from_uuid(columns.id()?), columns.json()?))
    });
    Ok(found.await?.into_iter().collect())
}

/// Which of some jobs have a row, whoever has locked it.
pub(crate) async fn present_jobs(db: &Db<'_>, ids: &[JobId]) -> Result<BTreeSet<JobId>> {
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids = Params::new().many(ids.iter().copied());
    let found = db.rows(sql!("load_present"), ids, |row| Columns::of(row).id());
    Ok(found.await?.into_iter().map(JobId::from_uuid).collect())
}
