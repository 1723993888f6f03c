//! Owns the in-memory store's now: the machine's clock at the start plus the time that has passed,
//! so that it never goes back; or a clock that a test sets.

use std::time::{Instant, SystemTime};

#[cfg(feature = "lab")]
use crate::lab::ManualClock;
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) enum Clock {
    Machine {
        base: Timestamp,
        begun: Instant,
    },
    #[cfg(feature = "lab")]
    Manual(ManualClock),
}

impl Clock {
    pub(super) fn machine() -> Self {
        let base = Timestamp::from_system_time(SystemTime::now()).unwrap_or(Timestamp::MIN);
        Self::Machine { base, begun: Instant::now() }
    }

    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Machine { base, begun } => base.plus(begun.elapsed()),
            #[cfg(feature = "lab")]
            Self::Manual(clock) => clock.now(),
        }
    }
}
