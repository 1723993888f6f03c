//! Owns notifications over HTTP: one request that carries an idempotency key, and one that asks by it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use hyper::{Method, Uri};
use leasehold_core::{Error, Failure, FailureCode, Result};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::provider::{Looked, Message, Provider, Question};
use crate::webhook::WayOut;
use crate::webhook::client::{Answer, BODY_BYTES_MAX, Client};

/// How long a request may take up to the answer's head.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer's body is waited for.
const BODY_WAIT: Duration = Duration::from_secs(10);

/// Puts an [`HttpProvider`] together.
#[derive(Debug)]
pub struct HttpProviderBuilder {
    send: String,
    lookup: Option<String>,
    headers: Vec<(String, SecretString)>,
    way: WayOut,
}

impl HttpProviderBuilder {
    /// Sets where a message is asked for: `{token}` stands for its token. Without it the provider is not
    /// asked, and must know the idempotency key again.
    #[must_use]
    pub fn lookup(mut self, url: impl Into<String>) -> Self {
        self.lookup = Some(url.into());
        self
    }

    /// Adds a header to every request, such as `authorization`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: SecretString) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Sets how the provider is reached: by [`Targets`](crate::webhook::Targets), or by a [`WayOut`]; unless
    /// set by `https`, at public addresses, with 10 s for a request.
    #[must_use]
    pub fn way_out(mut self, way: impl Into<WayOut>) -> Self {
        self.way = way.into();
        self
    }

    /// Builds the provider.
    ///
    /// # Errors
    /// `Invalid` for a URL that is none or not allowed, and for a certificate that cannot be trusted.
    pub fn build(self) -> Result<HttpProvider> {
        let refuse = |why: String| Error::invalid("build HTTP provider", why);
        let Self { send, lookup, headers, way } = self;
        let sample = lookup.as_ref().map(|url| url.replace("{token}", "0"));
        for url in std::iter::once(&send).chain(&sample) {
            let uri: Uri = url.parse().map_err(|_| refuse("the URL is none".to_owned()))?;
            way.targets().check(&uri).map_err(|why| refuse(why.to_string()))?;
        }
        let client = Client::new(&way, TIMEOUT)?;
        Ok(HttpProvider { client, send, lookup, headers })
    }
}

/// Sends each message as one `POST` with the header `idempotency-key`.
///
/// The body is `{"recipient", "subject", "version", "content"}`, the last as it was planned. The answer
/// is 2xx and may hold `{"id": "…"}`; other statuses count as for webhooks. A message is asked for by
/// `GET`: 200 with its id, or 404.
pub struct HttpProvider {
    client: Client,
    send: String,
    lookup: Option<String>,
    headers: Vec<(String, SecretString)>,
}

/// Without what may be secret.
impl fmt::Debug for HttpProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.send.split(['?', '#']).next().unwrap_or_default();
        f.debug_struct("HttpProvider").field("send", &place).finish_non_exhaustive()
    }
}

impl HttpProvider {
    /// Begins a provider at a URL.
    pub fn builder(send: impl Into<String>) -> HttpProviderBuilder {
        HttpProviderBuilder {
            send: send.into(),
            lookup: None,
            headers: Vec::new(),
            way: WayOut::default(),
        }
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, Failure> {
        let broken = |_| Failure::new(FailureCode::ConfigInvalid, "the provider's URL is none");
        let uri: Uri = url.parse().map_err(broken)?;
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret()));
        let headers: Vec<(String, String)> = own
            .chain(more.iter().copied())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        self.client.ask(method, &uri, &headers, body, (BODY_BYTES_MAX, BODY_WAIT)).await
    }
}

/// The body of a message, the same bytes each time.
fn body(message: &Message<'_>) -> Result<Vec<u8>, Box<Failure>> {
    let text = |text: &str| {
        serde_json::to_string(text)
            .map_err(|error| Box::new(Failure::new(FailureCode::PayloadInvalid, error.to_string())))
    };
    let (recipient, subject) = (text(message.recipient)?, text(message.subject)?);
    let (version, content) = (message.version, message.payload);
    Ok(format!(
        r#"{{"recipient":{recipient},"subject":{subject},"version":{version},"content":{content}}}"#
    )
    .into_bytes())
}

/// The id that a good answer holds; else the token, by which the provider knows the message too.
fn id(answer: &Answer, token: &str) -> String {
    let read: Option<Value> = serde_json::from_slice(&answer.excerpt).ok();
    match read.as_ref().and_then(|value| value.get("id")) {
        Some(Value::String(id)) if !id.is_empty() && id.len() <= 500 => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => token.to_owned(),
    }
}

fn failure_of(answer: &Answer) -> Failure {
    let failure = Failure::from_http_status(answer.status);
    match answer.retry_after {
        Some(wait) => failure.with_retry_after(wait),
        None => failure,
    }
}

#[async_trait]
impl Provider for HttpProvider {
    async fn send(&self, message: &Message<'_>) -> Result<String, Failure> {
        let headers = [("content-type", "application/json"), ("idempotency-key", message.token)];
        let body = body(message).map_err(|failure| *failure)?;
        let answer = self.ask(Method::POST, &self.send, &headers, &body).await?;
        match answer.status {
            200..=299 => Ok(id(&answer, message.token)),
            _ => Err(failure_of(&answer)),
        }
    }

    async fn lookup(&self, question: &Question<'_>) -> Result<Looked, Failure> {
        let Some(url) = &self.lookup else { return Ok(Looked::NotOffered) };
        let url = url.replace("{token}", question.token);
        let answer = self.ask(Method::GET, &url, &[], b"").await?;
        match answer.status {
            200..=299 => Ok(Looked::Found(id(&answer, question.token))),
            404 => Ok(Looked::Absent),
            _ => Err(failure_of(&answer)),
        }
    }
}
