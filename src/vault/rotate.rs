//! Owns how a wrapping key is replaced: every secret is wrapped anew, page by page, and the old key is
//! retired once none needs it. Each secret is one compare-and-set, so a kill at any point leaves each
//! under one key or the other, and the next run goes on.

use std::collections::BTreeMap;

use leasehold_core::{
    Actor, AuditEntry, Document, ErrorKind, Expected, Json, ListDocuments, Namespace, PutDocument,
    RecordId, RecordKey, Store,
};

use super::error::VaultError;
use super::kek::KekId;
use super::{SECRETS, Stored, Vault};

/// The namespace of what is known about keys.
const KEYS: &str = "vault.keys";
const PAGE: usize = 100;
/// How often one secret is tried anew because somebody else wrote it meanwhile.
const TRIES: u32 = 8;

/// What a rewrap found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewrapped {
    /// Secrets that are under the active key now.
    pub rewrapped: u64,
    /// Secrets that were already.
    pub current: u64,
    /// Secrets whose key is unknown, or that are not genuine; they stay as they are.
    pub unreadable: u64,
}

/// A key that secrets name, or that is retired.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyUse {
    /// The key; `None` for documents that are no sealed secret.
    pub kek: Option<KekId>,
    /// How many secrets need it.
    pub secrets: u64,
    /// Whether it is retired, or about to be.
    pub retired: bool,
}

/// Lists the keys that a store's secrets name, and the retired ones; needs no key itself.
///
/// # Errors
/// Those of the store.
pub async fn key_uses(store: &dyn Store) -> Result<Vec<KeyUse>, VaultError> {
    let mut uses: BTreeMap<Option<KekId>, (u64, bool)> = BTreeMap::new();
    let mut after = None;
    loop {
        let (documents, next) = page_of(store, SECRETS, after).await?;
        for document in documents {
            let kek = Stored::read(&document).and_then(|stored| stored.sealed.kek()).ok();
            uses.entry(kek).or_default().0 += 1;
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    loop {
        let (documents, next) = page_of(store, KEYS, after).await?;
        for document in documents {
            let kek = KekId::new(document.id.key.as_str())?;
            uses.entry(Some(kek)).or_default().1 = true;
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    let one = |(kek, (secrets, retired))| KeyUse { kek, secrets, retired };
    Ok(uses.into_iter().map(one).collect())
}

async fn page_of(
    store: &dyn Store,
    namespace: &str,
    after: Option<RecordKey>,
) -> Result<(Vec<Document>, Option<RecordKey>), VaultError> {
    let mut list = ListDocuments::new(Namespace::new(namespace)?).limit(PAGE);
    list.after = after;
    let page = store.records().list(list).await?;
    Ok((page.items, page.next))
}

impl Vault {
    /// Wraps every secret's data key by the active key. Run it again after a crash: what is done is
    /// passed over. Any number may run at once.
    ///
    /// # Errors
    /// Those of the store and of a key service that does not answer; what was done stays done.
    pub async fn rewrap(&self) -> Result<Rewrapped, VaultError> {
        let (mut done, mut after) = (Rewrapped::default(), None);
        loop {
            let page = self.page(after).await?;
            for document in page.0 {
                self.rewrap_one(document, &mut done).await?;
            }
            match page.1 {
                None => return Ok(done),
                next => after = next,
            }
        }
    }

    async fn rewrap_one(
        &self,
        mut document: Document,
        done: &mut Rewrapped,
    ) -> Result<(), VaultError> {
        let active = self.keys.active();
        for _ in 0..TRIES {
            let Ok(mut stored) = Stored::read(&document) else {
                done.unreadable += 1;
                return Ok(());
            };
            if stored.sealed.kek().is_ok_and(|kek| kek == active) {
                done.current += 1;
                return Ok(());
            }
            match stored.sealed.rewrap(&*self.keys, &stored.binding()).await {
                Ok(sealed) => stored.sealed = sealed,
                Err(error @ (VaultError::Source(_) | VaultError::Store(_))) => return Err(error),
                Err(error) => {
                    tracing::warn!(secret = %document.id, %error, "secret not rewrapped");
                    done.unreadable += 1;
                    return Ok(());
                }
            }
            let mut put = PutDocument::new(document.id.clone(), Json::of(&stored)?);
            put = put.expected(Expected::Version(document.version));
            // The end stays where it was, give or take the time since the last write.
            put.ttl = document.expires_at.map(|end| end.since(document.updated_at));
            match self.records().put(put).await {
                Ok(_) => {
                    done.rewrapped += 1;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
            match self.records().get(document.id.clone()).await? {
                Some(newer) => document = newer,
                None => return Ok(()),
            }
        }
        let why = "the secret is written again and again";
        Err(leasehold_core::Error::new(ErrorKind::Busy, "rewrap", why).into())
    }

    /// Retires a key: refuses while any secret needs it, and from the first call on lets nothing new
    /// be sealed with it. Then take it out of the ring.
    ///
    /// # Errors
    /// `InUse` with how many need it; `ActiveKey` for the active key of this ring; `UnknownKey` for one that
    /// neither the ring holds nor any secret needs; those of the store.
    pub async fn retire(&self, kek: &KekId, actor: Actor) -> Result<(), VaultError> {
        if *kek == self.keys.active() {
            return Err(VaultError::ActiveKey(kek.clone()));
        }
        let id = RecordId::new(KEYS, kek.as_str())?;
        // Nothing was ever wrapped like this; a ring that has the key says so, another names it unknown.
        let asked = self.keys.unwrap(kek, &[], &[]).await;
        let is_in_ring = !matches!(asked, Err(VaultError::UnknownKey(_)));
        let is_known = is_in_ring || self.records().get(id).await?.is_some();
        if !is_known && self.uses(kek).await? == 0 {
            return Err(VaultError::UnknownKey(kek.clone()));
        }
        let mark = PutDocument::new(RecordId::new(KEYS, kek.as_str())?, Json::of("retired")?);
        self.records().put(mark).await?;
        let blobs = self.uses(kek).await?;
        if blobs > 0 {
            return Err(VaultError::InUse { kek: kek.clone(), blobs });
        }
        let entry = AuditEntry::new(actor, "vault.retire", format!("key {kek}"));
        self.records().append(entry).await?;
        Ok(())
    }

    /// Counts the secrets that need a key.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn uses(&self, kek: &KekId) -> Result<u64, VaultError> {
        let (mut count, mut after) = (0, None);
        loop {
            let page = self.page(after).await?;
            let needs = |document: &Document| {
                Stored::read(document).is_ok_and(|it| it.sealed.kek().is_ok_and(|it| it == *kek))
            };
            count += page.0.iter().filter(|document| needs(document)).count() as u64;
            match page.1 {
                None => return Ok(count),
                next => after = next,
            }
        }
    }

    /// Refuses a key that is retired, or about to be.
    pub(super) async fn refuse_retired(&self, kek: &KekId) -> Result<(), VaultError> {
        match self.records().get(RecordId::new(KEYS, kek.as_str())?).await? {
            None => Ok(()),
            Some(_) => Err(VaultError::RetiredKey(kek.clone())),
        }
    }

    async fn page(
        &self,
        after: Option<RecordKey>,
    ) -> Result<(Vec<Document>, Option<RecordKey>), VaultError> {
        page_of(&*self.store, SECRETS, after).await
    }
}
