//! Owns the credentials that jobs reach storage with: sealed and versioned, and asked for anew from the
//! requester when storage refuses them. Refuses to know what they open.
//!
//! A refusal (401, 403) leads to one signed call to the requester's `refresh_url`, whatever number of
//! workers ask at once. The requester answers with new credentials, or writes them by a call of its own
//! ([`Credentials::write`]); either raises the version by one. Work goes on only if it has risen.

mod flight;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, Uri};
use leasehold_core::retry::random_unit;
use leasehold_core::{Error, Failure, FailureCode, JobId, Json, Result, Store, StoreExt};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::vault::{Binding, Places, SecretSlice, Vault, VaultError};
use crate::webhook::client::{Answer, BODY_BYTES_MAX, Client};
use crate::webhook::{Signer, Targets, WayOut};
use flight::Entry;

/// How long a call may take, up to the answer's head.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The vault's field.
const FIELD: &str = "storage_creds";
/// How often a change is tried anew because another came first.
const TRIES: u32 = 8;
/// How many jobs a chain of replays is followed back.
const REPLAYS_MAX: u32 = 16;
/// How often it is looked whether the version has risen.
const LOOK: Duration = Duration::from_millis(100);

/// Credentials as they are now.
#[derive(Debug)]
#[non_exhaustive]
pub struct Current {
    /// Their version, from 1.
    pub version: i64,
    /// The secret, as the requester wrote it.
    pub secret: SecretSlice<u8>,
}

/// What came of a refresh.
#[derive(Debug)]
#[must_use]
pub enum Refreshed {
    /// The version has risen: go on with these.
    Advanced(Current),
    /// It has not, and the refresh budget lasts: put the job off for so long, uncounted.
    NotYet(Duration),
}

/// Puts [`Credentials`] together.
///
/// | What | Unless set |
/// |---|---|
/// | [`way_out`](CredentialsBuilder::way_out) | `https`, public addresses; 10 s for the call |
/// | [`patience`](CredentialsBuilder::patience) | 2 s for credentials that come by a call of their own |
/// | [`budget`](CredentialsBuilder::budget) | 5 calls without new credentials, a job |
#[derive(Debug)]
pub struct CredentialsBuilder {
    store: Arc<dyn Store>,
    vault: Vault,
    signer: Signer,
    way: WayOut,
    patience: Duration,
    budget: u32,
}

impl CredentialsBuilder {
    /// Sets how requesters are reached: by [`Targets`], or by a [`WayOut`].
    #[must_use]
    pub fn way_out(mut self, way: impl Into<WayOut>) -> Self {
        self.way = way.into();
        self
    }

    /// Sets how long new credentials are waited for after the answer to the call.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how many calls a job has that bring no new credentials; 0 counts as 1.
    #[must_use]
    pub fn budget(mut self, calls: u32) -> Self {
        self.budget = calls.max(1);
        self
    }

    /// Ends the building.
    ///
    /// # Errors
    /// `Invalid` for a certificate that cannot be trusted.
    pub fn build(self) -> Result<Credentials> {
        Ok(Credentials {
            store: self.store,
            vault: self.vault,
            signer: self.signer,
            targets: self.way.targets().clone(),
            client: Client::new(&self.way, TIMEOUT)?,
            flight: self.way.timeout_or(TIMEOUT) + self.patience + Duration::from_secs(5),
            patience: self.patience,
            budget: self.budget,
        })
    }
}

/// The storage credentials of jobs.
#[derive(Clone)]
pub struct Credentials {
    store: Arc<dyn Store>,
    vault: Vault,
    signer: Signer,
    targets: Targets,
    client: Client,
    flight: Duration,
    patience: Duration,
    budget: u32,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// What the requester is sent.
#[derive(Serialize)]
struct Call<'a> {
    job_id: &'a str,
    credential_version: i64,
}

/// What the requester may answer.
#[derive(Deserialize)]
struct Answered {
    credentials: Option<Box<RawValue>>,
}

impl Credentials {
    /// Begins credentials that are kept in a vault and asked for by calls that this signer signs.
    pub fn builder(store: Arc<dyn Store>, vault: Vault, signer: Signer) -> CredentialsBuilder {
        CredentialsBuilder {
            store,
            vault,
            signer,
            way: WayOut::default(),
            patience: Duration::from_secs(2),
            budget: 5,
        }
    }

    /// Keeps new credentials of a job, and gives their version: 1, or one more than before. What places
    /// they are for stays readable beside them.
    ///
    /// The caller has made sure that it is the job's requester who writes.
    ///
    /// # Errors
    /// Those of the vault.
    pub async fn write(
        &self,
        job: JobId,
        requester: &str,
        secret: &[u8],
        places: Places,
    ) -> Result<i64, VaultError> {
        let id = job.to_string();
        for _ in 0..TRIES {
            let next = self.vault.version(&id, FIELD).await?.unwrap_or(0).saturating_add(1);
            let binding = Binding::new(id.as_str(), requester, next);
            if self.vault.put_next(&binding, secret, places.clone()).await? {
                return Ok(next);
            }
        }
        let why = "the credentials are written again and again";
        Err(Error::new(leasehold_core::ErrorKind::Busy, "write credentials", why).into())
    }

    /// Opens the credentials of a job as they are now, for this requester's job only; `None` without any.
    ///
    /// A job that replays another and has none yet goes on with the other's, sealed anew for its own id.
    ///
    /// # Errors
    /// `Authentication` for another requester's; those of the vault.
    pub async fn current(
        &self,
        job: JobId,
        requester: &str,
    ) -> Result<Option<Current>, VaultError> {
        match self.newest(job, requester).await? {
            Some(current) => Ok(Some(current)),
            None => self.inherit(job, requester).await,
        }
    }

    async fn newest(&self, job: JobId, requester: &str) -> Result<Option<Current>, VaultError> {
        let found = self.vault.open_newest(&job.to_string(), requester, FIELD).await?;
        Ok(found.map(|(version, secret)| Current { version, secret }))
    }

    /// Seals the credentials of the job that this one replays for this one, as its first.
    async fn inherit(&self, job: JobId, requester: &str) -> Result<Option<Current>, VaultError> {
        let mut at = job;
        for _ in 0..REPLAYS_MAX {
            let view = self.store.job(at).await?;
            let Some(old) = view.and_then(|view| view.replay_of) else { return Ok(None) };
            at = old;
            let Some(found) = self.newest(old, requester).await? else { continue };
            let old = Binding::new(old.to_string(), requester, found.version);
            let places = self.vault.places(&old).await?;
            let first = Binding::new(job.to_string(), requester, 1);
            // Where somebody wrote the first meanwhile, that one counts.
            self.vault.put_next(&first, found.secret.expose_secret(), places).await?;
            return self.newest(job, requester).await;
        }
        Ok(None)
    }

    /// The credentials in place of those that were refused, where they are there.
    async fn risen(
        &self,
        job: JobId,
        requester: &str,
        refused: i64,
    ) -> Result<Option<Current>, Failure> {
        let found = self.current(job, requester).await.map_err(|error| error.failure())?;
        Ok(found.filter(|current| current.version > refused))
    }

    /// Asks for credentials in place of those that storage has refused: by their version, 0 where the job
    /// has none yet.
    ///
    /// # Errors
    /// `AUTH_DENIED` once the refresh budget is spent; those of the vault and the store as
    /// [`VaultError::failure`].
    pub async fn refresh(
        &self,
        job: JobId,
        requester: &str,
        refresh_url: &str,
        refused: i64,
    ) -> Result<Refreshed, Failure> {
        if let Some(current) = self.risen(job, requester, refused).await? {
            return Ok(Refreshed::Advanced(current));
        }
        let records = self.store.records();
        let stored = |error: Error| VaultError::from(error).failure();
        let entry =
            flight::enter(records, job, (self.budget, self.flight)).await.map_err(stored)?;
        let turn = match entry {
            Entry::Spent => {
                let why = format!("{} refreshes brought no new credentials", self.budget);
                return Err(Failure::new(FailureCode::AuthDenied, why));
            }
            Entry::UnderWay(wait) => {
                let risen = self.wait(job, requester, refused, wait).await?;
                return Ok(risen.map_or_else(|| Refreshed::NotYet(soon()), Refreshed::Advanced));
            }
            Entry::Ours(turn) => turn,
        };
        // Another may have had its whole turn since the look above; what it brought is there by now.
        if let Some(current) = self.risen(job, requester, refused).await? {
            flight::leave(records, job, turn, true).await.map_err(stored)?;
            return Ok(Refreshed::Advanced(current));
        }
        let called = self.call(job, requester, refresh_url, refused).await;
        let patience = if called.is_ok() { self.patience } else { Duration::ZERO };
        if let Err(failure) = &called {
            tracing::warn!(%job, error = %failure, "refresh call failed");
        }
        let risen = self.wait(job, requester, refused, patience).await?;
        flight::leave(records, job, turn, risen.is_some()).await.map_err(stored)?;
        Ok(risen.map_or_else(|| Refreshed::NotYet(soon()), Refreshed::Advanced))
    }

    /// The call itself; new credentials in its answer are kept, unless others are there already.
    async fn call(
        &self,
        job: JobId,
        requester: &str,
        url: &str,
        refused: i64,
    ) -> Result<(), Failure> {
        let refuse = |why: String| Failure::new(FailureCode::PolicyRejected, why);
        let uri: Uri = url.parse().map_err(|_| refuse("the refresh URL is none".to_owned()))?;
        self.targets.check(&uri).map_err(|why| refuse(why.to_string()))?;
        let broken = |error: Error| Failure::new(FailureCode::InvariantBroken, error.to_string());
        let id = job.to_string();
        let body = Json::of(&Call { job_id: &id, credential_version: refused }).map_err(broken)?;
        let body = body.as_str().as_bytes();
        let signed = self.signer.sign(&format!("refresh-{id}-{refused}"), body).map_err(broken)?;
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(signed);
        let read = (BODY_BYTES_MAX, self.patience.max(LOOK));
        let answer = self.client.ask(Method::POST, &uri, &headers, body, read).await?;
        let secret = new_secret(&answer).map_err(|failure| *failure)?;
        let Some(secret) = secret else { return Ok(()) };
        let next = Binding::new(id, requester, refused.saturating_add(1));
        let places = Places::new();
        let kept = self.vault.put_next(&next, secret.get().as_bytes(), places).await;
        kept.map(|_| ()).map_err(|error| error.failure())
    }

    /// Looks for a while whether the version has risen.
    async fn wait(
        &self,
        job: JobId,
        requester: &str,
        refused: i64,
        patience: Duration,
    ) -> Result<Option<Current>, Failure> {
        let end = crate::clock::now() + patience;
        loop {
            if let Some(current) = self.risen(job, requester, refused).await? {
                return Ok(Some(current));
            }
            if crate::clock::now() >= end {
                return Ok(None);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// How long a job is put off without new credentials: 5 to 15 s.
fn soon() -> Duration {
    Duration::from_secs_f64(5.0 + 10.0 * random_unit())
}

/// The credentials of a good answer; `None` where it holds none, and they come otherwise.
fn new_secret(answer: &Answer) -> Result<Option<Box<RawValue>>, Box<Failure>> {
    if !(200..=299).contains(&answer.status) {
        return Err(Box::new(Failure::from_http_status(answer.status)));
    }
    let read: Option<Answered> = serde_json::from_slice(&answer.excerpt).ok();
    Ok(read.and_then(|answered| answered.credentials))
}
