//! Owns how a wrapping key is replaced: every secret is wrapped anew, page by page, and the old key is
//! retired once none needs it. Each secret is one compare-and-set, so a kill at any point leaves each
//! under one key or the other, and the next run goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::{
    Actor, AuditEntry, Document, DocumentPage, ErrorKind, Expected, Json, ListDocuments, Namespace,
    PutDocument, RecordId, RecordKey, Store,
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
    /// How long its oldest secret has been under it; the key itself is no younger. Zero where no secret needs
    /// it.
    pub age: Duration,
    /// Whether it is retired, or about to be.
    pub retired: bool,
}

impl KeyUse {
    /// Whether it has been in use for more than 90 days, and ought to be replaced.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        crate::key_age::is_overdue(self.age)
    }
}

/// Lists the keys that a store's secrets name, and the retired ones; needs no key itself.
///
/// # Errors
/// Those of the store.
pub async fn key_uses(store: &dyn Store) -> Result<Vec<KeyUse>, VaultError> {
    let mut uses: BTreeMap<Option<KekId>, KeyUse> = BTreeMap::new();
    let fresh = |kek: &Option<KekId>| KeyUse {
        kek: kek.clone(),
        secrets: 0,
        age: Duration::ZERO,
        retired: false,
    };
    let mut after = None;
    loop {
        let page = page_of(store, SECRETS, after).await?;
        for document in page.items {
            let kek = Stored::read(&document).and_then(|stored| stored.sealed.kek()).ok();
            let one = uses.entry(kek.clone()).or_insert_with(|| fresh(&kek));
            one.secrets += 1;
            one.age = one.age.max(page.now.since(document.updated_at));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    loop {
        let page = page_of(store, KEYS, after).await?;
        for document in page.items {
            let kek = Some(KekId::new(document.id.key.as_str())?);
            uses.entry(kek.clone()).or_insert_with(|| fresh(&kek)).retired = true;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(uses.into_values().collect())
}

async fn page_of(
    store: &dyn Store,
    namespace: &str,
    after: Option<RecordKey>,
) -> Result<DocumentPage, VaultError> {
    let mut list = ListDocuments::new(Namespace::new(namespace)?).limit(PAGE);
    list.after = after;
    Ok(store.records().list(list).await?)
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
            for document in page.items {
                self.rewrap_one(document, &mut done).await?;
            }
            match page.next {
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
                    tracing::warn!(%error, "secret {} not rewrapped", document.id);
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
            count += page.items.iter().filter(|document| needs(document)).count() as u64;
            match page.next {
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

    async fn page(&self, after: Option<RecordKey>) -> Result<DocumentPage, VaultError> {
        page_of(&*self.store, SECRETS, after).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use leasehold_core::Timestamp;
    use leasehold_core::lab::LabStore;
    use leasehold_core::memory::MemoryStore;

    use super::super::{Binding, KeyRing, Places};
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    /// Its oldest secret tells a key's age; what is wrapped anew or retired needs it no more.
    ///
    /// Proves: SEC-2
    #[tokio::test]
    async fn a_key_is_overdue_after_ninety_days_of_use() {
        let store = Arc::new(MemoryStore::lab(Timestamp::MIN));
        let (old, new) = (KekId::new("old").unwrap(), KekId::new("new").unwrap());
        let both = |first: (&KekId, u8), other: (&KekId, u8)| {
            let ring = KeyRing::new(first.0.clone(), [first.1; 32]).unwrap();
            let ring = ring.and(other.0.clone(), [other.1; 32]).unwrap();
            Vault::new(store.clone(), Arc::new(ring))
        };
        let (early, late) = (both((&old, 1), (&new, 2)), both((&new, 2), (&old, 1)));
        let put = async |vault: &Vault, job: &str| {
            vault.put(&Binding::new(job, "field", 1), b"x", Places::new()).await.unwrap();
        };
        let told = async || {
            let uses = key_uses(&*store).await.unwrap().into_iter();
            uses.map(|it| (it.kek.clone().unwrap(), it.secrets, it.age, it.is_overdue()))
                .collect::<Vec<_>>()
        };
        put(&early, "a").await;
        store.clock().unwrap().advance(90 * DAY);
        put(&early, "b").await;
        assert_eq!(told().await, [(old.clone(), 2, 90 * DAY, false)], "exactly at the limit");
        store.clock().unwrap().advance(DAY);
        put(&late, "c").await;
        let both = [(new.clone(), 1, Duration::ZERO, false), (old.clone(), 2, 91 * DAY, true)];
        assert_eq!(told().await, both);
        assert_eq!(late.rewrap().await.unwrap().rewrapped, 2);
        late.retire(&old, Actor::new("ann").unwrap()).await.unwrap();
        let none = Duration::ZERO;
        assert_eq!(told().await, [(new, 3, none, false), (old, 0, none, false)]);
    }
}
