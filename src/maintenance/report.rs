//! Owns the report of a pass that took leases back: which fields it has, and no others.

use leasehold_core::{Reclaimed, State};
use serde::Serialize;

/// The action of the report's entry in the audit log.
pub(super) const PASS: &str = "reaper.pass";

/// What a pass did; written as it stands into the entry's detail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Pass {
    jobs_returned: usize,
    jobs_dead_letter: usize,
    jobs_failed: usize,
    jobs_cancelled: usize,
    events_returned: usize,
    events_dead_letter: usize,
}

impl Pass {
    pub(super) fn of(moved: &Reclaimed) -> Self {
        let mut pass = Self {
            events_returned: moved.events_returned,
            events_dead_letter: moved.events_dead,
            ..Self::default()
        };
        for (_, place) in &moved.jobs {
            match place.state() {
                State::DeadLetter => pass.jobs_dead_letter += 1,
                State::Failed => pass.jobs_failed += 1,
                State::Cancelled => pass.jobs_cancelled += 1,
                State::Waiting | State::Leased | State::Succeeded => pass.jobs_returned += 1,
            }
        }
        pass
    }
}
