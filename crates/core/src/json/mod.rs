//! JSON text that is kept byte for byte.
//!
//! Owns the one validator which every payload, result and checkpoint passes, and the canonical
//! form that request hashes are made of. Refuses to know what a document means: schemas belong
//! to callers, and nothing here ever rewrites a document that it accepted.

mod canonical;
mod escape;
mod lexer;
mod reader;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::canonical::{canonical_text, write_string};
pub(crate) use self::escape::{CUT_MARK, cut};
pub use self::escape::{escape_bytes, escape_text};
use self::reader::Reader;
use crate::{Error, ErrorKind, Result};

/// The deepest nesting any limit can allow, so that typed reading never exhausts the stack.
const DEPTH_CEILING: usize = 128;
const BYTES_DEFAULT: usize = 1024 * 1024;
const OPERATION: &str = "parse json";

/// Bounds the size and the nesting of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLimits {
    /// The largest accepted length in bytes; exactly this many pass.
    pub bytes_max: usize,
    /// The deepest accepted nesting of arrays and objects; a value above 128 counts as 128.
    pub depth_max: usize,
}

impl Default for JsonLimits {
    /// Allows 1 MiB and 128 levels.
    fn default() -> Self {
        Self { bytes_max: BYTES_DEFAULT, depth_max: DEPTH_CEILING }
    }
}

/// Holds one valid JSON document exactly as it was written.
///
/// Valid means strict RFC 8259 in UTF-8 and, beyond it, no member name twice in one object, no
/// lone surrogate escape, and the size and depth of [`JsonLimits`]. Equality is equality of text.
///
/// # Examples
///
/// ```
/// use leasehold_core::Json;
///
/// let json = Json::parse(r#"{ "size": 1.50 }"#)?;
/// assert_eq!(json.as_str(), r#"{ "size": 1.50 }"#);
/// assert!(Json::parse(r#"{"a": 1, "\u0061": 2}"#).is_err());
/// # Ok::<(), leasehold_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Json {
    text: Arc<str>,
}

impl Json {
    /// Takes a document under the default limits.
    ///
    /// # Errors
    ///
    /// `Invalid` with the byte offset, what was found there and the rule it breaks.
    pub fn parse(text: impl AsRef<str>) -> Result<Self> {
        Self::parse_with(text, &JsonLimits::default())
    }

    /// Takes a document under the given limits.
    ///
    /// # Errors
    ///
    /// `Invalid` with the byte offset, what was found there and the rule it breaks.
    pub fn parse_with(text: impl AsRef<str>, limits: &JsonLimits) -> Result<Self> {
        let text = text.as_ref();
        validate(text, limits)?;
        Ok(Self { text: Arc::from(text) })
    }

    /// Takes a document from bytes under the default limits.
    ///
    /// # Errors
    ///
    /// `Invalid` as for [`Json::parse`], and when the bytes are not UTF-8.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self> {
        let limits = JsonLimits::default();
        if bytes.len() > limits.bytes_max {
            return Err(oversize(bytes.len(), limits.bytes_max));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| refusal(error.valid_up_to(), "a byte that is not UTF-8", "utf8"))?;
        Self::parse(text)
    }

    /// Writes a value as a document.
    ///
    /// # Errors
    ///
    /// `Invalid` when serde cannot write the value (a map key that is no string, say), or when
    /// what it wrote breaks a rule: a flattened struct can repeat a name.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self> {
        let text = serde_json::to_string(value).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                "write json",
                format!("the value has no JSON form: {error}"),
            )
        })?;
        Self::parse(text)
    }

    /// Gives the document `null`.
    #[must_use]
    pub fn null() -> Self {
        Self { text: Arc::from("null") }
    }

    /// Wraps text that this crate itself wrote.
    pub(crate) fn written(text: String) -> Self {
        debug_assert!(validate(&text, &JsonLimits::default()).is_ok(), "wrote bad JSON");
        Self { text: Arc::from(text) }
    }

    /// Shows the text, byte for byte as it came in.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Counts the bytes of the text.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no JSON document is empty")]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Reads the document into a type.
    ///
    /// # Errors
    ///
    /// `Invalid` naming what serde missed, and where.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        let mut source = serde_json::Deserializer::from_str(&self.text);
        source.disable_recursion_limit(); // the depth was bounded when the text came in
        T::deserialize(&mut source).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                "read json",
                format!("the document does not fit: {error}"),
            )
        })
    }
}

impl fmt::Debug for Json {
    /// Shows the length and a short prefix only, for payloads do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix: String = self.text.chars().take(16).collect();
        let more = if prefix.len() < self.text.len() { "…" } else { "" };
        write!(f, "Json({} bytes: {prefix}{more})", self.text.len())
    }
}

fn validate(text: &str, limits: &JsonLimits) -> Result<()> {
    if text.len() > limits.bytes_max {
        return Err(oversize(text.len(), limits.bytes_max));
    }
    let mut reader = Reader::new(text, limits.depth_max.min(DEPTH_CEILING));
    while reader.next_token()?.is_some() {}
    Ok(())
}

fn oversize(bytes: usize, bytes_max: usize) -> Error {
    refusal(bytes_max, &format!("{bytes} bytes where {bytes_max} are allowed"), "size")
}

/// Words every refusal alike: offset, finding, rule.
fn refusal(offset: usize, found: &str, rule: &str) -> Error {
    Error::new(ErrorKind::Invalid, OPERATION, format!("at byte {offset}: {found} (rule: {rule})"))
}
