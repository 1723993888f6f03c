//! Owns why a request is refused: told apart for the receiver's log, alike for who sent it.

use std::fmt;

/// Why a signed request is not taken. Tell the sender no more than [`Refusal::STATUS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The body or a header is longer than allowed.
    TooLarge,
    /// A header is not there.
    MissingHeader,
    /// A header stands twice, or holds what its form does not allow.
    MalformedHeader,
    /// No signature fits under any key that counts.
    BadSignature,
    /// It was signed too long ago, or too far ahead.
    Stale,
    /// It was taken before: the nonce is used.
    Replayed,
    /// Its event was taken before, with another body.
    OtherBody,
}

impl Refusal {
    /// The one HTTP status for every refusal: 401.
    pub const STATUS: u16 = 401;

    /// Gives the stable name, for logs and metrics.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::MissingHeader => "missing_header",
            Self::MalformedHeader => "malformed_header",
            Self::BadSignature => "bad_signature",
            Self::Stale => "stale",
            Self::Replayed => "replayed",
            Self::OtherBody => "other_body",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl std::error::Error for Refusal {}
