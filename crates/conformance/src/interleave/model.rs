//! Owns the model that stores are judged by: for each job its version, who holds it and until when.
//! Written from the contract, apart from the rules that the stores share.

use std::collections::BTreeMap;

use leasehold_core::{ClaimId, Fence, JobId, Timestamp, VerdictKind};

/// What the model knows of one job.
#[derive(Debug, Default)]
struct Known {
    version: i64,
    held: Option<(Fence, Timestamp)>,
    /// The last claim and how it ended, until another takes its place.
    ended: Option<(Fence, VerdictKind)>,
    step: u32,
    over: bool,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    jobs: BTreeMap<JobId, Known>,
    /// Who was ever given a job at a version.
    holders: BTreeMap<(JobId, i64), ClaimId>,
}

impl Model {
    pub(super) fn add(&mut self, id: JobId) {
        self.jobs.insert(id, Known::default());
    }

    pub(super) fn jobs(&self) -> Vec<JobId> {
        self.jobs.keys().copied().collect()
    }

    pub(super) fn version(&self, id: JobId) -> i64 {
        self.jobs.get(&id).map_or(0, |known| known.version)
    }

    /// How many jobs a claim could take now.
    pub(super) fn claimable(&self, now: Timestamp) -> usize {
        let free = |known: &&Known| !known.over && known.held.is_none_or(|(_, end)| end <= now);
        self.jobs.values().filter(free).count()
    }

    pub(super) fn owns(&self, fence: &Fence, now: Timestamp) -> bool {
        let known = self.jobs.get(&fence.job());
        let held = known.and_then(|known| known.held);
        held.is_some_and(|(holder, end)| holder == *fence && end > now)
    }

    /// Takes note of a claim: of a free job, one version up, and nobody else's.
    pub(super) fn claimed(
        &mut self,
        fence: Fence,
        end: Timestamp,
        now: Timestamp,
    ) -> Result<(), String> {
        let Some(known) = self.jobs.get_mut(&fence.job()) else {
            return Err(format!("a job that nobody enqueued: {fence:?}"));
        };
        if known.over || known.held.is_some_and(|(_, end)| end > now) {
            return Err(format!("{fence:?} takes a job that is held or over: {known:?}"));
        }
        known.version += 1;
        if fence.version().get() != known.version || end <= now {
            return Err(format!("{fence:?} until {end}, expected version {}", known.version));
        }
        (known.held, known.ended, known.step) = (Some((fence, end)), None, 0);
        let at = (fence.job(), fence.version().get());
        match self.holders.insert(at, fence.claim()) {
            None => Ok(()),
            Some(other) => Err(format!("{fence:?} was claim {other}'s before")),
        }
    }

    /// Takes note of a reclaim: exactly the lapsed ones, each one version up.
    pub(super) fn reclaimed(&mut self, ids: &[JobId], now: Timestamp) -> Result<(), String> {
        for (id, known) in &mut self.jobs {
            let lapsed = known.held.is_some_and(|(_, end)| end <= now);
            if lapsed != ids.contains(id) {
                return Err(format!("job {id}, lapsed: {lapsed}, is among {ids:?} or is not"));
            }
            if lapsed {
                (known.held, known.version) = (None, known.version + 1);
            }
        }
        Ok(())
    }

    /// The jobs whose lease has run out.
    pub(super) fn lapsed(&self, now: Timestamp) -> Vec<JobId> {
        let jobs = self.jobs.iter();
        let lapsed = jobs.filter(|(_, known)| known.held.is_some_and(|(_, end)| end <= now));
        lapsed.map(|(id, _)| *id).collect()
    }

    /// Takes note that a lapsed job went back to waiting, one version up.
    pub(super) fn taken_back(&mut self, id: JobId) {
        if let Some(known) = self.jobs.get_mut(&id) {
            (known.held, known.version) = (None, known.version + 1);
        }
    }

    pub(super) fn renewed(&mut self, fence: &Fence, end: Timestamp) {
        if let Some(known) = self.jobs.get_mut(&fence.job()) {
            known.held = Some((*fence, end));
        }
    }

    /// The next step of a claim's progress.
    pub(super) fn step(&mut self, fence: &Fence) -> u32 {
        self.jobs.get_mut(&fence.job()).map_or(0, |known| {
            known.step += 1;
            known.step
        })
    }

    pub(super) fn settled(&mut self, fence: &Fence, kind: VerdictKind) {
        if let Some(known) = self.jobs.get_mut(&fence.job()) {
            (known.held, known.ended) = (None, Some((*fence, kind)));
            known.over = kind == VerdictKind::Succeed;
            known.version += i64::from(kind == VerdictKind::Release);
        }
    }

    /// Whether a settlement repeats how the job's last claim ended.
    pub(super) fn is_repeat(&self, fence: &Fence, kind: VerdictKind) -> bool {
        self.jobs.get(&fence.job()).is_some_and(|known| known.ended == Some((*fence, kind)))
    }
}
