//! Owns every decision: given locked rows, the store's now and a request, which rows change and
//! how. Pure: no clock, no I/O, no SQL. An engine loads, asks [`Work`], and writes the [`Changes`]
//! in one transaction; so engines can differ in how they store, never in what they decide.
//!
//! An engine's verb is: lock the rows named by `Work::…_wants`, hand them over with
//! [`Work::load_jobs`] and friends, call the rule per item, write [`Work::into_changes`].

pub mod aside;
mod bucket;
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
mod replay;
mod rerun;
mod settle;
mod taken;
mod transition;
mod turns;
mod views;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use changes::Changes;
pub use enqueue::EnqueueWants;
pub use known::{Ids, Known, KnownEvent, KnownJob, KnownKey, KnownRun, KnownSubject, Lifecycles};
pub use lease::{ClaimOrder, claim_order, queues_once, room};
pub use settle::SettleWants;
pub use taken::{ClaimedRequest, Taken};
pub use turns::{Ask, Ring, Stretch, Turns, Waiting, in_turn};

use crate::error::{Error, ErrorKind, Result};
use crate::fence::Epoch;
use crate::id::{EventId, JobId};
use crate::job::Limits;
use crate::lifecycle::Lifecycle;
use crate::name::LifecycleName;
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
    /// Jobs that a lapsed lease was taken from in this transaction.
    reclaimed: BTreeSet<JobId>,
    waits: waits::Waits,
    letters: replay::Letters,
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
            reclaimed: BTreeSet::new(),
            waits: waits::Waits::default(),
            letters: replay::Letters::default(),
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
    pub fn into_changes(mut self) -> Changes {
        self.take_changes()
    }

    /// Takes what is to be written so far; what is decided after that is another write.
    pub fn take_changes(&mut self) -> Changes {
        let mut changes = std::mem::take(&mut self.changes);
        let mut moved = std::mem::take(&mut self.changed_jobs);
        for (row, _) in &mut changes.jobs_new {
            // One that waits for others may have moved since.
            if moved.remove(&row.id)
                && let Some(now) = self.jobs.get(&row.id)
            {
                row.clone_from(now);
            }
        }
        changes.jobs.extend(moved.iter().filter_map(|id| self.jobs.get(id).cloned()));
        let moved = std::mem::take(&mut self.changed_events);
        changes.events.extend(moved.iter().filter_map(|id| self.events.get(id).cloned()));
        self.waits.write(&mut changes);
        self.letters.write(&mut changes);
        changes
    }

    fn lifecycle(&self, row: &JobRow) -> Result<&Arc<Lifecycle>> {
        self.registered(row.id, &row.lifecycle, row.revision)
    }

    /// The lifecycle that a job names.
    fn registered(
        &self,
        job: JobId,
        name: &LifecycleName,
        revision: u32,
    ) -> Result<&Arc<Lifecycle>> {
        self.lifecycles.get(name, revision).ok_or_else(|| {
            let why = format!("lifecycle {name} revision {revision} is not registered");
            Error::new(ErrorKind::Corrupt, "lifecycle", why).damaging(job)
        })
    }

    /// Takes over what one item decided; called only once all of it is known to hold.
    fn merge(&mut self, draft: Draft) {
        let Draft { rows, event_rows, mut changes, known } = draft;
        self.waits.add(&mut changes.waits_new);
        for row in rows {
            if self.note_end(&row) && row.again {
                self.end_replay(&row, &mut changes);
            }
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
