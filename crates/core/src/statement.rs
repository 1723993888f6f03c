//! Owns statements as data: what a caller with another driver runs in its own transaction to enqueue
//! a job. Refuses to know any engine; the stores write the texts.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::job::{NewJob, RunAt};
use crate::time::{Timestamp, micros};

/// One statement and its parameters, in their order.
///
/// Run all statements of a job in their order inside one transaction. Exactly one of them
/// [answers](Self::answers): it gives one row of three columns.
///
/// | column | what it holds |
/// |---|---|
/// | `outcome` | `new`; `existing`: the id or key is known with the same request; `conflict`: known with another request; `not_found`: the lifecycle is not registered; `invalid`: the id's time is too far off the store's clock |
/// | `job` | the new job, or the one that holds the id or key: a `uuid` on PostgreSQL, 16 bytes on SQLite |
/// | `state` | its state; null where only its key is left |
///
/// Only `new` has written anything, and no outcome raises an error in the database. Whether the job
/// is there is decided by the caller's commit. Workers find it at their next poll.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Statement {
    /// The text, with the engine's own placeholders.
    pub sql: Arc<str>,
    /// The parameters.
    pub params: Vec<Value>,
    /// Whether this is the one that gives the answer.
    pub answers: bool,
}

/// A parameter; a null keeps its type, which PostgreSQL's drivers ask for.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Uuid(Uuid),
}

impl Statement {
    /// Puts a statement together; for stores.
    pub fn new(sql: impl Into<Arc<str>>, params: Vec<Value>, answers: bool) -> Self {
        Self { sql: sql.into(), params, answers }
    }
}

impl Value {
    /// A number that is there.
    pub fn int(value: impl Into<i64>) -> Self {
        Self::Int(Some(value.into()))
    }

    /// A text that is there.
    pub fn text(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }

    /// Bytes that are there.
    pub fn bytes(value: &[u8]) -> Self {
        Self::Bytes(Some(value.to_vec()))
    }

    /// A text that may be missing.
    pub fn maybe_text(value: Option<&str>) -> Self {
        Self::Text(value.map(str::to_owned))
    }

    /// A duration in microseconds, not beyond the last instant.
    pub fn duration(value: Option<Duration>) -> Self {
        Self::Int(value.map(|it| micros(it).min(Timestamp::MAX.as_micros())))
    }

    /// The delay and the instant of a job's first claim; one of them or none is there.
    pub fn run_at(job: &NewJob) -> [Self; 2] {
        match job.run_at {
            RunAt::Now => [Self::Int(None), Self::Int(None)],
            RunAt::After(delay) => [Self::duration(Some(delay)), Self::Int(None)],
            RunAt::At(at) => [Self::Int(None), Self::int(at.as_micros())],
        }
    }
}
