//! Failures told from HTTP answers.
//!
//! Owns the table from status to code and the two forms of `Retry-After`. Refuses to send or
//! receive anything, and refuses to read a clock: the time of receipt is an argument.

use std::time::{Duration, SystemTime};

use super::{Failure, FailureCode};

impl Failure {
    /// Makes the failure that a status stands for.
    ///
    /// 408, 423, 425, 429 and every 5xx may be tried again; 404, 410 and the other 4xx may not,
    /// and neither may a status outside 400 to 599, which no failure should carry.
    #[must_use]
    pub fn from_http_status(status: u16) -> Self {
        Self::new(code_of(status), format!("the answer had status {status}"))
            .with_context("upstream_status", status)
    }
}

const fn code_of(status: u16) -> FailureCode {
    match status {
        401 | 403 => FailureCode::AuthDenied,
        404 | 410 => FailureCode::NotFound,
        408 => FailureCode::NetworkTimeout,
        400 | 415 | 422 => FailureCode::PayloadInvalid,
        413 | 414 | 431 => FailureCode::SizeExceeded,
        423 | 425 => FailureCode::ResourceLocked,
        429 => FailureCode::RateLimited,
        451 => FailureCode::PolicyRejected,
        402..=499 => FailureCode::RequestRejected,
        502..=504 => FailureCode::UpstreamUnavailable,
        500..=599 => FailureCode::UpstreamError,
        _ => FailureCode::UnexpectedResponse,
    }
}

/// Reads a `Retry-After` header: whole seconds, or an HTTP date.
///
/// The wait counts from the receipt of the answer, given in seconds since 1970; a date in the
/// past means no wait. Anything else, a fraction or a negative number say, is `None`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leasehold_core::failure::retry_after;
///
/// assert_eq!(retry_after("120", 0), Some(Duration::from_secs(120)));
/// let date = "Sun, 06 Nov 1994 08:49:37 GMT";
/// assert_eq!(retry_after(date, 784_111_770), Some(Duration::from_secs(7)));
/// ```
#[must_use]
pub fn retry_after(header: &str, received_at_unix_secs: u64) -> Option<Duration> {
    let header = header.trim_matches([' ', '\t']);
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(header.parse().unwrap_or(u64::MAX)));
    }
    let at = httpdate::parse_http_date(header).ok()?;
    let at = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(at.saturating_sub(Duration::from_secs(received_at_unix_secs)))
}
