//! The stored form of a failure.
//!
//! Owns the member names and their order, so that equal failures are equal text on every engine.
//! Refuses to fail on what a newer version wrote: unknown members, codes and classes are borne.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;

use super::{Failure, FailureClass, FailureCode};
use crate::json::write_string;
use crate::{Json, Result};

#[derive(Deserialize)]
struct Stored {
    code: String,
    #[serde(default)]
    class: String,
    #[serde(default)]
    message: String,
    stack: Option<String>,
    #[serde(default)]
    context: BTreeMap<String, String>,
    #[serde(default)]
    context_dropped: u32,
    retry_after_ms: Option<u64>,
}

impl Failure {
    /// Writes the stored form: equal failures give equal text.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut out = String::from("{\"code\":");
        write_string(self.code_id(), &mut out);
        out.push_str(",\"class\":");
        write_string(self.class.id(), &mut out);
        out.push_str(",\"message\":");
        write_string(&self.message, &mut out);
        if let Some(stack) = &self.stack {
            out.push_str(",\"stack\":");
            write_string(stack, &mut out);
        }
        out.push_str(",\"context\":{");
        for (index, (key, value)) in self.context.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_string(key, &mut out);
            out.push(':');
            write_string(value, &mut out);
        }
        out.push('}');
        if self.context_dropped > 0 {
            let _infallible = write!(out, ",\"context_dropped\":{}", self.context_dropped);
        }
        if let Some(wait) = self.retry_after {
            let _infallible = write!(out, ",\"retry_after_ms\":{}", whole_millis(wait));
        }
        out.push('}');
        Json::written(out)
    }

    /// Reads the stored form, also one that a newer version wrote.
    ///
    /// A code that is not listed here is kept by name, with its class; a class that is not listed
    /// becomes the code's own. Texts pass the sanitizer again.
    ///
    /// # Errors
    ///
    /// `Invalid` when the document is no object with a code.
    pub fn from_json(json: &Json) -> Result<Self> {
        let stored: Stored = json.read()?;
        let code = FailureCode::parse(&stored.code).unwrap_or(FailureCode::Unlisted);
        let mut failure = Self::new(code, stored.message);
        if code == FailureCode::Unlisted && is_code(&stored.code) {
            failure.unlisted_code = Some(stored.code);
        }
        if let Some(class) = FailureClass::parse(&stored.class) {
            failure = failure.reclassify(class);
        }
        if let Some(stack) = stored.stack {
            failure = failure.with_stack(stack);
        }
        for (key, value) in &stored.context {
            failure = failure.with_context(key, value);
        }
        failure.context_dropped = failure.context_dropped.saturating_add(stored.context_dropped);
        failure.retry_after = stored.retry_after_ms.map(Duration::from_millis);
        Ok(failure)
    }
}

/// Rounds up, so that nobody asks again too early.
pub(super) fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn is_code(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=64).contains(&id.len()) && id.bytes().all(fits) && id != FailureCode::Unlisted.id()
}
