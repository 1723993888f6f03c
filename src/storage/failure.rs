//! Owns what an answer of storage means for a job's attempt.

use leasehold_core::{Failure, FailureCode};
use object_store::Error;

/// A refusal may be mended by new credentials; what is not there, or asked for wrongly, by nothing.
pub(super) fn failure_of(error: &Error) -> Failure {
    let code = match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            FailureCode::CredentialsExpired
        }
        Error::NotFound { .. } => FailureCode::NotFound,
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => {
            FailureCode::PayloadInvalid
        }
        Error::NotSupported { .. } | Error::NotImplemented { .. } => FailureCode::ConfigInvalid,
        _ => FailureCode::UpstreamUnavailable,
    };
    Failure::new(code, error.to_string())
}

/// The same by an HTTP status.
pub(super) fn failure_of_status(status: u16) -> Failure {
    match status {
        401 | 403 => Failure::new(FailureCode::CredentialsExpired, format!("status {status}")),
        _ => Failure::from_http_status(status),
    }
}
