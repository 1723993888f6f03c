//! Owns the count of what a load was answered, and how its unknown outcomes turned out. Refuses to judge.

use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_core::{Claim, LeaseLength};

/// How often what was answered, over every send.
#[derive(Debug, Default)]
pub struct Tally {
    /// Calls sent, repeats too.
    pub sent: AtomicU64,
    /// Sends that answered with success.
    pub succeeded: AtomicU64,
    /// Sends that were refused over a fence.
    pub fenced: AtomicU64,
    /// Sends whose outcome was unknown.
    pub unknown: AtomicU64,
    /// Sends that were busy or could not reach the store.
    pub unreached: AtomicU64,
    /// Calls with an unknown outcome that had committed, as the repeat told.
    pub had: AtomicU64,
    /// Calls with an unknown outcome that had not.
    pub had_not: AtomicU64,
    /// Calls with an unknown outcome whose repeat has the same answer either way.
    pub either: AtomicU64,
    /// Claims paused past their lease.
    pub pauses: AtomicU64,
}

impl Tally {
    /// A figure as it is now.
    pub fn read(number: &AtomicU64) -> u64 {
        number.load(Ordering::SeqCst)
    }

    /// Counts a call whose repeat told whether an earlier send had committed; only unknown outcomes count.
    pub(super) fn resolved(&self, was_unknown: bool, had: bool) {
        if was_unknown {
            count(if had { &self.had } else { &self.had_not });
        }
    }

    /// Counts a claim with an unknown outcome: what was leased before the last send, an earlier one has leased.
    /// Other leases prove nothing, since an earlier send may still be on its way to its commit.
    pub(super) fn claim_resolved(&self, claims: &[Claim], lease: LeaseLength, last_send: i64) {
        let lease = i64::try_from(lease.as_duration().as_micros()).unwrap_or(i64::MAX);
        let begun = |claim: &Claim| claim.lease_expires_at.as_micros().saturating_sub(lease);
        let had = claims.iter().any(|claim| begun(claim) < last_send);
        count(if had { &self.had } else { &self.either });
    }
}

/// Adds one.
pub(super) fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::SeqCst);
}
