//! Owns where a database is and how a connection to it is set up: the URL grammar, the pragmas, the
//! wait for locks. The file is never opened by any other means, since closing a second handle would
//! drop SQLite's locks.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::clock;
use crate::error::{engine, named};
use crate::files::{LOG_BYTES_MAX, refuse_second_name};
use crate::statement::batch;
use crate::url::{mask_url, no_path, without_scheme};

/// The longest wait for another process's lock.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(30);
/// The longest pause between two tries for a lock, in milliseconds.
const PAUSE_MAX_MS: u64 = 8;
/// More than there are, so that none is prepared twice.
const STATEMENTS: usize = 256;
/// How many pages the log gathers before they are moved into the file: a page that changes often is
/// then written once for many commits.
const CHECKPOINT_PAGES: u32 = 4_000;
/// How much of the file the writer keeps in memory.
const CACHE_KIB: u32 = 16 * 1024;

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    File(PathBuf),
    Memory,
}

/// What is done with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    /// It is looked at, beside others that write.
    Look,
    /// It is looked at as if nobody could write: its log cannot be opened, and is empty.
    Frozen,
}

/// A database, what is done with it, and how safely it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) place: Place,
    /// Whether an acknowledged write survives the loss of power.
    pub(crate) full_sync: bool,
    pub(crate) access: Access,
}

impl Target {
    /// Reads a path, `:memory:`, or a `sqlite:` URL with parameters.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let Some(rest) = without_scheme(url, "sqlite") else {
            return match no_path(url) {
                Some(why) => Err(refuse(url, why)),
                None => Ok(Self::to_write(place(url, url)?)),
            };
        };
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix("//").unwrap_or(path);
        let decoded = decode(path).ok_or_else(|| refuse(url, "a %-escape is broken"))?;
        let mut target = Self::to_write(place(url, &decoded)?);
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            match parameter {
                "synchronous=full" => target.full_sync = true,
                "synchronous=normal" => target.full_sync = false,
                "mode=ro" if target.place != Place::Memory => target.access = Access::Look,
                _ => {
                    let why = format!(
                        "parameter {:?} is unknown; synchronous=full, synchronous=normal and, for a \
                         file, mode=ro are known",
                        mask_url(parameter)
                    );
                    return Err(refuse(url, &why));
                }
            }
        }
        Ok(target)
    }

    /// A database to write, as safely as can be.
    pub(crate) fn to_write(place: Place) -> Self {
        Self { place, full_sync: true, access: Access::Write }
    }

    /// Opens the first connection, and settles how a file is looked at that nobody may write.
    pub(crate) fn open_first(mut self) -> Result<(Self, Connection)> {
        let Place::File(path) = self.place.clone() else {
            let conn = self.open_writer()?;
            return Ok((self, conn));
        };
        if self.access == Access::Write {
            let conn = self.open_writer()?;
            return Ok((self, conn));
        }
        refuse_second_name(&path, false).map_err(|error| named(error, "open"))?;
        let log = std::fs::metadata(format!("{}-wal", path.display())).map_or(0, |log| log.len());
        let error = match self.open_to_look() {
            Ok(conn) => return Ok((self, conn)),
            Err(error) if error.kind() == ErrorKind::Unavailable && path.exists() => error,
            Err(error) => return Err(error),
        };
        if log > 0 {
            let why = "the log beside the file holds writes, and is read only by who may write to its folder; \
                       look at a copy that `leasehold backup` makes";
            return Err(Error::new(ErrorKind::Unavailable, "open", why).with_source(error));
        }
        self.access = Access::Frozen;
        let conn = self.open_to_look()?;
        Ok((self, conn))
    }

    fn open_to_look(&self) -> Result<Connection> {
        let conn = self.open()?;
        batch(&conn, "pragma_of_a_look", "pragma schema_version").map_err(|e| named(e, "open"))?;
        Ok(conn)
    }

    /// Opens the writer's connection.
    pub(crate) fn open_writer(&self) -> Result<Connection> {
        if let Place::File(path) = &self.place {
            refuse_missing_folder(path)?;
            refuse_second_name(path, true).map_err(|error| named(error, "open"))?;
        }
        let conn = self.open()?;
        into_wal(&conn)?;
        let sync = if self.full_sync { "full" } else { "normal" };
        // What a statement of many rows keeps for its own undoing goes to memory, not to a file.
        let pragmas = format!(
            "pragma synchronous = {sync}; pragma foreign_keys = on; pragma journal_size_limit = {LOG_BYTES_MAX}; \
             pragma wal_autocheckpoint = {CHECKPOINT_PAGES}; pragma cache_size = -{CACHE_KIB}; \
             pragma temp_store = memory"
        );
        batch(&conn, "pragma", &pragmas)?;
        Ok(conn)
    }

    /// Opens a connection that only reads.
    pub(crate) fn open_reader(&self) -> Result<Connection> {
        let conn = self.open()?;
        let pragmas = "pragma query_only = on; pragma wal_autocheckpoint = 0";
        batch(&conn, "pragma_of_a_reader", pragmas)?;
        Ok(conn)
    }

    fn open(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
            | match self.access {
                Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
                Access::Look => OpenFlags::SQLITE_OPEN_READ_ONLY,
                Access::Frozen => OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
            };
        let opened = match &self.place {
            Place::Memory => Connection::open_in_memory_with_flags(flags),
            Place::File(path) if self.access == Access::Frozen => {
                let path = escaped(&path.display().to_string());
                Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)
            }
            Place::File(path) => Connection::open_with_flags(path, flags),
        };
        #[allow(unused_mut, reason = "older versions of the driver take a shared reference")]
        let mut conn = opened.map_err(|error| named(engine(error), "open"))?;
        conn.busy_handler(Some(wait_for_lock)).map_err(engine)?;
        // Or else a plan rests on the values of parameters, and is made again for each new one.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(engine)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(conn)
    }
}

/// Moves the write-ahead log into the file and cuts it to nothing; as much of that as readers and
/// other writers allow without a wait.
pub(crate) fn empty_log(conn: &mut Connection) -> Result<()> {
    conn.busy_handler(Some(never_wait)).map_err(engine)?;
    let done = batch(conn, "checkpoint", "pragma wal_checkpoint(truncate)");
    conn.busy_handler(Some(wait_for_lock)).map_err(engine)?;
    done
}

fn place(url: &str, path: &str) -> Result<Place> {
    match path {
        "" => Err(refuse(url, "the path is empty")),
        ":memory:" => Ok(Place::Memory),
        path => Ok(Place::File(PathBuf::from(path))),
    }
}

/// SQLite makes the file, not the folder it lies in, and does not say which of them was missing.
fn refuse_missing_folder(path: &Path) -> Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => {
            let folder = mask_url(&folder.display().to_string());
            let why = format!("the folder {folder} does not exist");
            Err(Error::new(ErrorKind::Unavailable, "open", why))
        }
        _ => Ok(()),
    }
}

fn refuse(url: &str, why: &str) -> Error {
    Error::invalid("open", format!("{:?}: {why}", mask_url(url)))
}

/// A path as a URI has it.
fn escaped(path: &str) -> String {
    path.replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(out).ok()
}

/// Switches to the write-ahead log; while others do the same this can be refused without a wait.
fn into_wal(conn: &Connection) -> Result<()> {
    for tries in 0.. {
        let mode = conn
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match mode.map_err(engine) {
            Ok(mode) if mode == "wal" || mode == "memory" => return Ok(()),
            Ok(mode) => {
                let why = format!("the file stays in journal mode {mode:?}; WAL is needed");
                return Err(Error::new(ErrorKind::Unavailable, "open", why));
            }
            Err(error) if error.kind() == ErrorKind::Busy && wait_for_lock(tries) => {}
            Err(error) => return Err(named(error, "open")),
        }
    }
    Ok(())
}

/// Waits a jittered moment; `false` once the longest wait has been used up. Short, random pauses give
/// every process its turn, which SQLite's own ever longer ones do not.
fn wait_for_lock(tries: i32) -> bool {
    if clock::waited(tries == 0) >= LOCK_WAIT {
        return false;
    }
    thread::sleep(jitter());
    true
}

fn never_wait(_tries: i32) -> bool {
    false
}

fn jitter() -> Duration {
    let [random, ..] = *uuid::Uuid::new_v4().as_bytes();
    Duration::from_micros(PAUSE_MAX_MS * 1000 * u64::from(random) / 255)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: GLO-4
    #[test]
    fn the_grammar_of_places() {
        let file = |path: &str| Place::File(PathBuf::from(path));
        let table = [
            ("jobs.db", file("jobs.db")),
            ("/var/lib/jobs.db", file("/var/lib/jobs.db")),
            ("a?b.db", file("a?b.db")),
            (":memory:", Place::Memory),
            ("sqlite::memory:", Place::Memory),
            ("sqlite:jobs.db", file("jobs.db")),
            ("SQLite:jobs.db", file("jobs.db")),
            ("./mysql:jobs.db", file("./mysql:jobs.db")),
            ("sqlite:/var/jobs.db", file("/var/jobs.db")),
            ("sqlite://jobs.db", file("jobs.db")),
            ("sqlite:///var/my%20jobs.db", file("/var/my jobs.db")),
        ];
        for (url, place) in table {
            assert_eq!(Target::parse(url).expect(url).place, place, "{url}");
        }
    }

    /// Proves: GLO-4
    #[test]
    fn what_is_unknown_is_refused() {
        assert!(!Target::parse("sqlite:a.db?synchronous=normal").expect("known").full_sync);
        assert!(Target::parse("sqlite:a.db?synchronous=full").expect("known").full_sync);
        for url in [
            "",
            "sqlite:",
            "file:a.db",
            "postgres://host/db",
            "sqlite:a.db?mode=rw",
            "sqlite::memory:?mode=ro",
            "sqlite:a.db?synchronous=off",
            "sqlite:%zz.db",
            "mysql:jobs.db",
            "Postgres:/u:PW@h/db",
            " postgres://u:PW@h/db",
            "host=127.0.0.1 password=PW user=u",
            "sqlite:a.db?password=PW",
        ] {
            let error = Target::parse(url).expect_err(url);
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            assert!(!error.to_string().contains("PW"), "{error}");
        }
    }

    /// Proves: ERR-1
    #[test]
    fn a_missing_folder_is_named_and_a_bare_name_lies_in_the_working_folder() {
        let error = refuse_missing_folder(Path::new("/nowhere/at/all/jobs.db")).expect_err("none");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("/nowhere/at/all does not exist"), "{error}");
        for there in ["jobs.db", "/jobs.db", "/"] {
            refuse_missing_folder(Path::new(there)).expect(there);
        }
    }

    /// What SQLite keeps only for one connection has no log to write ahead to.
    ///
    /// Proves: GLO-2
    #[test]
    fn a_file_that_cannot_have_a_log_is_refused() {
        let conn = Connection::open("").expect("a file without a name");
        let error = into_wal(&conn).expect_err("no log");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("WAL is needed"), "{error}");
    }

    /// Another process holds a new file alone, until it lets go or the longest wait is over.
    ///
    /// Proves: ERR-1, GLO-2
    #[cfg(feature = "lab")]
    #[test]
    fn the_switch_to_the_log_waits_for_another_process() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static REFUSED: AtomicU32 = AtomicU32::new(0);
        fn refused(_tries: i32) -> bool {
            REFUSED.fetch_add(1, Ordering::SeqCst);
            false
        }
        let until = |count: u32| {
            let end = clock::steady() + Duration::from_secs(60);
            while REFUSED.load(Ordering::SeqCst) < count && clock::steady() < end {
                thread::yield_now();
            }
        };
        let name = format!("leasehold-wal-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let other = Connection::open(&path).expect("a connection");
        let alone = "begin exclusive; create view own as select 1 as n";
        other.execute_batch(alone).expect("held");
        let switch = |path: PathBuf| {
            thread::spawn(move || {
                #[allow(
                    unused_mut,
                    reason = "older versions of the driver take a shared reference"
                )]
                let mut conn = Connection::open(path).expect("a connection");
                conn.busy_handler(Some(refused)).expect("a handler");
                into_wal(&conn)
            })
        };
        let waiting = switch(path.clone());
        until(2);
        clock::pass(LOCK_WAIT);
        let error = waiting.join().expect("no panic").expect_err("never let go");
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        let waiting = switch(path.clone());
        until(REFUSED.load(Ordering::SeqCst) + 2);
        other.execute_batch("rollback").expect("let go");
        waiting.join().expect("no panic").expect("switched");
        drop(other);
        for end in ["", "-wal", "-shm"] {
            let _absent = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }
}
