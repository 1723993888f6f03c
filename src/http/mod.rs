//! Owns the HTTP API that a service mounts in its own axum router: jobs are enqueued and looked at by
//! requesters with API keys. Runs no job; [`Server`] can carry it, and so can any other of axum.
//!
//! ```
//! use std::sync::Arc;
//!
//! use leasehold::http::{Api, Offer};
//! use leasehold::memory::MemoryStore;
//! use leasehold::{JobKind, LifecycleName};
//!
//! let transcode = Offer::new("transcode", JobKind::new("transcode")?)?
//!     .lifecycle(LifecycleName::new("transcode")?);
//! let api = Api::new(Arc::new(MemoryStore::new())).offer(transcode);
//! let router: axum::Router = api.router(); // POST /transcode, GET /transcode/status, …
//! # let _ = router;
//! # Ok::<(), leasehold::Error>(())
//! ```
//!
//! `docs/http.md` lists the routes, the answers and the limits.

mod api_key;
#[cfg(feature = "credentials")]
mod credentials;
mod enqueue;
mod linger;
mod openapi;
mod problem;
mod serve;
mod status;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
#[cfg(feature = "credentials")]
use axum::routing::put;
use axum::routing::{get, post};
use leasehold_core::{
    BucketName, Error, JobKind, Json, LifecycleName, QueueName, Rate, RecordId, Result, Store,
    Take, Taken,
};

use api_key::Caller;
pub use api_key::{ApiKeyInfo, ApiKeyPage, ApiKeys, NewApiKey};
use problem::Problem;
use serde::Serialize;
pub use serve::Server;

/// Says what is wrong with a payload, for its sender.
type Check = Arc<dyn Fn(&Json) -> Result<(), String> + Send + Sync>;

/// One kind of job that requesters may ask for, under a path of its own.
#[derive(Clone)]
pub struct Offer {
    path: String,
    kind: JobKind,
    queue: QueueName,
    lifecycle: LifecycleName,
    check: Option<Check>,
    schema: Option<serde_json::Value>,
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer")
            .field("path", &self.path)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Offer {
    /// Offers a kind under `/PATH`, its status under `/PATH/status`.
    ///
    /// # Errors
    /// `Invalid` unless the path is one segment of letters, digits, dashes and underscores, and not
    /// `health`.
    pub fn new(path: impl Into<String>, kind: JobKind) -> Result<Self> {
        let path = path.into();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if path.is_empty() || path == "health" || !path.bytes().all(fits) {
            let why = format!("{path:?} is no path of one segment");
            return Err(Error::invalid("offer", why));
        }
        let (queue, lifecycle) = (QueueName::default_queue(), LifecycleName::standard());
        Ok(Self { path, kind, queue, lifecycle, check: None, schema: None })
    }

    /// Sets the queue; `default` unless set.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the lifecycle; `standard` unless set.
    #[must_use]
    pub fn lifecycle(mut self, lifecycle: LifecycleName) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// Sets what a payload must be, beyond JSON; what it says goes to the sender, as a 422.
    #[must_use]
    pub fn check(
        mut self,
        check: impl Fn(&Json) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Sets the payload's JSON schema, for the OpenAPI document.
    #[must_use]
    pub fn schema(mut self, schema: serde_json::Value) -> Self {
        self.schema = Some(schema);
        self
    }
}

/// The API over one store.
///
/// | What | Unless set |
/// |---|---|
/// | [`body_bytes_max`](Api::body_bytes_max) | 1 MiB |
/// | [`rate`](Api::rate) | 50 requests a second a requester, bursts of 100, over all processes |
/// | [`key_ttl`](Api::key_ttl) | an `Idempotency-Key` counts for 30 days |
/// | [`patience`](Api::patience) | 10 s for a body to arrive, and for the store to answer |
#[derive(Clone, Debug)]
pub struct Api {
    store: Arc<dyn Store>,
    offers: BTreeMap<String, Offer>,
    body_bytes_max: usize,
    rate: (Rate, u32),
    key_ttl: Duration,
    patience: Duration,
    #[cfg(feature = "credentials")]
    credentials: Option<crate::credentials::Credentials>,
}

/// What one route needs.
#[derive(Clone, Debug)]
struct Desk {
    api: Api,
    offer: Offer,
}

impl Api {
    /// Begins an API that offers nothing.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (rate, patience) = ((Rate::per_second(50), 100), Duration::from_secs(10));
        Self {
            store,
            offers: BTreeMap::new(),
            body_bytes_max: 1 << 20,
            rate,
            key_ttl: Duration::from_secs(30 * 24 * 3_600),
            patience,
            #[cfg(feature = "credentials")]
            credentials: None,
        }
    }

    /// Lets requesters write the credentials of their jobs: `PUT /PATH/credentials?job_id=ID`.
    #[cfg(feature = "credentials")]
    #[must_use]
    pub fn credentials(mut self, credentials: crate::credentials::Credentials) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Offers a kind of job; a later offer of the same path replaces it.
    #[must_use]
    pub fn offer(mut self, offer: Offer) -> Self {
        self.offers.insert(offer.path.clone(), offer);
        self
    }

    /// Sets the longest body.
    #[must_use]
    pub fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// Sets how many requests a requester may send, over all processes of the store.
    #[must_use]
    pub fn rate(mut self, rate: Rate, burst: u32) -> Self {
        self.rate = (rate, burst);
        self
    }

    /// Sets for how long the same `Idempotency-Key` gives the same job, also when that is pruned; after that
    /// it counts as new.
    #[must_use]
    pub fn key_ttl(mut self, ttl: Duration) -> Self {
        self.key_ttl = ttl;
        self
    }

    /// Sets how long a body may take to arrive, and the store to answer.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Gives the routes, to be mounted or served.
    pub fn router(self) -> Router {
        let document = Arc::new(openapi::document(&self));
        let mut router = Router::new()
            .route("/health/live", get(async || StatusCode::OK))
            .route("/health/ready", get(ready).with_state(self.clone()))
            .route("/openapi.json", get(async move || answer(StatusCode::OK, &*document)));
        for offer in self.offers.values() {
            let desk = Desk { api: self.clone(), offer: offer.clone() };
            let (path, status) = (format!("/{}", offer.path), format!("/{}/status", offer.path));
            router = router
                .route(&path, post(enqueue::enqueue).with_state(desk.clone()))
                .route(&status, get(status::status).with_state(desk.clone()));
            #[cfg(feature = "credentials")]
            if let Some(credentials) = self.credentials.clone() {
                let counter = credentials::Counter { desk, credentials };
                let path = format!("/{}/credentials", offer.path);
                router = router.route(&path, put(credentials::write).with_state(counter));
            }
        }
        router.method_not_allowed_fallback(async || {
            let detail = "the path does not know this method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
        })
    }

    /// Waits for the store, and no longer than it is worth.
    async fn asked<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T, Problem> {
        match tokio::time::timeout(self.patience, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                let detail = "the store did not answer in time";
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
                Err(Problem { retry_after: Some(1), ..problem })
            }
        }
    }
}

/// A JSON answer.
fn answer(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_string(body) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "answer not written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl Desk {
    /// Who asks, if they may; each request of theirs counts against their rate.
    async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = value.and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
        });
        let key = key.ok_or_else(Problem::unauthorized)?;
        let keys = ApiKeys::of(self.api.store.clone());
        let caller = self.api.asked(keys.caller(key)).await?.ok_or_else(Problem::unauthorized)?;
        let bucket = BucketName::new(format!("http/{}", caller.requester))?;
        let (rate, burst) = self.api.rate;
        let taken = self.api.store.records().take(Take::new(bucket, rate, burst));
        match self.api.asked(taken).await? {
            Taken::Granted => {}
            Taken::Wait(wait) => return Err(Problem::too_many(wait.as_secs() + 1)),
        }
        match caller.may_ask_for(&self.offer.kind) {
            true => Ok(caller),
            false => Err(Problem::forbidden()),
        }
    }
}

/// Whether the store answers; nothing is told of why it does not.
async fn ready(State(api): State<Api>) -> Response {
    let look = async {
        let id = RecordId::new("http.ready", "look")?;
        api.store.records().get(id).await
    };
    match api.asked(look).await {
        Ok(_) => StatusCode::OK.into_response(),
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: HTTP-1
    #[tokio::test]
    async fn a_store_that_does_not_answer_is_not_waited_for() {
        let store = Arc::new(leasehold_core::memory::MemoryStore::new());
        let api = Api::new(store).patience(Duration::from_millis(20));
        let silent = std::future::pending::<Result<()>>();
        let problem = api.asked(silent).await.unwrap_err();
        assert_eq!(problem.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(problem.retry_after, Some(1));
        assert_eq!(api.asked(async { Ok(7) }).await.ok(), Some(7));
    }

    /// Proves: HTTP-1
    #[test]
    fn a_path_is_one_segment_and_not_taken() {
        let offer = |path: &str| Offer::new(path, JobKind::new("k").unwrap());
        assert!(offer("transcode").is_ok() && offer("two-words_7").is_ok());
        for bad in ["", "health", "a/b", "a b", "{x}", "../x", "a?b"] {
            assert!(offer(bad).is_err(), "{bad:?}");
        }
    }
}
