//! Owns the two forms of a signed webhook: names of headers, what is signed, how a signature is
//! written. Knows no secrets and no time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leasehold_core::{Error, Result};

/// The longest prefix of header names, in bytes.
const PREFIX_BYTES_MAX: usize = 40;

/// How requests are signed.
///
/// | | `Euterpe` | `Standard` |
/// |---|---|---|
/// | Signed | timestamp `.` nonce `.` body | id `.` timestamp `.` body |
/// | Headers | `x-euterpe-signature`, `-timestamp`, `-nonce`, `-event-id` | `webhook-signature`, `-timestamp`, `-id` |
/// | Signature | lower-case hex, several by commas | `v1,` and base64, several by blanks |
///
/// The first does not sign the event's id, as its contract has it: where that matters, compare the
/// header with an id within the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    pub(super) form: Form,
    prefix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Euterpe,
    Standard,
}

impl Default for Scheme {
    fn default() -> Self {
        Self::euterpe()
    }
}

impl Scheme {
    /// The form with a nonce, with headers that begin with `x-euterpe`.
    #[must_use]
    pub fn euterpe() -> Self {
        Self { form: Form::Euterpe, prefix: "x-euterpe".to_owned() }
    }

    /// The form of Standard Webhooks 1.0, symmetric signatures (`v1`).
    #[must_use]
    pub fn standard() -> Self {
        Self { form: Form::Standard, prefix: "webhook".to_owned() }
    }

    /// Sets how the names of the headers begin, without the last dash.
    ///
    /// # Errors
    /// `Invalid` unless 1 to 40 lower-case letters, digits and dashes.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Result<Self> {
        let prefix = prefix.into();
        let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        if prefix.is_empty() || prefix.len() > PREFIX_BYTES_MAX || !prefix.bytes().all(fits) {
            let why = "a header prefix has 1 to 40 lower-case letters, digits and dashes";
            return Err(Error::invalid("webhook scheme", why));
        }
        self.prefix = prefix;
        Ok(self)
    }

    pub(super) fn signature_header(&self) -> String {
        format!("{}-signature", self.prefix)
    }

    pub(super) fn timestamp_header(&self) -> String {
        format!("{}-timestamp", self.prefix)
    }

    /// Only the form with a nonce has one.
    pub(super) fn nonce_header(&self) -> Option<String> {
        (self.form == Form::Euterpe).then(|| format!("{}-nonce", self.prefix))
    }

    pub(super) fn id_header(&self) -> String {
        match self.form {
            Form::Euterpe => format!("{}-event-id", self.prefix),
            Form::Standard => format!("{}-id", self.prefix),
        }
    }

    /// What is signed, in parts.
    pub(super) fn signed<'a>(&self, told: &Told<'a>, body: &'a [u8]) -> [&'a [u8]; 5] {
        let (first, second) = match self.form {
            Form::Euterpe => (told.timestamp, told.nonce),
            Form::Standard => (told.id, told.timestamp),
        };
        [first.as_bytes(), b".", second.as_bytes(), b".", body]
    }

    /// Signatures as the header has them.
    pub(super) fn write(&self, signatures: impl Iterator<Item = Vec<u8>>) -> String {
        let (one, between): (fn(&[u8]) -> String, _) = match self.form {
            Form::Euterpe => (hex, ","),
            Form::Standard => (|bytes| format!("v1,{}", STANDARD.encode(bytes)), " "),
        };
        signatures.map(|bytes| one(&bytes)).collect::<Vec<_>>().join(between)
    }

    /// Cuts a header's value into signatures; each may be of a kind that nobody here knows.
    pub(super) fn cut<'a>(&self, value: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let form = self.form;
        let pieces = value.split(move |c: char| match form {
            Form::Euterpe => c == ',',
            Form::Standard => c == ' ' || c == '\t',
        });
        pieces.map(|piece| piece.trim_matches([' ', '\t'])).filter(|piece| !piece.is_empty())
    }

    /// The bytes of one signature; `None` for one of another kind, or none at all.
    pub(super) fn read(&self, piece: &str) -> Option<Vec<u8>> {
        match self.form {
            Form::Euterpe => unhex(piece),
            Form::Standard => STANDARD.decode(piece.strip_prefix("v1,")?).ok(),
        }
    }
}

/// What the headers tell besides the signatures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) id: &'a str,
    pub(super) timestamp: &'a str,
    /// Empty in a form without one.
    pub(super) nonce: &'a str,
}

/// Bytes as lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Only lower-case digits, two a byte.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}
