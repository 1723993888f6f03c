//! Owns the way out to other servers: which targets are allowed, how names are looked up, which
//! certificates are trusted, how long a server may be silent. Whatever calls out goes by one of these, and
//! refuses to know connections of its own.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Body;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use leasehold_core::{Error, Result};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::connect::Connector;
use super::target::{Resolve, Resolver, System, Targets};

/// The most that an answer's head may take, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// For how long an idle connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// A pool of judged connections, for requests with such bodies.
pub(crate) type Pool<B> = Client<Connector, B>;

/// How other servers are reached; [`Targets`] alone will often do in its place.
///
/// | What | Unless set |
/// |---|---|
/// | [`to`](WayOut::to) | `https`, public addresses |
/// | [`resolver`](WayOut::resolver) | the machine's own look-up |
/// | [`trust`](WayOut::trust) | the machine's certificates |
/// | [`timeout`](WayOut::timeout) | 10 s; 30 s for storage |
///
/// ```
/// use std::time::Duration;
///
/// use leasehold::webhook::{Targets, WayOut};
///
/// let inside = Targets::public().allow("10.0.0.7".parse()?);
/// let way = WayOut::to(inside).timeout(Duration::from_secs(3));
/// # let _ = way;
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WayOut {
    targets: Targets,
    resolver: Resolver,
    trusted: Vec<CertificateDer<'static>>,
    timeout: Option<Duration>,
}

impl Default for WayOut {
    fn default() -> Self {
        Self::to(Targets::public())
    }
}

impl From<Targets> for WayOut {
    fn from(targets: Targets) -> Self {
        Self::to(targets)
    }
}

impl WayOut {
    /// Goes to these targets and no others.
    #[must_use]
    pub fn to(targets: Targets) -> Self {
        Self { targets, resolver: Arc::new(System), trusted: Vec::new(), timeout: None }
    }

    /// Sets how names are looked up.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Trusts certificates besides the machine's, given as PEM.
    ///
    /// # Errors
    /// `Invalid` for a text without certificates.
    pub fn trust(mut self, pem: &[u8]) -> Result<Self> {
        let refuse = |why: &str| Error::invalid("trust certificates", why);
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let read = read.map_err(|error| refuse("no PEM text").with_source(error))?;
        if read.is_empty() {
            return Err(refuse("the text holds no certificate"));
        }
        self.trusted.extend(read);
        Ok(self)
    }

    /// Sets how long a request may take, from the look-up to the answer's head.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn targets(&self) -> &Targets {
        &self.targets
    }

    /// How long a request may take.
    pub(crate) fn timeout_or(&self, unless_set: Duration) -> Duration {
        self.timeout.unwrap_or(unless_set)
    }

    /// Connections of this way. What breaks is the caller's to try again.
    pub(crate) fn pool<B>(&self) -> Result<Pool<B>>
    where
        B: Body + Send,
        B::Data: Send,
    {
        let targets = Arc::new(self.targets.clone());
        let connector = Connector { targets, resolver: self.resolver.clone(), tls: self.tls()? };
        Ok(Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(4)
            .retry_canceled_requests(false)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            .build(connector))
    }

    /// What is trusted: the machine's certificates, and some more.
    fn tls(&self) -> Result<TlsConnector> {
        let mut roots = RootCertStore::empty();
        let (added, ignored) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if added == 0 || ignored > 0 {
            tracing::info!(
                "{added} certificates of the machine are trusted, {ignored} cannot be read"
            );
        }
        for trusted in &self.trusted {
            roots.add(trusted.clone()).map_err(|error| {
                Error::invalid("build client", "no root certificate").with_source(error)
            })?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::invalid("build client", "no TLS").with_source(error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    }
}
