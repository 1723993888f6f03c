//! Owns the way from a URL to a store. Refuses to know what is done with it.

use std::sync::Arc;

use leasehold::{Error, Result, Store};

/// An open store and the engine's name in reports.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: &'static str,
}

/// Opens the store that a URL names; its schema is brought up to date.
pub(crate) async fn connect(url: &str) -> Result<Opened> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Err(Error::invalid("connect", "this build cannot open PostgreSQL"));
    }
    Ok(Opened { store: Arc::new(leasehold_sqlite::open(url).await?), engine: "sqlite" })
}
