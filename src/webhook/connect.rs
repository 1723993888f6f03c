//! Owns how a connection is made: look up once, judge every address, connect to a judged one, judge
//! what was really connected to, then TLS. Refuses to know what is sent over it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::target::{Blocked, Resolver, Targets};

/// The error of a connection that was not made.
type Refused = Box<dyn std::error::Error + Send + Sync>;

/// Makes connections to allowed targets only.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) targets: Arc<Targets>,
    pub(crate) resolver: Resolver,
    pub(crate) tls: TlsConnector,
}

impl Connector {
    async fn connect(self, uri: Uri) -> Result<TokioIo<Stream>, Refused> {
        self.targets.check(&uri)?;
        let is_tls = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let found = self.resolver.resolve(&host, port).await;
        let addresses = found.map_err(|error| Unresolved(error.to_string()))?;
        // One private address among public ones is refused too: the answer is not to be trusted.
        addresses.iter().try_for_each(|to| self.targets.check_address(to.ip()))?;
        let mut last = io::Error::other("the name has no address");
        for to in addresses {
            match TcpStream::connect(to).await {
                Ok(stream) => {
                    self.targets.check_address(stream.peer_addr()?.ip())?;
                    stream.set_nodelay(true)?;
                    return Ok(TokioIo::new(self.dress(stream, is_tls, host).await?));
                }
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }

    async fn dress(self, stream: TcpStream, is_tls: bool, host: String) -> Result<Stream, Refused> {
        if !is_tls {
            return Ok(Stream::Plain(stream));
        }
        let name = ServerName::try_from(host)
            .map_err(|_| Blocked("the host is no name for TLS".to_owned()))?;
        Ok(Stream::Tls(Box::new(self.tls.connect(name, stream).await?)))
    }
}

/// The name has no address, or nobody could be asked.
#[derive(Debug)]
pub(crate) struct Unresolved(String);

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the name was not resolved: {}", self.0)
    }
}

impl std::error::Error for Unresolved {}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Refused>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A connection, with TLS or without.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
