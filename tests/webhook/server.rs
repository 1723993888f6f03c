//! Owns an HTTP server that behaves as a test tells it, well or badly. Knows no webhooks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(is, _)| is.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with a status, header lines, and a body.
    Answer(u16, &'static str, String),
    /// The same, after a while.
    After(Duration, u16),
    /// Answers 200 with a file.
    File(std::path::PathBuf),
    /// Never answers.
    Hang,
    /// Answers 200 and a body without end.
    Endless,
    /// Closes without a word.
    Close,
}

impl Act {
    pub(crate) fn status(status: u16) -> Self {
        Self::Answer(status, "", String::new())
    }
}

type Behaviour = Arc<dyn Fn(&Seen) -> Act + Send + Sync>;

/// A server on this machine; it ends when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: watch::Sender<Vec<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(act: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Self {
        Self::start_with(None, Arc::new(act)).await
    }

    /// A server that behaves one way, whatever comes.
    pub(crate) async fn always(act: Act) -> Self {
        Self::start(move |_| act.clone()).await
    }

    pub(crate) async fn start_with(tls: Option<TlsAcceptor>, act: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = watch::Sender::new(Vec::new());
        let all = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, act, all) = (tls.clone(), act.clone(), all.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, act, all).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, act, all).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self { address, seen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Waits for the first request.
    pub(crate) async fn until_asked(&self) {
        let asked = self.seen.subscribe().wait_for(|seen| !seen.is_empty()).await.is_ok();
        assert!(asked, "the server keeps the sender");
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    act: Behaviour,
    all: watch::Sender<Vec<Seen>>,
) -> Option<()> {
    let seen = read(&mut stream).await?;
    let act = act(&seen);
    all.send_modify(|all| all.push(seen));
    let head = |status: u16, lines: &str, length: usize| {
        format!(
            "HTTP/1.1 {status} X\r\n{lines}content-length: {length}\r\nconnection: close\r\n\r\n"
        )
    };
    let answer = match act {
        Act::Answer(status, lines, body) => head(status, lines, body.len()) + &body,
        Act::After(wait, status) => {
            tokio::time::sleep(wait).await;
            head(status, "", 0)
        }
        Act::File(path) => {
            let file = std::fs::read(path).ok()?;
            stream.write_all(head(200, "", file.len()).as_bytes()).await.ok()?;
            stream.write_all(&file).await.ok()?;
            return stream.shutdown().await.ok();
        }
        Act::Hang => std::future::pending().await,
        Act::Close => return None,
        Act::Endless => {
            stream.write_all(head(200, "", usize::MAX >> 1).as_bytes()).await.ok()?;
            loop {
                stream.write_all(&[b'x'; 65_536]).await.ok()?;
            }
        }
    };
    stream.write_all(answer.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 65_536]);
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        match stream.read(&mut piece).await.ok()? {
            0 => return None,
            n => bytes.extend(&piece[..n]),
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).ok()?;
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (first.next()?, first.next()?);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
    let mut body = bytes[head + 4..].to_vec();
    while body.len() < length {
        match stream.read(&mut piece).await.ok()? {
            0 => return None,
            n => body.extend(&piece[..n]),
        }
    }
    Some(Seen { method, path, headers, body, at: Instant::now() })
}
