//! Owns the wake-ups between processes, on a connection of its own: LISTEN for those of others, and
//! at most a NOTIFY of each kind at a time for ours, after the commit and never inside it. The server is
//! asked now and then whether it still answers, since a connection can die without a word. All of it
//! only shortens the wait of a poll; nothing is lost when it fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering as Memory};
use std::time::Duration;

use futures_util::StreamExt;
use leasehold_core::{Error, ErrorKind, HintKind, Hints, Result};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client};

use crate::bind::Params;
use crate::open::Target;
use crate::pool::Messages;
use crate::row::Columns;
use crate::statement::{Db, sql};

/// The pause after a NOTIFY, in which further ones become one.
const GATHER: Duration = Duration::from_millis(5);
/// The shortest and the longest pause before the connection is made anew.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How long the connection may be still before the server is asked whether it answers.
const STILL_MAX: Duration = Duration::from_secs(5);
/// The longest wait for an answer, a new connection's first included.
const PATIENCE: Duration = Duration::from_secs(5);

const KINDS: [(HintKind, &str); 2] = [(HintKind::Jobs, "jobs"), (HintKind::Events, "events")];

/// What waits to be told to other processes.
#[derive(Debug, Default)]
struct Pending {
    kinds: [AtomicBool; 2],
    bell: Notify,
}

impl Pending {
    fn ring(&self, kind: HintKind) {
        for ((known, _), waits) in KINDS.iter().zip(&self.kinds) {
            if *known == kind {
                waits.store(true, Memory::Relaxed);
            }
        }
        self.bell.notify_one();
    }

    fn take(&self) -> impl Iterator<Item = (HintKind, &'static str)> {
        let waiting = KINDS.iter().zip(&self.kinds);
        waiting.filter(|(_, waits)| waits.swap(false, Memory::Relaxed)).map(|(known, _)| *known)
    }
}

/// The task that sends and hears wake-ups; it ends with the store.
#[derive(Debug)]
pub(crate) struct Wakes {
    task: JoinHandle<()>,
    hearing: Arc<Hearing>,
}

/// Whether wake-ups of other processes are heard now.
#[derive(Debug, Default)]
struct Hearing {
    hears: AtomicBool,
    /// Whether a first connection has come to listen, or has failed.
    is_known: AtomicBool,
}

impl Hearing {
    /// Notes what is now; whether it was heard before.
    fn now(&self, hears: bool) -> bool {
        let before = self.hears.swap(hears, Memory::Relaxed);
        self.is_known.store(true, Memory::Relaxed);
        before
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection's work.
struct Serving<'a> {
    target: &'a Target,
    pending: &'a Pending,
    hints: &'a Hints,
    hearing: &'a Hearing,
    /// The number of the connection's server process, which its own wake-ups carry.
    own: AtomicI32,
}

impl Wakes {
    /// Starts the task; the hub hands local hints to it.
    pub(crate) fn start(target: Target) -> (Self, Hints) {
        let pending = Arc::new(Pending::default());
        let rung = Arc::clone(&pending);
        let hints = Hints::relaying(move |kind| rung.ring(kind));
        let hearing = Arc::new(Hearing::default());
        let task = tokio::spawn(keep_on(target, pending, hints.clone(), Arc::clone(&hearing)));
        (Self { task, hearing }, hints)
    }

    /// Whether wake-ups of other processes are heard now; `None` while the first connection is on its way.
    pub(crate) fn hears(&self) -> Option<bool> {
        let is_known = self.hearing.is_known.load(Memory::Relaxed);
        is_known.then(|| self.hearing.hears.load(Memory::Relaxed))
    }
}

async fn keep_on(target: Target, pending: Arc<Pending>, hints: Hints, hearing: Arc<Hearing>) {
    let (shortest, longest) = BACK_OFF;
    let mut pause = shortest;
    loop {
        let ended = match patient(target.connect()).await {
            Ok((client, messages)) => {
                let (target, pending, hints, hearing) = (&target, &*pending, &hints, &*hearing);
                let own = AtomicI32::new(0);
                let serving = Serving { target, pending, hints, hearing, own };
                serving.until_the_end(&client, messages).await
            }
            Err(error) => Err(error),
        };
        if hearing.now(false) {
            pause = shortest;
        }
        if let Err(error) = ended {
            tracing::debug!(%error, "wake-ups between processes rest; polls go on");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Waits for an answer, but not for ever.
async fn patient<T>(answer: impl Future<Output = Result<T>>) -> Result<T> {
    let silent = |_| Error::new(ErrorKind::Unavailable, "listen", "the server does not answer");
    tokio::time::timeout(PATIENCE, answer).await.map_err(silent)?
}

impl Serving<'_> {
    /// Sends and hears until the connection ends.
    async fn until_the_end(&self, client: &Client, mut messages: Messages) -> Result<()> {
        let hear = async {
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(told) = message
                    && told.process_id() != self.own.load(Memory::Relaxed)
                {
                    let known = KINDS.iter().find(|(_, word)| *word == told.payload());
                    known.iter().for_each(|(kind, _)| self.hints.wake_local(*kind));
                }
            }
        };
        tokio::select! {
            () = hear => Ok(()),
            failed = self.send(client) => failed,
        }
    }

    async fn send(&self, client: &Client) -> Result<()> {
        let db = Db::plain(client, &self.target.schema);
        let channel = self.target.schema.channel();
        if !self.target.behind_pooler {
            // A wake-up need not survive a crash.
            let listen = format!("set synchronous_commit = off; listen \"{channel}\"");
            patient(db.batch("listen", &listen)).await?;
            self.own.store(process(&db).await?, Memory::Relaxed);
            self.hearing.now(true);
        }
        // What came while nobody listened.
        KINDS.iter().for_each(|(kind, _)| self.hints.wake_local(*kind));
        loop {
            let rung = tokio::time::timeout(STILL_MAX, self.pending.bell.notified()).await;
            if rung.is_err() {
                process(&db).await?;
            }
            for (kind, word) in self.pending.take() {
                let values = Params::new().one(channel.as_str()).one(word);
                let told = patient(db.rows(sql!("notify"), values, |_| Ok(()))).await;
                if let Err(error) = told {
                    // The next connection tells it.
                    self.pending.ring(kind);
                    return Err(error);
                }
            }
            tokio::time::sleep(GATHER).await;
        }
    }
}

/// Asks the server for its process's number.
async fn process(db: &Db<'_>) -> Result<i32> {
    let number = db.row(sql!("notify_pid"), Params::new(), |row| Columns::of(row).raw());
    Ok(patient(number).await?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

    use super::*;

    /// Whoever looks before the first connection is there is warned of nothing; once it has failed, he is.
    ///
    /// Proves: GLO-4
    #[tokio::test]
    async fn silence_is_told_once_it_is_known() {
        let target = Target::parse("postgres://nobody@/none?host=/nowhere").expect("a URL");
        let (wakes, _hints) = Wakes::start(target);
        assert_eq!(wakes.hears(), None, "nothing has run yet");
        let failed = async {
            while wakes.hears().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE * 2, failed).await.expect("it has failed by then");
        assert_eq!(wakes.hears(), Some(false));
    }
}
