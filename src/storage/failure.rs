//! Owns what an answer of storage means for a job's attempt, in words that requesters may read: no folder of
//! this machine, no address with a signature in it.

use std::error::Error as Cause;

use leasehold_core::{Failure, FailureCode};
use object_store::Error;

use super::Place;
use super::client::{Answered, Late};
use crate::webhook::connect::Unresolved;
use crate::webhook::target::Blocked;

/// A refusal may be mended by new credentials where the place takes any; what is not there, or asked for
/// wrongly, by nothing.
pub(super) fn failure_of(error: &Error, place: &Place) -> Failure {
    match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => refusal(place),
        Error::NotFound { .. } => Failure::new(FailureCode::NotFound, "there is no such object"),
        Error::InvalidPath { .. } => {
            Failure::new(FailureCode::PayloadInvalid, "the place's path is none")
        }
        Error::UnknownConfigurationKey { .. } => {
            Failure::new(FailureCode::PayloadInvalid, "the place is of no known form")
        }
        Error::NotSupported { .. } | Error::NotImplemented { .. } => {
            Failure::new(FailureCode::ConfigInvalid, "this storage does not offer that")
        }
        _ => match answered(error) {
            Some(answered) => failure_of_answer(answered, place),
            None => broken(error, FailureCode::UpstreamUnavailable),
        },
    }
}

/// The answer at the bottom of an error, where there was one.
fn answered(error: &Error) -> Option<Answered> {
    let mut last: &(dyn Cause + 'static) = error;
    loop {
        if let Some(answered) = last.downcast_ref() {
            return Some(*answered);
        }
        last = last.source()?;
    }
}

/// What a refusal means, by whether there are credentials to renew.
fn refusal(place: &Place) -> Failure {
    let (code, why) = match place {
        Place::Local { .. } => (FailureCode::ConfigInvalid, "the service may not use that file"),
        Place::Http { .. } => (FailureCode::AuthDenied, "storage asks for credentials"),
        Place::S3 { .. } | Place::Signed { .. } => {
            (FailureCode::CredentialsExpired, "storage refuses the credentials")
        }
    };
    Failure::new(code, why)
}

/// What lies at the bottom of an error: its own words name no path and no address, those above it may.
pub(super) fn broken(error: &(dyn Cause + 'static), unless_known: FailureCode) -> Failure {
    let (mut code, mut last) = (unless_known, error);
    loop {
        if last.is::<Blocked>() {
            code = FailureCode::PolicyRejected;
        } else if last.is::<Unresolved>() {
            code = FailureCode::DnsFailed;
        } else if last.is::<Late>() {
            code = FailureCode::NetworkTimeout;
        }
        match last.source() {
            Some(inner) => last = inner,
            None => return Failure::new(code, last.to_string()),
        }
    }
}

/// The same by an HTTP answer that is not good.
pub(super) fn failure_of_answer(answered: Answered, place: &Place) -> Failure {
    let failure = match answered.status {
        401 | 403 => return refusal(place),
        status => Failure::from_http_status(status),
    };
    match answered.retry_after {
        Some(wait) => failure.with_retry_after(wait),
        None => failure,
    }
}
