//! Owns a relay between a client and a PostgreSQL server that hurts the wire on demand: it cuts, resets,
//! stalls, delays, and loses commits or the replies to them. It refuses to know what the client then does.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::relay::{self, Upstream};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// In order, as by a process that ends.
    Close,
    /// With a reset, as by a machine that is gone.
    Reset,
}

/// How the wire is hurt. All but [`Fault::Delay`] strike once, the first connection that they fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends once so many bytes have gone one way, over all connections since it was armed.
    Cut {
        /// The way whose bytes count.
        way: Way,
        /// How many still go.
        after: u64,
        /// How it ends, both ways.
        end: End,
    },
    /// Nothing goes either way for a while, from the message on with which so many bytes go one way.
    Stall {
        /// The way whose bytes count.
        way: Way,
        /// How many go before.
        after: u64,
        /// How long it stands still.
        pause: Duration,
    },
    /// Every piece waits so long, until something else is armed.
    Delay(Duration),
    /// A commit never reaches the server; its connection ends.
    CommitLost,
    /// The client's connection ends with its commit, which reaches the server so much later.
    CommitLate(Duration),
    /// The server commits; the reply to that alone is not carried, and the connection ends.
    ReplyLost,
    /// As the former, and nothing that the server said since the commit was sent is carried either.
    RepliesLost,
}

/// A relay before a PostgreSQL server; it ends when dropped.
///
/// ```no_run
/// use leasehold_conformance::faults::proxy::{Fault, Proxy};
///
/// # async fn lose_a_reply() -> std::io::Result<()> {
/// let proxy = Proxy::before("postgres://app@/jobs?host=/run/postgresql").await?;
/// let url = proxy.url(); // open the store under test with it
/// proxy.arm(Fault::ReplyLost);
/// // … the next commit answers `OutcomeUnknown`; the same call again must tell what it did …
/// assert_eq!(proxy.strikes(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Proxy {
    url: String,
    shared: Arc<Shared>,
    ends: watch::Sender<u64>,
    accepting: JoinHandle<()>,
}

/// What all connections of a proxy share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    armed: Mutex<Option<Fault>>,
    gone: [AtomicU64; 2],
    strikes: AtomicU64,
    commits: AtomicU64,
}

impl Proxy {
    /// Begins to relay, on a port of 127.0.0.1, to the server that a URL names.
    ///
    /// # Errors
    /// `InvalidInput` for a URL without a server or with TLS, under which nothing can be read.
    pub async fn before(url: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (upstream, url) = relay::redirected(url, port)?;
        let shared = Arc::new(Shared::default());
        let (ends, end) = watch::channel(0);
        let accepting = tokio::spawn(accept(listener, upstream, Arc::clone(&shared), end));
        Ok(Self { url, shared, ends, accepting })
    }

    /// The URL that leads through here.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Arms a fault in place of any other, and counts bytes anew.
    pub fn arm(&self, fault: Fault) {
        let mut armed = self.shared.armed();
        self.shared.gone.iter().for_each(|gone| gone.store(0, Ordering::SeqCst));
        *armed = Some(fault);
    }

    /// Disarms; whether a fault was still waiting to strike.
    pub fn disarm(&self) -> bool {
        self.shared.armed().take().is_some()
    }

    /// How often a fault has struck.
    pub fn strikes(&self) -> u64 {
        self.shared.strikes.load(Ordering::SeqCst)
    }

    /// How many commits the server has told of.
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::SeqCst)
    }

    /// How many bytes have gone one way since the last fault was armed.
    pub fn gone(&self, way: Way) -> u64 {
        self.shared.gone[way as usize].load(Ordering::SeqCst)
    }

    /// Ends every connection there is.
    pub fn end_all(&self) {
        self.ends.send_modify(|ends| *ends += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.end_all();
    }
}

impl Shared {
    fn armed(&self) -> MutexGuard<'_, Option<Fault>> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is armed.
    pub(super) fn fault(&self) -> Option<Fault> {
        *self.armed()
    }

    /// Takes a fault that strikes now; `None` when another connection came first.
    pub(super) fn strike(&self, fits: impl FnOnce(Fault) -> bool) -> Option<Fault> {
        let mut armed = self.armed();
        if !armed.is_some_and(fits) {
            return None;
        }
        self.strikes.fetch_add(1, Ordering::SeqCst);
        armed.take()
    }

    pub(super) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::SeqCst);
    }

    /// Lets bytes go one way: how many before a fault that strikes here, and that fault.
    pub(super) fn go(&self, way: Way, bytes: usize) -> (usize, Option<Fault>) {
        let mut armed = self.armed();
        let gone = self.gone[way as usize].fetch_add(bytes as u64, Ordering::SeqCst);
        let after = match *armed {
            Some(Fault::Cut { way: of, after, .. } | Fault::Stall { way: of, after, .. })
                if of == way && gone + bytes as u64 >= after =>
            {
                after
            }
            _ => return (bytes, None),
        };
        self.strikes.fetch_add(1, Ordering::SeqCst);
        let still = usize::try_from(after.saturating_sub(gone)).unwrap_or(bytes);
        (still.min(bytes), armed.take())
    }
}

async fn accept(
    listener: TcpListener,
    upstream: Upstream,
    shared: Arc<Shared>,
    end: watch::Receiver<u64>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (upstream, shared, mut end) = (upstream.clone(), Arc::clone(&shared), end.clone());
        end.borrow_and_update();
        tokio::spawn(async move {
            let carried = relay::carry(client, &upstream, &shared);
            tokio::select! {
                _ended = carried => {}
                _told = end.changed() => {}
            }
        });
    }
}
