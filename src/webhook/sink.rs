//! Owns the delivery of an event to its endpoint: whether it may be tried now, the request, and what
//! the status means. The relay owns order and attempts, and the outbox the budget.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::Uri;
use leasehold_core::retry::random_unit;
use leasehold_core::{Actor, Error, Failure, FailureCode, Result, Store};
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::attempt::Attempt;
use super::client::{self, Answer, Client};
use super::endpoint::{EndpointStatus, Endpoints};
use super::gate::Gates;
use super::sign::Signer;
use super::target::{Resolve, Resolver, System, Targets};
use crate::breaker::BreakerPolicy;
use crate::relay::{Delivery, Sink, Undelivered};

/// How long an event waits when the store did not answer.
const STORE_LOOK: Duration = Duration::from_secs(1);
const AGENT: &str = concat!("leasehold/", env!("CARGO_PKG_VERSION"));

/// Says which endpoint an event goes to.
#[async_trait]
pub trait Route: fmt::Debug + Send + Sync + 'static {
    /// Gives the endpoint's name; `None` where nothing is to be delivered.
    ///
    /// # Errors
    /// The failure of this attempt.
    async fn route(&self, event: &Delivery) -> Result<Option<String>, Failure>;
}

/// Every event goes to the endpoint that has its topic's name.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByTopic;

#[async_trait]
impl Route for ByTopic {
    async fn route(&self, event: &Delivery) -> Result<Option<String>, Failure> {
        Ok(Some(event.topic.as_str().to_owned()))
    }
}

/// Says who signs what goes to an endpoint; a [`Signer`] signs for all.
#[async_trait]
pub trait SignFor: fmt::Debug + Send + Sync + 'static {
    /// Gives the signer of an endpoint.
    ///
    /// # Errors
    /// The failure of this attempt.
    async fn signer(&self, endpoint: &str) -> Result<Signer, Failure>;
}

#[async_trait]
impl SignFor for Signer {
    async fn signer(&self, _endpoint: &str) -> Result<Self, Failure> {
        Ok(self.clone())
    }
}

/// Puts a [`WebhookSink`] together.
///
/// | What | Unless set |
/// |---|---|
/// | [`route`](SinkBuilder::route) | the endpoint with the topic's name |
/// | [`targets`](SinkBuilder::targets) | `https`, public addresses |
/// | [`timeout`](SinkBuilder::timeout) | 10 s for the whole request |
/// | [`concurrency`](SinkBuilder::concurrency) | 2 requests at once an endpoint |
/// | [`look_again`](SinkBuilder::look_again) | 10 s, give or take a quarter, while an endpoint is paused |
/// | [`cooldown`](SinkBuilder::cooldown) | 30 s, after half of at least 5 results in 60 s failed |
#[derive(Debug)]
pub struct SinkBuilder {
    store: Arc<dyn Store>,
    signers: Arc<dyn SignFor>,
    route: Arc<dyn Route>,
    targets: Targets,
    resolver: Resolver,
    timeout: Duration,
    concurrency: usize,
    cooldown: Duration,
    look_again: Duration,
    trusted: Vec<CertificateDer<'static>>,
}

impl SinkBuilder {
    /// Sets which endpoint an event goes to.
    #[must_use]
    pub fn route(mut self, route: impl Route) -> Self {
        self.route = Arc::new(route);
        self
    }

    /// Sets where webhooks may go.
    #[must_use]
    pub fn targets(mut self, targets: Targets) -> Self {
        self.targets = targets;
        self
    }

    /// Sets how names are looked up.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Sets how long a request may take, from the look-up to the answer's head.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many requests an endpoint gets at once; 0 counts as 1. Fewer than the relay's
    /// deliveries at once, or one slow endpoint holds back all others.
    #[must_use]
    pub fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests.max(1);
        self
    }

    /// Sets how long a broken endpoint is left alone before one probe.
    #[must_use]
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = cooldown;
        self
    }

    /// Sets after how long a paused endpoint is looked at again: how late its events may be after it
    /// was resumed.
    #[must_use]
    pub fn look_again(mut self, after: Duration) -> Self {
        self.look_again = after;
        self
    }

    /// Trusts certificates besides the machine's, given as PEM.
    ///
    /// # Errors
    /// `Invalid` for a text without certificates.
    pub fn trust(mut self, pem: &[u8]) -> Result<Self> {
        self.trusted.extend(client::certificates(pem)?);
        Ok(self)
    }

    /// Builds the sink, with the machine's certificates.
    ///
    /// # Errors
    /// `Invalid` for a certificate that cannot be trusted.
    pub fn build(self) -> Result<WebhookSink> {
        let policy = BreakerPolicy {
            failure_threshold: 0.5,
            window: Duration::from_secs(60),
            cooldown: self.cooldown,
            min_samples: 5,
        };
        let targets = self.targets.clone();
        Ok(WebhookSink {
            endpoints: Endpoints::of(self.store.clone()),
            store: self.store,
            signers: self.signers,
            route: self.route,
            targets: self.targets,
            client: Client::new(targets, self.resolver, self.trusted, self.timeout)?,
            gates: Gates::new(self.concurrency, policy),
            look_again: self.look_again,
        })
    }
}

/// Delivers events as signed HTTP requests.
///
/// The body is the payload as it was published. 2xx is delivered; 408, 423, 425, 429, 5xx and what
/// breaks on the way is tried again; 410 disables the endpoint; anything else is final.
#[derive(Debug)]
pub struct WebhookSink {
    store: Arc<dyn Store>,
    endpoints: Endpoints,
    signers: Arc<dyn SignFor>,
    route: Arc<dyn Route>,
    targets: Targets,
    client: Client,
    gates: Gates,
    look_again: Duration,
}

impl WebhookSink {
    /// Begins a sink whose endpoints and attempts are kept in this store.
    pub fn builder(store: Arc<dyn Store>, signers: impl SignFor) -> SinkBuilder {
        SinkBuilder {
            store,
            signers: Arc::new(signers),
            route: Arc::new(ByTopic),
            targets: Targets::public(),
            resolver: Arc::new(System),
            timeout: Duration::from_secs(10),
            concurrency: 2,
            cooldown: Duration::from_secs(30),
            look_again: Duration::from_secs(10),
            trusted: Vec::new(),
        }
    }

    /// The URL to ask, or why it is not asked.
    async fn target(&self, name: &str) -> Result<Uri, Undelivered> {
        let found = self.endpoints.get(name).await.map_err(|error| self.unread(&error))?;
        let none = || {
            let why = format!("there is no endpoint {name:?}");
            Failure::new(FailureCode::ConfigInvalid, why)
        };
        let endpoint = found.ok_or_else(none)?;
        match endpoint.status {
            EndpointStatus::Active => {}
            EndpointStatus::Paused => {
                let wait = self.look_again.mul_f64(0.75 + random_unit() / 2.0);
                return Err(Undelivered::Later(wait));
            }
            EndpointStatus::Disabled => {
                let why = endpoint.reason.unwrap_or_default();
                let why = format!("the endpoint is disabled: {why}");
                return Err(Failure::new(FailureCode::NotFound, why).into());
            }
        }
        let refuse = |why: String| Failure::new(FailureCode::PolicyRejected, why);
        let uri: Uri =
            endpoint.url.parse().map_err(|_| refuse("the endpoint's URL is none".to_owned()))?;
        self.targets.check(&uri).map_err(|why| refuse(why.to_string()))?;
        Ok(uri)
    }

    fn unread(&self, error: &Error) -> Undelivered {
        tracing::warn!(%error, "endpoint not read");
        match error.is_retryable() {
            true => Undelivered::Later(STORE_LOOK),
            false => Failure::new(FailureCode::ConfigInvalid, error.to_string()).into(),
        }
    }

    async fn headers(
        &self,
        name: &str,
        event: &Delivery,
    ) -> Result<Vec<(String, String)>, Failure> {
        let signer = self.signers.signer(name).await?;
        let body = event.payload.as_str().as_bytes();
        let signed = signer.sign(&event.id.to_string(), body);
        let mut headers =
            signed.map_err(|error| Failure::new(FailureCode::ConfigInvalid, error.to_string()))?;
        let fixed = [("content-type", "application/json"), ("user-agent", AGENT)];
        headers.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let trace = event.traceparent.clone().map(|trace| ("traceparent".to_owned(), trace));
        headers.extend(trace);
        Ok(headers)
    }

    /// An endpoint that is gone is asked no more.
    async fn disable(&self, name: &str) -> Result<(), Undelivered> {
        let told = async {
            let actor = Actor::new("webhook sink")?;
            self.endpoints.disable(name, actor, "it answered 410 Gone").await
        };
        told.await.map_err(|error| {
            tracing::warn!(%error, endpoint = name, "endpoint not disabled");
            Undelivered::Later(STORE_LOOK)
        })
    }
}

/// What speaks against an answer, if anything does.
fn failure_of(answer: &Answer) -> Option<Failure> {
    if (200..=299).contains(&answer.status) {
        return None;
    }
    let failure = Failure::from_http_status(answer.status);
    Some(match answer.retry_after {
        Some(wait) => failure.with_retry_after(wait),
        None => failure,
    })
}

#[async_trait]
impl Sink for WebhookSink {
    async fn deliver(&self, event: &Delivery) -> Result<(), Undelivered> {
        let Some(name) = self.route.route(event).await? else { return Ok(()) };
        let uri = self.target(&name).await?;
        let pass = self.gates.enter(&name).await.map_err(Undelivered::Later)?;
        let headers = self.headers(&name, event).await?;
        let body = event.payload.as_str().as_bytes();
        let answer = self.client.post(&uri, &headers, body).await;
        let failure = answer.as_ref().map_or_else(|failure| Some(failure.clone()), failure_of);
        // What is refused for good was answered, and says nothing against the endpoint.
        let took = pass.done(failure.as_ref().is_some_and(Failure::is_retryable));
        let attempt = Attempt::of((event.attempt, &name, took), &answer, failure.as_ref());
        if let Err(error) = attempt.keep(self.store.records(), event.id).await {
            tracing::warn!(%error, event = %event.id, "attempt not recorded");
        }
        if answer.is_ok_and(|answer| answer.status == 410) {
            self.disable(&name).await?;
        }
        match failure {
            None => Ok(()),
            Some(failure) => Err(failure.into()),
        }
    }

    /// A receiver knows an event again by its id.
    fn is_idempotent(&self) -> bool {
        true
    }
}
