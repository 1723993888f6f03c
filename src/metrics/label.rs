//! Owns which values a label may have: queues by a list of names, everything else by enums. No job, key,
//! error text or address can become one.

use leasehold_core::{LostReason, QueueName, State};

use crate::circuit::Circuit;

/// The most values of a label.
pub(super) const VALUES_MAX: usize = 50;
/// What every queue outside the list is counted under.
pub(super) const OTHER: &str = "other";

/// The queues that have a name of their own in the metrics.
#[derive(Debug)]
pub(super) struct Queues(Vec<String>);

impl Queues {
    /// Takes the first 49 names that differ; [`OTHER`] is the fiftieth value.
    pub(super) fn new<'a>(names: impl IntoIterator<Item = &'a QueueName>) -> Self {
        let mut known = Vec::new();
        for name in names.into_iter().map(QueueName::as_str) {
            let is_new = name != OTHER && !known.iter().any(|known| known == name);
            if is_new && known.len() < VALUES_MAX - 1 {
                known.push(name.to_owned());
            }
        }
        Self(known)
    }

    /// The value of a queue's label.
    pub(super) fn label(&self, queue: &QueueName) -> String {
        let known = self.0.iter().find(|known| known.as_str() == queue.as_str());
        known.map_or(OTHER, String::as_str).to_owned()
    }

    /// Every value that the label can have.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).chain([OTHER])
    }
}

/// Why a refused write had lost its claim.
pub(super) fn lost(reason: Option<LostReason>) -> &'static str {
    match reason {
        Some(LostReason::TakenOver) => "taken_over",
        Some(LostReason::Reclaimed) => "reclaimed",
        Some(LostReason::Expired) => "expired",
        Some(LostReason::Settled) => "settled",
        Some(LostReason::Cancelled) => "cancelled",
        Some(LostReason::Gone) => "gone",
        Some(LostReason::EpochRaised) => "epoch_raised",
        _ => OTHER,
    }
}

/// Where the breaker of an endpoint stands.
pub(super) fn circuit(state: Circuit) -> &'static str {
    match state {
        Circuit::Closed => "closed",
        Circuit::HalfOpen => "half_open",
        Circuit::Open => "open",
    }
}

/// Why a reclaim moved a job where it did.
pub(super) fn cause(landed: State) -> &'static str {
    match landed {
        State::Waiting => "lapsed",
        State::Cancelled => "cancel_requested",
        _ => "budget_spent",
    }
}
