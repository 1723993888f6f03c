//! Owns one sealed secret: how it is made, opened, wrapped anew, and written down. Touches no store.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretSlice;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::context::{Binding, VERSION};
use super::error::VaultError;
use super::kek::{Dek, KekId, KeyWrap, open, seal};

/// A sealed secret as it is stored: a ciphertext under a data key of its own, and that key wrapped.
///
/// As JSON its members are `storage_creds_encrypted`, `storage_creds_dek_wrapped` (both base64),
/// `storage_creds_kek_id` and `storage_creds_encryption_version`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    #[serde(rename = "storage_creds_encrypted", with = "text")]
    encrypted: Vec<u8>,
    #[serde(rename = "storage_creds_dek_wrapped", with = "text")]
    dek_wrapped: Vec<u8>,
    #[serde(rename = "storage_creds_kek_id")]
    kek_id: String,
    #[serde(rename = "storage_creds_encryption_version")]
    encryption_version: i64,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed")
            .field("kek_id", &self.kek_id)
            .field("encryption_version", &self.encryption_version)
            .finish_non_exhaustive()
    }
}

impl Sealed {
    /// Seals a secret under a fresh data key, wrapped by the active key.
    ///
    /// # Errors
    /// Those of the key service; `Malformed` for a plaintext over 64 GiB.
    pub async fn seal(
        keys: &dyn KeyWrap,
        binding: &Binding,
        plain: &[u8],
    ) -> Result<Self, VaultError> {
        let (kek, dek) = (keys.active(), Dek::fresh()?);
        Ok(Self {
            encrypted: seal(dek.expose(), &binding.of_blob(), plain)?,
            dek_wrapped: keys.wrap(&kek, &dek, &binding.of_wrap(&kek)).await?,
            kek_id: kek.as_str().to_owned(),
            encryption_version: VERSION,
        })
    }

    /// Opens a secret under the binding that it was sealed with; wiped when dropped.
    ///
    /// # Errors
    /// `UnknownKey`, `Authentication`, `Malformed`; those of the key service.
    pub async fn open(
        &self,
        keys: &dyn KeyWrap,
        binding: &Binding,
    ) -> Result<SecretSlice<u8>, VaultError> {
        let dek = self.dek(keys, binding).await?;
        let plain = open(dek.expose(), &binding.of_blob(), &self.encrypted)?;
        Ok(SecretSlice::from(plain.to_vec()))
    }

    /// Wraps the data key by the active key, once it was unwrapped and found genuine. The secret itself
    /// is not opened.
    ///
    /// # Errors
    /// As [`Sealed::open`].
    pub async fn rewrap(&self, keys: &dyn KeyWrap, binding: &Binding) -> Result<Self, VaultError> {
        let (kek, dek) = (keys.active(), self.dek(keys, binding).await?);
        let dek_wrapped = keys.wrap(&kek, &dek, &binding.of_wrap(&kek)).await?;
        Ok(Self { dek_wrapped, kek_id: kek.as_str().to_owned(), ..self.clone() })
    }

    /// Which key wraps it.
    ///
    /// # Errors
    /// `Malformed` for a text that is no id.
    pub fn kek(&self) -> Result<KekId, VaultError> {
        KekId::new(self.kek_id.as_str()).map_err(|_| VaultError::Malformed("key id"))
    }

    async fn dek(&self, keys: &dyn KeyWrap, binding: &Binding) -> Result<Dek, VaultError> {
        if self.encryption_version != VERSION {
            return Err(VaultError::Malformed("encryption version"));
        }
        let kek = self.kek()?;
        keys.unwrap(&kek, &self.dek_wrapped, &binding.of_wrap(&kek)).await
    }
}

/// Bytes as base64 text.
mod text {
    use super::*;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(|_| serde::de::Error::custom("not base64"))
    }
}
