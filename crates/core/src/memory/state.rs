//! Owns the tables, as maps of rows, and how decided changes are written into them. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use super::order::Orders;
use crate::event::EventState;
use crate::fence::Epoch;
use crate::hints::{HintKind, Hints};
use crate::id::{EventId, JobId, WorkerId};
use crate::job::{Limits, Subject};
use crate::lifecycle::State as JobState;
use crate::name::{BucketName, IdempotencyKey, OrderKey, PartitionName, QueueName, Scope, Topic};
use crate::record::RecordId;
use crate::row::{
    AuditRow, DeadLetterRow, DocumentRow, EventRow, JobRow, KeyRow, OutcomePatch, OutcomeRow,
    QueueRow, RecordRow, RequestRow, StartsRow, TokensRow, TombstoneRow, TransitionRow, TurnRow,
    WaitRow,
};
use crate::rules::{
    Changes, EnqueueWants, Ids, Known, KnownEvent, KnownJob, KnownKey, KnownRun, KnownSubject,
    Lifecycles, SettleWants, Work,
};
use crate::time::Timestamp;

/// What a verb knows of its store.
pub(super) struct Facts<'a> {
    pub(super) now: Timestamp,
    pub(super) limits: &'a Limits,
    pub(super) ids: &'a Ids,
    pub(super) hints: &'a Hints,
}

/// What executions left, with when they failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) row: OutcomeRow,
    pub(super) first_failure_at: Option<Timestamp>,
    pub(super) last_failure_at: Option<Timestamp>,
}

/// Bytes under a name.
#[derive(Clone, Debug)]
pub(super) struct Blob {
    pub(super) bytes: Arc<[u8]>,
    #[cfg(feature = "lab")]
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) epoch: Epoch,
    pub(super) limit: Option<u32>,
    pub(super) lifecycles: Arc<Lifecycles>,
    /// The lifecycles as dumps show them; made anew when one is registered.
    #[cfg(feature = "lab")]
    pub(super) shown_lifecycles: Arc<std::sync::OnceLock<crate::lab::Dump>>,
    pub(super) queues: BTreeMap<QueueName, QueueRow>,
    pub(super) topics: BTreeMap<Topic, bool>,
    pub(super) workers: BTreeMap<WorkerId, (String, Timestamp)>,
    pub(super) jobs: BTreeMap<JobId, JobRow>,
    pub(super) requests: BTreeMap<JobId, RequestRow>,
    /// By the job that waits and the one it waits for.
    pub(super) waits: BTreeMap<(JobId, JobId), WaitRow>,
    /// The open ones the other way round.
    pub(super) waits_open: BTreeSet<(JobId, JobId)>,
    pub(super) outcomes: BTreeMap<JobId, Outcome>,
    /// The version and the job of each subject's latest rerun.
    pub(super) subjects: BTreeMap<String, (i64, JobId)>,
    pub(super) keys: BTreeMap<(Scope, IdempotencyKey), KeyRow>,
    pub(super) transitions: BTreeMap<(JobId, i64), TransitionRow>,
    pub(super) sequences: BTreeMap<OrderKey, i64>,
    pub(super) events: BTreeMap<EventId, EventRow>,
    pub(super) dead_letters: BTreeMap<(JobId, i64), (DeadLetterRow, Timestamp)>,
    /// The job in whose place each new job of a replay runs.
    pub(super) replays: BTreeMap<JobId, JobId>,
    pub(super) tombstones: BTreeMap<JobId, TombstoneRow>,
    pub(super) records: BTreeMap<(Scope, IdempotencyKey), RecordRow>,
    pub(super) documents: BTreeMap<RecordId, DocumentRow>,
    pub(super) blobs: BTreeMap<RecordId, Blob>,
    pub(super) tokens: BTreeMap<BucketName, TokensRow>,
    pub(super) audit: BTreeMap<Uuid, AuditRow>,
    /// Which partition of each queue had its turn last.
    pub(super) turns: BTreeMap<QueueName, TurnRow>,
    pub(super) starts: BTreeMap<(QueueName, PartitionName), StartsRow>,
    /// Which jobs and events stand where.
    pub(super) orders: Orders,
    /// The caller's own rows, for scripts.
    #[cfg(feature = "lab")]
    pub(super) own_rows: Vec<String>,
    /// Which waiters this transaction's writes are news for.
    pub(super) news: Vec<HintKind>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            epoch: Epoch::default(),
            limit: None,
            lifecycles: Arc::new(Lifecycles::shipped()),
            #[cfg(feature = "lab")]
            shown_lifecycles: Arc::default(),
            queues: BTreeMap::new(),
            topics: BTreeMap::new(),
            workers: BTreeMap::new(),
            jobs: BTreeMap::new(),
            requests: BTreeMap::new(),
            waits: BTreeMap::new(),
            waits_open: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            subjects: BTreeMap::new(),
            keys: BTreeMap::new(),
            transitions: BTreeMap::new(),
            sequences: BTreeMap::new(),
            events: BTreeMap::new(),
            dead_letters: BTreeMap::new(),
            replays: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            records: BTreeMap::new(),
            documents: BTreeMap::new(),
            blobs: BTreeMap::new(),
            tokens: BTreeMap::new(),
            audit: BTreeMap::new(),
            turns: BTreeMap::new(),
            starts: BTreeMap::new(),
            orders: Orders::default(),
            #[cfg(feature = "lab")]
            own_rows: Vec::new(),
            news: Vec::new(),
        }
    }

    pub(super) fn work(&self, facts: &Facts<'_>) -> Work {
        let (limits, ids) = (facts.limits.clone(), facts.ids.clone());
        Work::new(facts.now, self.epoch, limits, Arc::clone(&self.lifecycles), ids)
    }

    pub(super) fn load_jobs(&self, work: &mut Work, ids: impl IntoIterator<Item = JobId>) {
        for id in ids {
            work.load_jobs(self.jobs.get(&id).cloned());
            if !self.jobs.contains_key(&id) {
                work.load_tombstones(self.tombstones.get(&id).cloned());
            }
        }
    }

    pub(super) fn load_events(&self, work: &mut Work, ids: impl IntoIterator<Item = EventId>) {
        work.load_events(ids.into_iter().filter_map(|id| self.events.get(&id).cloned()));
    }

    pub(super) fn load_wants(&self, work: &mut Work, wants: &SettleWants) -> Known {
        self.load_jobs(work, wants.jobs.iter().copied());
        let mut known = self.known(&wants.enqueue);
        for id in &wants.events {
            let found = self.events.get(id).map(|row| KnownEvent {
                topic: row.topic.clone(),
                payload: row.payload.clone(),
                sequence: row.sequence,
            });
            known.events.extend(found.map(|event| (*id, event)));
        }
        work.load_known(known.clone());
        known
    }

    pub(super) fn known(&self, wants: &EnqueueWants) -> Known {
        let mut known = Known::default();
        for id in &wants.ids {
            let live = self.jobs.get(id).zip(self.requests.get(id));
            let live = live.map(|(row, request)| KnownJob { hash: request.hash, state: row.state });
            let gone = self.tombstones.get(id);
            let gone = gone.map(|tomb| KnownJob { hash: tomb.hash, state: tomb.outcome });
            known.jobs.extend(live.or(gone).map(|job| (*id, job)));
        }
        for slot in &wants.keys {
            let found = self.keys.get(slot).map(|row| KnownKey {
                job: row.job,
                hash: row.hash,
                expires_at: row.expires_at,
                state: self.jobs.get(&row.job).map(|job| job.state),
            });
            known.keys.extend(found.map(|key| (slot.clone(), key)));
        }
        for (name, _) in &wants.subjects {
            known.subjects.insert(name.clone(), self.subject(name));
        }
        for name in &wants.queues {
            known.queue_logs.extend(self.queues.get(name).map(|row| (name.clone(), row.log)));
        }
        known
    }

    fn subject(&self, name: &str) -> KnownSubject {
        let about = |subject: &Option<Subject>| {
            subject.as_ref().filter(|it| it.name == name).map(|it| it.version)
        };
        let live = self.jobs.values().filter_map(|row| {
            let version = about(&self.requests.get(&row.id)?.subject)?;
            let result = self.outcomes.get(&row.id).and_then(|left| left.row.result.clone());
            Some(KnownRun { version, job: row.id, state: row.state, result })
        });
        let gone = self.tombstones.values().filter_map(|tomb| {
            let (version, state) = (about(&tomb.subject)?, tomb.outcome);
            Some(KnownRun { version, job: tomb.job, state, result: None })
        });
        let mut runs: Vec<KnownRun> = live.chain(gone).collect();
        runs.sort_unstable_by_key(|run| (run.version, run.job));
        KnownSubject { mark: self.subjects.get(name).copied(), runs }
    }

    /// Writes everything; the new events are given back with their sequence numbers.
    pub(super) fn write(&mut self, facts: &Facts<'_>, work: Work) -> Vec<EventRow> {
        let mut changes = work.into_changes();
        self.note_news(facts, &changes);
        self.number_events(&mut changes);
        for row in changes.keys {
            self.keys.insert((row.scope.clone(), row.key.clone()), row);
        }
        for row in changes.subjects {
            self.subjects.insert(row.name, (row.version, row.job));
        }
        for name in changes.queues {
            let row = QueueRow::new(name.clone(), facts.now);
            self.queues.entry(name).or_insert(row);
        }
        for (row, request) in changes.jobs_new {
            self.requests.insert(row.id, request);
            self.put_job(row);
        }
        changes.jobs.into_iter().for_each(|row| self.put_job(row));
        changes.waits_new.into_iter().chain(changes.waits).for_each(|row| self.put_wait(row));
        changes.outcomes.into_iter().for_each(|patch| self.patch_outcome(patch));
        // An event of a job goes along in its trace unless it names one.
        for row in &mut changes.events_new {
            let request = row.ordering.job().and_then(|job| self.requests.get(&job));
            let inherited = || request.and_then(|request| request.traceparent.clone());
            row.traceparent = row.traceparent.take().or_else(inherited);
        }
        for row in changes.events_new.iter().chain(&changes.events) {
            self.put_event(row.clone());
        }
        for row in changes.transitions {
            self.transitions.insert((row.job, row.sequence), row);
        }
        for row in changes.dead_letters {
            let first = self.outcomes.get(&row.job).and_then(|outcome| outcome.first_failure_at);
            let first = first.unwrap_or(row.last_failure_at);
            self.dead_letters.insert((row.job, row.version.get()), (row, first));
        }
        for row in changes.letters {
            if let Some((old, _)) = self.dead_letters.get_mut(&(row.job, row.version.get())) {
                *old = row;
            }
        }
        for job in changes.checkpoints_dropped {
            if let Some(outcome) = self.outcomes.get_mut(&job) {
                outcome.row.checkpoint = None;
            }
        }
        self.replays.extend(changes.replays.into_iter().map(|row| (row.job, row.replay_of)));
        for (holder, row) in changes.keys_passed {
            if let Some(held) = self.keys.get_mut(&(row.scope, row.key))
                && held.job == holder
            {
                held.job = row.job;
            }
        }
        self.audit.extend(changes.audit.into_iter().map(|row| (row.id, row)));
        self.turns.extend(changes.turns.into_iter().map(|row| (row.queue.clone(), row)));
        let starts = changes.starts.into_iter();
        self.starts.extend(starts.map(|row| ((row.queue.clone(), row.partition.clone()), row)));
        changes.events_new
    }

    fn note_news(&mut self, facts: &Facts<'_>, changes: &Changes) {
        let due =
            |job: &JobRow| job.state == JobState::Waiting && !job.held && job.run_at <= facts.now;
        let ready = |event: &EventRow| match event.state {
            EventState::Waiting => event.run_at <= facts.now,
            EventState::Leased => false,
            // Its end lets the next of its key go.
            EventState::Delivered | EventState::DeadLetter => event.ordered,
        };
        if changes.jobs_new.iter().any(|(job, _)| due(job)) || changes.jobs.iter().any(due) {
            self.news.push(HintKind::Jobs);
        }
        if !changes.events_new.is_empty() || changes.events.iter().any(ready) {
            self.news.push(HintKind::Events);
        }
    }

    fn number_events(&mut self, changes: &mut Changes) {
        let mut last = BTreeMap::new();
        for (key, wanted) in changes.sequences_wanted() {
            let number = self.sequences.entry(key.clone()).or_insert(0);
            *number += wanted;
            last.insert(key, *number);
        }
        changes.assign_sequences(&last);
        for event in &mut changes.events_new {
            event.ordered &= self.topics.get(&event.topic).copied().unwrap_or(true);
        }
    }

    fn patch_outcome(&mut self, patch: OutcomePatch) {
        let outcome = self.outcomes.entry(patch.job).or_default();
        let OutcomeRow { checkpoint, result, failure } = &mut outcome.row;
        *checkpoint = patch.checkpoint.or_else(|| checkpoint.take());
        *result = patch.result.or_else(|| result.take());
        *failure = patch.failure.or_else(|| failure.take());
        outcome.first_failure_at = outcome.first_failure_at.or(patch.failed_at);
        outcome.last_failure_at = patch.failed_at.or(outcome.last_failure_at);
    }
}
