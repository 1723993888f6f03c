//! Owns how decided changes become rows, table by table in the order of [`Changes`], one statement a
//! table. Decides nothing; notes only which waiters the changes are news for.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use futures_util::future::{try_join, try_join3, try_join5};
use leasehold_core::row::{EventRow, JobRow, KeyRow, Lease, OutcomePatch, QueueRow, TransitionRow};
use leasehold_core::rules::Changes;
use leasehold_core::{
    EventState, HintKind, Hints, IdempotencyKey, JobId, OrderKey, QueueName, Result, Scope, State,
    Timestamp, Topic,
};

use crate::bind::Params;
use crate::error::{came_first, corrupt};
use crate::joined::Joined;
use crate::row::Columns;
use crate::statement::{Db, sql};
use crate::{audit, ends, letters, marks, new_jobs, subject, turns, waits};

/// Which waiters the writes of one transaction are news for.
#[derive(Debug, Default)]
pub(crate) struct News {
    jobs: AtomicBool,
    events: AtomicBool,
}

impl News {
    /// Notes that jobs may be claimable.
    pub(crate) fn of_jobs(&self) {
        self.jobs.store(true, Memory::Relaxed);
    }

    fn note(&self, changes: &Changes, now: Timestamp) {
        let due = |job: &JobRow| job.state == State::Waiting && !job.held && job.run_at <= now;
        let ready = |event: &EventRow| match event.state {
            EventState::Waiting => event.run_at <= now,
            EventState::Leased => false,
            // Its end lets the next of its key go.
            EventState::Delivered | EventState::DeadLetter => event.ordered,
        };
        if changes.jobs_new.iter().any(|(job, _)| due(job)) || changes.jobs.iter().any(due) {
            self.of_jobs();
        }
        if !changes.events_new.is_empty() || changes.events.iter().any(ready) {
            self.events.store(true, Memory::Relaxed);
        }
    }

    /// Wakes the waiters; only after the commit.
    pub(crate) fn send(&self, hints: &Hints) {
        if self.jobs.load(Memory::Relaxed) {
            hints.send(HintKind::Jobs);
        }
        if self.events.load(Memory::Relaxed) {
            hints.send(HintKind::Events);
        }
    }
}

/// What a verb has done already or knows to be there, so that its writes can spare it.
#[derive(Debug, Default)]
pub(crate) struct Spared {
    /// Whether the lock of the low-water marks is held.
    pub(crate) marks_locked: bool,
    /// Queues that exist.
    pub(crate) queues: Vec<QueueName>,
    /// Whether the verb ends with these writes.
    pub(crate) is_last: bool,
    /// Rows as they were locked.
    pub(crate) before: ends::Before,
}

/// Writes everything; new events get their sequence numbers here. What does not wait for another's
/// answer is sent along with it.
///
/// # Errors
/// The error of a lost race when a key or new id is taken by now: nothing may stay written.
pub(crate) async fn changes(
    tx: &Joined<'_>,
    spared: &Spared,
    now: Timestamp,
    changes: &mut Changes,
) -> Result<()> {
    if let Some(own) = tx.own {
        own.news.note(changes, now);
    }
    let db = &tx.db;
    changes.queues.retain(|queue| !spared.queues.contains(queue));
    changes.jobs_new.sort_unstable_by_key(|(row, _)| row.id);
    if spared.is_last && try_as_last(tx, spared, changes).await? {
        return Ok(());
    }
    let parents = waits::parents(changes);
    try_join(
        try_join5(
            marks::add(db, changes, spared.marks_locked),
            keys(db, &changes.keys, now),
            subject::mark(db, &changes.subjects),
            make_queues(db, &changes.queues, now),
            new_jobs::insert(tx, &changes.jobs_new, &parents),
        ),
        try_join3(
            jobs(db, now, &changes.jobs, spared),
            waits::write(db, changes, &parents),
            outcomes(db, &changes.outcomes),
        ),
    )
    .await?;
    number_events(db, changes).await?;
    if !changes.turns.is_empty() || !changes.starts.is_empty() {
        turns::write(db, changes).await?;
    }
    try_join5(
        new_events(db, &changes.events_new),
        events(db, &changes.events),
        transitions(db, &changes.transitions),
        letters::write(db, changes),
        audit::add(db, &changes.audit),
    )
    .await
    .map(|_| ())
}

/// Writes new jobs that are alike, or whose turn it was, where that is all there is to write, with the commit
/// sent along; tells whether it did.
async fn try_as_last(tx: &Joined<'_>, spared: &Spared, changes: &mut Changes) -> Result<bool> {
    let Some(own) = tx.own else { return Ok(false) };
    if is_turns_only(changes) {
        return turns::write_last(&tx.db, own, changes).await.map(|()| true);
    }
    if !spared.marks_locked || !is_jobs_only(changes) {
        return Ok(false);
    }
    let Some((jobs, rows)) = new_jobs::only_statement(&changes.jobs_new) else { return Ok(false) };
    let Some((marks, places)) = marks::statement(changes) else { return Ok(false) };
    try_join(tx.db.prepare(marks, &places), tx.db.prepare(jobs, &rows)).await?;
    let writes = try_join(tx.db.execute(marks, places), tx.db.insert(jobs, rows));
    own.commit_along(async { writes.await.map(|_| ()) }).await?;
    Ok(true)
}

/// Whether new jobs are all there is to write.
fn is_jobs_only(changes: &mut Changes) -> bool {
    let jobs = take(&mut changes.jobs_new);
    let is_all = changes.is_empty();
    changes.jobs_new = jobs;
    is_all
}

/// Whether turns, and starts, are all there is to write.
fn is_turns_only(changes: &mut Changes) -> bool {
    let (turns, starts) = (take(&mut changes.turns), take(&mut changes.starts));
    let is_all = changes.is_empty() && !turns.is_empty();
    (changes.turns, changes.starts) = (turns, starts);
    is_all
}

pub(crate) fn all(written: u64, rows: usize) -> bool {
    u64::try_from(rows).is_ok_and(|rows| rows == written)
}

async fn keys(db: &Db<'_>, keys: &[KeyRow], now: Timestamp) -> Result<()> {
    // One statement takes a key once, in an order that all transactions share; the last word counts.
    let rows: BTreeMap<(&Scope, &IdempotencyKey), &KeyRow> =
        keys.iter().map(|row| ((&row.scope, &row.key), row)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let rows: Vec<&KeyRow> = rows.into_values().collect();
    let values = Params::new()
        .many(rows.iter().map(|row| row.scope.as_str()))
        .many(rows.iter().map(|row| row.key.as_str()))
        .many(rows.iter().map(|row| row.job))
        .many(rows.iter().map(|row| &row.hash))
        .many(rows.iter().map(|row| row.expires_at))
        .one(now);
    let taken = db.execute(sql!("take_key"), values).await?;
    if all(taken, rows.len()) { Ok(()) } else { Err(came_first()) }
}

/// Makes queues where they do not exist.
pub(crate) async fn make_queues(db: &Db<'_>, names: &[QueueName], now: Timestamp) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let mut names = names.to_vec();
    names.sort_unstable();
    let rows: Vec<QueueRow> = names.into_iter().map(|name| QueueRow::new(name, now)).collect();
    let values = Params::new()
        .many(rows.iter().map(|row| row.name.as_str()))
        .many(rows.iter().map(|row| row.paused))
        .many(rows.iter().map(|row| row.limit))
        .many(rows.iter().map(|row| row.lease.map(|lease| lease.as_millis())))
        .many(rows.iter().map(|row| row.log))
        .many(rows.iter().map(|row| row.keep_succeeded_s))
        .many(rows.iter().map(|row| row.keep_failed_s))
        .many(rows.iter().map(|row| row.keep_dead_s))
        .many(rows.iter().map(|row| row.created_at));
    db.execute(sql!("make_queue"), values).await.map(|_| ())
}

/// Adds the four columns of a lease.
pub(crate) fn lease<'r>(
    values: Params,
    leases: impl Iterator<Item = Option<&'r Lease>> + Clone,
) -> Params {
    values
        .many(leases.clone().map(|lease| lease.map(|lease| lease.worker)))
        .many(leases.clone().map(|lease| lease.map(|lease| lease.expires_at)))
        .many(leases.clone().map(|lease| lease.map(|lease| lease.heartbeat_at)))
        .many(leases.map(|lease| lease.map(|lease| lease.length.as_millis())))
}

/// Writes job rows back.
async fn jobs(db: &Db<'_>, now: Timestamp, rows: &[JobRow], spared: &Spared) -> Result<()> {
    let rows = ends::write(db, now, rows, &spared.before).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let values = Params::new()
        .many(rows.iter().map(|row| row.id))
        .many(rows.iter().map(|row| row.state.as_str()))
        .many(rows.iter().map(|row| row.stage))
        .many(rows.iter().map(|row| row.run_at))
        .many(rows.iter().map(|row| row.held))
        .many(rows.iter().map(|row| row.again))
        .many(rows.iter().map(|row| row.attempts))
        .many(rows.iter().map(|row| row.attempts_max))
        .many(rows.iter().map(|row| row.executions))
        .many(rows.iter().map(|row| row.version))
        .many(rows.iter().map(|row| row.claim))
        .many(rows.iter().map(|row| row.last_verdict.map(|kind| kind.as_str())));
    let values = lease(values, rows.iter().map(|row| row.lease.as_ref()))
        .many(rows.iter().map(|row| row.step))
        .many(rows.iter().map(|row| row.cancel_requested))
        .many(rows.iter().map(|row| row.transition_seq))
        .many(rows.iter().map(|row| row.event_seq))
        .many(rows.iter().map(|row| row.updated_at))
        .many(rows.iter().map(|row| row.started_at))
        .many(rows.iter().map(|row| row.finished_at));
    let written = db.execute(sql!("write_job"), values).await?;
    if all(written, rows.len()) { Ok(()) } else { Err(corrupt("a locked job is gone")) }
}

async fn outcomes(db: &Db<'_>, patches: &[OutcomePatch]) -> Result<()> {
    if patches.is_empty() {
        return Ok(());
    }
    // One statement writes a row once: a job's patches become one, the later word counts.
    let mut merged: BTreeMap<JobId, OutcomePatch> = BTreeMap::new();
    for patch in patches {
        let into = merged.entry(patch.job).or_insert_with(|| patch.clone());
        into.checkpoint = patch.checkpoint.clone().or(into.checkpoint.take());
        into.result = patch.result.clone().or(into.result.take());
        into.failure = patch.failure.clone().or(into.failure.take());
        into.failed_at = patch.failed_at.or(into.failed_at);
    }
    let rows = || merged.values();
    let values = Params::new()
        .many(rows().map(|row| row.job))
        .many(rows().map(|row| row.checkpoint.as_ref()))
        .many(rows().map(|row| row.result.as_ref()))
        .many(rows().map(|row| row.failure.as_ref()))
        .many(rows().map(|row| row.failed_at));
    db.execute(sql!("write_outcome"), values).await.map(|_| ())
}

async fn number_events(db: &Db<'_>, changes: &mut Changes) -> Result<()> {
    let wanted = changes.sequences_wanted();
    if !wanted.is_empty() {
        let values = Params::new()
            .many(wanted.keys().map(|key| key.as_str()))
            .many(wanted.values().copied());
        let raised = db.rows(sql!("raise_sequence"), values, |row| {
            let mut columns = Columns::of(row);
            Ok((columns.text(|text| OrderKey::new(text))?, columns.raw()?))
        });
        changes.assign_sequences(&raised.await?.into_iter().collect());
    }
    let unordered = unordered_topics(db, &changes.events_new).await?;
    for event in changes.events_new.iter_mut().filter(|event| event.ordered) {
        event.ordered = !unordered.contains(&event.topic);
    }
    Ok(())
}

/// The topics of some events that do not keep the order of their keys.
async fn unordered_topics(db: &Db<'_>, events: &[EventRow]) -> Result<Vec<Topic>> {
    let mut names: Vec<&str> =
        events.iter().filter(|event| event.ordered).map(|event| event.topic.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let found = db.rows(sql!("load_topic"), Params::new().many(names), |row| {
        let mut columns = Columns::of(row);
        Ok((columns.text(|text| Topic::new(text))?, columns.raw::<bool>()?))
    });
    let found = found.await?.into_iter();
    Ok(found.filter_map(|(topic, ordered)| (!ordered).then_some(topic)).collect())
}

async fn new_events(db: &Db<'_>, rows: &[EventRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<&EventRow> = rows.iter().collect();
    rows.sort_unstable_by_key(|row| row.id);
    let values = Params::new()
        .many(rows.iter().map(|row| row.id))
        .many(rows.iter().map(|row| row.topic.as_str()))
        .many(rows.iter().map(|row| row.ordering.namespace()))
        .many(rows.iter().map(|row| row.ordering.key_text()))
        .many(rows.iter().map(|row| row.sequence))
        .many(rows.iter().map(|row| &row.payload))
        .many(rows.iter().map(|row| row.traceparent.as_deref()))
        .many(rows.iter().map(|row| row.state.as_str()))
        .many(rows.iter().map(|row| row.ordered))
        .many(rows.iter().map(|row| row.run_at))
        .many(rows.iter().map(|row| row.attempts))
        .many(rows.iter().map(|row| row.attempts_max))
        .many(rows.iter().map(|row| row.version))
        .many(rows.iter().map(|row| row.claim))
        .many(rows.iter().map(|row| row.last_verdict.map(|kind| kind.as_str())));
    let values = lease(values, rows.iter().map(|row| row.lease.as_ref()))
        .many(rows.iter().map(|row| row.failure.as_ref()))
        .many(rows.iter().map(|row| row.created_at))
        .many(rows.iter().map(|row| row.updated_at))
        .many(rows.iter().map(|row| row.finished_at))
        .many(rows.iter().map(|row| row.ordering.job()));
    let written = db.execute(sql!("insert_event"), values).await?;
    if all(written, rows.len()) { Ok(()) } else { Err(came_first()) }
}

/// Writes event rows back.
async fn events(db: &Db<'_>, rows: &[EventRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = Params::new()
        .many(rows.iter().map(|row| row.id))
        .many(rows.iter().map(|row| row.state.as_str()))
        .many(rows.iter().map(|row| row.run_at))
        .many(rows.iter().map(|row| row.attempts))
        .many(rows.iter().map(|row| row.version))
        .many(rows.iter().map(|row| row.claim))
        .many(rows.iter().map(|row| row.last_verdict.map(|kind| kind.as_str())));
    let values = lease(values, rows.iter().map(|row| row.lease.as_ref()))
        .many(rows.iter().map(|row| row.failure.as_ref()))
        .many(rows.iter().map(|row| row.updated_at))
        .many(rows.iter().map(|row| row.finished_at));
    let written = db.execute(sql!("write_event"), values).await?;
    if all(written, rows.len()) { Ok(()) } else { Err(corrupt("a locked event is gone")) }
}

async fn transitions(db: &Db<'_>, rows: &[TransitionRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = Params::new()
        .many(rows.iter().map(|row| row.job))
        .many(rows.iter().map(|row| row.sequence))
        .many(rows.iter().map(|row| row.at))
        .many(rows.iter().map(|row| row.verb.as_str()))
        .many(rows.iter().map(|row| row.from.as_str()))
        .many(rows.iter().map(|row| row.to.as_str()))
        .many(rows.iter().map(|row| row.version))
        .many(rows.iter().map(|row| row.worker))
        .many(rows.iter().map(|row| row.actor.as_ref().map(|actor| actor.as_str())));
    db.execute(sql!("insert_transition"), values).await.map(|_| ())
}
