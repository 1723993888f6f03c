//! Owns the way from a URL to a store. Refuses to know what is done with it.

use std::sync::Arc;

use leasehold::{Error, ErrorKind, Result, Store};

/// An open store, the engine's name in reports, and the URL that opens it again.
#[derive(Clone, Debug)]
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub engine: &'static str,
    pub url: String,
}

/// Opens a store that is there: what looks at a database, or acts on one, makes none by a mistyped name.
///
/// # Errors
/// [`ErrorKind::NotFound`] where there is no such file; those of [`leasehold::connect`].
pub async fn connect_existing(url: &str) -> Result<Arc<dyn Store>> {
    if_there(url)?;
    leasehold::connect(url).await
}

/// Refuses a file that is not there.
///
/// # Errors
/// [`ErrorKind::NotFound`], with the path.
pub fn if_there(url: &str) -> Result<()> {
    let path = url.split_once('?').map_or(url, |(path, _)| path);
    let path = path.strip_prefix("sqlite:").unwrap_or(path);
    let elsewhere = path.is_empty() || path == ":memory:" || path.contains("://");
    if elsewhere || std::path::Path::new(path).exists() {
        return Ok(());
    }
    let why = format!("there is no file {path}; `leasehold migrate` makes a new database");
    Err(Error::new(ErrorKind::NotFound, "open", why))
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
