//! Owns where the databases of a run lie, and how each is opened.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Limit, Outcome, postgres, sqlite};
use leasehold_cli::connect::{Opened, connect};

const POSTGRES: &str = "LEASEHOLD_TEST_POSTGRES_URL";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        if self == Self::Sqlite { "sqlite" } else { "postgres" }
    }
}

/// A folder of this run's own, gone at its end, and the server where there is one.
pub(crate) struct Place {
    folder: PathBuf,
    server: Option<String>,
    made: AtomicUsize,
}

impl Place {
    pub(crate) fn new() -> Outcome<Self> {
        let folder = std::env::var_os("LEASEHOLD_BENCH_DIR");
        let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = folder.join(format!("leasehold-limit-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, server: std::env::var(POSTGRES).ok(), made: AtomicUsize::new(0) })
    }

    pub(crate) fn engines(&self, only: Option<&str>) -> Outcome<Vec<Engine>> {
        if only == Some("postgres") && self.server.is_none() {
            return Err(format!("{POSTGRES} names no server").into());
        }
        let all = [Engine::Sqlite, Engine::Postgres].into_iter();
        let here = all.filter(|it| *it == Engine::Sqlite || self.server.is_some());
        Ok(here.filter(|it| only.is_none_or(|only| only == it.name())).collect())
    }

    /// A store in a file or schema of its own; `pool` connections where there is a pool.
    pub(crate) async fn open(&self, engine: Engine, pool: Option<usize>) -> Outcome<Opened> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Ok(connect(&self.url(engine, number, pool)?).await?)
    }

    /// The raw loops, on tables of their own.
    pub(crate) async fn limit(&self, engine: Engine) -> Outcome<Box<dyn Limit>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        if engine == Engine::Sqlite {
            let raw = sqlite::Raw::open(&self.folder.join(format!("limit-{number}.db")))?;
            return Ok(Box::new(raw));
        }
        let server = self.server.as_deref().ok_or("no server")?;
        Ok(Box::new(postgres::Raw::open(server, number).await?))
    }

    /// Makes room: the rows of a crowd are no longer wanted.
    pub(crate) async fn remove(&self, opened: Opened) -> Outcome<()> {
        let (engine, url) = (opened.engine, opened.url.clone());
        drop(opened);
        if engine == "sqlite" {
            for end in ["", "-wal", "-shm"] {
                let _absent = std::fs::remove_file(format!("{url}{end}"));
            }
            return Ok(());
        }
        let schema = url.split("schema=").nth(1).and_then(|it| it.split('&').next());
        let server = self.server.as_deref().ok_or("no server")?;
        postgres::drop_schema(server, schema.ok_or("no schema")?).await
    }

    fn url(&self, engine: Engine, number: usize, pool: Option<usize>) -> Outcome<String> {
        if engine == Engine::Sqlite {
            let path = self.folder.join(format!("leasehold-{number}.db"));
            return Ok(path.to_string_lossy().into_owned());
        }
        let server = self.server.as_deref().ok_or("no server")?;
        let join = if server.contains('?') { '&' } else { '?' };
        let pool = pool.map_or(String::new(), |size| format!("&pool_size={size}"));
        Ok(format!("{server}{join}schema=bench_{}_{number}{pool}", std::process::id()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A file that cannot be removed is no reason to lose the figures.
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}
