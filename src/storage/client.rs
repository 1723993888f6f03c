//! Owns the HTTP client of storage: the judged connections of webhooks, and bodies of any size. Knows no
//! credentials.

use std::fmt;
use std::time::Duration;

use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use leasehold_core::Result;
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

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }
}

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let (parts, body) = self.send(request).await?.into_parts();
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

impl HttpConnector for Service {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
