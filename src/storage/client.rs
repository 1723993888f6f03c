//! Owns the HTTP client of storage: the judged connections of webhooks, and bodies of any size. Knows no
//! credentials.

use std::fmt;
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, Request, Response, StatusCode};
use leasehold_core::Result;
use leasehold_core::failure::retry_after;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

use crate::webhook::WayOut;
use crate::webhook::way::Pool;

/// How long a server may be silent.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Sends requests over one pool of connections.
#[derive(Clone)]
pub(super) struct Service {
    pool: Pool<Body>,
    timeout: Duration,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The server was silent for too long.
#[derive(Debug)]
pub(super) struct Late;

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer in time")
    }
}

impl std::error::Error for Late {}

/// The server answered, and not well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
}

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer had status {}", self.status)
    }
}

impl std::error::Error for Answered {}

impl Answered {
    /// What stands in an answer's head.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let now = crate::webhook::now().ok();
        let retry_after = asked.zip(now).and_then(|(text, now)| retry_after(text, now));
        Self { status: status.as_u16(), retry_after }
    }
}

/// The statuses that `object_store` itself makes something of.
const ITS_OWN: [u16; 7] = [304, 401, 403, 404, 405, 409, 412];
/// How much of an answer is read to learn why a request was wrong, in bytes.
const WHY_BYTES_MAX: usize = 16 * 1024;
/// The code in such an answer.
const EXPIRED: &[u8] = b"<Code>ExpiredToken</Code>";

impl Service {
    pub(super) fn new(way: &WayOut) -> Result<Self> {
        Ok(Self { pool: way.pool()?, timeout: way.timeout_or(TIMEOUT) })
    }

    /// Sends a request; the answer's head has to come in time, counted from when the body is gone where
    /// the body is small.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, HttpError> {
        match tokio::time::timeout(self.timeout, self.pool.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() => {
                Err(HttpError::new(HttpErrorKind::Connect, error))
            }
            Ok(Err(error)) => Err(HttpError::new(HttpErrorKind::Request, error)),
            Err(_) => Err(HttpError::new(HttpErrorKind::Timeout, Late)),
        }
    }

    /// What a wrong request was refused for: S3 answers so to a session that is over.
    async fn why(&self, answered: Answered, body: Incoming) -> Answered {
        let read = Limited::new(body, WHY_BYTES_MAX).collect();
        let read = tokio::time::timeout(self.timeout, read).await;
        let text = read.ok().and_then(Result::ok).map(|read| read.to_bytes()).unwrap_or_default();
        let is_over = text.windows(EXPIRED.len()).any(|part| part == EXPIRED);
        if is_over { Answered { status: 403, ..answered } } else { answered }
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }
}

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let (parts, body) = self.send(request).await?.into_parts();
        let answered = Answered::of(parts.status, &parts.headers);
        if !parts.status.is_success() && !ITS_OWN.contains(&answered.status) {
            let answered = match answered.status {
                400 => self.why(answered, body).await,
                _ => answered,
            };
            return Err(HttpError::new(HttpErrorKind::Unknown, answered));
        }
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

impl HttpConnector for Service {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
