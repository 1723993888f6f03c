//! The only way of foreign text into records that outlive a job.
//!
//! Owns the masking of secrets and addresses, by position, with the structure around them kept.
//! Deterministic and linear in its input. Refuses to judge by entropy alone, and refuses to tell
//! what it masked: a finding has a kind and a place, never a value.

mod checks;
mod confirmed;
mod context;
mod rules;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::ops::Range;

use regex::Regex;

use self::confirmed::Confirmed;
pub(crate) use self::context::{CONTEXT_KEYS, context_value};
pub use self::context::{SanitizedContext, sanitized_context};
use self::rules::{COMPILED, EMAIL, REPEATED, UNJUDGED};
use crate::json::{CUT_MARK, cut, escape_text};

const MARK_OPEN: &str = "[redacted:";
/// How much more than it keeps the sanitizer reads of a text that will be cut.
const WINDOW_FACTOR: usize = 4;
/// The longest piece that is given up where the window ends, for it may be half a secret.
const TORN_BYTES_MAX: usize = 4096;
/// How often a text is looked at; all but hostile ones are clean after the first.
const LOOKS_MAX: usize = 4;
/// The longest value that is searched for further names; bounds the work on hostile texts.
const SECOND_LOOK_BYTES_MAX: usize = 256;

/// Tells what kind of secret stands where, but not what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    kind: &'static str,
    span: Range<usize>,
}

impl Redaction {
    /// Names the kind, as it stands in `[redacted:kind]`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Gives the place in the text, in bytes.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

/// Replaces secrets and addresses by `[redacted:kind]`.
///
/// Known are API keys by their prefixes, bearer and basic credentials, JWTs, values of names such
/// as `password` and `api_key`, PEM blocks (also cut ones), credentials in addresses, cookies,
/// SMTP log-ins and e-mail addresses. A secret known from one place is masked in all others, also
/// percent-encoded, base64-encoded or JSON-escaped.
///
/// # Examples
///
/// ```
/// use leasehold_core::sanitize::sanitize;
///
/// assert_eq!(
///     sanitize("GET https://joe:pa55word@db.example/x failed for joe@example.com"),
///     "GET https://[redacted:userinfo]@db.example/x failed for [redacted:email]",
/// );
/// ```
#[must_use]
pub fn sanitize(text: &str) -> String {
    mask(text, &mut Confirmed::default())
}

/// Replaces secrets and addresses, and besides every place of what the caller knows to be secret, also
/// percent-encoded, base64-encoded or JSON-escaped.
///
/// Values of less than 8 bytes, and words of small letters of less than 12, are not looked for.
///
/// ```
/// use leasehold_core::sanitize::sanitize_knowing;
///
/// assert_eq!(
///     sanitize_knowing("sent Zq77-8f3a91 to them", ["Zq77-8f3a91"]),
///     "sent [redacted:repeated] to them",
/// );
/// ```
#[must_use]
pub fn sanitize_knowing<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> String {
    let mut known = Confirmed::default();
    secrets.into_iter().for_each(|secret| known.add("secret", secret));
    mask(text, &mut known)
}

/// Lists the secrets and addresses in a text, in order and without overlap.
#[must_use]
pub fn redactions(text: &str) -> Vec<Redaction> {
    find(text, &mut Confirmed::default())
}

/// Sanitizes several texts that belong together, so that a secret of one is masked in all later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sanitizer {
    confirmed: Confirmed,
}

impl Sanitizer {
    /// Masks, makes control characters visible and cuts to a length in bytes.
    ///
    /// Of a huge text only a window is read, whose last, perhaps torn, word is given up.
    pub(crate) fn clean(&mut self, text: &str, bytes_max: usize) -> String {
        let window = window(text, bytes_max.saturating_mul(WINDOW_FACTOR));
        let mut clean = escape_text(&mask(window, &mut self.confirmed), usize::MAX);
        if window.len() < text.len() {
            clean.push_str(CUT_MARK);
        }
        if clean.len() > bytes_max {
            clean.truncate(before_torn_mark(&clean, bytes_max.saturating_sub(CUT_MARK.len())));
            clean.push_str(CUT_MARK);
        }
        cut(clean, bytes_max)
    }
}

fn window(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max);
    let head = text.get(..end).unwrap_or_default();
    let torn = head.bytes().rev().take(TORN_BYTES_MAX).take_while(|b| !b.is_ascii_whitespace());
    let end = head.floor_char_boundary(end - torn.count());
    head.get(..end).unwrap_or_default()
}

/// Moves a cut that would split a `[redacted:…]` to before it.
fn before_torn_mark(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let Some(open) = text.get(..at).and_then(|head| head.rfind('[')) else { return at };
    let is_torn = text.get(open..).and_then(mark_len).is_some_and(|length| open + length > at);
    if is_torn { open } else { at }
}

/// Masks, and looks at what it masked again, for a mark can bring names and values together.
fn mask(text: &str, confirmed: &mut Confirmed) -> String {
    let mut clean = text.to_owned();
    for _ in 0..LOOKS_MAX {
        let found = find(&clean, confirmed);
        if found.is_empty() {
            break;
        }
        clean = masked(&clean, &found);
    }
    clean
}

/// Finds all secrets, merged and in order.
fn find(text: &str, confirmed: &mut Confirmed) -> Vec<Redaction> {
    let Some(compiled) = COMPILED.as_ref() else { return everything(text) };
    let marks = marks(text);
    let mut found = Vec::new();
    for (rule, regex) in compiled {
        let mut at = 0;
        while let Some((next, span)) = next_span(text, regex, at, &marks) {
            at = next;
            let span = secret_span(text, rule.kind, span);
            let secret = text.get(span.clone()).unwrap_or_default();
            if secret.is_empty() || is_masked_already(secret) || !(rule.holds)(secret) {
                continue;
            }
            if rule.confirms {
                confirmed.add(rule.kind, secret);
            }
            found.push(Redaction { kind: rule.kind, span });
        }
    }
    let Some(places) = confirmed.places(text) else { return everything(text) };
    let places = places.into_iter().filter(|place| !touches(&marks, place));
    found.extend(places.map(|span| Redaction { kind: REPEATED, span }));
    merged(found)
}

/// Finds the next match and where to go on; an empty span for one that begins inside a mark.
///
/// A short value is looked at again, for it may hold the next name: `password= password=…`.
fn next_span(
    text: &str,
    regex: &Regex,
    at: usize,
    marks: &[Range<usize>],
) -> Option<(usize, Range<usize>)> {
    let captures = regex.captures_at(text, at)?;
    let whole = captures.get(0)?.range();
    let span =
        captures.iter().skip(1).flatten().next().map_or(whole.clone(), |group| group.range());
    let is_looked_at_again = span.start > whole.start && span.len() <= SECOND_LOOK_BYTES_MAX;
    let next = if is_looked_at_again { span.start } else { whole.end };
    Some((next, if begins_inside(marks, whole.start) { span.start..span.start } else { span }))
}

fn everything(text: &str) -> Vec<Redaction> {
    vec![Redaction { kind: UNJUDGED, span: 0..text.len() }]
}

/// Leaves the punctuation of the sentence outside an unquoted value.
fn secret_span(text: &str, kind: &str, span: Range<usize>) -> Range<usize> {
    let before = text.get(..span.start).and_then(|head| head.bytes().next_back());
    let found = text.get(span.clone()).unwrap_or_default();
    if kind != "secret" || matches!(before, Some(b'"' | b'\'' | b'`')) || is_masked_already(found) {
        return span;
    }
    let kept = found.trim_end_matches([',', '.', ':', ')', ']', '}', '>', '\\']).len();
    span.start..span.start + kept
}

/// Joins findings that overlap; the first names the whole.
///
/// An address that begins inside another finding adds nothing: in `://user:word@host` the host
/// is to stay.
fn merged(mut found: Vec<Redaction>) -> Vec<Redaction> {
    found.sort_by_key(|Redaction { kind, span }| (span.start, *kind == EMAIL, Reverse(span.end)));
    let mut out: Vec<Redaction> = Vec::with_capacity(found.len());
    for redaction in found {
        match out.last_mut() {
            Some(last) if redaction.span.start < last.span.end => {
                if redaction.kind != EMAIL {
                    last.span.end = last.span.end.max(redaction.span.end);
                }
            }
            _ => out.push(redaction),
        }
    }
    out
}

fn masked(text: &str, redactions: &[Redaction]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for Redaction { kind, span } in redactions {
        out.push_str(text.get(at..span.start).unwrap_or_default());
        out.push_str(MARK_OPEN);
        out.push_str(kind);
        out.push(']');
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Measures the `[redacted:kind]` that a text begins with.
fn mark_len(text: &str) -> Option<usize> {
    let kind = text.strip_prefix(MARK_OPEN)?;
    let length = kind.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'_').count();
    (kind.as_bytes().get(length) == Some(&b']')).then_some(MARK_OPEN.len() + length + 1)
}

fn marks(text: &str) -> Vec<Range<usize>> {
    let open = text.match_indices(MARK_OPEN);
    open.filter_map(|(at, _)| Some(at..at + mark_len(text.get(at..)?)?)).collect()
}

/// Tells whether a mark goes on behind a byte; its last byte counts as the edge of a word.
fn begins_inside(marks: &[Range<usize>], at: usize) -> bool {
    touches(marks, &(at..at + 1)) && touches(marks, &(at + 1..at + 2))
}

fn touches(marks: &[Range<usize>], span: &Range<usize>) -> bool {
    let next = marks.partition_point(|mark| mark.end <= span.start);
    marks.get(next).is_some_and(|mark| mark.start < span.end)
}

/// Tells that nothing is left to mask: marks and punctuation only.
fn is_masked_already(found: &str) -> bool {
    let mut rest = found;
    let mut any = false;
    loop {
        rest = rest.trim_start_matches(|c: char| {
            c.is_whitespace() || c.is_ascii_punctuation() && c != '['
        });
        let Some(length) = mark_len(rest).or(rest.starts_with("[cut]").then_some(5)) else { break };
        rest = rest.get(length..).unwrap_or_default();
        any = true;
    }
    any && rest.trim_start_matches('[').is_empty()
}
