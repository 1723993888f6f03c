//! Owns the one place that tells an engine by its URL, for programs that join no transaction.

use std::borrow::Cow;
use std::sync::Arc;

use leasehold_core::{Error, ErrorKind, Result, Store};

/// Opens the store that a URL names.
///
/// `postgres://…` and `postgresql://…` are PostgreSQL (feature `postgres`); anything else is SQLite
/// (feature `sqlite`): a path, `:memory:`, or a `sqlite:` URL. A local libSQL file is opened by its
/// path.
///
/// # Errors
/// `Invalid` for a URL whose engine is not compiled in (naming the feature) or is a remote libSQL
/// server; else as the engine's own `open`.
pub async fn connect(url: &str) -> Result<Arc<dyn Store>> {
    let url = &*lowered(url);
    match scheme(url) {
        "postgres" | "postgresql" => postgres(url).await,
        "libsql" | "ws" | "wss" | "http" | "https" => Err(remote()),
        _ => sqlite(url).await,
    }
}

/// Says whether [`connect`] understands a URL; opens nothing.
///
/// ```
/// assert!(leasehold::read_url("sqlite:jobs.db").is_ok());
/// assert!(leasehold::read_url("mysql://db.example/jobs").is_err());
/// ```
///
/// # Errors
/// `Invalid`, as [`connect`].
pub fn read_url(url: &str) -> Result<()> {
    let url = &*lowered(url);
    match scheme(url) {
        "postgres" | "postgresql" => read_postgres(url),
        "libsql" | "ws" | "wss" | "http" | "https" => Err(remote()),
        _ => read_sqlite(url),
    }
}

fn scheme(url: &str) -> &str {
    url.split_once("://").map_or("", |(scheme, _)| scheme)
}

/// The URL with its scheme in small letters: it means the same in capitals.
fn lowered(url: &str) -> Cow<'_, str> {
    let small = scheme(url).to_ascii_lowercase();
    match small == scheme(url) {
        true => Cow::Borrowed(url),
        false => Cow::Owned(format!("{small}{}", url.get(small.len()..).unwrap_or_default())),
    }
}

fn remote() -> Error {
    let why = "a remote libSQL server gives no transaction over jobs and your own rows; \
               open a local file by its path";
    Error::new(ErrorKind::Invalid, "connect", why)
}

#[cfg(feature = "postgres")]
fn read_postgres(url: &str) -> Result<()> {
    leasehold_postgres::read_url(url)
}

#[cfg(not(feature = "postgres"))]
fn read_postgres(_url: &str) -> Result<()> {
    Err(without("postgres"))
}

#[cfg(feature = "sqlite")]
fn read_sqlite(url: &str) -> Result<()> {
    leasehold_sqlite::read_url(url)
}

#[cfg(not(feature = "sqlite"))]
fn read_sqlite(_url: &str) -> Result<()> {
    Err(without("sqlite"))
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(leasehold_postgres::open(url).await?))
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_url: &str) -> Result<Arc<dyn Store>> {
    Err(without("postgres"))
}

#[cfg(feature = "sqlite")]
async fn sqlite(url: &str) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(leasehold_sqlite::open(url).await?))
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite(_url: &str) -> Result<Arc<dyn Store>> {
    Err(without("sqlite"))
}

#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
fn without(feature: &str) -> Error {
    let why = format!("this build has no such engine; switch on the feature {feature:?}");
    Error::new(ErrorKind::Invalid, "connect", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: PAR-2
    #[tokio::test]
    async fn remote_libsql_is_refused_with_the_reason() {
        for url in ["libsql://db.example", "https://db.example", "wss://db.example"] {
            let error = connect(url).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains("libSQL"), "{error}");
        }
    }

    /// Proves: GLO-4
    #[test]
    fn a_scheme_in_capitals_means_the_same() {
        let error = read_url("Postgres://u:PW@h/db?migrate=perhaps").unwrap_err();
        assert!(error.message().contains("migrate is auto or never"), "{error}");
        for url in ["PostgreSQL://u:PW@h/db", "postgres://u:PW@h/db", "SQLite:a.db"] {
            assert!(read_url(url).is_ok(), "{url}");
        }
        let error = read_url("LibSQL://db.example").unwrap_err();
        assert!(error.message().contains("libSQL"), "{error}");
    }

    /// Proves: PAR-2
    #[tokio::test]
    async fn a_path_opens_sqlite() {
        let store = connect(":memory:").await.unwrap();
        assert!(store.stats().await.unwrap().engine.starts_with("SQLite"));
    }
}
