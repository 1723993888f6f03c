//! Owns which engines there are and how a fresh database of one is made and opened.

use std::path::PathBuf;
use std::sync::Arc;

use leasehold_core::{Result, Store};
use libtest_mimic::Failed;

/// A kind of database, or one fresh database of that kind.
#[derive(Clone, Debug)]
pub(crate) enum Engine {
    Sqlite { url: String },
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
        vec![Self::Sqlite { url: String::new() }]
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "sqlite",
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        false
    }

    /// Where a child finds the same database.
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Sqlite { url } => url,
        }
    }

    pub(crate) fn at(url: &str) -> Self {
        Self::Sqlite { url: url.to_owned() }
    }

    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>> {
        match self {
            Self::Sqlite { url } => Ok(Arc::new(leasehold_sqlite::open(url).await?)),
        }
    }

    /// Runs a story on a database of its own and removes it.
    pub(crate) fn fresh(&self, story: fn(&Self) -> Result<(), Failed>) -> Result<(), Failed> {
        let id = leasehold_core::WorkerId::new();
        match self {
            Self::Sqlite { .. } => {
                let place = folder().join(format!("leasehold-processes-{id}"));
                std::fs::create_dir_all(&place)?;
                let url = place.join("jobs.db").display().to_string();
                let done = story(&Self::Sqlite { url });
                std::fs::remove_dir_all(&place)?;
                done
            }
        }
    }
}
