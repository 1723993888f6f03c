//! The SQLite store of Leasehold: durable, fenced jobs and a transactional outbox on one node.
//!
//! - [`open`] gives a [`SqliteStore`], which is the contract's `Store` and `Records`.
//! - [`SqliteStore::join`] gives the same verbs on the caller's own transaction.
//! - [`SqliteStore::transaction`] runs a short closure inside the group commit.
//!
//! ```
//! use leasehold_core::{ErrorKind, Error, JobKind, Json, NewJob, StoreExt};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let store = leasehold_sqlite::open(":memory:").await?;
//! let (joining, job) = (store.clone(), NewJob::new(JobKind::new("invoice")?, Json::parse("{}")?));
//! let id = job.id;
//! store
//!     .transaction(move |tx| {
//!         let failed = |e| Error::new(ErrorKind::Invalid, "order", "no row").with_source(e);
//!         tx.execute_batch("create table if not exists orders (number)").map_err(failed)?;
//!         tx.execute("insert into orders values (7)", []).map_err(failed)?;
//!         joining.join(tx).enqueue(std::slice::from_ref(&job)).map(|_| ())
//!     })
//!     .await?;
//! assert!(store.job(id).await?.is_some());
//! # Ok::<(), Error>(())
//! # }).unwrap();
//! ```
//!
//! Owns everything that is SQLite: files, connections, statements, locks, the clock. Refuses to
//! decide what a verb does; those rules are the contract's.

mod admit;
mod aside;
mod audit;
mod backup;
mod blob;
mod claim;
mod clock;
mod control;
mod deliver;
mod document;
mod ends;
mod enqueue_sql;
mod error;
mod files;
mod find;
mod fork;
mod joined;
#[cfg(feature = "lab")]
mod lab;
mod letters;
mod load;
mod migrate;
mod once;
mod open;
mod places;
mod pool;
mod prune;
mod records;
mod row;
mod statement;
mod stats;
mod store;
mod subject;
mod tokens;
mod turns;
mod uptime;
mod url;
mod waits;
mod write;
mod writer;

pub use backup::{abandon_copy, abandon_restore, restore};
#[cfg(feature = "lab")]
pub use clock::{pass, step_wall};
pub use error::own_error;
pub use joined::{InTransaction, Joined};
pub use rusqlite;
pub use store::SqliteStore;
#[doc(hidden)]
pub use url::mask_url;

/// Opens a database, makes it where it does not exist, and brings its schema up to date.
///
/// `url` is a path (`jobs.db`, `/var/lib/jobs.db`), `:memory:`, or a URL: `sqlite:jobs.db`,
/// `sqlite:///var/lib/jobs.db`, `sqlite::memory:`, with %-escapes and one parameter,
/// `synchronous=full` (the default) or `synchronous=normal`, which may lose acknowledged work when
/// the power fails.
///
/// # Errors
/// `Invalid` for a URL that is none or a schema that is too new; `Corrupt` for an edited migration or
/// a damaged file; `Conflict` when a shipped lifecycle has another definition; `Busy`, `Unavailable`
/// and `StorageFull` from the engine.
pub async fn open(url: &str) -> leasehold_core::Result<SqliteStore> {
    SqliteStore::open(url).await
}

/// Reads a URL and opens nothing.
///
/// # Errors
/// As [`open`] for a URL that is none.
pub fn read_url(url: &str) -> leasehold_core::Result<()> {
    open::Target::parse(url).map(|_| ())
}
