//! Owns stored secrets: each sealed under a data key of its own, which a replaceable key wraps, and
//! bound to the job, requester and version that it is for. Refuses to know what a secret opens.
//!
//! `docs/vault.md` tells what is bound, how a key is replaced and retired, and what is out of reach.
//!
//! ```
//! use std::sync::Arc;
//!
//! use leasehold::memory::MemoryStore;
//! use leasehold::vault::{Binding, ExposeSecret, KekId, KeyRing, Places, Vault};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let keys = KeyRing::new(KekId::new("2026-11")?, [7; 32])?; // or from_env, from_folder
//! let vault = Vault::new(Arc::new(MemoryStore::new()), Arc::new(keys));
//! let binding = Binding::new("job-7", "requester-1", 1);
//! vault.put(&binding, b"a token", Places::new()).await?;
//! assert_eq!(vault.open(&binding).await?.expose_secret(), b"a token");
//! assert!(vault.open(&Binding::new("job-7", "requester-2", 1)).await.is_err());
//! # Ok::<(), leasehold::vault::VaultError>(())
//! # }).unwrap();
//! ```

mod context;
mod error;
mod kek;
mod prune;
mod rotate;
mod sealed;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{
    DeleteDocument, Document, ErrorKind, Expected, Json, PutDocument, RecordId, Records, Store,
};
use serde::{Deserialize, Serialize};

pub use context::Binding;
pub use error::VaultError;
pub use kek::{Dek, KekId, KeyRing, KeyWrap};
pub use prune::prune;
pub use rotate::{KeyUse, Rewrapped, key_uses};
pub use sealed::Sealed;
/// For reading what [`Vault::open`] gives.
pub use secrecy::{ExposeSecret, SecretSlice};

/// The namespace of the secrets.
const SECRETS: &str = "vault.secrets";

/// What stays readable beside a secret: `bucket`, `region`, `endpoint`, `prefix` and the like.
pub type Places = BTreeMap<String, String>;

/// A secret's document: sealed, with what it is bound to and what stays readable.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    sealed: Sealed,
    field: String,
    job_id: String,
    requester_id: String,
    credential_version: i64,
    #[serde(default)]
    places: Places,
}

impl Stored {
    fn read(document: &Document) -> Result<Self, VaultError> {
        serde_json::from_str(document.body.as_str())
            .map_err(|_| VaultError::Malformed("secret's document"))
    }

    /// What the document says it is bound to; a lie makes it fail to open.
    fn binding(&self) -> Binding {
        let (job, requester) = (self.job_id.as_str(), self.requester_id.as_str());
        Binding::new(job, requester, self.credential_version).field(self.field.as_str())
    }
}

/// Secrets of a store.
#[derive(Clone, Debug)]
pub struct Vault {
    store: Arc<dyn Store>,
    keys: Arc<dyn KeyWrap>,
}

impl Vault {
    /// Puts a vault together.
    pub fn new(store: Arc<dyn Store>, keys: Arc<dyn KeyWrap>) -> Self {
        Self { store, keys }
    }

    fn records(&self) -> &dyn Records {
        self.store.records()
    }

    fn id(binding: &Binding) -> Result<RecordId, VaultError> {
        Ok(RecordId::new(SECRETS, format!("{}/{}", binding.job_id, binding.field))?)
    }

    /// Seals a secret and keeps it in place of the job's earlier one, until the job is pruned ([`prune`]).
    ///
    /// # Errors
    /// `RetiredKey` when the active key is being retired: nothing is kept then; those of sealing and of
    /// the store.
    pub async fn put(
        &self,
        binding: &Binding,
        plain: &[u8],
        places: Places,
    ) -> Result<(), VaultError> {
        self.put_for(binding, plain, places, None).await
    }

    /// Seals a secret and keeps it for a while.
    ///
    /// # Errors
    /// As [`Vault::put`].
    pub async fn put_for(
        &self,
        binding: &Binding,
        plain: &[u8],
        places: Places,
        ttl: Option<Duration>,
    ) -> Result<(), VaultError> {
        self.put_over(binding, plain, places, (ttl, Expected::Any)).await
    }

    /// Seals a secret and keeps it in place of the one whose version is lower by one, the first in place of
    /// none; `false` where something else is there.
    ///
    /// # Errors
    /// As [`Vault::put`].
    pub async fn put_next(
        &self,
        binding: &Binding,
        plain: &[u8],
        places: Places,
    ) -> Result<bool, VaultError> {
        let found = self.records().get(Self::id(binding)?).await?;
        let before = found.as_ref().map(Stored::read).transpose()?;
        let before = before.map_or(0, |stored| stored.credential_version);
        if before.checked_add(1) != Some(binding.credential_version) {
            return Ok(false);
        }
        let expected = found.map_or(Expected::Absent, |found| Expected::Version(found.version));
        match self.put_over(binding, plain, places, (None, expected)).await {
            Ok(()) => Ok(true),
            Err(VaultError::Store(error)) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn put_over(
        &self,
        binding: &Binding,
        plain: &[u8],
        places: Places,
        (ttl, expected): (Option<Duration>, Expected),
    ) -> Result<(), VaultError> {
        let sealed = Sealed::seal(&*self.keys, binding, plain).await?;
        let kek = sealed.kek()?;
        self.refuse_retired(&kek).await?;
        let stored = Stored {
            sealed,
            field: binding.field.clone(),
            job_id: binding.job_id.clone(),
            requester_id: binding.requester_id.clone(),
            credential_version: binding.credential_version,
            places,
        };
        let mut put = PutDocument::new(Self::id(binding)?, Json::of(&stored)?);
        put.ttl = ttl;
        put = put.expected(expected);
        let kept = self.records().put(put).await?;
        // Whoever retires the key first says so and then looks for what needs it: either that look finds
        // this secret, or this one finds the word.
        if let Err(retired) = self.refuse_retired(&kek).await {
            let expected = Expected::Version(kept.version);
            let delete = DeleteDocument::new(kept.id).expected(expected);
            return match self.records().delete(delete).await {
                // Somebody wrapped it anew meanwhile, or wrote over it: then it needs the key no more.
                Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
                deleted => deleted.map_err(VaultError::from).and(Err(retired)),
            };
        }
        Ok(())
    }

    /// Opens a secret, if it is bound to exactly this.
    ///
    /// # Errors
    /// `Absent`; `Authentication` where anything of the binding differs; else as [`Sealed::open`].
    pub async fn open(&self, binding: &Binding) -> Result<SecretSlice<u8>, VaultError> {
        let found = self.records().get(Self::id(binding)?).await?.ok_or(VaultError::Absent)?;
        Stored::read(&found)?.sealed.open(&*self.keys, binding).await
    }

    /// Opens whichever version of a job's secret is kept, and tells which; `None` without one.
    ///
    /// Who must be sure of the version opens by [`Vault::open`]: an older secret put back opens here.
    ///
    /// # Errors
    /// `Authentication` where job, requester or field differ; else as [`Vault::open`].
    pub async fn open_newest(
        &self,
        job_id: &str,
        requester_id: &str,
        field: &str,
    ) -> Result<Option<(i64, SecretSlice<u8>)>, VaultError> {
        let id = RecordId::new(SECRETS, format!("{job_id}/{field}"))?;
        let Some(found) = self.records().get(id).await? else { return Ok(None) };
        let stored = Stored::read(&found)?;
        let binding = Binding::new(job_id, requester_id, stored.credential_version).field(field);
        let secret = stored.sealed.open(&*self.keys, &binding).await?;
        Ok(Some((stored.credential_version, secret)))
    }

    /// Reads what stays readable beside a secret.
    ///
    /// # Errors
    /// `Absent`, `Malformed`; those of the store.
    pub async fn places(&self, binding: &Binding) -> Result<Places, VaultError> {
        let found = self.records().get(Self::id(binding)?).await?.ok_or(VaultError::Absent)?;
        Ok(Stored::read(&found)?.places)
    }

    /// Reads which version of a job's secret is kept; `None` without one. The secret stays sealed.
    ///
    /// # Errors
    /// `Malformed`; those of the store.
    pub async fn version(&self, job_id: &str, field: &str) -> Result<Option<i64>, VaultError> {
        let id = RecordId::new(SECRETS, format!("{job_id}/{field}"))?;
        let found = self.records().get(id).await?;
        let stored = found.as_ref().map(Stored::read).transpose()?;
        Ok(stored.map(|stored| stored.credential_version))
    }

    /// Deletes a secret; whether there was one.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn delete(&self, binding: &Binding) -> Result<bool, VaultError> {
        Ok(self.records().delete(DeleteDocument::new(Self::id(binding)?)).await?)
    }
}
