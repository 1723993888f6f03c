//! The canonical form of a document, for hashing and comparing.
//!
//! Owns the order of members, the escapes and the absence of blanks; numbers stay as written.
//! Refuses to store or to show the form: what is stored is always the caller's own text. It does
//! not pass through `serde_json::Value`, whose map changes with features chosen elsewhere.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::Json;
use super::reader::{Reader, Token};

#[derive(Debug)]
enum Node<'a> {
    Bare(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<Self>),
    Object(Vec<(Cow<'a, str>, Self)>),
}

/// A document with members sorted by decoded name, minimal escapes and no blanks.
pub(crate) fn canonical_text(json: &Json) -> Cow<'_, str> {
    quick(json.as_str()).unwrap_or_else(|| Cow::Owned(written(json)))
}

/// Writes it by way of a tree; right for every document.
pub(super) fn written(json: &Json) -> String {
    let mut out = String::with_capacity(json.len());
    if let Some(root) = tree(json.as_str()) {
        write_node(&root, &mut out);
    }
    debug_assert!(!out.is_empty(), "a Json holds a document that the validator accepted");
    out
}

/// The short way, in one pass and without a tree: for documents without escapes and blanks whose members
/// are in order, but for those of the outermost object. `None` for all others.
fn quick(text: &str) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    // For each open container the name last seen in it.
    let mut open: Vec<&str> = Vec::new();
    // The outermost object's members: the name, and where the member begins.
    let mut members: Vec<(&str, usize)> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => return None,
            b'{' | b'[' => open.push(""),
            b'}' | b']' => {
                open.pop();
            }
            b'"' => {
                let begin = at;
                let length =
                    bytes.get(at + 1..)?.iter().position(|it| matches!(it, b'"' | b'\\'))?;
                at += 1 + length;
                if bytes.get(at) == Some(&b'\\') {
                    return None;
                }
                if bytes.get(at + 1) == Some(&b':') {
                    let name = text.get(begin + 1..at)?;
                    if open.len() == 1 {
                        members.push((name, begin));
                    } else {
                        let last = open.last_mut()?;
                        // No name comes twice, so that only an object's first can be as the last.
                        if !last.is_empty() && *last > name {
                            return None;
                        }
                        *last = name;
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    Some(in_order(text, &members))
}

/// The outermost object with its members sorted.
fn in_order<'a>(text: &'a str, members: &[(&str, usize)]) -> Cow<'a, str> {
    if members.is_sorted() {
        return Cow::Borrowed(text);
    }
    // A member ends before the comma or the brace that comes before the next one, or the end.
    let ends = members.iter().skip(1).map(|(_, next)| *next).chain([text.len()]);
    let mut spans: Vec<(&str, &str)> = members
        .iter()
        .zip(ends)
        .map(|((name, begin), end)| (*name, text.get(*begin..end - 1).unwrap_or_default()))
        .collect();
    spans.sort_unstable();
    let mut out = String::with_capacity(text.len());
    for (index, (_, span)) in spans.into_iter().enumerate() {
        out.push(if index == 0 { '{' } else { ',' });
        out.push_str(span);
    }
    out.push('}');
    Cow::Owned(out)
}

/// Builds the tree without recursion; members of each object come out sorted.
fn tree(text: &str) -> Option<Node<'_>> {
    let mut reader = Reader::new(text, usize::MAX);
    let mut open: Vec<(Option<Cow<'_, str>>, Node<'_>)> = Vec::new();
    let mut name = None;
    let mut root = None;
    while let Ok(Some(token)) = reader.next_token() {
        let (name, node) = match token {
            Token::Name(found) => {
                name = Some(found);
                continue;
            }
            Token::BeginObject => {
                open.push((name.take(), Node::Object(Vec::new())));
                continue;
            }
            Token::BeginArray => {
                open.push((name.take(), Node::Array(Vec::new())));
                continue;
            }
            Token::EndObject | Token::EndArray => match open.pop() {
                Some((name, node)) => (name, sorted(node)),
                None => continue,
            },
            Token::Text(text) => (name.take(), Node::Text(text)),
            Token::Bare(text) => (name.take(), Node::Bare(text)),
        };
        match (open.last_mut(), name) {
            (Some((_, Node::Array(items))), _) => items.push(node),
            (Some((_, Node::Object(members))), Some(name)) => members.push((name, node)),
            _ => root = Some(node),
        }
    }
    root
}

fn sorted(mut node: Node<'_>) -> Node<'_> {
    if let Node::Object(members) = &mut node {
        members.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    }
    node
}

/// Recurses at most as deep as the validator let the document nest.
fn write_node(node: &Node<'_>, out: &mut String) {
    match node {
        Node::Bare(text) => out.push_str(text),
        Node::Text(text) => write_string(text, out),
        Node::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_node(item, out);
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write_node(value, out);
            }
            out.push('}');
        }
    }
}

/// Writes a quoted string with the fewest escapes JSON allows.
pub(crate) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    if !text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => {
                let _infallible = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
