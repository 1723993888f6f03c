//! Owns the one thread that writes: it takes all requests that wait, runs them in one immediate
//! transaction, and answers after the commit has returned. Refuses to know what a request does.
//!
//! A savepoint around each costs more than a small request itself. So a group runs without any at
//! first, and when a request fails after it has written, all of it is rolled back and runs again, each
//! in a savepoint. A caller's closure has one at once, so that a foreseen error runs nothing twice.
//!
//! A full disk can end a transaction without a word, and the next statement would then commit by
//! itself. So after each request the transaction is looked for, and when it is gone the requests run
//! again one by one, each from a clean beginning.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use leasehold_core::{Error, ErrorKind, HintKind, Result};
use rusqlite::{Connection, Transaction};
use tokio::sync::{oneshot, watch};

use crate::error::unknown;
use crate::files::{Files, LOG_BYTES_MAX};
use crate::load::Shared;
use crate::open::{Access, Place, Target, empty_log};
use crate::statement::{self, batch};
use crate::write::News;

/// The most requests of one transaction.
const GROUP_MAX: usize = 256;
/// How often commits of other processes are looked for while somebody listens, and while nobody does.
const LOOK: Duration = Duration::from_millis(25);
const LOOK_IDLE: Duration = Duration::from_millis(250);
/// After so many groups in a row the lock is left alone for a moment, so that other processes get it;
/// after more of them where no other process has committed of late.
const GROUPS_IN_A_ROW: u32 = 16;
const GROUPS_ALONE: u32 = 256;
const TURN: Duration = Duration::from_millis(1);
/// How often the next request is looked for before the thread goes to sleep, which costs more.
const LOOKS: u32 = 40;

/// One request to the writer.
pub(crate) trait Request: Send {
    /// Does it, inside a transaction; whether its writes are to be kept. May be called again.
    fn run(&mut self, tx: &Transaction<'_>) -> bool;
    /// Whether it is a caller's own closure, which fails as it likes.
    fn is_foreign(&self) -> bool;
    /// Answers, after the transaction's end.
    fn finish(self: Box<Self>, end: Result<()>);
}

/// What came of a request.
pub(crate) enum Answer<T> {
    Said(Result<T>),
    Panicked(Box<dyn Any + Send>),
}

/// A request made of a closure.
pub(crate) struct Call<T, F> {
    verb: F,
    answer: Option<Answer<T>>,
    news: News,
    is_foreign: bool,
    reply: oneshot::Sender<Answer<T>>,
    shared: Arc<Shared>,
}

impl<T, F> Call<T, F> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        verb: F,
        is_foreign: bool,
        reply: oneshot::Sender<Answer<T>>,
    ) -> Self {
        Self { verb, answer: None, news: News::default(), is_foreign, reply, shared }
    }
}

impl<T, F> Request for Call<T, F>
where
    T: Send,
    F: FnMut(&Transaction<'_>) -> Result<T> + Send,
{
    fn run(&mut self, tx: &Transaction<'_>) -> bool {
        News::take();
        let answer = match catch_unwind(AssertUnwindSafe(|| (self.verb)(tx))) {
            Ok(said) => Answer::Said(said),
            Err(panic) => Answer::Panicked(panic),
        };
        self.news = News::take();
        matches!(self.answer.insert(answer), Answer::Said(Ok(_)))
    }

    fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    fn finish(self: Box<Self>, end: Result<()>) {
        let answer = match (end, self.answer) {
            (Err(error), Some(Answer::Said(Ok(_))) | None) => Answer::Said(Err(error)),
            (_, Some(answer)) => answer,
            (Ok(()), None) => {
                Answer::Said(Err(Error::new(ErrorKind::Corrupt, "write", "nothing was run")))
            }
        };
        let landed = matches!(answer, Answer::Said(Ok(_)));
        // Whoever asked may have gone away; the write stands all the same.
        let _gone = self.reply.send(answer);
        if landed {
            self.news.send(&self.shared.hints);
        }
    }
}

/// How a group ended short of its commit.
enum Broken {
    /// A request failed that had written something and had no savepoint.
    Half,
    /// It was refused: it holds no lock, wrote nothing, and would be refused again.
    Refused(Error),
    /// Its transaction ended by itself, or its commit was refused.
    RolledBack(Error),
    /// Its commit failed on the way to the disk.
    Unknown(Error),
}

/// The writing thread's state.
pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) target: Target,
    pub(crate) shared: Arc<Shared>,
    pub(crate) requests: Receiver<Box<dyn Request>>,
    /// The size of the log from which on it is looked after next.
    pub(crate) log_next: u64,
    /// Dropped when the database is closed.
    pub(crate) opened: watch::Sender<()>,
}

impl Writer {
    /// Serves requests until the last handle of the store is gone.
    pub(crate) fn serve(mut self) {
        let mut seen = self.foreign_commits();
        let (mut groups, mut in_a_row) = (0, GROUPS_IN_A_ROW);
        loop {
            match self.next() {
                Ok(first) => {
                    let mut group = vec![first];
                    group.extend(self.requests.try_iter().take(GROUP_MAX - 1));
                    self.commit(group);
                    self.tend(self.log_next);
                    groups += 1;
                }
                Err(RecvTimeoutError::Timeout) => {
                    groups = 0;
                    self.tend(LOG_BYTES_MAX);
                }
                Err(RecvTimeoutError::Disconnected) => return self.close(),
            }
            if groups >= in_a_row {
                groups = 0;
                thread::sleep(TURN);
            }
            if groups % GROUPS_IN_A_ROW == 0 {
                let others = self.look(&mut seen);
                in_a_row = if others { GROUPS_IN_A_ROW } else { GROUPS_ALONE };
            }
        }
    }

    /// The next request. While they come one after the other this thread stays awake for them.
    fn next(&self) -> std::result::Result<Box<dyn Request>, RecvTimeoutError> {
        for _ in 0..LOOKS {
            match self.requests.try_recv() {
                Ok(request) => return Ok(request),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => thread::yield_now(),
            }
        }
        let pause = if self.shared.hints.has_listeners() { LOOK } else { LOOK_IDLE };
        self.requests.recv_timeout(pause)
    }

    /// Closes the database before anybody is told so.
    fn close(self) {
        if let Err((_, error)) = self.conn.close() {
            tracing::warn!(%error, "the database was not closed as it should be");
        }
        drop(self.opened);
    }

    /// Wakes this process's waiters when another connection has committed; whether one has.
    fn look(&self, seen: &mut Option<i64>) -> bool {
        let now = self.foreign_commits();
        let others = now != *seen;
        if others && self.shared.hints.has_listeners() {
            self.shared.hints.wake_local(HintKind::Jobs);
            self.shared.hints.wake_local(HintKind::Events);
        }
        *seen = now;
        others
    }

    fn foreign_commits(&self) -> Option<i64> {
        let mut look = self.conn.prepare_cached("pragma data_version").ok()?;
        look.query_row([], |row| row.get(0)).ok()
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Request>>) {
        let files = self.shared.files.as_ref();
        let ended = match try_group(&self.conn, files, &mut group, false) {
            Err(Broken::Half) => try_group(&self.conn, files, &mut group, true),
            ended => ended,
        };
        match ended {
            Ok(()) => finish(group, || Ok(())),
            Err(Broken::Half) => {
                let why = "a request was left half done";
                finish(group, || Err(Error::new(ErrorKind::Corrupt, "write", why)));
            }
            Err(Broken::Refused(error)) => finish(group, || Err(error.clone())),
            Err(Broken::Unknown(error)) => {
                let error = unknown(error);
                finish(group, || Err(error.clone()));
                self.reopen();
            }
            Err(Broken::RolledBack(error)) if group.len() == 1 => {
                finish(group, || Err(error.clone()));
            }
            Err(Broken::RolledBack(error)) => {
                tracing::warn!(%error, "{} requests are run again one by one", group.len());
                for request in group {
                    self.commit(vec![request]);
                }
            }
        }
    }

    /// Empties the log once it is so large, unless a reader needs it; the next try is made when it
    /// has grown by an eighth more, or nothing else is to be done.
    fn tend(&mut self, bytes_max: u64) {
        let Some(files) = &self.shared.files else { return };
        if self.target.access != Access::Write {
            return;
        }
        let bytes = files.log_bytes();
        if bytes < bytes_max || files.check().is_err() {
            return;
        }
        let emptied = empty_log(&mut self.conn);
        let bytes = files.log_bytes();
        self.log_next = LOG_BYTES_MAX.max(bytes.saturating_add(LOG_BYTES_MAX / 8));
        match emptied {
            Ok(()) => {
                tracing::debug!("the write-ahead log was looked after, and has {bytes} bytes")
            }
            Err(error) => tracing::warn!(%error, "the write-ahead log could not be emptied"),
        }
    }

    /// After a failed flush nothing this connection remembers is to be trusted.
    fn reopen(&mut self) {
        if self.target.place == Place::Memory {
            return;
        }
        match self.target.clone().open_first().map(|(_, conn)| conn) {
            Ok(conn) => self.conn = conn,
            Err(error) => tracing::error!(%error, "the writer's connection stays as it is"),
        }
    }
}

fn finish(group: Vec<Box<dyn Request>>, end: impl Fn() -> Result<()>) {
    for request in group {
        request.finish(end());
    }
}

fn try_group(
    conn: &Connection,
    files: Option<&Files>,
    group: &mut [Box<dyn Request>],
    guarded: bool,
) -> Result<(), Broken> {
    let tx = statement::begin(conn).map_err(Broken::Refused)?;
    let alone = group.len() == 1;
    let mut kept = false;
    for request in group.iter_mut() {
        let before = tx.total_changes();
        let mut half = false;
        if !alone && (guarded || request.is_foreign()) {
            kept |= run_in_savepoint(&tx, request).map_err(Broken::RolledBack)?;
        } else {
            let keep = request.run(&tx);
            kept |= keep;
            half = !alone && !keep && tx.total_changes() != before;
        }
        if tx.is_autocommit() {
            let why = "the database ended the transaction by itself";
            return Err(Broken::RolledBack(Error::new(ErrorKind::Unavailable, "write", why)));
        }
        if half {
            return Err(Broken::Half);
        }
    }
    if !kept {
        // Nothing is to be kept: dropping it rolls it back.
        return Ok(());
    }
    if let Some(files) = files {
        // At the last moment, so that as little time as can be lies between the look and the commit.
        files.check().map_err(Broken::Refused)?;
    }
    let flushing = |error: &Error| error.kind() == ErrorKind::Unavailable;
    match statement::commit(tx) {
        Ok(()) => Ok(()),
        Err(error) if flushing(&error) => Err(Broken::Unknown(error)),
        Err(error) => Err(Broken::RolledBack(error)),
    }
}

fn run_in_savepoint(tx: &Transaction<'_>, request: &mut Box<dyn Request>) -> Result<bool> {
    batch(tx, "savepoint", "savepoint leasehold_request")?;
    let keep = request.run(tx);
    if tx.is_autocommit() {
        return Ok(false);
    }
    if !keep {
        batch(tx, "rollback", "rollback to leasehold_request")?;
    }
    batch(tx, "release", "release leasehold_request")?;
    Ok(keep)
}
