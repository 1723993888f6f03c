//! Owns the way from a URL to a store. Refuses to know what is done with it.

use std::sync::Arc;

use leasehold::{Result, Store};

/// An open store and the engine's name in reports.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: &'static str,
}

/// Opens the store that a URL names; its schema is brought up to date.
pub(crate) async fn connect(url: &str) -> Result<Opened> {
    let is_postgres = url.starts_with("postgres://") || url.starts_with("postgresql://");
    if !is_postgres {
        return Ok(Opened { store: leasehold::connect(url).await?, engine: "sqlite" });
    }
    let join = if url.contains('?') { '&' } else { '?' };
    let told = url.contains("migrate=");
    let url = if told { url.to_owned() } else { format!("{url}{join}migrate=auto") };
    Ok(Opened { store: leasehold::connect(&url).await?, engine: "postgres" })
}
