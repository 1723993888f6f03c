//! Owns why a secret is not sealed or opened. No error shows a key, a plaintext or a ciphertext.

use std::fmt;

use leasehold_core::{Error, Failure, FailureCode};

use super::kek::KekId;

/// Why the vault refuses.
#[derive(Debug)]
#[non_exhaustive]
pub enum VaultError {
    /// The ring does not hold this key: it was never there, or is gone.
    UnknownKey(KekId),
    /// The key is being retired, or is: nothing new is sealed with it.
    RetiredKey(KekId),
    /// The key seals what is new in this ring, so it cannot be retired; make another the active one.
    ActiveKey(KekId),
    /// The ciphertext belongs elsewhere, was altered, or was made with other key bytes under this id.
    Authentication,
    /// What is stored is no sealed secret of a known version.
    Malformed(&'static str),
    /// The key cannot be retired: so many secrets still need it.
    InUse {
        /// The key.
        kek: KekId,
        /// How many secrets need it.
        blobs: u64,
    },
    /// A key's source cannot be used; it says why, and never what it holds.
    Source(String),
    /// There is no such secret.
    Absent,
    /// What the store says.
    Store(Error),
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey(kek) => write!(f, "vault: unknown key id {kek}"),
            Self::RetiredKey(kek) => write!(f, "vault: key {kek} is retired"),
            Self::ActiveKey(kek) => {
                write!(f, "vault: key {kek} is the active one of this ring, and cannot be retired")
            }
            Self::Authentication => f.write_str("vault: authentication failed"),
            Self::Malformed(what) => write!(f, "vault: malformed {what}"),
            Self::InUse { kek, blobs } => {
                write!(f, "vault: key {kek} is needed by {blobs} secrets still")
            }
            Self::Source(why) => write!(f, "vault: key source: {why}"),
            Self::Absent => f.write_str("vault: no such secret"),
            Self::Store(error) => write!(f, "vault: {error}"),
        }
    }
}

impl std::error::Error for VaultError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for VaultError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl VaultError {
    /// What an attempt that needs the secret fails with: a wrong configuration, which no other attempt
    /// mends, unless the store may answer later.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let code = match self {
            Self::Store(error) if error.is_retryable() => FailureCode::UpstreamUnavailable,
            Self::Absent => FailureCode::NotFound,
            _ => FailureCode::ConfigInvalid,
        };
        Failure::new(code, self.to_string())
    }
}
