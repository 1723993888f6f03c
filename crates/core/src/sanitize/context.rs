//! The context that may stand beside a failure.
//!
//! Owns the allow-list of keys and the bounds of their values. What is not on the list is dropped
//! and counted, never written, because nobody can tell what it holds.

use std::collections::BTreeMap;

use super::Sanitizer;

/// The longest kept value, in bytes.
const VALUE_BYTES_MAX: usize = 256;
/// Enough of a hash to find its object, too little to confirm a guess at it.
const HASH_CHARS_MAX: usize = 16;

/// Every key that a context may have.
pub(crate) const CONTEXT_KEYS: [&str; 34] = [
    "artifact_id",
    "attempt",
    "attempts",
    "attempts_max",
    "claim_version",
    "content_type",
    "correlation_id",
    "credential_refreshes",
    "deliveries",
    "elapsed_ms",
    "event_id",
    "executions",
    "exit_code",
    "job_id",
    "kind",
    "lifecycle",
    "model",
    "payload_bytes",
    "payload_hash",
    "prompt_version",
    "provider",
    "queue",
    "reason",
    "replay_of",
    "request_id",
    "result_hash",
    "retry_after_ms",
    "schema_version",
    "signal",
    "span_id",
    "stage",
    "trace_id",
    "upstream_code",
    "upstream_status",
];

/// Holds the values that passed, and how many did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanitizedContext {
    entries: BTreeMap<String, String>,
    dropped: u32,
}

impl SanitizedContext {
    /// Gives the values by key.
    #[must_use]
    pub fn entries(&self) -> &BTreeMap<String, String> {
        &self.entries
    }

    /// Counts the pairs whose key is not on the list.
    #[must_use]
    pub fn dropped(&self) -> u32 {
        self.dropped
    }
}

/// Keeps the pairs whose key is on the list, sanitized and at most 256 bytes long.
///
/// # Examples
///
/// ```
/// use leasehold_core::sanitize::sanitized_context;
///
/// let context = sanitized_context([("stage", "fetch"), ("prompt", "Dear model …")]);
/// assert_eq!(context.entries().len(), 1);
/// assert_eq!(context.dropped(), 1);
/// ```
#[must_use]
pub fn sanitized_context<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> SanitizedContext {
    let mut context = SanitizedContext::default();
    let mut sanitizer = Sanitizer::default();
    for (key, value) in pairs {
        if CONTEXT_KEYS.contains(&key) {
            let value = context_value(key, value, &mut sanitizer);
            context.entries.insert(key.to_owned(), value);
        } else {
            context.dropped = context.dropped.saturating_add(1);
        }
    }
    context
}

/// Makes a value fit to be kept under a key that is on the list.
pub(crate) fn context_value(key: &str, value: &str, sanitizer: &mut Sanitizer) -> String {
    let clean = sanitizer.clean(value, VALUE_BYTES_MAX);
    if key.ends_with("_hash") { clean.chars().take(HASH_CHARS_MAX).collect() } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: DL-1, DL-2
    #[test]
    fn a_context_holds_listed_keys_and_bounded_values_only() {
        let hash = "9fceb02d0ae598e95dc970b74767f19372d61af8";
        let long = "x ".repeat(1_000);
        let context = sanitized_context([
            ("stage", "llm"),
            ("payload_hash", hash),
            ("request_id", "req-1 password=hunter2\0"),
            ("upstream_code", &long),
            ("prompt", "You are"),
            ("Stage", "llm"),
            ("", ""),
        ]);
        assert_eq!(context.dropped(), 3);
        assert_eq!(context.entries().len(), 4);
        assert_eq!(context.entries()["payload_hash"], "9fceb02d0ae598e9");
        assert_eq!(context.entries()["request_id"], "req-1 password=[redacted:secret]");
        assert!(context.entries()["upstream_code"].len() <= 256);
        assert!(CONTEXT_KEYS.is_sorted());
        assert_eq!(sanitized_context([]), SanitizedContext::default());
    }
}
