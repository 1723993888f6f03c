//! The smallest parts of JSON: blanks, strings, numbers and the three words.
//!
//! Owns a cursor over the text and decodes what it passes. Refuses to know how the parts may
//! follow each other; that is the reader's.

use std::borrow::Cow;

use super::refusal;
use crate::{Error, Result};

/// A cursor that only moves forward.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    /// Steps over one byte if it is the wanted one.
    pub(super) fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.bump();
        }
    }

    /// Refuses what stands at the cursor.
    pub(super) fn unexpected(&self, wanted: &str) -> Error {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let found = match rest.chars().next() {
            None => "the end of the text".to_owned(),
            Some('\u{feff}') if self.at == 0 => return refusal(0, "a byte order mark", "no-bom"),
            Some(c) if c.is_control() => format!("U+{:04X}", u32::from(c)),
            Some(c) => format!("'{c}'"),
        };
        refusal(self.at, &format!("{found} where {wanted} is due"), "syntax")
    }

    /// Takes `true`, `false` or `null`.
    pub(super) fn word(&mut self, word: &'static str) -> Result<&'static str> {
        for wanted in word.bytes() {
            if !self.take(wanted) {
                return Err(self.unexpected(&format!("the rest of '{word}'")));
            }
        }
        Ok(word)
    }

    /// Takes a number and returns it as written.
    pub(super) fn number(&mut self) -> Result<&'a str> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        } else if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(refusal(self.at, "a digit after a leading zero", "number"));
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _signed = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    fn digits(&mut self) -> Result<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.unexpected("a digit"));
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.bump();
        }
        Ok(())
    }

    /// Takes a string, opening quote included, and decodes it.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>> {
        self.bump();
        let plain = self.plain_run();
        if self.take(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut decoded = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.bump();
                    return Ok(Cow::Owned(decoded));
                }
                Some(b'\\') => decoded.push(self.escape()?),
                Some(byte) => {
                    let found = format!("raw control character U+{byte:04X} in a string");
                    return Err(refusal(self.at, &found, "control-character"));
                }
                None => return Err(self.unexpected("a closing quote")),
            }
            decoded.push_str(self.plain_run());
        }
    }

    /// Passes everything that stands for itself inside a string.
    fn plain_run(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let ends = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
        let length = rest.as_bytes().iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn escape(&mut self) -> Result<char> {
        self.bump();
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.unexpected("an escape letter")),
        };
        self.bump();
        Ok(plain)
    }

    /// Takes `uXXXX`, and its low half when it is the high half of a pair.
    fn unicode_escape(&mut self) -> Result<char> {
        let start = self.at - 1;
        let first = self.hex4()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        if first < 0xDC00 && self.peek() == Some(b'\\') {
            self.bump();
            if self.peek() == Some(b'u') {
                let second = self.hex4()?;
                if (0xDC00..0xE000).contains(&second) {
                    let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                    return char::from_u32(code).ok_or_else(|| lone(start, first));
                }
            }
        }
        Err(lone(start, first))
    }

    fn hex4(&mut self) -> Result<u32> {
        self.bump();
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected("a hex digit"))?;
            self.bump();
        }
        Ok(code)
    }
}

fn lone(offset: usize, code: u32) -> Error {
    refusal(offset, &format!("lone surrogate escape \\u{code:04x}"), "surrogate")
}
