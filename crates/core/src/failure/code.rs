//! The stable codes of failures, in one table.
//!
//! Owns every id and the class it belongs to; ids are never renamed or reused. Refuses to know
//! messages and contexts, which differ from case to case.

use std::fmt;

use super::FailureClass;

/// Makes the enum, its list and both look-ups from one table, so that they cannot drift.
macro_rules! failure_codes {
    ($($class:ident { $($(#[$doc:meta])* $code:ident = $id:literal,)+ })+) => {
        /// Names the cause of a failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FailureCode {
            $($($(#[$doc])* $code,)+)+
        }

        impl FailureCode {
            /// Lists every code, grouped by class.
            pub const ALL: &[Self] = &[$($(Self::$code,)+)+];

            /// Gives the stable id, in capitals with underscores.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $($(Self::$code => $id,)+)+
                }
            }

            /// Gives the class that the code belongs to.
            #[must_use]
            pub const fn class(self) -> FailureClass {
                match self {
                    $($(Self::$code)|+ => FailureClass::$class,)+
                }
            }
        }
    };
}

failure_codes! {
    Network {
        /// An answer did not come in time.
        NetworkTimeout = "NETWORK_TIMEOUT",
        /// The connection ended before the answer did.
        ConnectionReset = "CONNECTION_RESET",
        /// Nobody accepted the connection.
        ConnectionRefused = "CONNECTION_REFUSED",
        /// The name could not be resolved.
        DnsFailed = "DNS_FAILED",
        /// A gateway answered in place of the other side: 502, 503, 504.
        UpstreamUnavailable = "UPSTREAM_UNAVAILABLE",
        /// The worker that held the lease was not heard of again.
        WorkerLost = "WORKER_LOST",
        /// The handler ran longer than it may.
        DeadlineExceeded = "DEADLINE_EXCEEDED",
    }
    RateLimit {
        /// Too many requests.
        RateLimited = "RATE_LIMITED",
        /// A quota is used up until its window ends.
        QuotaExhausted = "QUOTA_EXHAUSTED",
    }
    Upstream {
        /// The other side reported an error of its own.
        UpstreamError = "UPSTREAM_ERROR",
        /// The handler gave an error without naming a code.
        HandlerFailed = "HANDLER_FAILED",
    }
    Conflict {
        /// Somebody else changed the same thing first.
        VersionConflict = "VERSION_CONFLICT",
        /// Somebody else holds the thing just now.
        ResourceLocked = "RESOURCE_LOCKED",
    }
    Validation {
        /// A document does not have the agreed shape.
        SchemaInvalid = "SCHEMA_INVALID",
        /// The payload of the job or request cannot be used.
        PayloadInvalid = "PAYLOAD_INVALID",
        /// The handler's result is not JSON that can be stored.
        ResultInvalid = "RESULT_INVALID",
        /// Something is larger than its limit.
        SizeExceeded = "SIZE_EXCEEDED",
        /// The other side refuses the request as it stands.
        RequestRejected = "REQUEST_REJECTED",
        /// The other side gave an answer that its contract does not know.
        UnexpectedResponse = "UNEXPECTED_RESPONSE",
    }
    Auth {
        /// The credentials are missing, wrong or not sufficient.
        AuthDenied = "AUTH_DENIED",
        /// The credentials were good and no longer are.
        CredentialsExpired = "CREDENTIALS_EXPIRED",
    }
    NotFound {
        /// The thing does not exist, or no longer.
        NotFound = "NOT_FOUND",
    }
    Policy {
        /// A content policy or business rule forbids it.
        PolicyRejected = "POLICY_REJECTED",
        /// Somebody asked to stop.
        Cancelled = "CANCELLED",
    }
    Bug {
        /// The handler panicked.
        Panic = "PANIC",
        /// A state was met that must not exist.
        InvariantBroken = "INVARIANT_BROKEN",
        /// The configuration cannot work.
        ConfigInvalid = "CONFIG_INVALID",
        /// No worker knows this kind of job.
        UnknownKind = "UNKNOWN_KIND",
        /// A stored code that this version does not list.
        Unlisted = "UNLISTED",
    }
}

impl FailureCode {
    /// Finds the code with this stable id; the case counts.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.id() == id)
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
