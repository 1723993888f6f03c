//! Owns the requests to a collector: the connections of webhooks, on threads of their own, so that spans go
//! out whatever the program's own tasks do. Knows nothing of spans.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use leasehold_core::{Error, ErrorKind, Result};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use tokio::runtime::Runtime;

use crate::webhook::way::Pool;
use crate::webhook::{Targets, WayOut};

/// How much of an answer is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Posts to a collector, which the operator named: any address will do.
pub(super) struct Client {
    pool: Pool<Full<Bytes>>,
    timeout: Duration,
    runtime: Option<Runtime>,
    /// Whether the last request failed; a collector that is away is told of once.
    is_away: Arc<AtomicBool>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(timeout: Duration) -> Result<Self> {
        let way = WayOut::to(Targets::public().allow_http().allow_private());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("leasehold-traces")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, "export traces", "no thread").with_source(error)
            })?;
        let is_away = Arc::default();
        Ok(Self { pool: way.pool()?, timeout, runtime: Some(runtime), is_away })
    }

    /// Whether the last request failed, also to be asked when the client has gone elsewhere.
    pub(super) fn is_away(&self) -> Arc<AtomicBool> {
        self.is_away.clone()
    }

    async fn ask(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (pool, timeout) = (self.pool.clone(), self.timeout);
        let asked = async move {
            let response = pool.request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        let runtime = self.runtime.as_ref().ok_or("it has ended")?;
        runtime.spawn(async move { tokio::time::timeout(timeout, asked).await }).await??
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.ask(request).await;
        let why = match &answer {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("the collector answered {}", response.status())),
            Err(error) => Some(error.to_string()),
        };
        let was_away = self.is_away.swap(why.is_some(), Ordering::Relaxed);
        match why {
            Some(error) if !was_away => tracing::warn!(error, "traces are not exported"),
            None if was_away => tracing::info!("traces are exported again"),
            _ => {}
        }
        answer
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Where it is dropped may be a task, which may not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
