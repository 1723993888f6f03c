//! Owns the way from a URL to a store. Refuses to know what is done with it.

use std::sync::Arc;

use leasehold::{Result, Store};

/// An open store, the engine's name in reports, and the URL that opens it again.
#[derive(Clone, Debug)]
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub engine: &'static str,
    pub url: String,
}

/// Opens the store that a URL names; its schema is brought up to date.
pub async fn connect(url: &str) -> Result<Opened> {
    let is_postgres = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let join = if url.contains('?') { '&' } else { '?' };
    let url = if is_postgres && !url.contains("migrate=") {
        format!("{url}{join}migrate=auto")
    } else {
        url.to_owned()
    };
    let engine = if is_postgres { "postgres" } else { "sqlite" };
    Ok(Opened { store: leasehold::connect(&url).await?, engine, url })
}
