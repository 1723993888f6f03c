//! Owns the secrets that webhooks are signed with: how one is read, that none is shown, and which
//! count at once while one is replaced by the next.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use leasehold_core::{Error, Result};
use secrecy::{ExposeSecret, SecretSlice};
use sha2::Sha256;

/// The shortest and the longest secret, in bytes.
const BYTES: std::ops::RangeInclusive<usize> = 16..=256;
/// The shortest and the longest secret that Standard Webhooks allows, in bytes.
const STANDARD_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How many keys may count at once.
const KEYS_MAX: usize = 4;
const PREFIX: &str = "whsec_";

/// One secret; it is wiped when dropped and never shown.
#[derive(Clone)]
pub struct Key(SecretSlice<u8>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key([redacted])")
    }
}

impl Key {
    /// Takes the bytes of a secret.
    ///
    /// # Errors
    /// `Invalid` outside 16 to 256 bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let secret = SecretSlice::from(bytes.into());
        let has = secret.expose_secret().len();
        if BYTES.contains(&has) {
            return Ok(Self(secret));
        }
        let why = format!("the secret has {has} bytes; 16 to 256 are allowed");
        Err(Error::invalid("webhook key", why))
    }

    /// Reads the Standard Webhooks form: `whsec_`, then 24 to 64 bytes in base64.
    ///
    /// # Errors
    /// `Invalid` for anything else; the error does not show the text.
    pub fn standard(text: &str) -> Result<Self> {
        let refuse = |why: &str| Error::invalid("webhook key", why);
        let Some(encoded) = text.trim().strip_prefix(PREFIX) else {
            return Err(refuse("the secret does not begin with whsec_"));
        };
        let bytes = STANDARD.decode(encoded).map_err(|_| refuse("the secret is not base64"))?;
        let secret = SecretSlice::from(bytes);
        if STANDARD_BYTES.contains(&secret.expose_secret().len()) {
            return Ok(Self(secret));
        }
        Err(refuse("the secret must have 24 to 64 bytes"))
    }

    /// Begins a signature.
    fn mac(&self) -> Result<Hmac<Sha256>> {
        Hmac::new_from_slice(self.0.expose_secret())
            .map_err(|error| Error::invalid("webhook key", "no HMAC key").with_source(error))
    }
}

/// The secrets that count at once: one, or during a rotation the new and the old, at most 4.
///
/// The sender signs with all of them; the receiver takes a signature of any.
#[derive(Clone, Debug)]
pub struct Keys(Vec<Key>);

impl From<Key> for Keys {
    fn from(key: Key) -> Self {
        Self(vec![key])
    }
}

impl Keys {
    /// Adds a secret.
    ///
    /// # Errors
    /// `Invalid` for a fifth.
    pub fn and(mut self, key: Key) -> Result<Self> {
        if self.0.len() == KEYS_MAX {
            return Err(Error::invalid("webhook keys", "at most 4 secrets may count at once"));
        }
        self.0.push(key);
        Ok(self)
    }

    /// The signatures of parts that follow each other, one a key, in their order.
    pub(super) fn macs(&self, parts: &[&[u8]]) -> Result<Vec<Hmac<Sha256>>> {
        let signed = |key: &Key| {
            let mut mac = key.mac()?;
            parts.iter().for_each(|part| mac.update(part));
            Ok(mac)
        };
        self.0.iter().map(signed).collect()
    }
}
