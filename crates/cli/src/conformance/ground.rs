//! Owns where the suite's stores lie: schemas or files of a run's own, made for it and removed after it.
//! Refuses to know what is played on them, and never opens what the URL itself names.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::{Error, ErrorKind, Result, WorkerId, async_trait};
use leasehold_conformance::{Harness, start};
use leasehold_core::lab::LabStore;
use leasehold_postgres::PostgresStore;
use leasehold_sqlite::SqliteStore;

/// How many schemas or files there are at once; a store may still be closing while the next ones open.
const AT_ONCE: u64 = 8;

/// Where the stores of a run lie.
#[derive(Debug)]
pub(super) struct Ground {
    place: Place,
    /// What the names of this run have in common.
    name: String,
    made: AtomicU64,
}

#[derive(Debug)]
enum Place {
    /// Schemas of a database.
    Server { url: String },
    /// Files of a folder: the folder, and how its URLs begin and end.
    Folder { path: PathBuf, before: String, after: String },
    /// The memory of this program.
    Memory,
}

impl Ground {
    /// A ground for a run at a URL; nothing is made yet.
    pub(super) fn at(url: &str) -> Result<Self> {
        let id: String = WorkerId::new().to_string().chars().rev().take(12).collect();
        let name = format!("leasehold_conformance_{id}");
        let made = AtomicU64::new(0);
        let url = crate::connect::lowered(url);
        let url = url.as_str();
        if crate::connect::is_postgres(url) {
            let place = Place::Server { url: url.to_owned() };
            return Ok(Self { place, name, made });
        }
        let (before, after) = match url.split_once('?') {
            Some((before, after)) if url.starts_with("sqlite:") => (before, format!("?{after}")),
            _ => (url, String::new()),
        };
        let before = format!("{before}.{name}");
        let place = match (SqliteStore::lab_file(url)?, SqliteStore::lab_file(&before)?) {
            (Some(_), Some(path)) => Place::Folder { path, before, after },
            _ => Place::Memory,
        };
        Ok(Self { place, name, made })
    }

    /// The engine's name in reports.
    pub(super) const fn engine(&self) -> &'static str {
        match self.place {
            Place::Server { .. } => "postgres",
            Place::Folder { .. } | Place::Memory => "sqlite",
        }
    }

    /// What the engine says of itself.
    pub(super) async fn version(&self) -> Result<String> {
        Ok(self.store().await?.stats().await?.engine)
    }

    /// What is made here, in words.
    pub(super) fn makes(&self) -> String {
        match &self.place {
            Place::Server { .. } => {
                format!("the schemas {0}_0 to {0}_{1}", self.name, AT_ONCE - 1)
            }
            Place::Folder { path, .. } => format!("the folder {}", path.display()),
            Place::Memory => "nothing outside of this program's memory".to_owned(),
        }
    }

    /// The harness whose stores lie here.
    pub(super) fn harness(self: &Arc<Self>) -> Arc<dyn Harness> {
        Arc::clone(self) as Arc<dyn Harness>
    }

    /// The URL of a fresh store on the machine's own clock, for what opens it again and again.
    pub(super) async fn url(&self) -> Result<String> {
        let number = self.next();
        Ok(match &self.place {
            Place::Server { url } => {
                let schema = self.schema(number);
                PostgresStore::lab_end(url, &schema).await?;
                with(url, &[("schema", &schema), ("migrate", "auto"), ("pool_size", "8")])
            }
            Place::Folder { .. } => self.file(number).await?,
            Place::Memory => ":memory:".to_owned(),
        })
    }

    /// The server's URL without what this program adds to it; none where there is no server.
    pub(super) fn server(&self) -> Option<&str> {
        match &self.place {
            Place::Server { url } => Some(url),
            Place::Folder { .. } | Place::Memory => None,
        }
    }

    /// Removes everything that was made here.
    pub(super) async fn remove(&self) -> Result<()> {
        match &self.place {
            Place::Server { url } => {
                for number in 0..self.made.load(Ordering::SeqCst).min(AT_ONCE) {
                    PostgresStore::lab_end(url, &self.schema(number)).await?;
                }
            }
            Place::Folder { path, .. } => match std::fs::remove_dir_all(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(unusable("remove", path, &error));
                }
                _ => {}
            },
            Place::Memory => {}
        }
        Ok(())
    }

    fn next(&self) -> u64 {
        self.made.fetch_add(1, Ordering::SeqCst)
    }

    fn schema(&self, number: u64) -> String {
        format!("{}_{}", self.name, number % AT_ONCE)
    }

    /// The URL of a new file; an older one goes.
    async fn file(&self, number: u64) -> Result<String> {
        let Place::Folder { path, before, after } = &self.place else {
            return Err(Error::invalid("conformance", "there is no folder"));
        };
        tokio::fs::create_dir_all(path).await.map_err(|error| unusable("make", path, &error))?;
        if let Some(old) = number.checked_sub(AT_ONCE) {
            for end in ["", "-wal", "-shm"] {
                // One that cannot be removed now goes with the folder.
                let _gone = tokio::fs::remove_file(path.join(format!("{old}.db{end}"))).await;
            }
        }
        Ok(format!("{before}/{number}.db{after}"))
    }
}

#[async_trait]
impl Harness for Ground {
    fn name(&self) -> &'static str {
        self.engine()
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        let number = self.next();
        Ok(match &self.place {
            Place::Server { url } => {
                let url = with(url, &[("pool_size", "4")]);
                Arc::new(PostgresStore::lab(&url, &self.schema(number), Some(start())).await?)
            }
            Place::Folder { .. } => {
                Arc::new(SqliteStore::lab(&self.file(number).await?, start()).await?)
            }
            Place::Memory => Arc::new(SqliteStore::lab(":memory:", start()).await?),
        })
    }
}

fn unusable(verb: &'static str, path: &std::path::Path, error: &std::io::Error) -> Error {
    let why = format!("cannot {verb} {}: {error}", path.display());
    Error::new(ErrorKind::Unavailable, "conformance", why)
}

/// A server's URL with parameters of the store's in place of those that it has.
fn with(url: &str, own: &[(&str, &str)]) -> String {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let name = |parameter: &str| parameter.split('=').next().unwrap_or("").to_owned();
    let is_kept = |parameter: &&str| {
        !parameter.is_empty() && !own.iter().any(|(replaced, _)| name(parameter) == *replaced)
    };
    let kept = query.split('&').filter(is_kept).map(str::to_owned);
    let own = own.iter().map(|(name, value)| format!("{name}={value}"));
    format!("{place}?{}", kept.chain(own).collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_take_the_place_of_those_there_are() {
        let own = [("schema", "mine"), ("pool_size", "8")];
        let url = with("postgres://me@db/app?schema=live&host=/run&pool_size=2", &own);
        assert_eq!(url, "postgres://me@db/app?host=/run&schema=mine&pool_size=8");
        assert_eq!(with("postgres://db/app", &own[..1]), "postgres://db/app?schema=mine");
    }

    /// Proves: PAR-2
    #[test]
    fn what_a_url_names_is_never_what_is_opened() {
        for url in ["jobs.db", "sqlite:jobs.db?synchronous=normal", "sqlite:///var/lib/a%20b.db"] {
            let ground = Ground::at(url).unwrap();
            let Place::Folder { path, before, .. } = &ground.place else { panic!("{url}") };
            let named = SqliteStore::lab_file(url).unwrap().unwrap();
            assert!(!named.starts_with(path) && path.parent() == named.parent(), "{path:?}");
            assert!(before.ends_with(&ground.name), "{before}");
        }
        let ground = Ground::at("postgres://db/app?schema=live").unwrap();
        assert!(
            ground.schema(9).starts_with("leasehold_conformance_") && ground.engine() == "postgres"
        );
        assert!(ground.schema(0).len() < 60, "a name of PostgreSQL has 63 bytes at most");
        assert!(matches!(Ground::at(":memory:").unwrap().place, Place::Memory));
        assert!(Ground::at("mysql://db/app").is_err());
    }
}
