//! Owns what is said of a job whose row cannot be read when it is put to rest. Mends nothing.

use crate::error::{Error, Result};
use crate::id::JobId;
use crate::name::Actor;
use crate::record::AuditEntry;

/// The most damaged rows that one call passes over.
pub const ASIDE_MAX: usize = 1_000;

/// The entry that goes with it, in the same transaction.
///
/// # Errors
/// None that a caller could cause; the actor's name is a good one.
pub fn set_aside(job: JobId, error: &Error) -> Result<AuditEntry> {
    let entry = AuditEntry::new(Actor::new("leasehold")?, "job.set_aside", format!("job {job}"));
    Ok(entry.detail(error.message()))
}
