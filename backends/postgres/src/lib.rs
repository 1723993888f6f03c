//! The PostgreSQL store of Leasehold: durable, fenced jobs and a transactional outbox on many nodes.
//!
//! - [`open`] gives a [`PostgresStore`], which is the contract's `Store` and `Records`.
//! - [`PostgresStore::join`] gives the same verbs on the caller's own transaction.
//!
//! ```no_run
//! use leasehold_core::{Error, ErrorKind, JobKind, Json, NewJob};
//!
//! # async fn order(client: &mut leasehold_postgres::tokio_postgres::Client) -> Result<(), Error> {
//! let store = leasehold_postgres::open("postgres://localhost/app?migrate=auto").await?;
//! let job = NewJob::new(JobKind::new("invoice")?, Json::parse("{}")?);
//! let failed = |e| Error::new(ErrorKind::Unavailable, "order", "no row").with_source(e);
//! let tx = client.transaction().await.map_err(failed)?;
//! tx.execute("insert into orders values (7)", &[]).await.map_err(failed)?;
//! let enqueued = store.join(&tx).enqueue(&[job]).await?;
//! tx.commit().await.map_err(failed)?;
//! enqueued.iter().flatten().for_each(|it| it.wake().send());
//! # Ok(())
//! # }
//! ```
//!
//! Owns everything that is PostgreSQL: connections, statements, locks, wake-ups. Refuses to decide
//! what a verb does; those rules are the contract's.

mod admit;
mod aside;
mod audit;
mod bind;
mod blob;
mod claim;
mod control;
mod deliver;
mod document;
mod ends;
mod enqueue_sql;
mod error;
#[cfg(feature = "failpoints")]
pub mod faults;
mod find;
mod group;
mod joined;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "lab")]
mod lab_again;
mod letters;
mod load;
mod marks;
mod migrate;
mod new_jobs;
mod notify;
mod once;
mod open;
mod own;
mod pool;
mod prune;
mod quick;
mod records;
mod row;
mod schema;
mod statement;
mod stats;
mod step;
mod store;
mod subject;
mod tokens;
mod turns;
mod waits;
mod write;

pub use joined::Joined;
#[cfg(feature = "lab")]
pub use lab_again::LabSchemas;
pub use store::PostgresStore;
pub use tokio_postgres;

/// Opens a database.
///
/// `url` is a `postgres://` URL as libpq reads it, a socket's folder as `?host=/path` included, with
/// these parameters besides:
///
/// - `schema=NAME`: where the tables are; `leasehold` unless set.
/// - `migrate=auto`: makes and updates the schema; otherwise an open of an old one fails and names
///   what is missing.
/// - `pooler=transaction`: a transaction-mode pooler stands between; nothing is left prepared, and
///   wake-ups of other processes are not heard.
/// - `pool_size=N`: connections that the verbs share; 16 unless set. Settlements have two
///   more, heartbeats and wake-ups one each.
/// - `sslmode`: `disable` (unless set), `prefer`, `require`; with TLS the certificate and the host's
///   name are always checked, against the machine's roots or those of `sslrootcert=PATH`.
///
/// # Errors
/// `Invalid` for a URL that is none or a schema that is too new; `Unavailable` for a server that
/// cannot be reached and for a schema that is missing or old; `Corrupt` for an edited migration;
/// `Conflict` when a shipped lifecycle has another definition.
pub async fn open(url: &str) -> leasehold_core::Result<PostgresStore> {
    PostgresStore::open(url).await
}

/// Reads a URL and opens nothing.
///
/// # Errors
/// As [`open`] for a URL that is none.
pub fn read_url(url: &str) -> leasehold_core::Result<()> {
    open::Target::parse(url).map(|_| ())
}
