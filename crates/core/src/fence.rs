//! Owns the fence: the proof that a write comes from the claim that owns the row. Compares nothing
//! itself; the rules do, against the locked row and the store's clock.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::id::{ClaimId, EventId, JobId, WorkerId};

/// How often a row has changed hands: raised by every claim, reclaim and release, never lowered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64")]
pub struct ClaimVersion(i64);

impl ClaimVersion {
    /// The version of a row that nobody has claimed yet.
    pub const ZERO: Self = Self(0);
    /// The largest version: 48 bits, so that a token has room for the epoch.
    pub const MAX: Self = Self((1 << 48) - 1);

    /// Takes a stored version.
    ///
    /// # Errors
    /// `Corrupt` when negative or above 48 bits.
    pub fn new(version: i64) -> Result<Self> {
        if (0..=Self::MAX.0).contains(&version) {
            return Ok(Self(version));
        }
        Err(Error::new(ErrorKind::Corrupt, "claim version", format!("{version} is out of range")))
    }

    /// The version as a number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The next version.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl TryFrom<i64> for ClaimVersion {
    type Error = Error;

    fn try_from(version: i64) -> Result<Self> {
        Self::new(version)
    }
}

impl TryFrom<i64> for Epoch {
    type Error = Error;

    fn try_from(epoch: i64) -> Result<Self> {
        Self::new(epoch)
    }
}

impl fmt::Display for ClaimVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ClaimVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// The store's generation, 0 to 32767: raised by a restore, or by an operator after a lossy failover.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "i64")]
pub struct Epoch(u16);

impl Epoch {
    /// The largest epoch: 15 bits.
    pub const MAX: Self = Self(32_767);

    /// Takes a stored epoch.
    ///
    /// # Errors
    /// `Invalid` outside 0 to 32767.
    pub fn new(epoch: i64) -> Result<Self> {
        match u16::try_from(epoch) {
            Ok(epoch) if epoch <= Self::MAX.0 => Ok(Self(epoch)),
            _ => Err(Error::new(
                ErrorKind::Invalid,
                "epoch",
                format!("{epoch} lies outside 0 to 32767"),
            )),
        }
    }

    /// The epoch as a number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The proof that a write comes from the claim that owns row `Id`. See [`Fence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FenceOf<Id> {
    id: Id,
    version: ClaimVersion,
    claim: ClaimId,
    worker: WorkerId,
    epoch: Epoch,
}

/// The proof that a write comes from the claim that owns a job.
///
/// Made by a claim, copied freely, presented by every later write. A fence whose claim has ended
/// changes nothing.
pub type Fence = FenceOf<JobId>;

/// The proof that a write comes from the claim that owns an outbox event.
pub type EventFence = FenceOf<EventId>;

impl<Id: Copy> FenceOf<Id> {
    /// Puts a stored fence together again; it proves no more than its parts do.
    pub const fn from_parts(
        id: Id,
        version: ClaimVersion,
        claim: ClaimId,
        worker: WorkerId,
        epoch: Epoch,
    ) -> Self {
        Self { id, version, claim, worker, epoch }
    }

    /// The row's id.
    pub const fn id(&self) -> Id {
        self.id
    }

    /// The version this claim made.
    pub const fn version(&self) -> ClaimVersion {
        self.version
    }

    /// The claim call that took the row.
    pub const fn claim(&self) -> ClaimId {
        self.claim
    }

    /// The worker that holds it.
    pub const fn worker(&self) -> WorkerId {
        self.worker
    }

    /// The store's epoch at the claim.
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// One rising positive number for systems downstream: epoch in bits 48 to 62, version below.
    ///
    /// A downstream that remembers the largest token it has seen per row and refuses smaller ones
    /// is safe from paused and replaced workers, over a restore too.
    pub const fn fencing_token(&self) -> i64 {
        ((self.epoch.0 as i64) << 48) | self.version.0
    }
}

impl Fence {
    /// The job's id.
    pub const fn job(&self) -> JobId {
        self.id
    }

    /// A dedupe key of this very execution: `job_id:version`.
    pub fn execution_key(&self) -> String {
        format!("{}:{}", self.id, self.version)
    }
}

impl EventFence {
    /// The event's id.
    pub const fn event(&self) -> EventId {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: GLO-3, WQ-12
    #[test]
    fn a_fence_out_of_range_is_not_read() {
        let text = |version: &str, epoch: &str| {
            let id = "00000000-0000-0000-0000-000000000001";
            format!(
                r#"{{"id":"{id}","version":{version},"claim":"{id}","worker":"{id}","epoch":{epoch}}}"#
            )
        };
        let read = |text: String| serde_json::from_str::<Fence>(&text);
        let fence = read(text("281474976710655", "32767")).unwrap();
        assert_eq!(fence.fencing_token(), i64::MAX);
        assert_eq!(read(serde_json::to_string(&fence).unwrap()).unwrap(), fence);
        for (version, epoch) in
            [("-1", "0"), ("281474976710656", "0"), ("1", "32768"), ("1", "-1"), ("1.5", "0")]
        {
            assert!(read(text(version, epoch)).is_err(), "{version} in epoch {epoch}");
        }
    }
}
