//! The nine classes of failure.
//!
//! Owns what may be tried again and what wakes an operator. Refuses to know single causes; those
//! are codes, each of which belongs to one class.

use std::fmt;

/// Sorts failures by what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureClass {
    /// The way to the other side broke: name lookup, timeout, reset, 502, 503, 504.
    Network,
    /// The other side asks for fewer requests: 429, quota windows.
    RateLimit,
    /// The other side failed by itself: its internal errors, other 5xx.
    Upstream,
    /// Two writers met: duplicate writes, version conflicts.
    Conflict,
    /// The data is wrong and will be wrong again: schema, payload, result.
    Validation,
    /// The credentials do not suffice.
    Auth,
    /// What the job needs does not exist, for good.
    NotFound,
    /// A rule or a person said no.
    Policy,
    /// The program or its configuration is wrong.
    Bug,
}

impl FailureClass {
    /// Lists every class in the order of the contract.
    pub const ALL: [Self; 9] = [
        Self::Network,
        Self::RateLimit,
        Self::Upstream,
        Self::Conflict,
        Self::Validation,
        Self::Auth,
        Self::NotFound,
        Self::Policy,
        Self::Bug,
    ];

    /// Gives the stable name, for storage and metric labels.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::RateLimit => "rate_limit",
            Self::Upstream => "upstream",
            Self::Conflict => "conflict",
            Self::Validation => "validation",
            Self::Auth => "auth",
            Self::NotFound => "not_found",
            Self::Policy => "policy",
            Self::Bug => "bug",
        }
    }

    /// Finds the class with this stable name; the case counts.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.id() == id)
    }

    /// Tells whether another attempt may succeed without anybody changing anything.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Network | Self::RateLimit | Self::Upstream | Self::Conflict)
    }

    /// Tells whether another attempt is safe only where the handler is declared idempotent.
    #[must_use]
    pub const fn retries_need_idempotence(self) -> bool {
        matches!(self, Self::Conflict)
    }

    /// Tells whether the failure is an alert for an operator.
    ///
    /// Whatever ends by such a failure publishes an event on the topic `leasehold.alerts`, in the same
    /// transaction: `job_id`, `kind` and `queue`, or `event_id` and `topic`, and `error_class`.
    #[must_use]
    pub const fn raises_alert(self) -> bool {
        matches!(self, Self::Bug)
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
