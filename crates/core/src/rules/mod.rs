//! Owns every decision: given locked rows, the store's now and a request, which rows change and
//! how. Pure: no clock, no I/O, no SQL. An engine loads, asks [`Work`], and writes the [`Changes`]
//! in one transaction; so engines can differ in how they store, never in what they decide.
//!
//! An engine's verb is: lock the rows named by `Work::…_wants`, hand them over with
//! [`Work::load_jobs`] and friends, call the rule per item, write [`Work::into_changes`].

mod changes;
mod deliver;
mod enqueue;
mod known;
mod lease;
mod operate;
mod ownership;
mod progress;
mod publish;
pub mod records;
mod rerun;
mod settle;
mod transition;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use changes::Changes;
pub use enqueue::EnqueueWants;
pub use known::{Ids, Known, KnownEvent, KnownJob, KnownKey, KnownRun, KnownSubject, Lifecycles};
pub use lease::{claim_order, queues_once, room};
pub use settle::SettleWants;

use crate::error::{Error, ErrorKind, Result};
use crate::fence::Epoch;
use crate::id::{EventId, JobId};
use crate::job::Limits;
use crate::lifecycle::Lifecycle;
use crate::row::{EventRow, JobRow, TombstoneRow};
use crate::time::Timestamp;
use changes::Draft;

/// One transaction's decisions.
#[derive(Debug)]
pub struct Work {
    now: Timestamp,
    epoch: Epoch,
    limits: Limits,
    lifecycles: Arc<Lifecycles>,
    ids: Ids,
    jobs: BTreeMap<JobId, JobRow>,
    changed_jobs: BTreeSet<JobId>,
    tombstones: BTreeMap<JobId, TombstoneRow>,
    events: BTreeMap<EventId, EventRow>,
    changed_events: BTreeSet<EventId>,
    known: Known,
    changes: Changes,
}

impl Work {
    /// Begins a transaction's decisions at the store's now.
    pub fn new(
        now: Timestamp,
        epoch: Epoch,
        limits: Limits,
        lifecycles: Arc<Lifecycles>,
        ids: Ids,
    ) -> Self {
        Self {
            now,
            epoch,
            limits,
            lifecycles,
            ids,
            jobs: BTreeMap::new(),
            changed_jobs: BTreeSet::new(),
            tombstones: BTreeMap::new(),
            events: BTreeMap::new(),
            changed_events: BTreeSet::new(),
            known: Known::default(),
            changes: Changes::default(),
        }
    }

    /// The store's now in this transaction.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The store's epoch in this transaction.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Hands over job rows that this transaction has locked.
    pub fn load_jobs(&mut self, rows: impl IntoIterator<Item = JobRow>) {
        self.jobs.extend(rows.into_iter().map(|row| (row.id, row)));
    }

    /// Hands over tombstones of jobs that have no row.
    pub fn load_tombstones(&mut self, rows: impl IntoIterator<Item = TombstoneRow>) {
        self.tombstones.extend(rows.into_iter().map(|row| (row.job, row)));
    }

    /// Hands over event rows that this transaction has locked.
    pub fn load_events(&mut self, rows: impl IntoIterator<Item = EventRow>) {
        self.events.extend(rows.into_iter().map(|row| (row.id, row)));
    }

    /// Hands over what exists under the ids and keys that new rows name.
    pub fn load_known(&mut self, known: Known) {
        self.known.extend(known);
    }

    /// A loaded job as it stands now, changes of this transaction included.
    pub fn job(&self, id: JobId) -> Option<&JobRow> {
        self.jobs.get(&id)
    }

    /// A loaded event as it stands now, changes of this transaction included.
    pub fn event(&self, id: EventId) -> Option<&EventRow> {
        self.events.get(&id)
    }

    /// Everything to be written, in the order of the fields.
    pub fn into_changes(self) -> Changes {
        let Self { mut changes, jobs, changed_jobs, events, changed_events, .. } = self;
        let new_jobs: BTreeSet<_> = changes.jobs_new.iter().map(|(row, _)| row.id).collect();
        for id in changed_jobs.difference(&new_jobs) {
            changes.jobs.extend(jobs.get(id).cloned());
        }
        for id in &changed_events {
            changes.events.extend(events.get(id).cloned());
        }
        changes
    }

    fn lifecycle(&self, row: &JobRow) -> Result<&Arc<Lifecycle>> {
        self.lifecycles.get(&row.lifecycle, row.revision).ok_or_else(|| {
            let why =
                format!("lifecycle {} revision {} is not registered", row.lifecycle, row.revision);
            Error::new(ErrorKind::Corrupt, "lifecycle", why).about(format!("job {}", row.id))
        })
    }

    /// Takes over what one item decided; called only once all of it is known to hold.
    fn merge(&mut self, draft: Draft) {
        let Draft { rows, event_rows, mut changes, known } = draft;
        for row in rows {
            self.changed_jobs.insert(row.id);
            self.jobs.insert(row.id, row);
        }
        for row in event_rows {
            self.changed_events.insert(row.id);
            self.events.insert(row.id, row);
        }
        self.known.extend(known);
        self.changes.append(&mut changes);
    }
}
