//! Owns the job of one version of a file: its payload, its key, its kind. A version is path, size
//! and time of change; two looks that agree in these are one version.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use leasehold::{
    IdempotencyKey, JobId, JobKind, Json, NewJob, QueueName, Result, Scope, Timestamp,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The kind of a file's job.
pub(super) const KIND: &str = "file";
/// The scope of its key.
const SCOPE: &str = "files";

/// The payload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FileJob {
    pub(super) id: String,
    /// The path as text; a byte that is not UTF-8 shows as U+FFFD.
    pub(super) filepath: String,
    pub(super) filesize: u64,
    pub(super) priority: String,
    pub(super) retries: u32,
    pub(super) creation_time: String,
    pub(super) trace_id: String,
    pub(super) span_id: String,
    /// When the file was changed last, in nanoseconds since 1970.
    pub(super) modified_ns: i128,
    /// The path's bytes in hexadecimal, where `filepath` cannot hold them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) filepath_hex: Option<String>,
}

/// A version of a file, as one look found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) modified_ns: i128,
}

impl Version {
    pub(super) fn of(path: &Path, facts: &Metadata) -> Self {
        let modified_ns =
            facts.modified().map_or(0, |time| match time.duration_since(std::time::UNIX_EPOCH) {
                Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
                Err(before) => {
                    i128::try_from(before.duration().as_nanos()).map_or(i128::MIN, |ns| -ns)
                }
            });
        Self { path: path.to_owned(), size: facts.len(), modified_ns }
    }

    /// Says whether the file is still this version; `None` when it is gone.
    ///
    /// # Errors
    /// What the system says, but for a file that is not there.
    pub(super) fn holds(&self) -> std::io::Result<Option<bool>> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(facts) => Ok(Some(facts.is_file() && Self::of(&self.path, &facts) == *self)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the key that the version's one job holds: 64 hexadecimal digits.
    pub(super) fn key(&self) -> Result<IdempotencyKey> {
        let mut hash = Sha256::new();
        let path = self.path.as_os_str().as_encoded_bytes();
        hash.update(b"leasehold file version 1");
        hash.update((path.len() as u64).to_be_bytes());
        hash.update(path);
        hash.update(self.size.to_be_bytes());
        hash.update(self.modified_ns.to_be_bytes());
        IdempotencyKey::new(hex(&hash.finalize()))
    }

    /// Makes the job.
    pub(super) fn job(
        &self,
        priority: &str,
        queue: QueueName,
        attempts: u16,
        now: Timestamp,
    ) -> Result<NewJob> {
        let id = JobId::new();
        let (trace_id, span_id) = trace_begun(&queue, id);
        let path = self.path.to_str();
        let payload = FileJob {
            id: id.to_string(),
            filepath: self.path.to_string_lossy().into_owned(),
            filesize: self.size,
            priority: priority.to_owned(),
            retries: 0,
            creation_time: now.to_string(),
            trace_id: trace_id.clone(),
            span_id: span_id.clone(),
            modified_ns: self.modified_ns,
            filepath_hex: path.is_none().then(|| hex(self.path.as_os_str().as_encoded_bytes())),
        };
        let job = NewJob::new(JobKind::new(KIND)?, Json::of(&payload)?)
            .id(id)
            .queue(queue)
            .key(self.key()?)
            .scope(scope()?)
            .max_attempts(attempts)
            .traceparent(format!("00-{trace_id}-{span_id}-01"));
        Ok(job)
    }
}

/// The scope of the keys.
pub(super) fn scope() -> Result<Scope> {
    Scope::new(SCOPE)
}

impl FileJob {
    /// Gives the version that the job is about; `None` when its bytes cannot be read.
    pub(super) fn version(&self) -> Option<Version> {
        let path = match &self.filepath_hex {
            Some(hex) => PathBuf::from(os_string(unhex(hex)?)?),
            None => PathBuf::from(&self.filepath),
        };
        Some(Version { path, size: self.filesize, modified_ns: self.modified_ns })
    }
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits?;
    let whole = digits.len().is_multiple_of(2);
    let pair = |pair: &[u32]| u8::try_from(pair.first()? * 16 + pair.last()?).ok();
    whole.then(|| digits.chunks(2).map(pair).collect::<Option<Vec<u8>>>())?
}

/// Where the job's trace begins, in hexadecimal: at a span, where spans are exported.
fn trace_begun(queue: &QueueName, id: JobId) -> (String, String) {
    #[cfg(feature = "otel")]
    {
        let span = tracing::info_span!(
            target: "leasehold::enqueue",
            parent: None,
            "enqueue",
            otel.kind = "producer",
            %queue,
            job_id = %id,
        );
        let begun = span.in_scope(leasehold::otel::traceparent);
        let mut parts = begun.as_deref().unwrap_or_default().split('-').skip(1);
        if let (Some(trace), Some(span)) = (parts.next(), parts.next()) {
            return (trace.to_owned(), span.to_owned());
        }
    }
    let _ = (queue, id);
    (uuid_hex(), uuid_hex().chars().take(16).collect())
}

/// 32 random hexadecimal digits.
fn uuid_hex() -> String {
    let id = leasehold::ClaimId::new();
    id.to_string().chars().filter(char::is_ascii_hexdigit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: PRD-1
    #[test]
    fn a_key_tells_versions_apart_and_nothing_else() {
        let version = Version { path: "/a/b".into(), size: 1, modified_ns: 2 };
        let key = version.key().unwrap();
        assert_eq!(key, version.clone().key().unwrap());
        for other in [
            Version { path: "/a/c".into(), ..version.clone() },
            Version { size: 2, ..version.clone() },
            Version { modified_ns: 3, ..version.clone() },
        ] {
            assert_ne!(key, other.key().unwrap());
        }
    }

    /// Proves: PRD-1
    #[cfg(unix)]
    #[test]
    fn a_path_survives_the_payload_byte_for_byte() {
        use std::os::unix::ffi::OsStrExt;
        for bytes in [&b"/x/plain"[..], b"/x/\xff\xfe", b"/x/new\nline", "/x/ü".as_bytes()] {
            let path = Path::new(std::ffi::OsStr::from_bytes(bytes));
            let version = Version { path: path.to_owned(), size: 7, modified_ns: -5 };
            let job = version
                .job("low", QueueName::default_queue(), 5, Timestamp::saturating(0))
                .unwrap();
            let payload: FileJob = job.payload.read().unwrap();
            assert_eq!(payload.version().unwrap(), version);
            assert_eq!(payload.creation_time, "1970-01-01T00:00:00.000000Z");
            assert_eq!((payload.trace_id.len(), payload.span_id.len()), (32, 16));
        }
    }
}
