//! Owns how decided changes become rows, table by table in the order of [`Changes`]. Decides nothing;
//! notes only which waiters the changes are news for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use leasehold_core::row::{
    EventRow, JobRow, KeyRow, OutcomePatch, QueueRow, RequestRow, TransitionRow,
};
use leasehold_core::rules::Changes;
use leasehold_core::{
    EventId, EventState, HintKind, Hints, JobId, Json, Ordering, QueueName, Result, State,
    Timestamp,
};
use rusqlite::{Connection, params};

use crate::ends;
use crate::error::corrupt;
use crate::load::{Before, Shared, topic_is_ordered};
use crate::row::{Columns, micros};
use crate::statement::{Prepared, execute, row, sql};
use crate::{audit, letters, subject, turns, waits};

/// Which waiters the writes of this thread are news for, since it was last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    jobs: bool,
    events: bool,
}

/// A row that shows whether what a verb wrote still stands: none of its savepoints was rolled back.
#[derive(Clone, Debug)]
enum Witness {
    Job(JobId, State),
    Event(EventId, EventState),
}

thread_local! {
    static NEWS: Cell<News> = const { Cell::new(News { jobs: false, events: false }) };
    /// Gathered only while a closure of the caller's runs on this thread.
    static WITNESSES: RefCell<Option<Vec<Witness>>> = const { RefCell::new(None) };
}

impl News {
    /// Takes what has gathered.
    pub(crate) fn take() -> Self {
        WITNESSES.take();
        NEWS.take()
    }

    /// Begins to gather what [`News::confirm`] looks at.
    pub(crate) fn watch() {
        WITNESSES.replace(Some(Vec::new()));
    }

    /// Drops the news of what a caller's closure wrote and then rolled back to a savepoint.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) fn confirm(conn: &Connection) -> Result<()> {
        let mut stands = Self::default();
        for witness in WITNESSES.take().unwrap_or_default() {
            match witness {
                Witness::Job(id, state) if !stands.jobs => {
                    let key = params![id.as_bytes().as_slice()];
                    let found = row(conn, sql!("lock_jobs"), key, |row| Columns::of(row).job())?;
                    stands.jobs = found.is_some_and(|job| job.state == state);
                }
                Witness::Event(id, state) if !stands.events => {
                    let key = params![id.as_bytes().as_slice()];
                    let found =
                        row(conn, sql!("lock_events"), key, |row| Columns::of(row).event())?;
                    stands.events = found.is_some_and(|event| event.state == state);
                }
                Witness::Job(..) | Witness::Event(..) => {}
            }
        }
        NEWS.set(stands);
        Ok(())
    }

    /// Notes that jobs may be claimable.
    pub(crate) fn of_jobs() {
        NEWS.set(Self { jobs: true, ..NEWS.get() });
    }

    /// Notes what changes are news for, with one row of each kind that will witness it.
    fn note(changes: &Changes, now: Timestamp) {
        let due = |job: &JobRow| job.state == State::Waiting && !job.held && job.run_at <= now;
        let ready = |event: &EventRow| match event.state {
            EventState::Waiting => event.run_at <= now,
            EventState::Leased => false,
            // Its end lets the next of its key go.
            EventState::Delivered | EventState::DeadLetter => event.ordered,
        };
        let mut jobs = changes.jobs_new.iter().map(|(job, _)| job).chain(&changes.jobs);
        let mut events = changes.events.iter().filter(|event| ready(event));
        let job = jobs.find(|job| due(job)).map(|job| Witness::Job(job.id, job.state));
        let event = changes.events_new.first().or_else(|| events.next());
        let event = event.map(|event| Witness::Event(event.id, event.state));
        let before = NEWS.get();
        NEWS.set(Self {
            jobs: before.jobs || job.is_some(),
            events: before.events || event.is_some(),
        });
        WITNESSES.with_borrow_mut(|witnesses| {
            if let Some(witnesses) = witnesses {
                witnesses.extend(job.into_iter().chain(event));
            }
        });
    }

    /// Wakes the waiters; only after the commit.
    pub(crate) fn send(self, hints: &Hints) {
        if self.jobs {
            hints.send(HintKind::Jobs);
        }
        if self.events {
            hints.send(HintKind::Events);
        }
    }
}

/// Writes everything; new events get their sequence numbers here.
pub(crate) fn changes(
    conn: &Connection,
    shared: &Shared,
    now: Timestamp,
    changes: &mut Changes,
    before: &Before,
) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    News::note(changes, now);
    shared.clock.keep(conn, now)?;
    changes.keys.iter().try_for_each(|row| key(conn, row, now))?;
    changes.subjects.iter().try_for_each(|row| subject::mark(conn, row))?;
    changes.queues.iter().try_for_each(|name| make_queue(conn, name, now))?;
    new_jobs(conn, &changes.jobs_new)?;
    for row in ends::write(conn, now, &changes.jobs, before)? {
        job(conn, row)?;
    }
    changes.waits_new.iter().try_for_each(|row| waits::add(conn, row))?;
    changes.waits.iter().try_for_each(|row| waits::write(conn, row))?;
    changes.outcomes.iter().try_for_each(|patch| outcome(conn, patch))?;
    number_events(conn, changes)?;
    changes.events_new.iter().try_for_each(|row| new_event(conn, row))?;
    changes.events.iter().try_for_each(|row| event(conn, row))?;
    changes.transitions.iter().try_for_each(|row| transition(conn, row))?;
    letters::write(conn, changes)?;
    changes.audit.iter().try_for_each(|row| audit::add(conn, row))?;
    turns::write(conn, changes)
}

/// The transaction has held the write lock since before it looked, so nobody can have come first.
pub(crate) fn fresh(rows: usize, what: &str) -> Result<()> {
    match rows {
        1 => Ok(()),
        _ => Err(corrupt(format!("{what} changed under the write lock"))),
    }
}

fn key(conn: &Connection, row: &KeyRow, now: Timestamp) -> Result<()> {
    let values = params![
        row.scope.as_str(),
        row.key.as_str(),
        row.job.as_bytes().as_slice(),
        row.hash.as_bytes().as_slice(),
        micros(row.expires_at),
        now.as_micros(),
    ];
    fresh(execute(conn, sql!("take_key"), values)?, "a key")
}

/// Makes a queue where it does not exist.
pub(crate) fn make_queue(conn: &Connection, name: &QueueName, now: Timestamp) -> Result<()> {
    let row = QueueRow::new(name.clone(), now);
    let values = params![
        row.name.as_str(),
        row.paused,
        row.limit,
        row.lease.map(|lease| lease.as_millis()),
        row.log,
        row.keep_succeeded_s,
        row.keep_failed_s,
        row.keep_dead_s,
        row.created_at.as_micros(),
    ];
    execute(conn, sql!("make_queue"), values).map(|_| ())
}

fn new_jobs(conn: &Connection, rows: &[(JobRow, RequestRow)]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut insert = Prepared::new(conn, sql!("insert_job"))?;
    rows.iter().try_for_each(|(job, request)| new_job(conn, &mut insert, job, request))
}

fn new_job(
    conn: &Connection,
    insert: &mut Prepared<'_>,
    row: &JobRow,
    request: &RequestRow,
) -> Result<()> {
    let lease = row.lease.as_ref();
    let values = params![
        row.id.as_bytes().as_slice(),
        row.queue.as_str(),
        row.kind.as_str(),
        row.lifecycle.as_str(),
        row.revision,
        row.state.as_str(),
        row.stage,
        row.priority,
        row.run_at.as_micros(),
        row.held,
        row.again,
        row.log,
        row.attempts,
        row.attempts_max,
        row.executions,
        row.version.get(),
        row.claim.as_ref().map(|claim| claim.as_bytes().as_slice()),
        row.last_verdict.map(|kind| kind.as_str()),
        lease.map(|lease| lease.worker.as_bytes().as_slice()),
        lease.map(|lease| lease.expires_at.as_micros()),
        lease.map(|lease| lease.heartbeat_at.as_micros()),
        lease.map(|lease| lease.length.as_millis()),
        row.step,
        row.cancel_requested,
        row.transition_seq,
        row.event_seq,
        row.created_at.as_micros(),
        row.updated_at.as_micros(),
        micros(row.started_at),
        micros(row.finished_at),
        is_inline(&request.payload).then_some(request.payload.as_str()),
        request.hash.as_bytes().as_slice(),
        request.scope.as_str(),
        request.key.as_ref().map(|key| key.as_str()),
        request.subject.as_ref().map(|subject| subject.name.as_str()),
        request.subject.as_ref().map(|subject| subject.version),
        request.traceparent,
        row.partition.as_ref().map(|name| name.as_str()),
    ];
    fresh(insert.execute(values)?, "a job's id")?;
    if is_inline(&request.payload) {
        return Ok(());
    }
    let values = params![request.job.as_bytes().as_slice(), request.payload.as_str()];
    execute(conn, sql!("insert_payload"), values).map(|_| ())
}

/// The longest payload, in bytes, that lies in its job's row, which still fits into its page then. A
/// longer one has a row of its own, so that no claim, renewal or settlement writes it again.
const PAYLOAD_INLINE_MAX: usize = 512;

/// Whether a payload lies in its job's row.
pub(crate) fn is_inline(payload: &Json) -> bool {
    payload.len() <= PAYLOAD_INLINE_MAX
}

/// Writes a job row back.
pub(crate) fn job(conn: &Connection, row: &JobRow) -> Result<()> {
    let lease = row.lease.as_ref();
    let values = params![
        row.id.as_bytes().as_slice(),
        row.state.as_str(),
        row.stage,
        row.run_at.as_micros(),
        row.held,
        row.again,
        row.attempts,
        row.attempts_max,
        row.executions,
        row.version.get(),
        row.claim.as_ref().map(|claim| claim.as_bytes().as_slice()),
        row.last_verdict.map(|kind| kind.as_str()),
        lease.map(|lease| lease.worker.as_bytes().as_slice()),
        lease.map(|lease| lease.expires_at.as_micros()),
        lease.map(|lease| lease.heartbeat_at.as_micros()),
        lease.map(|lease| lease.length.as_millis()),
        row.step,
        row.cancel_requested,
        row.transition_seq,
        row.event_seq,
        row.updated_at.as_micros(),
        micros(row.started_at),
        micros(row.finished_at),
    ];
    fresh(execute(conn, sql!("write_job"), values)?, "a job")
}

pub(crate) fn outcome(conn: &Connection, patch: &OutcomePatch) -> Result<()> {
    let values = params![
        patch.job.as_bytes().as_slice(),
        patch.checkpoint.as_ref().map(Json::as_str),
        patch.result.as_ref().map(Json::as_str),
        patch.failure.as_ref().map(Json::as_str),
        micros(patch.failed_at),
    ];
    execute(conn, sql!("write_outcome"), values).map(|_| ())
}

fn number_events(conn: &Connection, changes: &mut Changes) -> Result<()> {
    let mut last = BTreeMap::new();
    for (key, wanted) in changes.sequences_wanted() {
        let values = params![key.as_str(), wanted];
        let raised = row(conn, sql!("raise_sequence"), values, |row| Columns::of(row).raw())?;
        last.extend(raised.map(|last: i64| (key, last)));
    }
    changes.assign_sequences(&last);
    for event in changes.events_new.iter_mut().filter(|event| event.ordered) {
        event.ordered = topic_is_ordered(conn, &event.topic)?;
    }
    Ok(())
}

fn new_event(conn: &Connection, row: &EventRow) -> Result<()> {
    let (lease, job) = (row.lease.as_ref(), row.ordering.job());
    let values = params![
        row.id.as_bytes().as_slice(),
        row.topic.as_str(),
        row.ordering.namespace(),
        Ordering::key_text(&row.ordering),
        row.sequence,
        row.payload.as_str(),
        row.traceparent,
        row.state.as_str(),
        row.ordered,
        row.run_at.as_micros(),
        row.attempts,
        row.attempts_max,
        row.version.get(),
        row.claim.as_ref().map(|claim| claim.as_bytes().as_slice()),
        row.last_verdict.map(|kind| kind.as_str()),
        lease.map(|lease| lease.worker.as_bytes().as_slice()),
        lease.map(|lease| lease.expires_at.as_micros()),
        lease.map(|lease| lease.heartbeat_at.as_micros()),
        lease.map(|lease| lease.length.as_millis()),
        row.failure.as_ref().map(Json::as_str),
        row.created_at.as_micros(),
        row.updated_at.as_micros(),
        micros(row.finished_at),
        job.as_ref().map(|job| job.as_bytes().as_slice()),
    ];
    fresh(execute(conn, sql!("insert_event"), values)?, "an event's id")
}

fn event(conn: &Connection, row: &EventRow) -> Result<()> {
    let lease = row.lease.as_ref();
    let values = params![
        row.id.as_bytes().as_slice(),
        row.state.as_str(),
        row.run_at.as_micros(),
        row.attempts,
        row.version.get(),
        row.claim.as_ref().map(|claim| claim.as_bytes().as_slice()),
        row.last_verdict.map(|kind| kind.as_str()),
        lease.map(|lease| lease.worker.as_bytes().as_slice()),
        lease.map(|lease| lease.expires_at.as_micros()),
        lease.map(|lease| lease.heartbeat_at.as_micros()),
        lease.map(|lease| lease.length.as_millis()),
        row.failure.as_ref().map(Json::as_str),
        row.updated_at.as_micros(),
        micros(row.finished_at),
    ];
    fresh(execute(conn, sql!("write_event"), values)?, "an event")
}

fn transition(conn: &Connection, row: &TransitionRow) -> Result<()> {
    let values = params![
        row.job.as_bytes().as_slice(),
        row.sequence,
        row.at.as_micros(),
        row.verb.as_str(),
        row.from,
        row.to,
        row.version.get(),
        row.worker.as_ref().map(|worker| worker.as_bytes().as_slice()),
        row.actor.as_ref().map(|actor| actor.as_str()),
    ];
    execute(conn, sql!("insert_transition"), values).map(|_| ())
}
