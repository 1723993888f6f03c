//! Owns which engines there are and how a fresh database of one is made and opened.

use std::path::PathBuf;
use std::sync::Arc;

use leasehold_core::{Result, Store, WorkerId};
use leasehold_postgres::tokio_postgres::{self, NoTls};
use libtest_mimic::Failed;

/// Where PostgreSQL's tests find a server.
const SERVER: &str = "LEASEHOLD_TEST_POSTGRES_URL";

/// A kind of database, or one fresh database of that kind.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    name: &'static str,
    url: String,
}

/// Whether an engine that cannot be reached is a failure.
pub(crate) fn required() -> bool {
    std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some()
}

fn folder() -> PathBuf {
    std::env::var_os("LEASEHOLD_TEST_DIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

impl Engine {
    pub(crate) fn all() -> Vec<Self> {
        let server = std::env::var(SERVER).unwrap_or_default();
        vec![
            Self { name: "sqlite", url: folder().display().to_string() },
            Self { name: "postgres", url: server },
        ]
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.url.is_empty()
    }

    /// Where a child finds the same database.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>> {
        leasehold::connect(&self.url).await
    }

    /// Runs a story on a database of its own and removes it.
    pub(crate) fn fresh(
        &self,
        story: impl FnOnce(&Self) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let name = format!("processes_{}", WorkerId::new().as_uuid().as_simple());
        if self.name == "sqlite" {
            let place = folder().join(name);
            std::fs::create_dir_all(&place)?;
            let url = place.join("jobs.db").display().to_string();
            let done = story(&Self { name: self.name, url });
            std::fs::remove_dir_all(&place)?;
            return done;
        }
        if self.is_absent() {
            return Err(format!("{SERVER} is not set").into());
        }
        let sign = if self.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{sign}migrate=auto&schema={name}", self.url);
        let done = story(&Self { name: self.name, url });
        done.and(self.drop_schema(&name))
    }

    fn drop_schema(&self, name: &str) -> Result<(), Failed> {
        crate::runtime().block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
            let serving = tokio::spawn(connection);
            client.batch_execute(&format!("drop schema {name} cascade")).await?;
            drop(client);
            serving.await??;
            Ok(())
        })
    }
}
