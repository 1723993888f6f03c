//! Owns the delivery of an event to its endpoint: whether it may be tried now, the request, and what
//! the status means. The relay owns order and attempts, and the outbox the budget.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::Uri;
use leasehold_core::event::Ordering;
use leasehold_core::retry::random_unit;
use leasehold_core::{
    Actor, Error, Failure, FailureCode, Json, NewEvent, Result, Store, StoreExt, Topic,
};
use serde::Serialize;

use super::attempt::Attempt;
use super::client::{Answer, Client};
use super::endpoint::{EndpointStatus, Endpoints};
use super::gate::Gates;
use super::sign::Signer;
use super::target::Targets;
use super::way::WayOut;
use crate::breaker::BreakerPolicy;
use crate::observe::{self, Alert, Observer};
use crate::relay::{Delivery, Sink, Undelivered};

/// How long an event waits when the store did not answer.
const STORE_LOOK: Duration = Duration::from_secs(1);
/// How long a request may take, from the look-up to the answer's head.
const TIMEOUT: Duration = Duration::from_secs(10);
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
/// | [`way_out`](SinkBuilder::way_out) | `https`, public addresses; 10 s for the whole request |
/// | [`concurrency`](SinkBuilder::concurrency) | 2 requests at once an endpoint |
/// | [`look_again`](SinkBuilder::look_again) | 10 s, give or take a quarter, while an endpoint is paused |
/// | [`cooldown`](SinkBuilder::cooldown) | 30 s, after half of at least 5 results in 60 s failed |
#[derive(Debug)]
pub struct SinkBuilder {
    store: Arc<dyn Store>,
    signers: Arc<dyn SignFor>,
    route: Arc<dyn Route>,
    way: WayOut,
    concurrency: usize,
    cooldown: Duration,
    look_again: Duration,
    observer: Arc<dyn Observer>,
}

impl SinkBuilder {
    /// Sets which endpoint an event goes to.
    #[must_use]
    pub fn route(mut self, route: impl Route) -> Self {
        self.route = Arc::new(route);
        self
    }

    /// Sets how endpoints are reached: by [`Targets`](super::Targets), or by a [`WayOut`].
    #[must_use]
    pub fn way_out(mut self, way: impl Into<WayOut>) -> Self {
        self.way = way.into();
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

    /// Sets who is told of endpoints that are left alone or disabled; the metrics of this process, say.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
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
        Ok(WebhookSink {
            endpoints: Endpoints::of(self.store.clone()),
            store: self.store,
            signers: self.signers,
            route: self.route,
            targets: self.way.targets().clone(),
            client: Client::new(&self.way, TIMEOUT)?,
            gates: Gates::new(self.concurrency, policy, self.observer.clone()),
            look_again: self.look_again,
            observer: self.observer,
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
    observer: Arc<dyn Observer>,
}

impl WebhookSink {
    /// Begins a sink whose endpoints and attempts are kept in this store.
    pub fn builder(store: Arc<dyn Store>, signers: impl SignFor) -> SinkBuilder {
        SinkBuilder {
            store,
            signers: Arc::new(signers),
            route: Arc::new(ByTopic),
            way: WayOut::default(),
            concurrency: 2,
            cooldown: Duration::from_secs(30),
            look_again: Duration::from_secs(10),
            observer: observe::nobody(),
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
            // Before it is disabled: heard twice after a crash, but heard.
            let payload = Json::of(&Told { alert: Alert::EndpointDisabled.id(), endpoint: name })?;
            let event = NewEvent::new(Topic::new("leasehold.alerts")?, payload);
            self.store.publish_one(event.ordering(Ordering::Unordered)).await?;
            let actor = Actor::new("webhook sink")?;
            self.endpoints.gone(name, actor).await
        };
        told.await.map_err(|error| {
            tracing::warn!(%error, "endpoint {name} not disabled");
            Undelivered::Later(STORE_LOOK)
        })?;
        self.observer.alerted(Alert::EndpointDisabled);
        Ok(())
    }
}

/// What a person hears of an endpoint.
#[derive(Serialize)]
struct Told<'a> {
    alert: &'static str,
    endpoint: &'a str,
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
            tracing::warn!(%error, "attempt of event {} not recorded", event.id);
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
