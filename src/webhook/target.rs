//! Owns which targets are allowed, and how a name becomes the addresses that are connected to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use hyper::Uri;

use super::address::is_public;

/// Where webhooks may go: unless said otherwise by `https`, to public addresses only.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    http: bool,
    private: bool,
    allowed: Vec<IpAddr>,
}

/// Why a target is not connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocked(pub(crate) String);

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Blocked {}

impl Targets {
    /// `https` to public addresses.
    #[must_use]
    pub fn public() -> Self {
        Self::default()
    }

    /// Allows `http` too: bodies and headers can be read on the way.
    #[must_use]
    pub fn allow_http(mut self) -> Self {
        self.http = true;
        self
    }

    /// Allows every private, link-local and loopback address: whoever sets an endpoint's URL can then
    /// reach what only this machine reaches.
    #[must_use]
    pub fn allow_private(mut self) -> Self {
        self.private = true;
        self
    }

    /// Allows one address that is not public.
    #[must_use]
    pub fn allow(mut self, address: IpAddr) -> Self {
        self.allowed.push(address);
        self
    }

    /// Whether `http` is allowed.
    #[cfg(feature = "storage")]
    pub(crate) fn allows_http(&self) -> bool {
        self.http
    }

    /// Judges a URL before anything is looked up.
    pub(crate) fn check(&self, uri: &Uri) -> Result<(), Blocked> {
        let scheme = uri.scheme_str().unwrap_or_default();
        if scheme != "https" && !(self.http && scheme == "http") {
            return Err(Blocked(format!("the scheme {scheme:?} is not allowed")));
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') || uri.host().is_none_or(str::is_empty) {
            return Err(Blocked("the URL must name a host, and no user".to_owned()));
        }
        Ok(())
    }

    /// Judges an address that is about to be connected to, or is.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), Blocked> {
        let plain = address.to_canonical();
        let is_listed = self.allowed.iter().any(|allowed| allowed.to_canonical() == plain);
        if self.private || is_listed || is_public(address) {
            return Ok(());
        }
        Err(Blocked(format!("the address {address} is not public")))
    }
}

/// Looks a host's addresses up; the connection goes to one of these very answers.
#[async_trait]
pub trait Resolve: fmt::Debug + Send + Sync + 'static {
    /// Gives the addresses of a host.
    ///
    /// # Errors
    /// Those of the look-up.
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>>;
}

/// The machine's own look-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct System;

#[async_trait]
impl Resolve for System {
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// A look-up, shared by all connections.
pub(crate) type Resolver = Arc<dyn Resolve>;
