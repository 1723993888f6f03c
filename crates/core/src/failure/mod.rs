//! What went wrong, in a form that may be stored and shown.
//!
//! Owns the classes, the codes and the failure record of attempts and dead letters. Every text
//! that enters it passes the sanitizer; there is no other way in. Refuses to decide when to try
//! again; the retry policy and the budget do.

mod class;
mod code;
mod http;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use self::class::FailureClass;
pub use self::code::FailureCode;
pub use self::http::retry_after;
use crate::sanitize::{CONTEXT_KEYS, Sanitizer, context_value};

/// The longest kept message, in bytes.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// The longest kept stack, in bytes.
const STACK_BYTES_MAX: usize = 32 * 1024;

/// Says what ended an attempt: code, class, message, stack and context.
///
/// Message, stack and context are sanitized as they come in: control characters become visible,
/// secrets and addresses become `[redacted:…]`, over-long texts are cut, and context keys off the
/// allow-list are dropped and counted.
///
/// # Examples
///
/// ```
/// use leasehold_core::{Failure, FailureCode};
///
/// let failure = Failure::new(FailureCode::NetworkTimeout, "no answer; password=hunter2-hunter2")
///     .with_context("stage", "fetch");
/// assert_eq!(failure.message(), "no answer; password=[redacted:secret]");
/// assert!(failure.is_retryable());
/// assert_eq!(Failure::from_json(&failure.to_json())?, failure);
/// # Ok::<(), leasehold_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Failure {
    code: FailureCode,
    unlisted_code: Option<String>,
    class: FailureClass,
    message: String,
    stack: Option<String>,
    context: BTreeMap<String, String>,
    context_dropped: u32,
    retry_after: Option<Duration>,
    sanitizer: Sanitizer,
}

impl Failure {
    /// Makes a failure of the code's own class.
    #[must_use]
    pub fn new(code: FailureCode, message: impl AsRef<str>) -> Self {
        let mut sanitizer = Sanitizer::default();
        let message = sanitizer.clean(message.as_ref(), MESSAGE_BYTES_MAX);
        Self {
            code,
            unlisted_code: None,
            class: code.class(),
            message,
            stack: None,
            context: BTreeMap::new(),
            context_dropped: 0,
            retry_after: None,
            sanitizer,
        }
    }

    /// Sets the stack or chain of errors; a secret found in it is masked in the message too.
    #[must_use]
    pub fn with_stack(mut self, stack: impl AsRef<str>) -> Self {
        self.stack = Some(self.sanitizer.clean(stack.as_ref(), STACK_BYTES_MAX));
        self.message = self.sanitizer.clean(&self.message, MESSAGE_BYTES_MAX);
        self
    }

    /// Adds one value to the context; a key off the allow-list is dropped and counted.
    #[must_use]
    pub fn with_context(mut self, key: &str, value: impl fmt::Display) -> Self {
        if let Some(known) = CONTEXT_KEYS.iter().find(|known| **known == key) {
            let value = context_value(known, &value.to_string(), &mut self.sanitizer);
            self.context.insert((*known).to_owned(), value);
        } else {
            self.context_dropped = self.context_dropped.saturating_add(1);
        }
        self
    }

    /// Sets the wait that the other side asked for; kept in whole milliseconds, rounded up.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(Duration::from_millis(stored::whole_millis(wait)));
        self
    }

    /// Moves the failure into another class; the code stays.
    #[must_use]
    pub fn reclassify(mut self, class: FailureClass) -> Self {
        self.class = class;
        self
    }

    /// Gives the code; [`FailureCode::Unlisted`] for one that this version does not list.
    #[must_use]
    pub fn code(&self) -> FailureCode {
        self.code
    }

    /// Gives the code's id as stored, also when this version does not list it.
    #[must_use]
    pub fn code_id(&self) -> &str {
        self.unlisted_code.as_deref().unwrap_or(self.code.id())
    }

    /// Gives the class: the code's own unless reclassified.
    #[must_use]
    pub fn class(&self) -> FailureClass {
        self.class
    }

    /// Gives the sanitized message, at most 16 KiB.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Gives the sanitized stack, at most 32 KiB.
    #[must_use]
    pub fn stack(&self) -> Option<&str> {
        self.stack.as_deref()
    }

    /// Gives the sanitized context.
    #[must_use]
    pub fn context(&self) -> &BTreeMap<String, String> {
        &self.context
    }

    /// Counts the context values that were dropped.
    #[must_use]
    pub fn context_dropped(&self) -> u32 {
        self.context_dropped
    }

    /// Gives the wait that the other side asked for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Tells whether another attempt may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.class.is_retryable()
    }

    /// Tells whether an operator must hear of it: a bug or a bad configuration.
    #[must_use]
    pub fn raises_alert(&self) -> bool {
        self.class.raises_alert()
    }
}

/// Compares what is stored.
impl PartialEq for Failure {
    fn eq(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }
}

impl Eq for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code_id(), self.message)
    }
}

impl std::error::Error for Failure {}
