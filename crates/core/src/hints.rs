//! Owns wake-ups: hints that rows may be ready, which only shorten the wait of a poll. Nothing is
//! ever right or wrong because of them: a lost hint costs one poll, a false one an empty claim.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HintKind {
    /// Jobs may be claimable.
    Jobs,
    /// Outbox events may be deliverable.
    Events,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    jobs: u64,
    events: u64,
}

type Relay = dyn Fn(HintKind) + Send + Sync;

/// The hub of one store's hints; clones share it.
#[derive(Clone)]
pub struct Hints {
    marks: watch::Sender<Marks>,
    beyond: Option<Arc<Relay>>,
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hints").field("marks", &*self.marks.borrow()).finish_non_exhaustive()
    }
}

impl Default for Hints {
    fn default() -> Self {
        Self { marks: watch::Sender::new(Marks::default()), beyond: None }
    }
}

impl Hints {
    /// Makes a hub for one process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a hub that also hands local hints on, to other processes.
    pub fn relaying(beyond: impl Fn(HintKind) + Send + Sync + 'static) -> Self {
        Self { beyond: Some(Arc::new(beyond)), ..Self::default() }
    }

    /// Wakes the waiters of this process and hands the hint on.
    pub fn send(&self, kind: HintKind) {
        self.wake_local(kind);
        if let Some(beyond) = &self.beyond {
            beyond(kind);
        }
    }

    /// Wakes the waiters of this process only; for hints that came from another process.
    pub fn wake_local(&self, kind: HintKind) {
        self.marks.send_modify(|marks| match kind {
            HintKind::Jobs => marks.jobs += 1,
            HintKind::Events => marks.events += 1,
        });
    }

    /// Whether anybody listens; nobody need look for hints from elsewhere when not.
    pub fn has_listeners(&self) -> bool {
        self.marks.receiver_count() > 0
    }

    /// A wake-up to be sent after a commit.
    pub fn wake(&self, kind: HintKind) -> Wake {
        Wake { hints: self.clone(), kind }
    }

    /// Begins to listen; hints sent from now on are seen.
    pub fn listen(&self, kind: HintKind) -> Listener {
        let receiver = self.marks.subscribe();
        let seen = *receiver.borrow();
        Listener { receiver, kind, seen }
    }
}

/// A wake-up in hand, to be sent once the caller's transaction has committed.
#[derive(Clone)]
pub struct Wake {
    hints: Hints,
    kind: HintKind,
}

impl Wake {
    /// Sends it. Without it the pick-up is within one poll.
    pub fn send(&self) {
        self.hints.send(self.kind);
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wake({:?})", self.kind)
    }
}

/// Waits for hints of one kind.
#[derive(Debug)]
pub struct Listener {
    receiver: watch::Receiver<Marks>,
    kind: HintKind,
    seen: Marks,
}

impl Listener {
    /// Waits until a hint of this kind has come since the last call (or since the start).
    ///
    /// Cancel-safe: a hint that came while nobody waited is seen by the next call. Waits for ever
    /// once the store is gone.
    pub async fn heard(&mut self) {
        loop {
            let now = *self.receiver.borrow_and_update();
            let news = match self.kind {
                HintKind::Jobs => now.jobs != self.seen.jobs,
                HintKind::Events => now.events != self.seen.events,
            };
            self.seen = now;
            if news {
                return;
            }
            if self.receiver.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
