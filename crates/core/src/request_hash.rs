//! The hash that tells a repeated request from a different one under the same key.
//!
//! Owns the exact bytes that are hashed; they are part of the stored format and change only with
//! a new domain string. Refuses to know where hashes are kept or what a conflict leads to.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::json::canonical_text;
use crate::{Error, ErrorKind, Json, Result};

const JOB_DOMAIN: &str = "leasehold.request.job.1";
const HTTP_DOMAIN: &str = "leasehold.request.http.1";

/// Identifies what a request asks for, apart from how its JSON is spelled.
///
/// SHA-256 over a domain string and, each preceded by its length as eight big-endian bytes, the
/// fields and the canonical payload: members sorted by decoded name, minimal escapes, no blanks,
/// number tokens as written. So `1.0` and `1` differ, and `{"a":1,"b":2}` equals
/// `{ "b": 2, "a": 1 }`.
///
/// # Examples
///
/// ```
/// use leasehold_core::{Json, RequestHash};
///
/// let one = RequestHash::of_job("resize", "media", &Json::parse(r#"{"a":1,"b":2}"#)?);
/// let two = RequestHash::of_job("resize", "media", &Json::parse(r#"{ "b":2, "\u0061":1 }"#)?);
/// assert_eq!(one, two);
/// # Ok::<(), leasehold_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestHash([u8; 32]);

impl RequestHash {
    /// Hashes the request to run a job.
    #[must_use]
    pub fn of_job(kind: &str, queue: &str, payload: &Json) -> Self {
        Self::of_fields(JOB_DOMAIN, [kind, queue], payload)
    }

    /// Hashes an HTTP request with a JSON body; the method counts as written.
    #[must_use]
    pub fn of_http(method: &str, path: &str, body: &Json) -> Self {
        Self::of_fields(HTTP_DOMAIN, [method, path], body)
    }

    fn of_fields(domain: &str, fields: [&str; 2], document: &Json) -> Self {
        let mut hasher = Sha256::new();
        update(&mut hasher, domain);
        for field in fields {
            update(&mut hasher, field);
        }
        update(&mut hasher, &canonical_text(document));
        Self(hasher.finalize().into())
    }

    /// Restores a stored hash.
    ///
    /// # Errors
    ///
    /// `Invalid` unless there are exactly 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let array = <[u8; 32]>::try_from(bytes).map_err(|_| {
            let message = format!("a request hash has 32 bytes, not {}", bytes.len());
            Error::new(ErrorKind::Invalid, "read request hash", message)
        })?;
        Ok(Self(array))
    }

    /// Stands for a request that nobody hashed, as an insert into the SQL view: every request under
    /// its key is taken for the same.
    pub const UNCOMPARED: Self = Self([0; 32]);

    /// Whether two hashes stand for one request as far as anybody can tell.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self == other || *self == Self::UNCOMPARED || *other == Self::UNCOMPARED
    }

    /// Shows the 32 bytes, as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Length first, so that no two lists of fields ever meet in one byte string.
fn update(hasher: &mut Sha256, field: &str) {
    let length = u64::try_from(field.len()).unwrap_or(u64::MAX);
    hasher.update(length.to_be_bytes());
    hasher.update(field.as_bytes());
}

impl fmt::Display for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn job(payload: &str) -> RequestHash {
        RequestHash::of_job("kind", "queue", &Json::parse(payload).expect("valid payload"))
    }

    /// Proves: IDM-5
    #[test]
    fn spelling_does_not_count() {
        let plain = job(r#"{"a":[1,{"x":"é\n"}],"b/":null}"#);
        assert_eq!(plain, job("{ \"b\\/\" : null,\n\"\\u0061\":[1,{\"x\":\"\\u00E9\\u000A\"}] }"));
    }

    /// Proves: IDM-5
    #[test]
    fn meaning_counts() {
        let all = [
            job("{}"),
            job("[]"),
            job("null"),
            job("1"),
            job("1.0"),
            job("1e0"),
            job("\"1\""),
            job("[1,2]"),
            job("[2,1]"),
            job("[12]"),
            job(r#"{"a":1,"b":2}"#),
            job(r#"{"a":2,"b":1}"#),
            RequestHash::of_job("kind", "other", &Json::null()),
            RequestHash::of_job("kindq", "ueue", &Json::null()),
            RequestHash::of_http("kind", "queue", &Json::null()),
            RequestHash::of_http("POST", "/jobs", &Json::null()),
        ];
        let distinct: std::collections::BTreeSet<_> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    /// Proves: IDM-5
    #[test]
    fn the_stored_format_does_not_drift() {
        let hash = job(r#"{"b":1.0,"a":["x","\u0001"]}"#);
        let fields =
            ["leasehold.request.job.1", "kind", "queue", r#"{"a":["x","\u0001"],"b":1.0}"#];
        let mut bytes = Vec::new();
        for field in fields {
            bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
            bytes.extend_from_slice(field.as_bytes());
        }
        assert_eq!(hash.as_bytes()[..], Sha256::digest(&bytes)[..]);
        assert_eq!(hash.to_string(), GOLDEN);
        assert_eq!(format!("{hash:?}"), format!("RequestHash({GOLDEN})"));
    }

    const GOLDEN: &str = "063ba98115c445cdefeb3e32df3f5c3831e524df3469c3679d48cd2b16da660e";

    /// Proves: IDM-5
    #[test]
    fn stored_bytes_come_back() {
        let hash = job("{}");
        assert_eq!(RequestHash::from_bytes(hash.as_bytes()).expect("32 bytes"), hash);
        for length in [0, 31, 33] {
            let error = RequestHash::from_bytes(&vec![0; length]).expect_err("wrong length");
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }

    proptest! {
        /// Proves: IDM-5
        #[test]
        fn order_and_blanks_do_not_count(
            members in prop::collection::btree_map(any::<String>(), any::<String>(), 0..8),
            blank in "[ \t\r\n]{0,3}",
        ) {
            let quoted = |text: &String| serde_json::to_string(text).expect("a string");
            let write = |pairs: Vec<(&String, &String)>, blank: &str| {
                let member = |(name, value)| format!("{}{blank}:{blank}{}", quoted(name), quoted(value));
                let list: Vec<_> = pairs.into_iter().map(member).collect();
                format!("{{{blank}{}{blank}}}", list.join(&format!("{blank},{blank}")))
            };
            let tight = write(members.iter().collect(), "");
            let loose = write(members.iter().rev().collect(), &blank);
            prop_assert_eq!(job(&tight), job(&loose));
        }
    }
}
