//! Owns what the abstract store does for each request, with the mistake that is to be made, if any.
//! Marks on the way what broke, by ghosts that its own decisions never look at.

use crate::property::Broken;
use crate::{Ended, Fence, JOBS, Lost, Mutant, OnFailure, Row, Verdict};

/// The store: its rows and its epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Store {
    pub rows: [Row; JOBS],
    pub epoch: u8,
}

/// What the store says to a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Said {
    Settled { repeated: bool },
    Lost(Lost),
}

enum Compared {
    Owned,
    Ended(Verdict),
}

/// One request at the store.
pub(crate) struct Desk<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) broken: &'a mut Broken,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) jobs: usize,
    pub(crate) attempts_max: u8,
    pub(crate) waits: Option<OnFailure>,
}

impl Desk<'_> {
    fn makes(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn row(&mut self, fence: &Fence) -> &mut Row {
        &mut self.store.rows[usize::from(fence.job)]
    }

    /// Claims at most one job: one that this claim holds already, one that waits, one that lapsed.
    pub(crate) fn claim(
        &mut self,
        worker: u8,
        claim: u8,
        again: bool,
        ghosts: &mut u8,
    ) -> Option<Fence> {
        if again && !self.makes(Mutant::RepeatTakesMore) {
            let news = !self.makes(Mutant::RepeatTellsOldNews);
            let held = |row: &Row| {
                row.claim == claim
                    && row.worker == worker
                    && (row.state == Ended::Leased && row.live || !news)
            };
            if let Some(job) = (0..self.jobs).find(|job| held(&self.store.rows[*job])) {
                return Some(self.fence(job));
            }
        }
        let job = self.candidate()?;
        *ghosts += 1;
        let has = |row: &Row| row.claim == claim && row.state == Ended::Leased && row.live;
        self.broken.mark(Broken::MORE, again && self.store.rows.iter().any(has));
        self.broken.mark(Broken::EARLY, job == 1 && self.is_early());
        let raised = !self.makes(Mutant::VersionNotRaised);
        let row = &mut self.store.rows[job];
        self.broken.mark(Broken::THEFT, row.state == Ended::Leased && row.live);
        self.broken.mark(Broken::RISEN, row.is_over());
        // A row taken back in passing has its new version already.
        row.version += u8::from(raised && row.state == Ended::Waiting);
        row.state = Ended::Leased;
        (row.claim, row.worker, row.verdict, row.live) = (claim, worker, None, true);
        row.attempts += 1;
        (row.owner, row.tries) = (*ghosts, row.tries + 1);
        self.broken.mark(Broken::BUDGET, row.tries > self.attempts_max);
        Some(self.fence(job))
    }

    fn fence(&self, job: usize) -> Fence {
        let row = &self.store.rows[job];
        Fence {
            job: job as u8,
            version: row.version,
            claim: row.claim,
            worker: row.worker,
            epoch: self.store.epoch,
            ghost: row.owner,
        }
    }

    /// The job to claim; a lapsed one is left as it is but for its version and its budget.
    fn candidate(&mut self) -> Option<usize> {
        let jobs = 0..self.jobs;
        if let Some(job) = self.waiting() {
            return Some(job);
        }
        let steal = self.makes(Mutant::StolenBeforeExpiry);
        let lapsed = |row: &Row| row.state == Ended::Leased && (!row.live || steal);
        let found: Vec<usize> = jobs.filter(|job| lapsed(&self.store.rows[*job])).collect();
        for job in &found {
            self.take_back(*job);
        }
        let job = self.waiting()?;
        if found.contains(&job) {
            // It is claimed in the same step, which raises no second time.
            self.store.rows[job].state = Ended::Leased;
        }
        Some(job)
    }

    /// The first job that may be claimed.
    fn waiting(&self) -> Option<usize> {
        let held = self.makes(Mutant::HeldIsClaimed);
        let free = |row: &Row| row.state == Ended::Waiting && (held || !row.held);
        (0..self.jobs).find(|job| free(&self.store.rows[*job]))
    }

    /// Whether what the second job waits for has not come yet.
    fn is_early(&self) -> bool {
        let parent = &self.store.rows[0];
        match self.waits {
            None => false,
            Some(OnFailure::Run) => !parent.well && !parent.badly,
            Some(OnFailure::Cancel | OnFailure::Wait) => !parent.well,
        }
    }

    /// Lets the end of a job tell on the one that waits for it.
    fn resolve(&mut self, job: usize) {
        let row = &mut self.store.rows[job];
        let (well, over) = (row.state == Ended::Succeeded, row.is_over());
        (row.well, row.badly) = (row.well || well, row.badly || (over && !well));
        let returns = row.state == Ended::Failed && row.attempts < self.attempts_max;
        let (good, bad) = match (well, self.makes(Mutant::SuccessCancels)) {
            (true, true) => (false, true),
            (well, _) => (well || self.makes(Mutant::FailureFrees), !well),
        };
        let ends = over || self.makes(Mutant::HandBackFrees);
        if job != 0 || !ends || !self.store.rows[1].held {
            return;
        }
        let child = &mut self.store.rows[1];
        match self.waits {
            Some(OnFailure::Run) => child.held = false,
            Some(_) if good || !over => child.held = false,
            Some(OnFailure::Wait) if returns => {}
            Some(_) if bad => (child.held, child.state) = (false, Ended::Cancelled),
            _ => {}
        }
    }

    fn take_back(&mut self, job: usize) {
        let spent = self.store.rows[job].attempts >= self.attempts_max;
        let rescue = self.makes(Mutant::RescuedByTimeOnly);
        let free = self.makes(Mutant::LapseIsFree);
        let row = &mut self.store.rows[job];
        self.broken.mark(Broken::THEFT, row.state == Ended::Leased && row.live);
        self.broken.mark(Broken::RISEN, row.is_over());
        row.state = if spent { Ended::Dead } else { Ended::Waiting };
        row.version += u8::from(!rescue);
        (row.verdict, row.live) = (None, false);
        row.attempts -= u8::from(free);
        row.owner = 0;
        if !self.makes(Mutant::LapseTellsNobody) {
            self.resolve(job);
        }
    }

    /// Takes every lapsed job back.
    pub(crate) fn reclaim(&mut self) {
        let early = self.makes(Mutant::ReclaimedBeforeExpiry);
        let risen = self.makes(Mutant::EndedIsResurrected);
        for job in 0..self.jobs {
            let row = &self.store.rows[job];
            let lapsed = row.state == Ended::Leased && (!row.live || early);
            if lapsed || (risen && row.is_over() && row.claim != 0) {
                self.take_back(job);
            }
        }
    }

    fn compare(&self, fence: &Fence) -> Result<Compared, Lost> {
        let row = &self.store.rows[usize::from(fence.job)];
        if fence.epoch != self.store.epoch && !self.makes(Mutant::EpochIgnored) {
            return Err(Lost::EpochRaised);
        }
        let leased = row.state == Ended::Leased;
        if leased && self.makes(Mutant::FenceIgnored) {
            return Ok(Compared::Owned);
        }
        let same = match self.makes(Mutant::VersionOnly) {
            true => row.version == fence.version,
            false => row.claim == fence.claim,
        };
        if !same {
            return Err(Lost::TakenOver);
        }
        if leased {
            let worker = row.worker == fence.worker || self.makes(Mutant::VersionOnly);
            return match row.version == fence.version && worker {
                true => Ok(Compared::Owned),
                false => Err(Lost::TakenOver),
            };
        }
        match row.verdict {
            Some(verdict) => Ok(Compared::Ended(verdict)),
            None if self.makes(Mutant::RescuedByTimeOnly) => Ok(Compared::Owned),
            None => Err(Lost::Reclaimed),
        }
    }

    /// Holds a claim longer.
    pub(crate) fn renew(&mut self, fence: &Fence) -> Result<(), Lost> {
        let late = self.makes(Mutant::LateRenewalTaken);
        match self.compare(fence)? {
            Compared::Ended(_) => return Err(Lost::Settled),
            Compared::Owned if !self.row(fence).live && !late => return Err(Lost::Expired),
            Compared::Owned => {}
        }
        self.guard(fence);
        self.row(fence).live = true;
        Ok(())
    }

    /// Ends a claim.
    pub(crate) fn settle(&mut self, fence: &Fence, verdict: Verdict) -> Said {
        let late = [Mutant::LateSettlementTaken, Mutant::RescuedByTimeOnly, Mutant::FenceIgnored];
        let late = late.into_iter().any(|mutant| self.makes(mutant));
        let blind = self.makes(Mutant::ZeroRowsAreSuccess);
        let lost = |why| if blind { Said::Settled { repeated: false } } else { Said::Lost(why) };
        match self.compare(fence) {
            Err(why) => lost(why),
            Ok(Compared::Owned) if !self.row(fence).live && !late => lost(Lost::Expired),
            Ok(Compared::Owned) if self.makes(Mutant::ToldBeforeKept) => {
                Said::Settled { repeated: false }
            }
            Ok(Compared::Owned) => self.end(fence, verdict),
            Ok(Compared::Ended(said))
                if self.makes(Mutant::RepeatIsDoneAgain) && said == verdict =>
            {
                self.end(fence, verdict)
            }
            Ok(Compared::Ended(said))
                if said == verdict || self.makes(Mutant::VerdictNotCompared) =>
            {
                Said::Settled { repeated: true }
            }
            Ok(Compared::Ended(_)) => lost(Lost::Settled),
        }
    }

    /// Whoever writes under a fence owns the job, in this epoch, within the lease.
    fn guard(&mut self, fence: &Fence) {
        let epoch = self.store.epoch;
        let row = self.store.rows[usize::from(fence.job)];
        self.broken.mark(Broken::OWNER, row.owner != fence.ghost);
        self.broken.mark(Broken::LEASE, row.owner == fence.ghost && !row.live);
        self.broken.mark(Broken::EPOCH, fence.epoch != epoch);
    }

    fn end(&mut self, fence: &Fence, verdict: Verdict) -> Said {
        let done = Row::said_by(self.row(fence).said, fence.ghost) != 0;
        self.broken.mark(Broken::ONCE, done);
        if !done {
            self.guard(fence);
        }
        let attempts_max = self.attempts_max;
        let row = self.row(fence);
        row.state = match verdict {
            Verdict::Succeed => Ended::Succeeded,
            Verdict::Fail => Ended::Failed,
            Verdict::Retry if row.attempts >= attempts_max => Ended::Dead,
            Verdict::Retry | Verdict::Release => Ended::Waiting,
        };
        if verdict == Verdict::Release {
            row.version += 1;
            (row.attempts, row.tries) =
                (row.attempts.saturating_sub(1), row.tries.saturating_sub(1));
        }
        (row.verdict, row.live, row.owner) = (Some(verdict), false, 0);
        Row::note(&mut row.said, fence.ghost, verdict);
        if !self.makes(Mutant::EndTellsNobody) {
            self.resolve(usize::from(fence.job));
        }
        Said::Settled { repeated: false }
    }

    /// An operator takes a failed job back to waiting; whether there was anything to take.
    pub(crate) fn reopen(&mut self, job: usize) -> bool {
        let reset = self.makes(Mutant::VersionResetOnReplay);
        let row = &mut self.store.rows[job];
        let may = row.state == Ended::Failed && row.attempts < self.attempts_max;
        if may {
            row.state = Ended::Waiting;
            row.version = if reset { 0 } else { row.version };
        }
        may
    }
}
