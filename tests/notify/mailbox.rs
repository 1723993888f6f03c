//! Owns an SMTP server on this machine: it takes mail over plain connections, TLS and STARTTLS, refuses
//! whom it is told to, and can vanish before it answers. Knows no notifications.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// How connections are secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    Plain,
    StartTls,
    Tls,
}

/// A mail that was taken.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) to: String,
    pub(crate) data: String,
    pub(crate) encrypted: bool,
}

impl Taken {
    pub(crate) fn header(&self, name: &str) -> &str {
        let begins = format!("{name}: ");
        self.data.lines().find_map(|line| line.strip_prefix(begins.as_str())).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Inside {
    taken: Vec<Taken>,
    /// So many mails are taken without a word.
    unheard: u32,
    /// So many mails get a 451.
    busy: u32,
}

/// The server; it ends when dropped.
pub(crate) struct Mailbox {
    pub(crate) address: SocketAddr,
    pub(crate) certificate: String,
    inside: Arc<Mutex<Inside>>,
    task: JoinHandle<()>,
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Mailbox {
    pub(crate) async fn open(security: Security) -> Self {
        let made =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a configuration");
        let tls = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let inside: Arc<Mutex<Inside>> = Arc::default();
        let keeping = inside.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, inside) = (tls.clone(), keeping.clone());
                tokio::spawn(async move { serve(stream, security, tls, inside).await });
            }
        });
        Self { address, certificate: made.cert.pem(), inside, task }
    }

    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.lock().taken.clone()
    }

    pub(crate) fn lose_answers(&self, mails: u32) {
        self.lock().unheard = mails;
    }

    pub(crate) fn be_busy(&self, mails: u32) {
        self.lock().busy = mails;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().expect("no panic under this lock")
    }
}

async fn serve(
    stream: TcpStream,
    security: Security,
    tls: TlsAcceptor,
    inside: Arc<Mutex<Inside>>,
) -> Option<()> {
    if security == Security::Tls {
        let stream = tls.accept(stream).await.ok()?;
        return talk(BufReader::new(stream), true, false, true, &inside).await.map(|_| ());
    }
    let offers = security == Security::StartTls;
    let stream = talk(BufReader::new(stream), true, offers, false, &inside).await?;
    // It asked for TLS; what it sent ahead of it is not taken over.
    let stream = tls.accept(stream.into_inner()).await.ok()?;
    talk(BufReader::new(stream), false, false, true, &inside).await.map(|_| ())
}

/// Talks until the other side leaves (`None`) or asks for TLS.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: BufReader<S>,
    greets: bool,
    offers_tls: bool,
    encrypted: bool,
    inside: &Mutex<Inside>,
) -> Option<BufReader<S>> {
    if greets {
        say(&mut stream, "220 mailbox ready").await?;
    }
    let mut to = String::new();
    loop {
        let line = read(&mut stream).await?;
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        match verb.as_str() {
            "EHLO" if offers_tls => say(&mut stream, "250-mailbox\r\n250 STARTTLS").await?,
            "EHLO" => say(&mut stream, "250 mailbox").await?,
            "STARTTLS" => {
                say(&mut stream, "220 go on").await?;
                return Some(stream);
            }
            "MAIL" if offers_tls => say(&mut stream, "530 5.7.0 TLS first").await?,
            "RCPT" => {
                to = line.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
                match to.starts_with("nobody@") {
                    true => say(&mut stream, "550 5.1.1 no such mailbox").await?,
                    false => say(&mut stream, "250 ok").await?,
                }
            }
            "DATA" => {
                say(&mut stream, "354 go on").await?;
                let data = data(&mut stream).await?;
                let answer = take(inside, Taken { to: to.clone(), data, encrypted })?;
                say(&mut stream, &answer).await?;
            }
            "QUIT" => {
                say(&mut stream, "221 bye").await?;
                return None;
            }
            _ => say(&mut stream, "250 ok").await?,
        }
    }
}

/// The answer to a mail; none where the server vanishes.
fn take(inside: &Mutex<Inside>, mail: Taken) -> Option<String> {
    let mut inside = inside.lock().expect("no panic under this lock");
    if inside.busy > 0 {
        inside.busy -= 1;
        return Some("451 4.3.0 try later".to_owned());
    }
    inside.taken.push(mail);
    if inside.unheard > 0 {
        inside.unheard -= 1;
        return None;
    }
    Some(format!("250 2.0.0 queued as {}", inside.taken.len()))
}

async fn say<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
    line: &str,
) -> Option<()> {
    stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).await.ok()?;
    stream.get_mut().flush().await.ok()
}

async fn read<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

/// A mail's lines, up to the one with a single point.
async fn data<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> Option<String> {
    let mut mail = String::new();
    loop {
        match read(stream).await?.as_str() {
            "." => return Some(mail),
            line => {
                mail.push_str(line.strip_prefix('.').unwrap_or(line));
                mail.push('\n');
            }
        }
    }
}
