//! Owns one connection through the proxy: its bytes both ways, and how a fault that strikes here hurts it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream};

use super::proxy::{End, Fault, Shared, Way};
use super::wire::{Round, Session};

/// The longest wait for the server's answer to a commit whose client is gone.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Upstream {
    Tcp(String),
    Unix(PathBuf),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Both halves of one side.
type Ends<'a, S> = (&'a mut ReadHalf<S>, &'a mut WriteHalf<S>);

/// The server that a URL names, and the URL that leads to it over a port of this machine.
pub(super) fn redirected(url: &str, port: u16) -> io::Result<(Upstream, String)> {
    let refuse = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    let (scheme, rest) = url.split_once("://").ok_or_else(|| refuse("not a postgres URL"))?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = place.split_once('/').unwrap_or((place, ""));
    let (user, server) = match authority.rsplit_once('@') {
        Some((user, server)) => (format!("{user}@"), server),
        None => (String::new(), authority),
    };
    let (mut host, mut its_port) = match server.rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), port.to_owned()),
        None => (server.to_owned(), "5432".to_owned()),
    };
    let mut kept = Vec::new();
    for parameter in query.split('&').filter(|it| !it.is_empty()) {
        match parameter.split_once('=').unwrap_or((parameter, "")) {
            ("host", value) => host = value.replace("%2F", "/").replace("%2f", "/"),
            ("port", value) => its_port = value.to_owned(),
            ("sslmode", "disable") => {}
            ("sslmode" | "sslrootcert", _) => return Err(refuse("nothing can be read under TLS")),
            _ => kept.push(parameter),
        }
    }
    let upstream = if host.starts_with('/') {
        Upstream::Unix(PathBuf::from(host).join(format!(".s.PGSQL.{its_port}")))
    } else if host.is_empty() || host.contains(',') {
        return Err(refuse("the URL names no single server"));
    } else {
        Upstream::Tcp(format!("{host}:{its_port}"))
    };
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Ok((upstream, format!("{scheme}://{user}127.0.0.1:{port}/{database}{query}")))
}

impl Upstream {
    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Self::Unix(path) => Box::new(UnixStream::connect(path).await?),
        })
    }
}

/// Both ends of a connection, and what is on its way.
struct Connection<'a> {
    shared: &'a Shared,
    session: Session,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    /// What the server says to a commit while it is not known whether that may be carried.
    held: Vec<u8>,
    /// How it ends once everything on its way has gone.
    end: Option<End>,
    pause: Duration,
    /// A commit that goes to the server after so long, its client gone.
    late: Option<Duration>,
    /// Nothing more goes to the client, whose commit has gone; it ends with the answer.
    silenced: bool,
}

/// Carries until one of the two, or a fault, ends it.
pub(super) async fn carry(client: TcpStream, to: &Upstream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut connection = Connection {
        shared,
        session: Session::new(),
        to_server: Vec::new(),
        to_client: Vec::new(),
        held: Vec::new(),
        end: None,
        pause: Duration::ZERO,
        late: None,
        silenced: false,
    };
    let (server_in, server_out) = tokio::io::split(to.connect().await?);
    let (mut client_in, mut client_out) = tokio::io::split(client);
    let (mut server_in, mut server_out) = (server_in, server_out);
    let ended =
        connection.run((&mut client_in, &mut client_out), (&mut server_in, &mut server_out)).await;
    if let Some(wait) = connection.late {
        drop(client_in.unsplit(client_out));
        tokio::time::sleep(wait).await;
        server_out.write_all(&connection.to_server).await?;
        let answer = connection.until_answered(&mut server_in);
        let _silent = tokio::time::timeout(ANSWER_WAIT, answer).await;
        return Ok(());
    }
    if connection.end == Some(End::Reset) {
        client_in.unsplit(client_out).set_zero_linger()?;
    }
    ended
}

impl Connection<'_> {
    async fn run(
        &mut self,
        (client_in, client_out): Ends<'_, TcpStream>,
        (server_in, server_out): Ends<'_, Box<dyn Stream>>,
    ) -> io::Result<()> {
        let (mut said, mut heard) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            if !self.pause.is_zero() {
                tokio::time::sleep(std::mem::take(&mut self.pause)).await;
            }
            if self.late.is_some() {
                return Ok(());
            }
            let ending = self.end.is_some();
            if ending && self.to_server.is_empty() && self.to_client.is_empty() {
                return Ok(());
            }
            tokio::select! {
                read = client_in.read(&mut said), if !ending => match read? {
                    0 => return server_out.write_all(&self.to_server).await,
                    bytes => self.take_from_client(&said[..bytes]),
                },
                read = server_in.read(&mut heard), if !ending => match read? {
                    0 => {
                        client_out.write_all(&self.to_client).await?;
                        return Ok(());
                    }
                    bytes => self.take_from_server(&heard[..bytes]),
                },
                written = server_out.write(&self.to_server), if !self.to_server.is_empty() => {
                    self.to_server.drain(..written?);
                }
                written = client_out.write(&self.to_client), if !self.to_client.is_empty() => {
                    self.to_client.drain(..written?);
                }
            }
        }
    }

    fn take_from_client(&mut self, bytes: &[u8]) {
        for (message, round) in self.session.client(bytes) {
            if self.end.is_some() || self.late.is_some() {
                return;
            }
            if round == Some(Round::Commits) {
                let takes = |fault| matches!(fault, Fault::CommitLost | Fault::CommitLate(_));
                match self.shared.strike(takes) {
                    Some(Fault::CommitLate(wait)) => {
                        self.to_server.extend_from_slice(&message.bytes);
                        self.late = Some(wait);
                        return;
                    }
                    Some(_) => {
                        self.end = Some(End::Close);
                        return;
                    }
                    None => {}
                }
                self.silenced |= self.shared.strike(|fault| fault == Fault::RepliesLost).is_some();
            }
            self.go(Way::ToServer, &message.bytes);
        }
    }

    fn take_from_server(&mut self, bytes: &[u8]) {
        for (message, round, committed) in self.session.server(bytes) {
            if self.end.is_some() {
                return;
            }
            if committed {
                self.shared.committed();
            }
            if self.silenced {
                if !self.session.awaits_commit() {
                    self.end = Some(End::Close);
                }
                continue;
            }
            let may_be_lost =
                round == Some(Round::Commits) && self.shared.fault() == Some(Fault::ReplyLost);
            if may_be_lost && message.letter != b'Z' {
                self.held.extend_from_slice(&message.bytes);
                continue;
            }
            if committed && self.shared.strike(|fault| fault == Fault::ReplyLost).is_some() {
                self.end = Some(End::Close);
                return;
            }
            let mut all = std::mem::take(&mut self.held);
            all.extend_from_slice(&message.bytes);
            self.go(Way::ToClient, &all);
        }
    }

    /// Puts bytes on their way, as far as no fault keeps them.
    fn go(&mut self, way: Way, bytes: &[u8]) {
        if let Some(Fault::Delay(wait)) = self.shared.fault() {
            self.pause = wait;
        }
        let (still, struck) = self.shared.go(way, bytes.len());
        let on_its_way = match way {
            Way::ToServer => &mut self.to_server,
            Way::ToClient => &mut self.to_client,
        };
        match struck {
            Some(Fault::Cut { end, .. }) => {
                on_its_way.extend_from_slice(&bytes[..still]);
                self.end = Some(end);
            }
            Some(Fault::Stall { pause, .. }) => {
                on_its_way.extend_from_slice(bytes);
                self.pause = pause;
            }
            _ => on_its_way.extend_from_slice(bytes),
        }
    }

    /// Reads the server's answers until the last commit is answered.
    async fn until_answered(&mut self, server: &mut ReadHalf<Box<dyn Stream>>) -> io::Result<()> {
        let mut heard = vec![0; 65_536];
        while self.session.awaits_commit() {
            let bytes = server.read(&mut heard).await?;
            if bytes == 0 {
                return Ok(());
            }
            let committed = self.session.server(&heard[..bytes]).into_iter().filter(|it| it.2);
            committed.for_each(|_| self.shared.committed());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_through_the_proxy() {
        let unix = "postgres://me@/jobs?host=/run/pg&port=6432&schema=a&pool_size=2";
        let (upstream, url) = redirected(unix, 7).unwrap();
        assert_eq!(upstream, Upstream::Unix("/run/pg/.s.PGSQL.6432".into()));
        assert_eq!(url, "postgres://me@127.0.0.1:7/jobs?schema=a&pool_size=2");
        let tcp = "postgresql://me:a%40b@db.example:99/jobs";
        let (upstream, url) = redirected(tcp, 7).unwrap();
        assert_eq!(upstream, Upstream::Tcp("db.example:99".into()));
        assert_eq!(url, "postgresql://me:a%40b@127.0.0.1:7/jobs");
        for refused in ["jobs.db", "postgres://me@/jobs", "postgres://h/jobs?sslmode=require"] {
            assert!(redirected(refused, 7).is_err(), "{refused}");
        }
    }
}
