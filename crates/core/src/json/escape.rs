//! Foreign text made storable: error messages, stack traces, captured output.
//!
//! Owns visible escapes and cutting. Unlike the validator it never refuses, because a job must
//! always be able to settle. Refuses to know what is secret; the sanitizer does.

use std::fmt::Write as _;

/// What stands at the end of a text that was cut.
pub(crate) const CUT_MARK: &str = " [cut]";

/// Makes control characters visible and cuts to a length in bytes.
///
/// U+0000 and every other control character but line feed and tab become escapes such as
/// `\u0000`, which both engines can store. A longer text is cut at a character boundary and ends
/// in ` [cut]`; the result never exceeds `max_bytes`.
///
/// # Examples
///
/// ```
/// use leasehold_core::json::escape_text;
///
/// assert_eq!(escape_text("a\0b\n", 100), "a\\u0000b\n");
/// assert_eq!(escape_text("a long message", 12), "a long [cut]");
/// ```
#[must_use]
pub fn escape_text(text: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_bytes));
    push_visible(text, max_bytes, &mut out);
    cut(out, max_bytes)
}

/// Does the same for bytes; what is not UTF-8 becomes escapes such as `\xff`.
#[must_use]
pub fn escape_bytes(bytes: &[u8], max_bytes: usize) -> String {
    let mut out = String::with_capacity(bytes.len().min(max_bytes));
    for chunk in bytes.utf8_chunks() {
        push_visible(chunk.valid(), max_bytes, &mut out);
        for byte in chunk.invalid() {
            let _infallible = write!(out, "\\x{byte:02x}");
        }
        if out.len() > max_bytes {
            break;
        }
    }
    cut(out, max_bytes)
}

/// Stops soon after the limit, so that a huge input costs no more than its kept part.
fn push_visible(text: &str, max_bytes: usize, out: &mut String) {
    for c in text.chars() {
        if out.len() > max_bytes {
            return;
        }
        if c.is_control() && c != '\n' && c != '\t' {
            let _infallible = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
}

/// Cuts at a character boundary so that the mark fits too.
pub(crate) fn cut(mut text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let mark = if max_bytes >= CUT_MARK.len() { CUT_MARK } else { "" };
    text.truncate(text.floor_char_boundary(max_bytes - mark.len()));
    text.push_str(mark);
    text
}
