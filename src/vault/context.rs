//! Owns what a ciphertext is bound to, and how that becomes bytes which no other binding shares: each
//! part behind its length, the kind and the version of the form in front.

use super::kek::KekId;

/// The version of the form; a later one is told from it by its first part.
pub(super) const VERSION: i64 = 1;
const BLOB: &str = "leasehold.vault.blob";
const WRAP: &str = "leasehold.vault.wrap";

/// What a secret belongs to. Opened under any other binding it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Binding {
    /// What kind of secret it is: the table and column, so to speak.
    pub field: String,
    /// Whose job it is for.
    pub job_id: String,
    /// Who asked for the job.
    pub requester_id: String,
    /// Which of the job's credentials it is; an older one put back does not open.
    pub credential_version: i64,
}

impl Binding {
    /// Binds the storage credentials of a job.
    pub fn new(
        job_id: impl Into<String>,
        requester_id: impl Into<String>,
        credential_version: i64,
    ) -> Self {
        Self {
            field: "storage_creds".to_owned(),
            job_id: job_id.into(),
            requester_id: requester_id.into(),
            credential_version,
        }
    }

    /// Binds another kind of secret.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// What the secret itself is bound to. It never holds the id of the wrapping key, or a change of
    /// that key would need the plaintext.
    pub(super) fn of_blob(&self) -> Vec<u8> {
        self.encode(BLOB, None)
    }

    /// What the wrapped data key is bound to: the same, and the id of the wrapping key.
    pub(super) fn of_wrap(&self, kek: &KekId) -> Vec<u8> {
        self.encode(WRAP, Some(kek))
    }

    fn encode(&self, kind: &str, kek: Option<&KekId>) -> Vec<u8> {
        let (version, credential) = (VERSION.to_be_bytes(), self.credential_version.to_be_bytes());
        let mut parts = vec![
            kind.as_bytes(),
            &version,
            self.field.as_bytes(),
            self.job_id.as_bytes(),
            self.requester_id.as_bytes(),
            &credential,
        ];
        parts.extend(kek.map(|kek| kek.as_str().as_bytes()));
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }
}
