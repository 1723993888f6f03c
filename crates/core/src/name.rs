//! Owns the names callers give: queues, kinds, keys, topics. Each is checked once, when made: not
//! empty (but a scope), at most 255 bytes, no control characters. Knows nothing of their meaning.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// The longest name or key, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

fn check(what: &'static str, text: &str, empty_ok: bool) -> Result<()> {
    let refuse = |why: String| Err(Error::new(ErrorKind::Invalid, what, why));
    if text.is_empty() && !empty_ok {
        return refuse("is empty".to_owned());
    }
    if text.len() > NAME_BYTES_MAX {
        return refuse(format!("has {} bytes, at most {NAME_BYTES_MAX} are allowed", text.len()));
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, c)) => {
            refuse(format!("holds the control character U+{:04X} at byte {at}", c as u32))
        }
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $empty:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes a text.
            ///
            /// # Errors
            /// `Invalid` when it is empty (where that matters), over 255 bytes, or holds a control
            /// character.
            pub fn new(text: impl AsRef<str>) -> Result<Self> {
                check($what, text.as_ref(), $empty)?;
                Ok(Self(Arc::from(text.as_ref())))
            }

            /// Gives the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Error;

            fn try_from(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }
    };
}

name!(
    /// A queue's name.
    QueueName, "queue name", false
);
name!(
    /// What a job is: picks its handler.
    JobKind, "job kind", false
);
name!(
    /// A key under which a request makes one job, however often it is sent.
    IdempotencyKey, "idempotency key", false
);
name!(
    /// Whose keys these are (a tenant, a requester); `''` by default.
    Scope, "scope", true
);
name!(
    /// Whose share of a queue a job belongs to (a tenant, say).
    PartitionName, "partition name", false
);
name!(
    /// An outbox topic.
    Topic, "topic", false
);
name!(
    /// A free ordering key of outbox events.
    OrderKey, "ordering key", false
);
name!(
    /// A lifecycle's name.
    LifecycleName, "lifecycle name", false
);
name!(
    /// A stage's name within a lifecycle.
    StageName, "stage name", false
);
name!(
    /// Whose records these are: the first part of a record's name.
    Namespace, "namespace", false
);
name!(
    /// A record's name within its namespace.
    RecordKey, "record key", false
);
name!(
    /// A bucket of rate tokens.
    BucketName, "bucket name", false
);
name!(
    /// Who acts as an operator, for the audit log.
    Actor, "actor", false
);

impl QueueName {
    /// The queue of jobs that name none: `default`.
    pub fn default_queue() -> Self {
        Self(Arc::from("default"))
    }
}

impl Scope {
    /// The scope of keys that name none: `''`.
    pub fn global() -> Self {
        Self(Arc::from(""))
    }
}

impl LifecycleName {
    /// The lifecycle of jobs that name none: `standard`.
    pub fn standard() -> Self {
        Self(Arc::from("standard"))
    }

    pub(crate) fn literal(text: &'static str) -> Self {
        Self(Arc::from(text))
    }
}

impl StageName {
    pub(crate) fn literal(text: &'static str) -> Self {
        Self(Arc::from(text))
    }
}

impl Topic {
    pub(crate) fn literal(text: &'static str) -> Self {
        Self(Arc::from(text))
    }
}
