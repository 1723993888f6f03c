//! Owns the store's handle: each of its verbs is begin, join, verb, commit, on a pooled connection,
//! and is run again where the server says that it has to be.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Client;
use leasehold_core::rules::Ids;
use leasehold_core::{
    Claim, ClaimRequest, Control, Controlled, Enqueued, Error, ErrorKind, EventClaim,
    EventClaimRequest, EventFence, EventSettlement, Found, Hints, Limits, NewEvent, NewJob, Page,
    Progress, PruneRequest, Pruned, Published, Query, ReclaimRequest, Reclaimed, Records,
    RenewRequest, Renewal, Result, Settled, Settlement, Stats, StatsScope, Store,
};
use tokio_postgres::{IsolationLevel, Transaction};

use crate::error::{engine, named};
use crate::group::Line;
use crate::joined::{Joined, Verb};
use crate::load::Shared;
use crate::marks::Marks;
use crate::notify::Wakes;
use crate::open::Target;
use crate::own::Own;
use crate::pool::{Lane, Pools};
use crate::schema::Schema;
use crate::statement::Db;
use crate::{find, migrate, stats};

/// How often a transaction of the store's is run again.
const RESTARTS_MAX: u32 = 8;
/// How many connections in a row may turn out to be dead: a whole pool after a server's restart.
const DEAD_MAX: usize = 20;

/// A store in a PostgreSQL database, for any number of nodes.
#[derive(Clone, Debug)]
pub struct PostgresStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Shared,
    target: Target,
    pools: Pools,
    marks: Marks,
    line: Line,
    wakes: Arc<Wakes>,
}

/// Where the time and the ids of a store come from.
pub(crate) struct Origin {
    pub(crate) limits: Limits,
    pub(crate) ids: Ids,
    #[cfg(feature = "lab")]
    pub(crate) clock: Option<leasehold_core::lab::ManualClock>,
}

/// Why a try of a transaction gave no answer.
struct Failed {
    error: Error,
    /// Whether the transaction had begun.
    begun: bool,
}

impl Failed {
    fn begun(error: Error) -> Self {
        Self { error, begun: true }
    }

    fn unbegun(error: Error) -> Self {
        Self { error, begun: false }
    }

    /// Whether the connection turned out to be dead before anything had begun on it.
    fn is_of_a_dead_connection(&self) -> bool {
        !self.begun && self.error.kind() == ErrorKind::Unavailable
    }
}

impl PostgresStore {
    /// Opens a database.
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
        let origin = Origin {
            limits,
            ids: Ids::random(),
            #[cfg(feature = "lab")]
            clock: None,
        };
        Self::start(Target::parse(url)?, origin).await
    }

    pub(crate) async fn start(target: Target, origin: Origin) -> Result<Self> {
        let pools = Pools::of(&target)?;
        migrate::migrate(&target, &pools).await?;
        let (wakes, hints) = Wakes::start(target.clone());
        Ok(Self::of(origin, target, pools, (Arc::new(wakes), hints)))
    }

    fn of(
        origin: Origin,
        target: Target,
        pools: Pools,
        (wakes, hints): (Arc<Wakes>, Hints),
    ) -> Self {
        let shared = Shared {
            limits: origin.limits,
            ids: origin.ids,
            hints,
            schema: Arc::clone(&target.schema),
            #[cfg(feature = "lab")]
            clock: origin.clock,
            lifecycles: Mutex::new(None),
            long: Mutex::default(),
        };
        let (marks, line) = (Marks::default(), Line::new());
        Self(Arc::new(Inner { shared, target, pools, marks, line, wakes }))
    }

    /// One more store on the connections of this one, with a time and ids of its own.
    #[cfg(feature = "lab")]
    pub(crate) fn beside(&self, origin: Origin) -> Self {
        let Inner { shared, target, pools, wakes, .. } = &*self.0;
        let wakes = (Arc::clone(wakes), shared.hints.clone());
        Self::of(origin, target.clone(), pools.clone(), wakes)
    }

    /// Joins a transaction of the caller's own; the verbs commit or roll back with it.
    ///
    /// While it is open others wait for it who send the same idempotency key, and, where it enqueues the
    /// very first job of a queue, who enqueue to that queue.
    pub fn join<'a>(&'a self, tx: &'a Transaction<'a>) -> Joined<'a> {
        let shared = &self.0.shared;
        Joined { db: Db::caller(tx, &shared.schema), shared, own: None }
    }

    /// How many connections the verbs share; the lanes of settlements and heartbeats come on top.
    pub fn pool_size(&self) -> usize {
        self.0.target.pool_size
    }

    /// Whether wake-ups of other processes are heard at this moment; asks nobody.
    pub fn hears_wake_ups(&self) -> bool {
        self.0.wakes.hears() == Some(true)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    #[cfg(feature = "lab")]
    pub(crate) fn pools(&self) -> &Pools {
        &self.0.pools
    }

    #[cfg(feature = "lab")]
    pub(crate) fn target(&self) -> &Target {
        &self.0.target
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.0.shared.schema
    }

    pub(crate) fn line(&self) -> &Line {
        &self.0.line
    }

    pub(crate) fn marks(&self) -> &Marks {
        &self.0.marks
    }

    /// Runs a verb in a transaction of the store's, again where the server asks for it.
    pub(crate) async fn run<V: Verb + ?Sized>(&self, lane: Lane, verb: &V) -> Result<V::Answer> {
        let (mut restarts, mut dead) = (0, 0);
        loop {
            let failed = match self.attempt(lane, verb).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let is_dead = failed.is_of_a_dead_connection();
            let error = failed.error;
            if is_dead && dead < DEAD_MAX {
                dead += 1;
            } else if error.is_transaction_restart() && restarts < RESTARTS_MAX {
                restarts += 1;
                tokio::time::sleep(jittered(restarts)).await;
            } else if error.is_transaction_restart() {
                let why = "other transactions came first again and again";
                return Err(Error::new(ErrorKind::Busy, V::NAME, why).with_source(error));
            } else {
                return Err(named(error, V::NAME));
            }
        }
    }

    /// Runs a verb once: begin, verb, commit, wake-ups.
    async fn attempt<V: Verb + ?Sized>(&self, lane: Lane, verb: &V) -> Result<V::Answer, Failed> {
        let Inner { shared, target, pools, .. } = &*self.0;
        let client = pools.take(lane).await.map_err(Failed::begun)?;
        let own = Own::on(&client, target.behind_pooler);
        let db = Db::own(&client, &shared.schema, !target.behind_pooler);
        match (Joined { db, shared, own: Some(&own) }).run(verb).await {
            Ok(answer) => {
                own.commit().await.map_err(Failed::begun)?.send(&shared.hints);
                Ok(answer)
            }
            Err(error) => {
                let begun = own.has_begun();
                own.roll_back().await;
                Err(Failed { error, begun })
            }
        }
    }

    /// Runs a verb that answers per item; after damage that one item met, each by itself.
    pub(crate) async fn items<I, T>(&self, items: &[I]) -> Result<Vec<Result<T>>>
    where
        [I]: Verb<Answer = Vec<Result<T>>>,
    {
        match self.run(Lane::Holders, items).await {
            Err(error) if error.kind() == ErrorKind::Corrupt && items.len() > 1 => {}
            answers => return answers,
        }
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            match self.run(Lane::Holders, std::slice::from_ref(item)).await {
                Ok(answer) => answers.extend(answer),
                Err(error) => answers.push(Err(error)),
            }
        }
        Ok(answers)
    }

    /// Whether nothing of a session may be relied on.
    pub(crate) fn behind_pooler(&self) -> bool {
        self.0.target.behind_pooler
    }

    /// Takes a connection of a lane.
    pub(crate) async fn connection(&self, lane: Lane) -> Result<Client> {
        self.0.pools.take(lane).await
    }

    /// Takes a connection for a read.
    pub(crate) async fn reader(&self) -> Result<Client> {
        self.0.pools.take(Lane::Shared).await
    }

    /// A transaction that looks around: its statements are planned anew for their values, since a plan
    /// for any filter would read whole tables.
    pub(crate) fn db<'a>(&'a self, begun: &'a deadpool_postgres::Transaction<'a>) -> Db<'a> {
        Db::caller(begun, &self.0.shared.schema)
    }
}

/// Begins a transaction that only reads, as of one instant.
pub(crate) async fn snapshot(client: &mut Client) -> Result<deadpool_postgres::Transaction<'_>> {
    let builder = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    builder.read_only(true).start().await.map_err(engine)
}

fn gone(operation: &'static str) -> Error {
    Error::new(ErrorKind::Unavailable, operation, "every connection is dead")
}

/// A pause before a transaction is run again, longer each time and never the same for two.
fn jittered(tries: u32) -> Duration {
    let [random, ..] = *uuid::Uuid::new_v4().as_bytes();
    Duration::from_micros(u64::from(random) * 40 * (1 << tries.min(6)))
}

#[async_trait]
impl Store for PostgresStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Result<Enqueued>>> {
        self.enqueue_grouped(jobs).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
        self.claim_past(request).await
    }

    async fn renew(&self, request: RenewRequest) -> Result<Vec<Renewal>> {
        self.run(Lane::Beats, &request).await
    }

    async fn progress(&self, reports: Vec<Progress>) -> Result<Vec<Result<()>>> {
        self.items(&reports).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Result<Settled>>> {
        self.end(&settlements).await
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<Reclaimed> {
        self.reclaim_past(request).await
    }

    async fn publish(&self, events: Vec<NewEvent>) -> Result<Vec<Published>> {
        self.run(Lane::Shared, &*events).await
    }

    async fn claim_events(&self, request: EventClaimRequest) -> Result<Vec<EventClaim>> {
        self.claim_events_past(request).await
    }

    async fn renew_events(&self, request: RenewRequest<EventFence>) -> Result<Vec<Renewal>> {
        self.run(Lane::Beats, &request).await
    }

    async fn settle_events(&self, settlements: Vec<EventSettlement>) -> Result<Vec<Result<()>>> {
        self.items(&settlements).await
    }

    async fn control(&self, act: Control) -> Result<Controlled> {
        self.run(Lane::Shared, &act).await
    }

    async fn find(&self, query: Query) -> Result<Page<Found>> {
        for dead in 0..=DEAD_MAX {
            let found = async {
                let mut client = self.reader().await.map_err(Failed::begun)?;
                let begun = snapshot(&mut client).await.map_err(Failed::unbegun)?;
                let found = find::find(&self.db(&begun), &self.0.shared, &query).await;
                found.map_err(Failed::begun)
            };
            match found.await {
                Err(failed) if failed.is_of_a_dead_connection() && dead < DEAD_MAX => {}
                found => return found.map_err(|failed| named(failed.error, "find")),
            }
        }
        Err(gone("find"))
    }

    async fn look(&self, scope: StatsScope) -> Result<Stats> {
        for dead in 0..=DEAD_MAX {
            let counted = async {
                let mut client = self.reader().await.map_err(Failed::begun)?;
                let begun = snapshot(&mut client).await.map_err(Failed::unbegun)?;
                let counted = stats::stats(&self.db(&begun), &self.0.shared, scope).await;
                counted.map_err(Failed::begun)
            };
            match counted.await {
                Err(failed) if failed.is_of_a_dead_connection() && dead < DEAD_MAX => {}
                Err(failed) => return Err(named(failed.error, "look")),
                Ok(mut stats) => {
                    let heard = self.0.wakes.hears().filter(|_| !self.0.target.behind_pooler);
                    heard.into_iter().for_each(|heard| stats.tell_of_wake_ups(heard));
                    return Ok(stats);
                }
            }
        }
        Err(gone("look"))
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned> {
        self.run(Lane::Shared, &request).await
    }

    fn connections(&self) -> Option<usize> {
        Some(self.pool_size())
    }

    fn hints(&self) -> Hints {
        self.0.shared.hints.clone()
    }

    fn records(&self) -> &dyn Records {
        self
    }
}
