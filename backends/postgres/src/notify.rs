//! Owns the wake-ups between processes, on a connection of its own: LISTEN for those of others, and
//! at most a NOTIFY of each kind at a time for ours, after the commit and never inside it. All of it
//! only shortens the wait of a poll; nothing is lost when it fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering as Memory};
use std::time::Duration;

use futures_util::StreamExt;
use leasehold_core::{HintKind, Hints, Result};
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
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

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

    fn take(&self) -> impl Iterator<Item = &'static str> {
        let waiting = KINDS.iter().zip(&self.kinds);
        waiting.filter(|(_, waits)| waits.swap(false, Memory::Relaxed)).map(|((_, word), _)| *word)
    }
}

/// The task that sends and hears wake-ups; it ends with the store.
#[derive(Debug)]
pub(crate) struct Wakes(JoinHandle<()>);

impl Drop for Wakes {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Wakes {
    /// Starts the task; the hub hands local hints to it.
    pub(crate) fn start(target: Target) -> (Self, Hints) {
        let pending = Arc::new(Pending::default());
        let rung = Arc::clone(&pending);
        let hints = Hints::relaying(move |kind| rung.ring(kind));
        let task = tokio::spawn(keep_on(target, pending, hints.clone()));
        (Self(task), hints)
    }
}

async fn keep_on(target: Target, pending: Arc<Pending>, hints: Hints) {
    let (shortest, longest) = BACK_OFF;
    let mut pause = shortest;
    loop {
        let connected = target.connect().await;
        let ended = match connected {
            Ok((client, messages)) => {
                pause = shortest;
                serve(&target, &client, messages, &pending, &hints).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "wake-ups between processes rest; polls go on");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Sends and hears until the connection ends.
async fn serve(
    target: &Target,
    client: &Client,
    mut messages: Messages,
    pending: &Pending,
    hints: &Hints,
) -> Result<()> {
    let own = AtomicI32::new(0);
    let hear = async {
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(told) = message
                && told.process_id() != own.load(Memory::Relaxed)
            {
                let known = KINDS.iter().find(|(_, word)| *word == told.payload());
                known.iter().for_each(|(kind, _)| hints.wake_local(*kind));
            }
        }
    };
    tokio::select! {
        () = hear => Ok(()),
        failed = send(target, client, pending, hints, &own) => failed,
    }
}

async fn send(
    target: &Target,
    client: &Client,
    pending: &Pending,
    hints: &Hints,
    own: &AtomicI32,
) -> Result<()> {
    let (db, channel) = (Db::plain(client, &target.schema), target.schema.channel());
    if !target.behind_pooler {
        // A wake-up need not survive a crash.
        let listen = format!("set synchronous_commit = off; listen \"{channel}\"");
        db.batch("listen", &listen).await?;
        let pid = db.row(sql!("notify_pid"), Params::new(), |row| Columns::of(row).raw()).await?;
        own.store(pid.unwrap_or(0), Memory::Relaxed);
    }
    // What came while nobody listened.
    KINDS.iter().for_each(|(kind, _)| hints.wake_local(*kind));
    loop {
        pending.bell.notified().await;
        for word in pending.take() {
            let values = Params::new().one(channel.as_str()).one(word);
            db.rows(sql!("notify"), values, |_| Ok(())).await?;
        }
        tokio::time::sleep(GATHER).await;
    }
}
