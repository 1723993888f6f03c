//! Owns the metrics of a process that plays a role: the endpoint that serves them and the looks at the
//! store. Bounds what a client may hold: each connection is a file of the process, which its jobs need too.
//! Refuses to know what is counted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use leasehold::circuit::CircuitBreakers;
use leasehold::http::Server;
use leasehold::metrics::{CONTENT_TYPE, Metrics};
use leasehold::{CancellationToken, Error, ErrorKind, QueueName, Result, Store};
use tokio::net::TcpListener;

use crate::config::Config;

/// How many connections are served at once.
pub const CONNECTIONS_MAX: usize = 64;
/// How long the head of a request may take, and a connection may be idle.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// Begins the counts, with a name for each configured queue.
///
/// # Errors
/// `Invalid` for a queue's name that the store would refuse.
pub(super) fn of(config: &Config, breakers: &Arc<CircuitBreakers>) -> Result<Arc<Metrics>> {
    let names = config.map("worker.queues").iter();
    let queues: Vec<QueueName> =
        names.map(|(_, queue)| QueueName::new(queue)).collect::<Result<_>>()?;
    Ok(Arc::new(Metrics::new(&queues).breakers(breakers.clone())))
}

/// Takes the port; `None` where none is wanted, or where the default one is another's.
///
/// # Errors
/// `Unavailable` when a port that was asked for cannot be had.
pub(super) async fn listen(config: &Config) -> Result<Option<TcpListener>> {
    const PORT: &str = "observability.metrics_port";
    let port = u16::try_from(config.int(PORT)).unwrap_or_default();
    let host = config.text("observability.metrics_host").parse();
    let Ok(host) = host.map_err(|_| ()) else { return Ok(None) };
    if port == 0 {
        return Ok(None);
    }
    match TcpListener::bind(SocketAddr::new(host, port)).await {
        Ok(listener) => Ok(Some(listener)),
        // Several processes on one machine must not need a port each in their configuration.
        Err(error) if !config.is_set(PORT) => {
            crate::log_line!(
                warn,
                "no metrics are served, the default port {port} of {PORT} cannot be had: {error}"
            );
            Ok(None)
        }
        Err(error) => {
            let why = format!(
                "{PORT}: port {port} cannot be had: {error}; another one may be free, and 0 switches metrics off"
            );
            Err(Error::new(ErrorKind::Unavailable, "start", why))
        }
    }
}

/// Samples the store, and serves until the process ends.
pub(super) fn start(
    config: &Config,
    listener: Option<TcpListener>,
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    shutdown: &CancellationToken,
) {
    let (every, until) = (config.duration("observability.queue_sample_interval"), shutdown.clone());
    if let Some(listener) = listener {
        let watched = metrics.clone();
        tokio::spawn(async move { watched.watch(store, every, until).await });
        tokio::spawn(serve(listener, metrics, HEAD_PATIENCE));
    }
}

/// Answers `GET /metrics`, and nothing else, for as long as it is polled.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>, head_patience: Duration) {
    let answer = move || {
        let text = metrics.text();
        async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], text) }
    };
    let app = Router::new().route("/metrics", get(answer));
    let server = Server::new().connections_max(CONNECTIONS_MAX).head_patience(head_patience);
    server.serve(listener, app, CancellationToken::new()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: CLI-1
    #[tokio::test]
    async fn a_port_that_is_taken_is_named_with_its_key_and_the_way_out() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = taken.local_addr().unwrap().port().to_string();
        let environment = [("OBSERVABILITY_METRICS_PORT", port.as_str())];
        let environment = environment.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let config = crate::config::load(None, &environment).unwrap().config;
        let said = listen(&config).await.unwrap_err().to_string();
        for part in ["observability.metrics_port", port.as_str(), "0 switches metrics off"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
