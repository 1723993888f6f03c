//! Owns endpoints as documents: where one is, whether it is asked, and who changed that. Refuses to
//! know secrets; those stay with the process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{
    Actor, AuditEntry, Document, ErrorKind, Expected, Json, PutDocument, RecordId, Result, Store,
};
use serde::{Deserialize, Serialize};

/// The namespace of the documents.
const NAMESPACE: &str = "webhook.endpoints";
/// How the names of endpoints begin that jobs name by their URL.
pub(super) const BY_URL: &str = "url ";
/// How long such a one is kept after its last use.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How often a change is tried anew because another came first.
const TRIES: u32 = 8;

/// Whether an endpoint is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndpointStatus {
    /// It is asked.
    Active,
    /// It is not asked for now; its events wait, and no attempt is counted.
    Paused,
    /// It is not asked any more; its events go to the dead letters, from where they can be replayed.
    Disabled,
}

/// An endpoint as it is stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Endpoint {
    /// Where it is; no secret belongs in it.
    pub url: String,
    /// Whether it is asked.
    pub status: EndpointStatus,
    /// Why, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The URL without its query, which may hold what nobody should read.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.url.split(['?', '#']).next().unwrap_or_default();
        f.debug_struct("Endpoint")
            .field("url", &place)
            .field("status", &self.status)
            .field("reason", &self.reason)
            .finish()
    }
}

/// The endpoints of a store, each under a name.
///
/// Every change is kept in the audit log, as `webhook.set`, `webhook.pause`, `webhook.resume` or
/// `webhook.disable` of `endpoint NAME`. What [`ByJob`](super::ByJob) makes of a job's URL is not: it is
/// forgotten 30 days after it was last used, or disabled for its 410, unless somebody has paused or disabled
/// it by hand.
#[derive(Clone, Debug)]
pub struct Endpoints(Arc<dyn Store>);

impl Endpoints {
    /// The endpoints of this store.
    pub fn of(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// Reads one; `None` when there is none of that name.
    ///
    /// # Errors
    /// `Invalid` for a name that no record can have; `Corrupt` for a document that is no endpoint;
    /// engine errors.
    pub async fn get(&self, name: &str) -> Result<Option<Endpoint>> {
        Ok(self.read(name).await?.map(|(endpoint, _)| endpoint))
    }

    /// Sets where one is, and asks it from now on.
    ///
    /// # Errors
    /// As [`Endpoints::get`].
    pub async fn set(&self, name: &str, url: impl Into<String>, actor: Actor) -> Result<()> {
        let endpoint = Endpoint { url: url.into(), status: EndpointStatus::Active, reason: None };
        let put = PutDocument::new(RecordId::new(NAMESPACE, name)?, Json::of(&endpoint)?);
        self.0.records().put(put).await?;
        self.tell(name, "webhook.set", actor, None).await
    }

    /// Makes sure of a URL's endpoint, for as long as it is used: one that would soon be forgotten is written
    /// anew.
    pub(super) async fn use_url(&self, name: &str, url: &str) -> Result<()> {
        let found = self.0.records().get(RecordId::new(NAMESPACE, name)?).await?;
        let expected = match found {
            None => Expected::Absent,
            Some(found) => {
                let endpoint: Endpoint = Self::parse(&found)?;
                let unused = crate::clock::wall()?.since(found.updated_at);
                let soon = found.expires_at.is_some() && unused > KEPT / 2;
                if endpoint.status != EndpointStatus::Active || !soon {
                    return Ok(());
                }
                Expected::Version(found.version)
            }
        };
        let endpoint =
            Endpoint { url: url.to_owned(), status: EndpointStatus::Active, reason: None };
        let put = PutDocument::new(RecordId::new(NAMESPACE, name)?, Json::of(&endpoint)?);
        match self.0.records().put(put.expected(expected).ttl(KEPT)).await {
            // Another has just done it, or somebody has decided about it.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Stops asking one that says it is gone; a job's URL only for as long as it would be kept.
    pub(super) async fn gone(&self, name: &str, actor: Actor) -> Result<()> {
        let (reason, kept) = ("it answered 410 Gone", name.starts_with(BY_URL).then_some(KEPT));
        self.change(name, (EndpointStatus::Disabled, Some(reason)), kept).await?;
        self.tell(name, "webhook.disable", actor, Some(reason)).await
    }

    /// Stops asking one for now; its events wait.
    ///
    /// # Errors
    /// As [`Endpoints::get`]; `NotFound`.
    pub async fn pause(&self, name: &str, actor: Actor, reason: &str) -> Result<()> {
        self.change(name, (EndpointStatus::Paused, Some(reason)), None).await?;
        self.tell(name, "webhook.pause", actor, Some(reason)).await
    }

    /// Asks one again that was paused or disabled.
    ///
    /// # Errors
    /// As [`Endpoints::get`]; `NotFound`.
    pub async fn resume(&self, name: &str, actor: Actor) -> Result<()> {
        let kept = name.starts_with(BY_URL).then_some(KEPT);
        self.change(name, (EndpointStatus::Active, None), kept).await?;
        self.tell(name, "webhook.resume", actor, None).await
    }

    /// Stops asking one for good.
    ///
    /// # Errors
    /// As [`Endpoints::get`]; `NotFound`.
    pub async fn disable(&self, name: &str, actor: Actor, reason: &str) -> Result<()> {
        self.change(name, (EndpointStatus::Disabled, Some(reason)), None).await?;
        self.tell(name, "webhook.disable", actor, Some(reason)).await
    }

    async fn read(&self, name: &str) -> Result<Option<(Endpoint, i64)>> {
        let found = self.0.records().get(RecordId::new(NAMESPACE, name)?).await?;
        let Some(found) = found else { return Ok(None) };
        Ok(Some((Self::parse(&found)?, found.version)))
    }

    fn parse(found: &Document) -> Result<Endpoint> {
        serde_json::from_str(found.body.as_str()).map_err(|error| {
            let why = "the document is no endpoint";
            leasehold_core::Error::new(ErrorKind::Corrupt, "read endpoint", why).with_source(error)
        })
    }

    async fn change(
        &self,
        name: &str,
        (to, reason): (EndpointStatus, Option<&str>),
        kept: Option<Duration>,
    ) -> Result<()> {
        let mut tries = 0;
        loop {
            let Some((mut endpoint, version)) = self.read(name).await? else {
                let why = format!("there is no endpoint {name:?}");
                return Err(leasehold_core::Error::new(ErrorKind::NotFound, "set endpoint", why));
            };
            (endpoint.status, endpoint.reason) = (to, reason.map(str::to_owned));
            let put = PutDocument::new(RecordId::new(NAMESPACE, name)?, Json::of(&endpoint)?);
            let mut put = put.expected(Expected::Version(version));
            put.ttl = kept;
            match self.0.records().put(put).await {
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES => tries += 1,
                done => return done.map(|_| ()),
            }
        }
    }

    async fn tell(
        &self,
        name: &str,
        action: &str,
        actor: Actor,
        detail: Option<&str>,
    ) -> Result<()> {
        let mut entry = AuditEntry::new(actor, action, format!("endpoint {name}"));
        entry.detail = detail.map(str::to_owned);
        self.0.records().append(entry).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::memory::MemoryStore;

    use super::*;

    /// A URL that is used in the second half of its time is kept for all of it again; before that nothing is
    /// written.
    ///
    /// Proves: WH-6
    #[tokio::test]
    async fn a_url_in_use_is_not_forgotten() {
        let day = Duration::from_secs(24 * 3_600);
        for (age, writes) in [(day, 1), (14 * day, 1), (16 * day, 2), (29 * day, 2)] {
            let then = crate::clock::wall().unwrap().minus(age);
            let store: Arc<dyn Store> = Arc::new(MemoryStore::lab(then));
            let endpoints = Endpoints::of(store);
            for _ in 0..2 {
                endpoints.use_url("url 7", "https://example.com/").await.unwrap();
            }
            assert_eq!(endpoints.read("url 7").await.unwrap().unwrap().1, writes, "{age:?}");
        }
    }
}
