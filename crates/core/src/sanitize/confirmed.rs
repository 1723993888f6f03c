//! Secrets known from one place, looked for everywhere else.
//!
//! Owns which findings count as known and in which spellings they may return. Refuses to know
//! rules. Holds secrets in memory only as long as its text is being sanitized, and never shows
//! them.

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::json::write_string;

/// Shorter secrets would mask ordinary words and numbers.
const BYTES_MIN: usize = 8;
/// Longer findings are whole texts; to look for them elsewhere would only cost memory.
const BYTES_MAX: usize = 4096;
/// A secret of small letters alone may be a word, so it has to be longer.
const LETTERS_MIN: usize = 12;

/// The known secrets, in every spelling.
#[derive(Clone, Default)]
pub(super) struct Confirmed {
    spellings: BTreeSet<String>,
}

impl Confirmed {
    /// Takes a finding of a kind; only the part that is secret by itself counts.
    pub(super) fn add(&mut self, kind: &str, found: &str) {
        let secret = match kind {
            "userinfo" => found.split_once(':').map_or(found, |(_user, password)| password),
            "authorization" => found.split_whitespace().next_back().unwrap_or_default(),
            _ => found,
        };
        self.add_secret(secret);
        if let Some((_name, value)) = secret.rsplit_once(['=', ':']) {
            self.add_secret(value); // `password= password=…` was taken as one value
        }
        if let Some(decoded) = percent_decoded(secret) {
            self.add_secret(&decoded);
        }
        if let Ok(decoded) = serde_json::from_str::<String>(&format!("\"{secret}\"")) {
            self.add_secret(&decoded);
        }
    }

    fn add_secret(&mut self, secret: &str) {
        let is_word = secret.bytes().all(|byte| byte.is_ascii_lowercase());
        let bytes_min = if is_word { LETTERS_MIN } else { BYTES_MIN };
        if !(bytes_min..=BYTES_MAX).contains(&secret.len()) {
            return;
        }
        let mut json = String::new();
        write_string(secret, &mut json);
        let json = json.trim_matches('"').to_owned();
        let [plain, url_safe] = [b"+/", b"-_"].map(|last| base64(secret.as_bytes(), last));
        let percent = percent_encoded(secret);
        let small = percent.to_ascii_lowercase();
        self.spellings.extend([secret.to_owned(), json, plain, url_safe, percent]);
        if secret.to_ascii_lowercase() == secret {
            self.spellings.insert(small);
        }
    }

    /// Finds every place of every spelling; `None` if there are too many to look for.
    pub(super) fn places(&self, text: &str) -> Option<Vec<Range<usize>>> {
        if self.spellings.is_empty() {
            return Some(Vec::new());
        }
        let machine = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA)) // a DFA takes quadratic time to build
            .build(&self.spellings)
            .ok()?;
        Some(machine.find_iter(text).map(|found| found.range()).collect())
    }
}

impl fmt::Debug for Confirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Confirmed({} spellings)", self.spellings.len())
    }
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes `%XX`; `None` when there is nothing to decode, or no text comes of it.
fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut out = parts.next()?.as_bytes().to_vec();
    let before = out.len();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        out.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(out).ok().filter(|decoded| decoded.len() > before || text.len() > before)
}

/// Encodes without padding; `last` are the two characters in which the alphabets differ.
fn base64(bytes: &[u8], last: &[u8; 2]) -> String {
    const FIRST: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let digit = |index: u32| {
        let index = index as usize & 63;
        let byte = FIRST.get(index).or_else(|| last.get(index.wrapping_sub(62)));
        char::from(*byte.unwrap_or(&b'='))
    };
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        out.extend(
            [18, 12, 6, 0].into_iter().take(chunk.len() + 1).map(|shift| digit(word >> shift)),
        );
    }
    out
}
