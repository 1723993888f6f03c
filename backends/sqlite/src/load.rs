//! Owns what a transaction reads before it decides: the store's facts, rows by id, and what exists
//! under new ids and keys. Decides nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use leasehold_core::row::{JobRow, QueueRow, RequestRow};
use leasehold_core::rules::{
    EnqueueWants, Ids, Known, KnownEvent, KnownJob, KnownKey, Lifecycles, SettleWants, Work,
};
use leasehold_core::{
    Epoch, EventId, Hints, JobId, Json, Limits, QueueName, Result, State, Timestamp, Topic,
};
use rusqlite::{Connection, params};

use crate::clock::Clock;
use crate::ends::Detour;
use crate::error::corrupt;
use crate::files::Files;
use crate::row::Columns;
use crate::statement::{id_list, row, rows, sql};
use crate::subject;

/// What every connection of one store shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) ids: Ids,
    pub(crate) hints: Hints,
    pub(crate) clock: Clock,
    /// `None` for a database in memory.
    pub(crate) files: Option<Files>,
    pub(crate) lifecycles: Mutex<Option<(String, Arc<Lifecycles>)>>,
    pub(crate) detour: Detour,
}

/// Job rows as they were loaded.
pub(crate) type Before = HashMap<JobId, JobRow>;

/// What a transaction knows of its store.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) now: Timestamp,
    pub(crate) epoch: Epoch,
    pub(crate) limit: Option<u32>,
    pub(crate) lifecycles: Arc<Lifecycles>,
}

impl Facts {
    pub(crate) fn load(conn: &Connection, shared: &Shared) -> Result<Self> {
        let read = |row: &rusqlite::Row<'_>| {
            let mut columns = Columns::of(row);
            let (epoch, limit) = (Epoch::new(columns.raw()?)?, columns.raw()?);
            let mark: (i64, i64) = (columns.raw()?, columns.raw()?);
            let stamp: String = columns.raw()?;
            Ok((epoch, limit, mark, stamp))
        };
        let found = row(conn, sql!("load_facts"), [], read)?;
        let gone = || corrupt("the row of the store or of its clock is gone");
        let (epoch, limit, mark, stamp) = found.ok_or_else(gone)?;
        let now = shared.clock.now_after(conn, mark)?;
        Ok(Self { now, epoch, limit, lifecycles: lifecycles_of(conn, shared, stamp)? })
    }

    pub(crate) fn work(&self, shared: &Shared) -> Work {
        let (limits, ids) = (shared.limits.clone(), shared.ids.clone());
        Work::new(self.now, self.epoch, limits, Arc::clone(&self.lifecycles), ids)
    }
}

/// The registered lifecycles, parsed again only when the table has changed.
pub(crate) fn lifecycles(conn: &Connection, shared: &Shared) -> Result<Arc<Lifecycles>> {
    let stamp: Option<String> =
        row(conn, sql!("load_lifecycle_stamp"), [], |row| Columns::of(row).raw())?;
    lifecycles_of(conn, shared, stamp.unwrap_or_default())
}

fn lifecycles_of(conn: &Connection, shared: &Shared, stamp: String) -> Result<Arc<Lifecycles>> {
    let mut cached = shared.lifecycles.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, parsed)) = &*cached
        && *known == stamp
    {
        return Ok(Arc::clone(parsed));
    }
    let texts: Vec<String> = rows(conn, sql!("load_lifecycles"), [], |row| Columns::of(row).raw())?;
    let parsed = Arc::new(Lifecycles::from_stored(texts.iter().map(String::as_str))?);
    *cached = Some((stamp, Arc::clone(&parsed)));
    Ok(parsed)
}

/// Job rows by id, and the tombstones of those that have none.
pub(crate) fn jobs(conn: &Connection, work: &mut Work, ids: &[JobId]) -> Result<Before> {
    let list = params![id_list(ids.iter().map(JobId::as_bytes))];
    let found = rows(conn, sql!("lock_jobs"), list, |row| Columns::of(row).job())?;
    let before: Before = found.iter().map(|row| (row.id, row.clone())).collect();
    work.load_jobs(found);
    for id in ids.iter().filter(|id| !before.contains_key(id)) {
        let key = params![id.as_bytes().as_slice()];
        let read = |row: &rusqlite::Row<'_>| Columns::of(row).tombstone();
        work.load_tombstones(row(conn, sql!("load_tombstones"), key, read)?);
    }
    Ok(before)
}

/// Event rows by id.
pub(crate) fn events(conn: &Connection, work: &mut Work, ids: &[EventId]) -> Result<()> {
    for id in ids {
        let key = params![id.as_bytes().as_slice()];
        work.load_events(row(conn, sql!("lock_events"), key, |row| Columns::of(row).event())?);
    }
    Ok(())
}

/// Everything that reports and settlements have to be told of; what is known of events is given back.
pub(crate) fn wants(
    conn: &Connection,
    work: &mut Work,
    wants: &SettleWants,
) -> Result<(Before, BTreeMap<EventId, KnownEvent>)> {
    let before = jobs(conn, work, &wants.jobs)?;
    let mut known = known(conn, &wants.enqueue)?;
    for id in &wants.events {
        let read = |row: &rusqlite::Row<'_>| {
            let mut columns = Columns::of(row);
            Ok(KnownEvent {
                topic: columns.text(|text| Topic::new(text))?,
                payload: columns.json()?,
                sequence: columns.raw()?,
            })
        };
        let found = row(conn, sql!("load_known_events"), params![id.as_bytes().as_slice()], read)?;
        known.events.extend(found.map(|event| (*id, event)));
    }
    let events = known.events.clone();
    work.load_known(known);
    Ok((before, events))
}

/// What exists under the ids and keys of new jobs.
pub(crate) fn known(conn: &Connection, wants: &EnqueueWants) -> Result<Known> {
    let mut known = Known::default();
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let id = JobId::from_uuid(columns.id()?);
        Ok((id, KnownJob { hash: columns.hash()?, state: columns.text(State::parse)? }))
    };
    if any_taken(conn, &wants.ids)? {
        let list = params![id_list(wants.ids.iter().map(JobId::as_bytes))];
        known.jobs.extend(rows(conn, sql!("load_known_jobs"), list, read)?);
    }
    for (scope, key) in &wants.keys {
        let read = |row: &rusqlite::Row<'_>| {
            let mut columns = Columns::of(row);
            Ok(KnownKey {
                job: JobId::from_uuid(columns.id()?),
                hash: columns.hash()?,
                expires_at: columns.maybe_time()?,
                state: columns.maybe(State::parse)?,
            })
        };
        let found = row(conn, sql!("load_keys"), params![scope.as_str(), key.as_str()], read)?;
        known.keys.extend(found.map(|held| ((scope.clone(), key.clone()), held)));
    }
    for (name, version) in &wants.subjects {
        let subject = known.subjects.entry(name.clone()).or_default();
        subject::load(conn, subject, (name, *version))?;
    }
    for name in &wants.queues {
        let found = queue(conn, name)?;
        known.queue_logs.extend(found.map(|queue| (queue.name, queue.log)));
    }
    Ok(known)
}

/// Whether anything exists between the smallest and the largest of some ids, which are in order. Ids
/// begin with their time, so that fresh ones have nothing between them, however many there are.
fn any_taken(conn: &Connection, ids: &[JobId]) -> Result<bool> {
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return Ok(false) };
    let range = params![first.as_bytes().as_slice(), last.as_bytes().as_slice()];
    let taken = row(conn, sql!("load_taken"), range, |row| Columns::of(row).raw())?;
    Ok(taken.unwrap_or(true))
}

/// One queue.
pub(crate) fn queue(conn: &Connection, name: &QueueName) -> Result<Option<QueueRow>> {
    row(conn, sql!("load_queues"), params![name.as_str()], |row| Columns::of(row).queue())
}

/// What was asked for with a job, and what earlier executions left.
pub(crate) type Asked = (RequestRow, Option<Json>);

/// What some jobs were asked for.
pub(crate) fn asked(
    conn: &Connection,
    jobs: impl Iterator<Item = JobId>,
) -> Result<HashMap<JobId, Asked>> {
    let ids: Vec<JobId> = jobs.collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let read = |row: &rusqlite::Row<'_>| {
        let mut columns = Columns::of(row);
        let id = JobId::from_uuid(columns.id()?);
        Ok((id, (columns.request(id)?, columns.checkpoint(id)?)))
    };
    let list = params![id_list(ids.iter().map(JobId::as_bytes))];
    Ok(rows(conn, sql!("load_request"), list, read)?.into_iter().collect())
}

/// Whether events of a topic keep the order of their key.
pub(crate) fn topic_is_ordered(conn: &Connection, topic: &Topic) -> Result<bool> {
    let kept =
        row(conn, sql!("load_topic"), params![topic.as_str()], |row| Columns::of(row).raw())?;
    Ok(kept.unwrap_or(true))
}

/// A number of rows as SQL takes it.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
