//! Owns a fresh database of one test: where it is, what it is called, a dump of it, and who may insert.

use std::path::PathBuf;

use leasehold_core::Timestamp;
use leasehold_core::lab::{Dump, LabStore};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, NoTls, connect};
use leasehold_sqlite::SqliteStore;

/// Which engine a database is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// The server that the environment names.
pub(crate) fn server() -> Option<String> {
    std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok()
}

/// A database of one test, gone when it ends.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) engine: Engine,
    /// The file, or the schema's name.
    pub(crate) name: String,
    server: String,
}

impl Place {
    /// Nothing is there yet. `None` where the engine cannot be reached.
    pub(crate) fn new(engine: Engine, story: &str) -> Option<Self> {
        let word: String = story.chars().filter(|c| c.is_ascii_alphanumeric()).take(24).collect();
        let word = format!("view_{word}_{}", std::process::id());
        let (name, server) = match engine {
            Engine::Sqlite => {
                let folder = std::env::var_os("LEASEHOLD_TEST_DIR");
                let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
                (folder.join(word).display().to_string(), String::new())
            }
            Engine::Postgres => (word, server()?),
        };
        let place = Self { engine, name, server };
        place.remove_file();
        Some(place)
    }

    /// What opens the store.
    pub(crate) fn url(&self) -> String {
        match self.engine {
            Engine::Sqlite => self.name.clone(),
            Engine::Postgres => {
                let join = if self.server.contains('?') { '&' } else { '?' };
                format!("{}{join}schema={}&pool_size=4", self.server, self.name)
            }
        }
    }

    /// What a program connects to.
    pub(crate) fn address(&self) -> &str {
        match self.engine {
            Engine::Sqlite => &self.name,
            Engine::Postgres => &self.server,
        }
    }

    /// The view.
    pub(crate) fn view(&self) -> String {
        match self.engine {
            Engine::Sqlite => "leasehold_enqueue".to_owned(),
            Engine::Postgres => format!("\"{}\".enqueue", self.name),
        }
    }

    /// The role that may insert.
    pub(crate) fn role(&self) -> String {
        format!("\"{} app\"", self.name)
    }

    pub(crate) async fn dump(&self) -> Dump {
        match self.engine {
            Engine::Sqlite => {
                let store = SqliteStore::lab(&self.name, Timestamp::MIN).await.expect("a store");
                let dump = store.dump().await.expect("a dump");
                store.close().await;
                dump
            }
            Engine::Postgres => {
                let store = PostgresStore::lab_again(&self.server, &self.name, None).await;
                store.expect("a store").dump().await.expect("a dump")
            }
        }
    }

    /// A session of nobody's in particular; on PostgreSQL only.
    pub(crate) async fn session(&self) -> Client {
        let (client, connection) = connect(&self.server, NoTls).await.expect("a session");
        tokio::spawn(connection);
        client
    }

    /// Makes the role that may insert, and see what it inserted, and nothing else; on SQLite whoever has the file may.
    pub(crate) async fn let_in(&self) {
        if self.engine == Engine::Sqlite {
            return;
        }
        let (role, schema) = (self.role(), &self.name);
        let text = format!(
            "create role {role}; grant usage on schema \"{schema}\" to {role};
             grant insert, select on {} to {role}",
            self.view()
        );
        self.session().await.batch_execute(&text).await.expect("a role");
    }

    fn remove_file(&self) {
        if self.engine == Engine::Sqlite {
            for end in ["", "-wal", "-shm"] {
                let _absent = std::fs::remove_file(format!("{}{end}", self.name));
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove_file();
    }
}
