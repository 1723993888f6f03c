//! Owns where one run of the suites is: a folder, and on a server a database that is gone with all of the run's
//! sessions and tables afterwards. Refuses to know what runs there.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_postgres::tokio_postgres::{self, NoTls};

const SERVER: &str = "LEASEHOLD_TEST_POSTGRES_URL";

pub(crate) struct Place {
    folder: PathBuf,
    /// The database, where there is a server.
    database: Option<Database>,
}

struct Database {
    server: String,
    name: String,
}

impl Place {
    pub(crate) fn of(engine: &str) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("leasehold_mutant_{}_{number}", std::process::id());
        let above = std::env::var_os("LEASEHOLD_TEST_DIR");
        let folder = above.map_or_else(std::env::temp_dir, PathBuf::from).join(&name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let database = (engine != "sqlite").then(|| Database::make(name));
        Self { folder, database }
    }

    /// Keeps an altered statement here.
    pub(crate) fn write(&self, text: &str) -> PathBuf {
        let file = self.folder.join("altered.sql");
        std::fs::write(&file, text).expect("written");
        file
    }

    /// What tells a program where it is.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("LEASEHOLD_TEST_DIR", self.folder.display().to_string())];
        all.extend(self.database.iter().map(|it| (SERVER, it.url())));
        all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

impl Database {
    fn make(name: String) -> Self {
        let made = Self { server: std::env::var(SERVER).expect("a server"), name };
        made.say(&format!("create database {}", made.name));
        made
    }

    /// The server's URL with this database in it.
    fn url(&self) -> String {
        let (place, parameters) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let (host, _database) = place.rsplit_once('/').expect("a URL with a database");
        format!("{host}/{}?{parameters}", self.name)
    }

    fn say(&self, text: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&self.server, NoTls).await.expect("the server");
            let carried = tokio::spawn(connection);
            client.batch_execute(text).await.expect("a database");
            drop(client);
            let _over = carried.await;
        });
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.say(&format!("drop database if exists {} with (force)", self.name));
    }
}
