//! Owns the store's handle: each of its verbs is begin, join, verb, commit, on the writer's thread;
//! reads go to connections of their own.

use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::rules::Ids;
use leasehold_core::{
    Claim, ClaimRequest, Control, Controlled, Enqueued, Error, ErrorKind, EventClaim,
    EventClaimRequest, EventFence, EventSettlement, Found, Hints, Limits, NewEvent, NewJob, Page,
    Progress, PruneRequest, Pruned, Published, Query, ReclaimRequest, Reclaimed, Records,
    RenewRequest, Renewal, Result, Settled, Settlement, Stats, StatsScope, Store,
};
use rusqlite::{Connection, Transaction};
use tokio::sync::{oneshot, watch};

use crate::clock::Clock;
use crate::error::{engine, named};
use crate::files::{Files, LOG_BYTES_MAX};
use crate::fork::Opener;
use crate::joined::{InTransaction, Joined};
use crate::load::Shared;
use crate::open::{Access, LOCK_WAIT, Place, Target};
use crate::pool::Readers;
use crate::write::News;
use crate::writer::{Answer, Call, Request, Writer};
use crate::{find, migrate, stats};

/// How many requests may wait for the writer.
const WAITING_MAX: usize = 1_024;

/// A store in a SQLite database, for one node; several processes may share the file.
#[derive(Clone, Debug)]
pub struct SqliteStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    target: Target,
    writer: SyncSender<Box<dyn Request>>,
    readers: Readers,
    /// Ends when the writer has closed the database.
    open: watch::Receiver<()>,
    opener: Opener,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.opener.is_here() {
            // Before the writer, so that it is the last and takes the log into the file: of two that
            // close at once each may leave that to the other.
            self.readers.close();
        } else {
            // Closing them would act on the files of the process that they belong to.
            self.readers.abandon();
        }
    }
}

/// Where the time and the ids of a store come from.
pub(crate) struct Origin {
    pub(crate) limits: Limits,
    pub(crate) ids: Ids,
    /// `None`: the store's own.
    pub(crate) clock: Option<Clock>,
}

impl SqliteStore {
    /// Opens a database, makes it where it does not exist, and brings its schema up to date.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_with(url, Limits::default()).await
    }

    /// Opens a database with other limits than the documented ones.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub async fn open_with(url: &str, limits: Limits) -> Result<Self> {
        Self::start(Target::parse(url)?, Origin { limits, ids: Ids::random(), clock: None }).await
    }

    pub(crate) async fn start(target: Target, origin: Origin) -> Result<Self> {
        let blocking = tokio::task::spawn_blocking(move || Self::start_blocking(target, origin));
        blocking.await.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "open", "the opening task ended").with_source(error)
        })?
    }

    fn start_blocking(target: Target, origin: Origin) -> Result<Self> {
        let (target, conn) = target.open_first()?;
        migrate::settle(&conn, target.access)?;
        let clock = match origin.clock {
            Some(clock) => clock,
            None => Clock::own(&conn).map_err(|error| named(error, "open"))?,
        };
        let files = match (Files::of(&conn), target.access) {
            (Err(error), Access::Write) => return Err(named(error, "open")),
            (files, _) => files.unwrap_or(None), // whoever only looks may have no log
        };
        let shared = Arc::new(Shared {
            limits: origin.limits,
            ids: origin.ids,
            hints: Hints::new(),
            clock,
            files,
            lifecycles: Mutex::new(None),
            detour: crate::ends::Detour::default(),
        });
        if let Some(warning) = stats::library_warning(rusqlite::version_number()) {
            tracing::warn!("SQLite {}: {warning}", rusqlite::version());
        }
        let (writer, requests) = sync_channel(WAITING_MAX);
        let (opened, open) = watch::channel(());
        let thread = Writer {
            conn,
            target: target.clone(),
            shared: Arc::clone(&shared),
            requests,
            log_next: LOG_BYTES_MAX,
            opened,
        };
        let named_thread = thread::Builder::new().name("leasehold-sqlite".to_owned());
        let none = Error::new(ErrorKind::Unavailable, "open", "no thread for the writer");
        named_thread.spawn(move || thread.serve()).map_err(|error| none.with_source(error))?;
        Ok(Self(Arc::new(Inner {
            shared,
            target,
            writer,
            readers: Readers::default(),
            open,
            opener: Opener::here(),
        })))
    }

    /// Makes it look as a forked child's copy does.
    #[cfg(test)]
    pub(crate) fn forked(&mut self) {
        Arc::get_mut(&mut self.0).expect("the only handle").opener = Opener::elsewhere();
    }

    /// Joins a transaction of the caller's own; the verbs commit or roll back with it.
    pub fn join<'a>(&'a self, tx: &'a impl InTransaction) -> Joined<'a> {
        Joined { conn: tx.connection(), shared: &self.0.shared, guarded: true }
    }

    /// Runs a short closure inside a transaction on the writer's thread, in the group commit.
    ///
    /// An `Err` rolls back everything the closure wrote. A panic is passed on to the caller. The
    /// closure must neither wait nor end the transaction; it is run again when the database ended
    /// the group's transaction by itself. [`own_error`](crate::own_error) turns the errors of its own
    /// statements.
    ///
    /// # Errors
    /// The closure's own; `Busy`, `StorageFull`, `OutcomeUnknown` from the engine.
    pub async fn transaction<T, F>(&self, mut run: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        let confirmed = move |tx: &Transaction<'_>| {
            News::watch();
            let said = run(tx)?;
            News::confirm(tx)?;
            Ok(said)
        };
        self.call_as("transaction", confirmed, true).await
    }

    /// Makes a foreign connection fit to write beside the store: it waits for locks, and leaves
    /// checkpoints to the writer. Nothing else about it changes.
    ///
    /// # Errors
    /// What the engine says.
    pub fn prepare_connection(&self, conn: &Connection) -> Result<()> {
        let wait = conn.busy_timeout(LOCK_WAIT);
        wait.and_then(|()| conn.pragma_update(None, "wal_autocheckpoint", 0))
            .map_err(|error| named(engine(error), "prepare connection"))
    }

    /// Lets go of this handle, and waits until the database is closed: its log is then part of the
    /// file, unless another process has it open. The database closes with the last handle, so that
    /// this waits for every other one, workers' and relays' too. Dropping the handles closes it as
    /// well, a moment later.
    pub async fn close(self) {
        let (mut open, here) = (self.0.open.clone(), self.0.opener.is_here());
        drop(self);
        if !here {
            // A forked child has the handle but not the thread.
            return;
        }
        // Nothing is ever sent: the wait ends when the writer is gone.
        let _ended = open.changed().await;
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    pub(crate) fn target(&self) -> &Target {
        &self.0.target
    }

    /// Runs a closure of ours in a transaction of the writer.
    pub(crate) async fn call<T, F>(&self, operation: &'static str, verb: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        self.call_as(operation, verb, false).await
    }

    async fn call_as<T, F>(&self, operation: &'static str, verb: F, is_foreign: bool) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        self.0.opener.check(operation)?;
        let (reply, answer) = oneshot::channel();
        let call = Call::new(Arc::clone(&self.0.shared), verb, is_foreign, reply);
        self.submit(operation, Box::new(call)).await?;
        match answer.await {
            Ok(Answer::Said(said)) => said.map_err(|error| named(error, operation)),
            Ok(Answer::Panicked(panic)) => resume_unwind(panic),
            Err(_) => {
                let why = "the writer ended before it answered";
                Err(Error::new(ErrorKind::OutcomeUnknown, operation, why))
            }
        }
    }

    /// Hands a request to the writer, and waits for room where there is none.
    async fn submit(&self, operation: &'static str, mut request: Box<dyn Request>) -> Result<()> {
        let (mut waited, pause) = (Duration::ZERO, Duration::from_millis(2));
        loop {
            request = match self.0.writer.try_send(request) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(request)) if waited < LOCK_WAIT => request,
                Err(TrySendError::Full(_)) => {
                    let why = "too many requests wait for the writer";
                    return Err(Error::new(ErrorKind::Busy, operation, why));
                }
                Err(TrySendError::Disconnected(_)) => {
                    let why = "the writer has ended";
                    return Err(Error::new(ErrorKind::Unavailable, operation, why));
                }
            };
            tokio::time::sleep(pause).await;
            waited += pause;
        }
    }

    /// Runs one of the store's own verbs.
    pub(crate) async fn verb<T, F>(&self, operation: &'static str, mut verb: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Joined<'_>) -> Result<T> + Send + 'static,
    {
        let shared = Arc::clone(&self.0.shared);
        let joined =
            move |conn: &Transaction<'_>| verb(&Joined { conn, shared: &shared, guarded: false });
        self.call(operation, joined).await
    }

    /// Runs a verb that answers per item; after damage that one item met, each by itself.
    async fn items<I, T, F>(
        &self,
        operation: &'static str,
        items: Vec<I>,
        verb: F,
    ) -> Result<Vec<Result<T>>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: Fn(&Joined<'_>, &[I]) -> Result<Vec<Result<T>>> + Copy + Send + 'static,
    {
        let items = Arc::new(items);
        let all = Arc::clone(&items);
        match self.verb(operation, move |tx| verb(tx, &all)).await {
            Err(error) if error.kind() == ErrorKind::Corrupt && items.len() > 1 => {}
            answers => return answers,
        }
        let mut answers = Vec::with_capacity(items.len());
        for at in 0..items.len() {
            let all = Arc::clone(&items);
            let one = move |tx: &Joined<'_>| verb(tx, all.get(at..=at).unwrap_or_default());
            match self.verb(operation, one).await {
                Ok(answer) => answers.extend(answer),
                Err(error) => answers.push(Err(error)),
            }
        }
        Ok(answers)
    }

    /// Runs a read on a connection of its own, as of one instant.
    pub(crate) async fn read<T, F>(&self, operation: &'static str, mut read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection, &Shared) -> Result<T> + Send + 'static,
    {
        let shared = Arc::clone(&self.0.shared);
        if self.0.target.place == Place::Memory {
            return self.call(operation, move |tx| read(tx, &shared)).await;
        }
        self.0.opener.check(operation)?;
        let store = self.clone();
        let task = tokio::task::spawn_blocking(move || store.read_blocking(&mut read));
        let ended = |error| {
            Error::new(ErrorKind::Unavailable, operation, "the reading task ended")
                .with_source(error)
        };
        task.await.map_err(ended)?.map_err(|error| named(error, operation))
    }

    fn read_blocking<T>(
        &self,
        read: &mut impl FnMut(&Connection, &Shared) -> Result<T>,
    ) -> Result<T> {
        let open = || {
            self.0.shared.files.as_ref().map_or(Ok(()), Files::check)?;
            self.0.target.open_reader()
        };
        self.0.readers.read(open, |tx| read(tx, &self.0.shared))
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Result<Enqueued>>> {
        let hashes: Vec<_> = jobs.iter().map(NewJob::request_hash).collect(); // not on the writer
        self.verb("enqueue", move |tx| tx.enqueue_hashed(&jobs, &hashes)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
        self.claim_past(request).await
    }

    async fn renew(&self, request: RenewRequest) -> Result<Vec<Renewal>> {
        self.verb("renew", move |tx| tx.renew(&request)).await
    }

    async fn progress(&self, reports: Vec<Progress>) -> Result<Vec<Result<()>>> {
        self.items("progress", reports, |tx, items| tx.progress(items)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Result<Settled>>> {
        self.items("settle", settlements, |tx, items| tx.settle(items)).await
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<Reclaimed> {
        self.reclaim_past(request).await
    }

    async fn publish(&self, events: Vec<NewEvent>) -> Result<Vec<Published>> {
        self.verb("publish", move |tx| tx.publish(&events)).await
    }

    async fn claim_events(&self, request: EventClaimRequest) -> Result<Vec<EventClaim>> {
        self.claim_events_past(request).await
    }

    async fn renew_events(&self, request: RenewRequest<EventFence>) -> Result<Vec<Renewal>> {
        self.verb("renew", move |tx| tx.renew_events(&request)).await
    }

    async fn settle_events(&self, settlements: Vec<EventSettlement>) -> Result<Vec<Result<()>>> {
        self.items("settle", settlements, |tx, items| tx.settle_events(items)).await
    }

    async fn control(&self, act: Control) -> Result<Controlled> {
        self.verb("control", move |tx| tx.control(&act)).await
    }

    async fn find(&self, query: Query) -> Result<Page<Found>> {
        self.read("find", move |conn, shared| find::find(conn, shared, &query)).await
    }

    async fn look(&self, scope: StatsScope) -> Result<Stats> {
        self.read("look", move |conn, shared| stats::stats(conn, shared, scope)).await
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned> {
        self.verb("prune", move |tx| tx.prune(&request)).await
    }

    fn hints(&self) -> Hints {
        self.0.shared.hints.clone()
    }

    fn records(&self) -> &dyn Records {
        self
    }
}
