//! Owns the way from a URL to a store. Refuses to know what is done with it.

use std::path::PathBuf;
use std::sync::Arc;

use leasehold::{Error, ErrorKind, Result, Store};
use leasehold_sqlite::mask_url;

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
    leasehold::connect(&lowered(url)).await
}

/// The same for what only looks: a SQLite file is opened so that nothing of it can be changed, and neither
/// the file nor its folder needs to be writable.
///
/// # Errors
/// As [`connect_existing`].
pub async fn connect_to_look(url: &str) -> Result<Arc<dyn Store>> {
    if_there(url)?;
    leasehold::connect(&looking(&lowered(url))).await
}

/// The URL with its scheme in small letters, where it is one of ours: it means the same in capitals.
pub(crate) fn lowered(url: &str) -> String {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let small = scheme.to_ascii_lowercase();
    match small.as_str() {
        "sqlite" | "postgres" | "postgresql" => format!("{small}:{rest}"),
        _ => url.to_owned(),
    }
}

/// Says whether a URL names a server.
pub(crate) fn is_postgres(url: &str) -> bool {
    let url = lowered(url);
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// The URL of a file that is only looked at; another engine's as it is.
fn looking(url: &str) -> String {
    if file(url).is_none() || url.contains("mode=ro") {
        return url.to_owned();
    }
    match url.strip_prefix("sqlite:") {
        Some(rest) => format!("{url}{}mode=ro", if rest.contains('?') { '&' } else { '?' }),
        None => format!("sqlite:{}?mode=ro", url.replace('%', "%25").replace('?', "%3f")),
    }
}

/// The path of a SQLite file; `None` for what is none.
fn file(url: &str) -> Option<PathBuf> {
    let path = match url.strip_prefix("sqlite:") {
        Some(rest) => {
            let path = rest.split_once('?').map_or(rest, |(path, _)| path);
            decoded(path.strip_prefix("//").unwrap_or(path))
        }
        None if url.contains("://") => return None,
        None => url.to_owned(),
    };
    (!path.is_empty() && path != ":memory:").then(|| PathBuf::from(path))
}

/// A path without its %-escapes; a broken one is told of when the URL is read.
fn decoded(path: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), path.as_bytes());
    while let [byte, after @ ..] = rest {
        let pair =
            after.get(..2).filter(|_| *byte == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match pair.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Refuses a file that is not there.
///
/// # Errors
/// [`ErrorKind::NotFound`], with the path; [`ErrorKind::Invalid`] for a text that names no database.
pub fn if_there(url: &str) -> Result<()> {
    leasehold::read_url(url)?;
    let Some(path) = file(&lowered(url)).filter(|path| !path.exists()) else { return Ok(()) };
    let path = mask_url(&path.display().to_string());
    let why = format!("there is no file {path}; `leasehold migrate` makes a new database");
    Err(Error::new(ErrorKind::NotFound, "open", why))
}

/// Opens the store that a URL names; its schema is brought up to date.
pub async fn connect(url: &str) -> Result<Opened> {
    let (url, is_postgres) = (lowered(url), is_postgres(url));
    let join = if url.contains('?') { '&' } else { '?' };
    let url = if is_postgres && !url.contains("migrate=") {
        format!("{url}{join}migrate=auto")
    } else {
        url
    };
    let engine = if is_postgres { "postgres" } else { "sqlite" };
    Ok(Opened { store: leasehold::connect(&url).await?, engine, url })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: CLI-1
    #[test]
    fn a_look_at_a_file_says_so_and_other_urls_stay_as_they_are() {
        for (url, wanted) in [
            ("jobs.db", "sqlite:jobs.db?mode=ro"),
            ("a?b%.db", "sqlite:a%3fb%25.db?mode=ro"),
            ("sqlite:a%20b.db", "sqlite:a%20b.db?mode=ro"),
            ("sqlite:a.db?synchronous=normal", "sqlite:a.db?synchronous=normal&mode=ro"),
            ("sqlite:a.db?mode=ro", "sqlite:a.db?mode=ro"),
            (":memory:", ":memory:"),
            ("postgres://h/d", "postgres://h/d"),
        ] {
            assert_eq!(looking(url), wanted);
        }
        assert_eq!(file("sqlite://a%20b.db?mode=ro"), Some(PathBuf::from("a b.db")));
        assert_eq!(file("a?b%20.db"), Some(PathBuf::from("a?b%20.db")));
    }
}
