//! Owns what is said of a job or an event whose row cannot be read when it is put to rest. Mends nothing.

use crate::error::{Error, Result};
use crate::failure::{Failure, FailureCode};
use crate::id::{EventId, JobId};
use crate::json::Json;
use crate::name::Actor;
use crate::record::AuditEntry;

/// The most damaged rows that one call passes over.
pub const ASIDE_MAX: usize = 1_000;

/// The entry that goes with it, in the same transaction.
///
/// # Errors
/// None that a caller could cause; the actor's name is a good one.
pub fn set_aside(job: JobId, error: &Error) -> Result<AuditEntry> {
    set_odd_aside(&job.to_string(), error)
}

/// The same of a row whose id is none, under what stands in its place.
///
/// # Errors
/// As [`set_aside`].
pub fn set_odd_aside(id: &str, error: &Error) -> Result<AuditEntry> {
    let entry = AuditEntry::new(Actor::new("leasehold")?, "job.set_aside", format!("job {id}"));
    Ok(entry.detail(error.message()))
}

/// The same of an event, and the failure that it ends with.
///
/// # Errors
/// None that a caller could cause.
pub fn set_aside_event(event: EventId, error: &Error) -> Result<(AuditEntry, Json)> {
    let actor = Actor::new("leasehold")?;
    let entry = AuditEntry::new(actor, "event.set_aside", format!("event {event}"));
    let why = format!("the stored event cannot be read: {}", error.message());
    let failure = Failure::new(FailureCode::SchemaInvalid, why).to_json();
    Ok((entry.detail(error.message()), failure))
}
