//! Owns the connections: a pool for the verbs, a small lane for settlements, one more for heartbeats,
//! and single connections beside them. A settlement may wait for a row that a caller has locked; a
//! heartbeat never does, so nothing that waits may stand before it.

use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime,
};
use futures_util::Stream;
use futures_util::stream::poll_fn;
use leasehold_core::{Error, ErrorKind, Result};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::error::{self, engine};
use crate::open::{Place, Target};

/// The longest wait for a connection to become free or be made.
const WAIT: Duration = Duration::from_secs(30);
/// Connections of the settlements' lane.
const SETTLING: usize = 2;
/// Connections of the heartbeats' lane: a beat waits for no row, so one after the other is enough.
const BEATING: usize = 1;

/// What holds in the store's own transactions. Plans of big arrays look dear to the server's compiler,
/// which then costs more than the statement.
pub(crate) const SETTINGS: &str = "set local lock_timeout = '30s'; set local jit = off";
/// The same for a connection that is the store's alone. No statement needs a plan for its values, and left to
/// itself the server plans some anew each time, which takes longer than running them.
const LASTING: &str = "set lock_timeout = '30s'; set jit = off; set plan_cache_mode = force_generic_plan; \
     set default_transaction_isolation = 'read committed'";

/// What a single connection hears from its server; it works only while this is polled.
pub(crate) type Messages =
    Pin<Box<dyn Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send>>;

/// Which connections a verb takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The ones all verbs share.
    Shared,
    /// The ones kept for settlements and reports of who holds a lease; they may wait for a row.
    Holders,
    /// The one kept for heartbeats, which wait for no row.
    Beats,
}

/// The connections of one store; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    shared: Pool,
    holders: Pool,
    beats: Pool,
    place: Place,
}

impl Pools {
    pub(crate) fn of(target: &Target) -> Result<Self> {
        Ok(Self {
            shared: pool(target, target.pool_size)?,
            holders: pool(target, SETTLING)?,
            beats: pool(target, BEATING)?,
            place: target.place.clone(),
        })
    }

    /// Waits for a connection.
    pub(crate) async fn take(&self, lane: Lane) -> Result<Client> {
        let pool = match lane {
            Lane::Shared => &self.shared,
            Lane::Holders => &self.holders,
            Lane::Beats => &self.beats,
        };
        pool.get().await.map_err(|error| self.place.named(error::pool(error)))
    }

    /// Lets go of the connections that are not in use.
    #[cfg(feature = "lab")]
    pub(crate) fn forget(&self) {
        for pool in [&self.shared, &self.holders, &self.beats] {
            let _gone = pool.retain(|_, _| false);
        }
    }
}

fn pool(target: &Target, size: usize) -> Result<Pool> {
    // A broken connection shows itself by its closed socket; asking the server each time would cost
    // a round trip.
    let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match target.tls.clone() {
        Some(tls) => Manager::from_config(target.config.clone(), tls, how),
        None => Manager::from_config(target.config.clone(), NoTls, how),
    };
    let pool = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(WAIT))
        .create_timeout(Some(WAIT))
        .recycle_timeout(Some(WAIT));
    let pool = if target.behind_pooler { pool } else { pool.post_create(lasting_settings()) };
    let pool = pool.build();
    pool.map_err(|error| {
        Error::new(ErrorKind::Unavailable, "open", "the pool cannot be made").with_source(error)
    })
}

fn lasting_settings() -> Hook {
    Hook::async_fn(|client, _| {
        Box::pin(async move { client.batch_execute(LASTING).await.map_err(HookError::Backend) })
    })
}

impl Target {
    /// Makes a single connection.
    pub(crate) async fn connect(&self) -> Result<(tokio_postgres::Client, Messages)> {
        let failed = |error| self.place.named(engine(error));
        match self.tls.clone() {
            Some(tls) => {
                let (client, mut connection) = self.config.connect(tls).await.map_err(failed)?;
                Ok((client, Box::pin(poll_fn(move |cx| connection.poll_message(cx)))))
            }
            None => {
                let (client, mut connection) = self.config.connect(NoTls).await.map_err(failed)?;
                Ok((client, Box::pin(poll_fn(move |cx| connection.poll_message(cx)))))
            }
        }
    }
}
