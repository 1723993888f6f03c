//! Owns the keys that wrap data keys: their ids, the ring that holds several while one is replaced,
//! and the seam for a key service that never lets its keys out.

use std::collections::BTreeMap;
use std::fmt;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use async_trait::async_trait;
use rand::TryRng;
use rand::rngs::SysRng;
use secrecy::{ExposeSecret, SecretSlice};
use zeroize::Zeroizing;

use super::error::VaultError;

/// The length of a key, in bytes.
pub(super) const KEY_BYTES: usize = 32;
/// The length of a nonce, in bytes.
const NONCE_BYTES: usize = 12;
/// The longest id, in bytes.
const ID_BYTES_MAX: usize = 64;

/// The id of a wrapping key, such as `2026-11`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KekId(String);

impl KekId {
    /// Checks and takes an id.
    ///
    /// # Errors
    /// `Source` unless 1 to 64 letters, digits, dashes, points and underscores.
    pub fn new(id: impl Into<String>) -> Result<Self, VaultError> {
        let id = id.into();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(fits) {
            return Ok(Self(id));
        }
        let why = "a key id has 1 to 64 letters, digits, dashes, points and underscores";
        Err(VaultError::Source(why.to_owned()))
    }

    /// Gives the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KekId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A data key; wiped when dropped, and never shown.
pub struct Dek(pub(super) Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for Dek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dek([redacted])")
    }
}

impl Dek {
    /// Takes the bytes that a key service unwrapped.
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Shows the bytes, for a key service to wrap.
    #[must_use]
    pub fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    pub(super) fn fresh() -> Result<Self, VaultError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        random(bytes.as_mut_slice())?;
        Ok(Self(bytes))
    }
}

fn random(bytes: &mut [u8]) -> Result<(), VaultError> {
    let failed = |error| VaultError::Source(format!("no random bytes: {error}"));
    SysRng.try_fill_bytes(bytes).map_err(failed)
}

/// Encrypts: a random nonce, then the ciphertext and its tag.
pub(super) fn seal(key: &[u8], aad: &[u8], plain: &[u8]) -> Result<Vec<u8>, VaultError> {
    let mut nonce = [0; NONCE_BYTES];
    random(&mut nonce)?;
    let payload = Payload { msg: plain, aad };
    let sealed = cipher(key)?.encrypt(&Nonce::from(nonce), payload);
    let sealed = sealed.map_err(|_| VaultError::Malformed("plaintext: too long"))?;
    Ok([&nonce[..], &sealed].concat())
}

/// Decrypts what [`seal`] made under the same key and binding.
pub(super) fn open(
    key: &[u8],
    aad: &[u8],
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let Some((nonce, sealed)) = sealed.split_first_chunk::<NONCE_BYTES>() else {
        return Err(VaultError::Malformed("ciphertext: too short"));
    };
    let payload = Payload { msg: sealed, aad };
    let opened = cipher(key)?.decrypt(&Nonce::from(*nonce), payload);
    opened.map(Zeroizing::new).map_err(|_| VaultError::Authentication)
}

fn cipher(key: &[u8]) -> Result<Aes256Gcm, VaultError> {
    Aes256Gcm::new_from_slice(key).map_err(|_| VaultError::Malformed("key: not 32 bytes"))
}

/// Wraps and unwraps data keys: a [`KeyRing`] of this process, or a key service.
#[async_trait]
pub trait KeyWrap: fmt::Debug + Send + Sync + 'static {
    /// The key that wraps what is sealed from now on.
    fn active(&self) -> KekId;

    /// Wraps a data key, bound to `aad`.
    ///
    /// # Errors
    /// `UnknownKey`; what the service says, as `Source`.
    async fn wrap(&self, kek: &KekId, dek: &Dek, aad: &[u8]) -> Result<Vec<u8>, VaultError>;

    /// Unwraps a data key under the same `aad`.
    ///
    /// # Errors
    /// `UnknownKey`, `Authentication`, `Malformed`; what the service says, as `Source`.
    async fn unwrap(&self, kek: &KekId, wrapped: &[u8], aad: &[u8]) -> Result<Dek, VaultError>;
}

/// Wrapping keys in this process's memory: one that seals, and others that still open.
#[derive(Clone)]
pub struct KeyRing {
    active: KekId,
    keys: BTreeMap<KekId, SecretSlice<u8>>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.keys.keys().map(KekId::as_str).collect();
        f.debug_struct("KeyRing").field("active", &self.active.0).field("ids", &ids).finish()
    }
}

impl KeyRing {
    /// Begins a ring with the key that seals.
    ///
    /// # Errors
    /// `Source` unless the key has 32 bytes.
    pub fn new(active: KekId, key: impl Into<Vec<u8>>) -> Result<Self, VaultError> {
        Self { active: active.clone(), keys: BTreeMap::new() }.and(active, key)
    }

    /// Adds a key that still opens; a key under an id that is there replaces it.
    ///
    /// # Errors
    /// `Source` unless the key has 32 bytes.
    pub fn and(mut self, id: KekId, key: impl Into<Vec<u8>>) -> Result<Self, VaultError> {
        let key = SecretSlice::from(key.into());
        if key.expose_secret().len() != KEY_BYTES {
            return Err(VaultError::Source(format!("key {id} has not 32 bytes")));
        }
        self.keys.insert(id, key);
        Ok(self)
    }

    fn key(&self, id: &KekId) -> Result<&[u8], VaultError> {
        let key = self.keys.get(id).ok_or_else(|| VaultError::UnknownKey(id.clone()))?;
        Ok(key.expose_secret())
    }
}

#[async_trait]
impl KeyWrap for KeyRing {
    fn active(&self) -> KekId {
        self.active.clone()
    }

    async fn wrap(&self, kek: &KekId, dek: &Dek, aad: &[u8]) -> Result<Vec<u8>, VaultError> {
        seal(self.key(kek)?, aad, dek.0.as_slice())
    }

    async fn unwrap(&self, kek: &KekId, wrapped: &[u8], aad: &[u8]) -> Result<Dek, VaultError> {
        let opened = open(self.key(kek)?, aad, wrapped)?;
        let bytes = opened.as_slice().try_into();
        bytes
            .map(|b: [u8; KEY_BYTES]| Dek::from_bytes(b))
            .map_err(|_| VaultError::Malformed("data key"))
    }
}
