//! Owns counting, and letting go of what has ended long enough ago.

use std::collections::BTreeMap;
use std::time::Duration;

use super::state::{Facts, State};
use crate::error::Result;
use crate::event::EventState;
use crate::id::{EventId, JobId};
use crate::lifecycle::State as JobState;
use crate::name::QueueName;
use crate::row::{JobRow, TombstoneRow};
use crate::time::Timestamp;
use crate::upkeep::{PruneRequest, Pruned, QueueStats, Stats, StatsScope};

impl State {
    pub(super) fn stats(&self, facts: &Facts<'_>, scope: StatsScope) -> Stats {
        let mut stats = Stats::new(facts.now, self.epoch, "memory");
        stats.limit = self.limit;
        let queues = self.queues.values();
        let mut by_name: BTreeMap<&QueueName, QueueStats> = queues
            .map(|row| (&row.name, QueueStats::new(row.name.clone(), row.paused, row.limit)))
            .collect();
        let live = scope >= StatsScope::Live;
        let all = scope == StatsScope::All;
        for row in self.jobs.values().filter(|row| if row.state.is_terminal() { all } else { live })
        {
            if let Some(queue) = by_name.get_mut(&row.queue) {
                count(queue, row, facts.now);
            }
        }
        stats.queues = by_name.into_values().collect();
        let counts = |state| if state == EventState::Delivered { all } else { live };
        for row in self.events.values().filter(|row| counts(row.state)) {
            let outbox = &mut stats.outbox;
            match row.state {
                EventState::Waiting => outbox.waiting += 1,
                EventState::Leased => outbox.leased += 1,
                EventState::Delivered => outbox.delivered += 1,
                EventState::DeadLetter => outbox.dead_letter += 1,
            }
            if matches!(row.state, EventState::Waiting | EventState::Leased) {
                let oldest = outbox.oldest_waiting.unwrap_or(row.created_at);
                outbox.oldest_waiting = Some(oldest.min(row.created_at));
            }
        }
        stats
    }

    pub(super) fn prune(&mut self, facts: &Facts<'_>, request: &PruneRequest) -> Result<Pruned> {
        request.check()?;
        let (now, limit) = (facts.now, request.limit);
        let mut done = Pruned::default();
        let lapsed = self.keys.iter().filter_map(|(slot, row)| Some((row.expires_at?, slot)));
        let gone = oldest(lapsed.filter(|(at, _)| *at <= now), limit);
        gone.iter().for_each(|slot| drop(self.keys.remove(slot)));
        done.keys = counted(gone.len());

        let old = now.minus(facts.limits.tombstone_ttl);
        let tombs = self.tombstones.iter().map(|(id, row)| (row.pruned_at, id));
        let gone = oldest(tombs.filter(|(at, _)| *at <= old), limit);
        gone.iter().for_each(|id| drop(self.tombstones.remove(id)));
        done.tombstones = counted(gone.len());

        let records = self.records.iter().map(|(slot, row)| (row.expires_at, slot));
        let gone = oldest(records.filter(|(at, _)| *at <= now), limit);
        gone.iter().for_each(|slot| drop(self.records.remove(slot)));
        done.records = counted(gone.len());

        self.prune_records(facts, limit, &mut done);
        done.events = self.prune_events(now, request);
        done.jobs = self.prune_jobs(now, request);
        Ok(done)
    }

    fn prune_events(&mut self, now: Timestamp, request: &PruneRequest) -> u64 {
        let mut gone: Vec<EventId> = Vec::new();
        for state in EventState::ALL {
            let Some(keep) = state.keep_seconds() else { continue };
            let before = cut(now, request, keep);
            let ended = self.events.values().filter(|row| row.state == state);
            let ended = ended.filter_map(|row| Some((row.finished_at?, &row.id)));
            let left = request.limit - gone.len();
            gone.extend(oldest(ended.filter(|(at, _)| *at <= before), left));
        }
        gone.iter().for_each(|id| drop(self.take_event(*id)));
        counted(gone.len())
    }

    fn prune_jobs(&mut self, now: Timestamp, request: &PruneRequest) -> u64 {
        let mut gone: Vec<JobId> = Vec::new();
        for queue in self.queues.values() {
            for state in JobState::ALL {
                let Some(keep) = queue.keep_seconds(state) else { continue };
                let before = cut(now, request, keep);
                let rows = self.jobs.values();
                let ended = rows.filter(|row| row.queue == queue.name && row.state == state);
                let ended = ended.filter(|row| !self.is_waited_for(row.id));
                let ended = ended.filter_map(|row| Some((row.finished_at?, &row.id)));
                let left = request.limit - gone.len();
                gone.extend(oldest(ended.filter(|(at, _)| *at <= before), left));
            }
        }
        gone.iter().for_each(|id| self.bury(*id, now));
        counted(gone.len())
    }

    fn bury(&mut self, id: JobId, now: Timestamp) {
        let job = self.take_job(id).zip(self.requests.remove(&id));
        if let Some((row, request)) = job {
            let tombstone = TombstoneRow {
                job: id,
                scope: request.scope,
                key: request.key,
                queue: row.queue,
                subject: request.subject,
                hash: request.hash,
                outcome: row.state,
                version: row.version,
                claim: row.claim,
                last_verdict: row.last_verdict,
                pruned_at: now,
            };
            self.tombstones.insert(id, tombstone);
        }
        self.outcomes.remove(&id);
        self.replays.remove(&id);
        self.drop_waits(id);
        take_all_of(&mut self.transitions, id);
        take_all_of(&mut self.dead_letters, id);
    }
}

fn count(queue: &mut QueueStats, row: &JobRow, now: Timestamp) {
    if row.state == JobState::Waiting && !row.held {
        queue.first_due = Some(queue.first_due.map_or(row.run_at, |first| first.min(row.run_at)));
    }
    match row.state {
        JobState::Waiting if row.held => queue.blocked += 1,
        JobState::Waiting if row.run_at <= now => {
            queue.ready += 1;
            let oldest = queue.oldest_ready.unwrap_or(row.run_at);
            queue.oldest_ready = Some(oldest.min(row.run_at));
        }
        JobState::Waiting => queue.later += 1,
        JobState::Leased => {
            queue.leased += 1;
            queue.expired += u64::from(row.lease.is_some_and(|lease| lease.expires_at <= now));
        }
        JobState::Succeeded => queue.succeeded += 1,
        JobState::Failed => queue.failed += 1,
        JobState::DeadLetter => queue.dead_letter += 1,
        JobState::Cancelled => queue.cancelled += 1,
    }
}

/// The last end that has stayed long enough.
fn cut(now: Timestamp, request: &PruneRequest, keep_seconds: i64) -> Timestamp {
    let keep = Duration::from_secs(u64::try_from(keep_seconds).unwrap_or(0));
    now.minus(request.older_than.unwrap_or(keep))
}

pub(super) fn oldest<'a, Key: Clone + Ord + 'a>(
    rows: impl Iterator<Item = (Timestamp, &'a Key)>,
    limit: usize,
) -> Vec<Key> {
    let mut rows: Vec<(Timestamp, &Key)> = rows.collect();
    rows.sort_unstable();
    rows.into_iter().take(limit).map(|(_, key)| key.clone()).collect()
}

/// Takes out every row of a job.
fn take_all_of<Row>(rows: &mut BTreeMap<(JobId, i64), Row>, job: JobId) {
    let of_job = rows.range((job, i64::MIN)..=(job, i64::MAX));
    let slots: Vec<(JobId, i64)> = of_job.map(|(slot, _)| *slot).collect();
    slots.iter().for_each(|slot| drop(rows.remove(slot)));
}

pub(super) fn counted(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
