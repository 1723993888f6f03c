//! Owns API keys: made once, shown once, kept as a hash, compared in constant time. A requester may
//! have several, so that one is replaced while the other still counts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{
    Actor, AuditEntry, DeleteDocument, Error, ErrorKind, JobKind, Json, ListDocuments, Namespace,
    PutDocument, RecordId, RecordKey, Result, Scope, Store, Timestamp,
};
use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The namespace of the documents.
const NAMESPACE: &str = "http.api_keys";
/// How every key begins, so that scanners for leaked secrets find it.
const PREFIX: &str = "lhk";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// A new key; this is the only time that it is shown.
pub struct NewApiKey {
    /// The id, by which it is revoked.
    pub id: String,
    secret: String,
}

impl fmt::Debug for NewApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewApiKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl NewApiKey {
    /// Shows the key, to be handed to its requester.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{PREFIX}_{}_{}", self.id, self.secret)
    }
}

/// A key as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    hash: String,
    requester: String,
    /// The kinds that it may ask for; all where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kinds: Option<Vec<String>>,
}

/// What may be told of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiKeyInfo {
    /// The id, by which it is revoked.
    pub id: String,
    /// Whose it is.
    pub requester: String,
    /// The kinds that it may ask for; all where there is none.
    pub kinds: Option<Vec<String>>,
    /// When it was made.
    pub issued_at: Timestamp,
    /// How old it is, by the store's clock.
    pub age: Duration,
}

impl ApiKeyInfo {
    /// Whether it is older than 90 days, and ought to be replaced.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        crate::key_age::is_overdue(self.age)
    }
}

/// One page of keys, by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiKeyPage {
    /// The keys.
    pub keys: Vec<ApiKeyInfo>,
    /// Where to go on; `None` at the end.
    pub next: Option<RecordKey>,
}

/// Who asks, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) requester: Scope,
    kinds: Option<Vec<String>>,
}

impl Caller {
    pub(super) fn may_ask_for(&self, kind: &JobKind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|it| it == kind.as_str()))
    }
}

/// The API keys of a store.
#[derive(Clone, Debug)]
pub struct ApiKeys(Arc<dyn Store>);

impl ApiKeys {
    /// The keys of this store.
    pub fn of(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// Makes a key for a requester, for some kinds of jobs or (`None`) for all.
    ///
    /// # Errors
    /// `Invalid` without a requester; `Unavailable` without random bytes; engine errors.
    pub async fn issue(
        &self,
        requester: &Scope,
        kinds: Option<&[JobKind]>,
        actor: Actor,
    ) -> Result<NewApiKey> {
        if requester.as_str().is_empty() {
            return Err(Error::invalid("issue key", "a key belongs to a requester"));
        }
        let made = NewApiKey { id: random(ID_BYTES)?, secret: random(SECRET_BYTES)? };
        let kinds = kinds.map(|kinds| kinds.iter().map(|kind| kind.as_str().to_owned()).collect());
        let hash = hex(&Sha256::digest(&made.secret));
        let stored = Stored { hash, requester: requester.as_str().to_owned(), kinds };
        let put = PutDocument::new(RecordId::new(NAMESPACE, &made.id)?, Json::of(&stored)?);
        self.0.records().put(put).await?;
        self.tell("api_key.issue", &made.id, actor).await?;
        Ok(made)
    }

    /// Ends a key at once; whether there was one.
    ///
    /// # Errors
    /// Engine errors.
    pub async fn revoke(&self, id: &str, actor: Actor) -> Result<bool> {
        let delete = DeleteDocument::new(RecordId::new(NAMESPACE, id)?);
        let was_there = self.0.records().delete(delete).await?;
        if was_there {
            self.tell("api_key.revoke", id, actor).await?;
        }
        Ok(was_there)
    }

    /// Lists keys, without anything that would let in.
    ///
    /// # Errors
    /// `Corrupt` for a document that is no key; engine errors.
    pub async fn list(&self, after: Option<RecordKey>) -> Result<ApiKeyPage> {
        let mut list = ListDocuments::new(Namespace::new(NAMESPACE)?);
        list.after = after;
        let page = self.0.records().list(list).await?;
        let mut keys = Vec::with_capacity(page.items.len());
        for document in page.items {
            let stored = stored(&document.body)?;
            let (requester, kinds) = (stored.requester, stored.kinds);
            let id = document.id.key.as_str().to_owned();
            let (issued_at, age) = (document.created_at, page.now.since(document.created_at));
            keys.push(ApiKeyInfo { id, requester, kinds, issued_at, age });
        }
        Ok(ApiKeyPage { keys, next: page.next })
    }

    async fn tell(&self, action: &str, id: &str, actor: Actor) -> Result<()> {
        let entry = AuditEntry::new(actor, action, format!("api key {id}"));
        self.0.records().append(entry).await.map(|_| ())
    }

    /// Whose key this is; `None` for one that is not known. An unknown id costs the same comparison.
    pub(super) async fn caller(&self, key: &str) -> Result<Option<Caller>> {
        let mut parts = key.split('_');
        let (Some(PREFIX), Some(id), Some(secret), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        let is_hex = |text: &str, bytes: usize| {
            text.len() == 2 * bytes && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if !is_hex(id, ID_BYTES) || !is_hex(secret, SECRET_BYTES) {
            return Ok(None);
        }
        let found = self.0.records().get(RecordId::new(NAMESPACE, id)?).await?;
        let stored = found.map(|document| stored(&document.body)).transpose()?;
        let wanted = stored.as_ref().map_or("", |stored| stored.hash.as_str());
        let offered = hex(&Sha256::digest(secret));
        let fits: bool = offered.as_bytes().ct_eq(wanted.as_bytes()).into();
        match stored.filter(|_| fits) {
            Some(stored) => {
                let requester = Scope::new(&stored.requester)?;
                Ok(Some(Caller { requester, kinds: stored.kinds }))
            }
            None => Ok(None),
        }
    }
}

fn stored(body: &Json) -> Result<Stored> {
    serde_json::from_str(body.as_str()).map_err(|error| {
        let why = "the document is no API key";
        Error::new(ErrorKind::Corrupt, "read key", why).with_source(error)
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random(length: usize) -> Result<String> {
    let mut bytes = vec![0; length];
    let failed = |error| {
        Error::new(ErrorKind::Unavailable, "issue key", "no random bytes").with_source(error)
    };
    SysRng.try_fill_bytes(&mut bytes).map_err(failed)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use leasehold_core::lab::LabStore;
    use leasehold_core::memory::MemoryStore;

    use super::*;

    /// Proves: SEC-2
    #[tokio::test]
    async fn a_key_is_overdue_after_ninety_days() {
        let store = Arc::new(MemoryStore::lab(Timestamp::MIN));
        let keys = ApiKeys::of(store.clone());
        let (acme, ann) = (Scope::new("acme").unwrap(), Actor::new("ann").unwrap());
        let old = keys.issue(&acme, None, ann.clone()).await.unwrap().id;
        store.clock().unwrap().advance(Duration::from_secs(90 * 24 * 3_600));
        assert!(!keys.list(None).await.unwrap().keys[0].is_overdue(), "exactly at the limit");
        store.clock().unwrap().advance(Duration::from_secs(1));
        let new = keys.issue(&acme, None, ann).await.unwrap().id;
        let page = keys.list(None).await.unwrap();
        let told: std::collections::BTreeMap<_, _> =
            page.keys.iter().map(|key| (key.id.clone(), key.is_overdue())).collect();
        assert_eq!(told, std::collections::BTreeMap::from([(old, true), (new, false)]));
    }
}
