//! Owns the ids: 128-bit, UUIDv7, made on the caller's side so that a repeated call after a lost
//! reply names the same row. Knows nothing of how an engine stores them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, ErrorKind};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $word:literal, $make:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Makes a new id.
            #[allow(clippy::new_without_default, reason = "a new id is not a default value")]
            pub fn new() -> Self {
                Self(Uuid::$make())
            }

            /// Takes an id as it is.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Gives the id as a UUID.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }

            /// Gives the id as its 16 bytes, in the order it sorts by.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// Milliseconds since 1970 that a UUIDv7 carries; `None` for other versions.
            pub fn unix_ms(&self) -> Option<i64> {
                let (secs, nanos) = self.0.get_timestamp()?.to_unix();
                i64::try_from(secs).ok().map(|s| s * 1000 + i64::from(nanos / 1_000_000))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            /// Reads any usual spelling: capitals, no dashes, braces, `urn:uuid:`.
            fn from_str(text: &str) -> Result<Self, Error> {
                Uuid::parse_str(text).map(Self).map_err(|e| {
                    Error::new(
                        ErrorKind::Invalid,
                        concat!("parse ", $word, " id"),
                        format!("{text:?} is not a UUID"),
                    )
                    .with_source(e)
                })
            }
        }
    };
}

id!(
    /// A job's id. Sorts by the time it was made.
    JobId, "job", now_v7
);
id!(
    /// An outbox event's id, the same on every delivery.
    EventId, "event", now_v7
);
id!(
    /// One start of one worker process; a restart is another worker.
    WorkerId, "worker", new_v4
);
id!(
    /// One claim call; shared by the rows it took, so unique for each of them.
    ClaimId, "claim", new_v4
);
