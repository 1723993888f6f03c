//! Owns the HTTP client of storage: the judged connections of webhooks, and bodies of any size. Knows no
//! credentials.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use leasehold_core::Result;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::webhook::Targets;
use crate::webhook::client::tls;
use crate::webhook::connect::Connector;
use crate::webhook::target::Resolver;

pub(super) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Sends requests over one pool of connections.
#[derive(Clone)]
pub(super) struct Service {
    pool: Pool<Connector, Body>,
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
    pub(super) fn new(
        targets: Targets,
        resolver: Resolver,
        trusted: Vec<CertificateDer<'static>>,
        timeout: Duration,
    ) -> Result<Self> {
        let tls = tls(trusted)?;
        let connector = Connector { targets: Arc::new(targets), resolver, tls };
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(4)
            .build(connector);
        Ok(Self { pool, timeout })
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
