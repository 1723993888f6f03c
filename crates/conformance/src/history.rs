//! Owns the judgement over what concurrent workers saw: claims and settlements, in any order of
//! arrival. Refuses to know how they came about.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::{ClaimId, Fence, JobId};

/// One thing a worker saw.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// A claim was answered.
    Claimed(Fence),
    /// A settlement was accepted for the first time (not as a repeat).
    Settled(Fence),
}

/// One thing a worker saw, and the turns between which it happened.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// The turn before the call.
    pub began: u64,
    /// The turn after its answer.
    pub ended: u64,
    /// What was seen.
    pub seen: Seen,
}

/// What came out of order: an answer that was there before another call began must not be undone by
/// it. Versions rise from claim to claim, and no older version is settled after a newer claim.
///
/// Each job's claims are put in order once, so a history of any length is judged about as fast as it is read.
pub fn late(history: &[Timed]) -> Vec<String> {
    let claims = newest_by_turn(history);
    let mut out = Vec::new();
    for timed in history {
        let (fence, least, what) = match timed.seen {
            Seen::Claimed(fence) => (fence, 1, "claimed"),
            Seen::Settled(fence) => (fence, 0, "settled"),
        };
        let (job, version) = (fence.job(), fence.version().get());
        let own = claims.get(&job).map_or(&[][..], Vec::as_slice);
        let before = own.partition_point(|(ended, _)| *ended < timed.began);
        if let Some((_, newest)) = before.checked_sub(1).and_then(|last| own.get(last))
            && version < newest + least
        {
            out.push(format!("job {job} version {version} is {what} after version {newest}"));
        }
    }
    out
}

/// The turns at which claims of each job were answered, and the newest version known by then.
fn newest_by_turn(history: &[Timed]) -> BTreeMap<JobId, Vec<(u64, i64)>> {
    let mut claims: BTreeMap<JobId, Vec<(u64, i64)>> = BTreeMap::new();
    for timed in history {
        if let Seen::Claimed(fence) = timed.seen {
            let known = claims.entry(fence.job()).or_default();
            known.push((timed.ended, fence.version().get()));
        }
    }
    for known in claims.values_mut() {
        known.sort_unstable();
        let mut newest = i64::MIN;
        for (_, version) in known {
            newest = newest.max(*version);
            *version = newest;
        }
    }
    claims
}

/// What is wrong with a history; empty when nothing is.
///
/// `ended` are the jobs that the store says have ended; each must have a settlement here.
pub fn faults(history: &[Seen], ended: &[JobId]) -> Vec<String> {
    let mut out = Vec::new();
    let mut holders: BTreeMap<(JobId, i64), ClaimId> = BTreeMap::new();
    let mut latest: BTreeMap<JobId, i64> = BTreeMap::new();
    let mut settled: BTreeSet<(JobId, i64)> = BTreeSet::new();
    for seen in history {
        match seen {
            Seen::Claimed(fence) => {
                let at = (fence.job(), fence.version().get());
                match holders.insert(at, fence.claim()) {
                    Some(other) if other != fence.claim() => {
                        out.push(format!("job {} version {} has two holders", at.0, at.1));
                    }
                    _ => {}
                }
                let last = latest.entry(at.0).or_insert(at.1);
                *last = (*last).max(at.1);
            }
            Seen::Settled(fence) => {
                let at = (fence.job(), fence.version().get());
                if !settled.insert(at) {
                    out.push(format!("job {} version {} is settled twice", at.0, at.1));
                }
            }
        }
    }
    for at in settled.iter().filter(|at| !holders.contains_key(at)) {
        out.push(format!("job {} version {} is settled and was never claimed", at.0, at.1));
    }
    for job in ended {
        let version = latest.get(job);
        if !version.is_some_and(|version| settled.contains(&(*job, *version))) {
            out.push(format!("job {job} has ended without its last claim's settlement"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use leasehold_core::{ClaimVersion, Epoch, WorkerId};

    use super::*;

    fn fence(job: JobId, version: i64) -> Fence {
        let version = ClaimVersion::new(version).unwrap();
        let epoch = Epoch::new(1).unwrap();
        Fence::from_parts(job, version, ClaimId::new(), WorkerId::new(), epoch)
    }

    #[test]
    fn clean_history_has_no_fault() {
        let job = JobId::new();
        let (first, second) = (fence(job, 1), fence(job, 3));
        let history = [Seen::Claimed(first), Seen::Claimed(second), Seen::Settled(second)];
        assert_eq!(faults(&history, &[job]), Vec::<String>::new());
    }

    #[test]
    fn what_is_late_is_found() {
        let job = JobId::new();
        let at = |began, ended, seen| Timed { began, ended, seen };
        let old = |began| at(began, began + 1, Seen::Claimed(fence(job, 1)));
        let new = at(2, 3, Seen::Claimed(fence(job, 2)));
        let settled = |began, version| at(began, began + 1, Seen::Settled(fence(job, version)));
        assert_eq!(late(&[old(0), new, settled(4, 2)]), Vec::<String>::new());
        assert_eq!(late(&[old(0), new, settled(1, 1)]), Vec::<String>::new());
        assert_eq!(late(&[old(0), new, settled(4, 1)]).len(), 1);
        assert_eq!(late(&[new, old(4)]).len(), 1);
        assert_eq!(late(&[old(0), at(4, 5, Seen::Claimed(fence(job, 1)))]).len(), 1);
        // Whatever came first in the history, and however many claims came in between.
        let third = at(6, 7, Seen::Claimed(fence(job, 3)));
        assert_eq!(late(&[third, settled(8, 2), new, old(0), settled(9, 3)]).len(), 1);
    }

    #[test]
    fn each_fault_is_found() {
        let job = JobId::new();
        let (one, other) = (fence(job, 1), fence(job, 1));
        assert_eq!(faults(&[Seen::Claimed(one), Seen::Claimed(other)], &[]).len(), 1);
        let twice = [Seen::Claimed(one), Seen::Settled(one), Seen::Settled(one)];
        assert_eq!(faults(&twice, &[]).len(), 1);
        assert_eq!(faults(&[Seen::Settled(one)], &[]).len(), 1);
        assert_eq!(faults(&[Seen::Claimed(one)], &[job]).len(), 1);
    }
}
