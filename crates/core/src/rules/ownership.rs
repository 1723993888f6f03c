//! Owns the fence comparison: one definition of "still owned", for every verb and every engine.

use super::Work;
use crate::error::{Error, LostReason, Result};
use crate::fence::{EventFence, Fence, FenceOf};
use crate::id::ClaimId;
use crate::lifecycle::State;
use crate::row::{EventRow, JobRow, Lease};
use crate::settle::VerdictKind;
use crate::time::Timestamp;

/// What a fence turned out to be.
pub(super) enum Ownership<Row> {
    /// It owns the row.
    Owned(Row),
    /// Its own claim has ended with this verdict.
    Ended(VerdictKind, Option<Row>),
}

struct Held<'a> {
    version: i64,
    claim: Option<ClaimId>,
    lease: Option<&'a Lease>,
    last_verdict: Option<VerdictKind>,
    cancelled: bool,
}

/// Compares a fence with a row; `Err` is the reason, `Ok(Some)` an end by this very claim.
fn compare<Id: Copy>(
    held: &Held<'_>,
    fence: &FenceOf<Id>,
    now: Timestamp,
) -> Result<Option<VerdictKind>, LostReason> {
    if held.claim != Some(fence.claim()) {
        return Err(LostReason::TakenOver);
    }
    match held.lease {
        Some(lease) if held.version == fence.version().get() && lease.worker == fence.worker() => {
            if lease.expires_at <= now {
                Err(LostReason::Expired)
            } else {
                Ok(None)
            }
        }
        Some(_) => Err(LostReason::TakenOver),
        None => match held.last_verdict {
            Some(kind) => Ok(Some(kind)),
            None if held.cancelled => Err(LostReason::Cancelled),
            None => Err(LostReason::Reclaimed),
        },
    }
}

impl Work {
    /// Whether a fence owns its job now, and if not, why.
    pub(super) fn ownership(
        &self,
        operation: &'static str,
        fence: &Fence,
    ) -> Result<Ownership<JobRow>> {
        self.job_ownership(fence)
            .map_err(|why| Error::lost(operation, format!("job {}", fence.job()), why))
    }

    pub(super) fn job_ownership(&self, fence: &Fence) -> Result<Ownership<JobRow>, LostReason> {
        if fence.epoch() != self.epoch {
            return Err(LostReason::EpochRaised);
        }
        let Some(row) = self.jobs.get(&fence.job()) else {
            return match self.tombstones.get(&fence.job()) {
                Some(tomb) if tomb.claim == Some(fence.claim()) => match tomb.last_verdict {
                    Some(kind) => Ok(Ownership::Ended(kind, None)),
                    None => Err(LostReason::Gone),
                },
                Some(_) => Err(LostReason::TakenOver),
                None => Err(LostReason::Gone),
            };
        };
        let held = Held {
            version: row.version.get(),
            claim: row.claim,
            lease: row.lease.as_ref(),
            last_verdict: row.last_verdict,
            cancelled: row.state == State::Cancelled,
        };
        match compare(&held, fence, self.now)? {
            None => Ok(Ownership::Owned(row.clone())),
            Some(kind) => Ok(Ownership::Ended(kind, Some(row.clone()))),
        }
    }

    pub(super) fn event_ownership(
        &self,
        fence: &EventFence,
    ) -> Result<Ownership<EventRow>, LostReason> {
        if fence.epoch() != self.epoch {
            return Err(LostReason::EpochRaised);
        }
        let row = self.events.get(&fence.event()).ok_or(LostReason::Gone)?;
        let held = Held {
            version: row.version.get(),
            claim: row.claim,
            lease: row.lease.as_ref(),
            last_verdict: row.last_verdict,
            cancelled: false,
        };
        match compare(&held, fence, self.now)? {
            None => Ok(Ownership::Owned(row.clone())),
            Some(kind) => Ok(Ownership::Ended(kind, Some(row.clone()))),
        }
    }

    /// What a tombstone says of where its job ended.
    pub(super) fn tombstone_state(&self, fence: &Fence) -> Option<State> {
        self.tombstones.get(&fence.job()).map(|tomb| tomb.outcome)
    }
}
