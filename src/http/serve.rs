//! Owns a server for an API's router: over plain HTTP/1.1, with bounds on what a client may hold without
//! asking for anything. Knows no routes, and leaves TLS to what stands before it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::linger::{Lent, hear_out};

/// The most that a request's head may take, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long it waits when no connection can be taken, for want of file descriptors say.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves a router until it is told to stop.
///
/// | What | Unless set |
/// |---|---|
/// | [`head_patience`](Server::head_patience) | 10 s for a head to arrive, from the first look for it; the connection ends with it |
/// | [`connections_max`](Server::connections_max) | 1,000 at once; more wait until one ends |
/// | [`grace`](Server::grace) | 10 s for what is under way when it is told to stop |
///
/// A head of more than 64 KiB is answered by 431. Whoever is answered before all was sent, by that or by
/// a 401 or 413, may send on for a while: up to 16 MiB, for as long as a head may take, are read and thrown
/// away, since closing at once would take the answer along.
///
/// ```no_run
/// use leasehold::CancellationToken;
/// use leasehold::http::Server;
///
/// # async fn doc(router: axum::Router, shutdown: CancellationToken) -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// Server::new().serve(listener, router, shutdown).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Server {
    head_patience: Duration,
    connections_max: usize,
    grace: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server with the usual bounds.
    pub fn new() -> Self {
        let ten = Duration::from_secs(10);
        Self { head_patience: ten, connections_max: 1_000, grace: ten }
    }

    /// Sets how long a head may take to arrive, and a connection may be idle.
    pub fn head_patience(mut self, patience: Duration) -> Self {
        self.head_patience = patience;
        self
    }

    /// Sets how many connections are served at once; 0 counts as 1.
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Sets how long what is under way may take once it is told to stop.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Serves until `shutdown`, then lets what is under way end. A connection that fails is logged.
    pub async fn serve(self, listener: TcpListener, router: Router, shutdown: CancellationToken) {
        let (open, slots) =
            (GracefulShutdown::new(), Arc::new(Semaphore::new(self.connections_max)));
        loop {
            let next = tokio::select! {
                next = next(&listener, &slots) => next,
                () = shutdown.cancelled() => break,
            };
            let Some((stream, slot)) = next else { continue };
            self.begin((stream, slot), router.clone(), &open);
        }
        drop(listener);
        if tokio::time::timeout(self.grace, open.shutdown()).await.is_err() {
            tracing::warn!("requests were cut off, their grace was over");
        }
    }

    fn begin(
        self,
        (stream, slot): (TcpStream, OwnedSemaphorePermit),
        router: Router,
        open: &GracefulShutdown,
    ) {
        let (lent, back) = Lent::new(stream);
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_patience)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(lent), TowerToHyperService::new(router));
        let served = open.watch(served);
        tokio::spawn(async move {
            let _until_it_ends = slot;
            if let Err(error) = served.await {
                tracing::debug!(%error, "connection ended");
            }
            if let Ok(stream) = back.await {
                hear_out(stream, self.head_patience).await;
            }
        });
    }
}

/// The next connection, once there is room for it; `None` where none could be taken.
async fn next(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, slot)),
        Err(error) => {
            tracing::warn!(%error, "no connection could be taken");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}
