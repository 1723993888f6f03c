//! Owns copies of a database: one taken while others write, and its return with a raised epoch, so that
//! nothing given out since the copy lives again. Refuses to write over a file that is there.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use leasehold_core::rules::Ids;
use leasehold_core::{Actor, Control, Controlled, Epoch, Error, ErrorKind, Limits, Result, Store};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, Transaction, params};

use crate::error::{corrupt, engine, named};
use crate::files::{Files, PART};
use crate::open::{Place, Target};
use crate::statement::{execute, row, sql};
use crate::store::{Origin, SqliteStore};

/// How often a copy that met a lock is tried, and the pause between.
const TRIES: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

impl SqliteStore {
    /// Writes the database, as it was after one of its commits, to a new file; others go on writing.
    ///
    /// The copy is complete and on disk when this returns, or not there at all. It is a database
    /// without a log of its own.
    ///
    /// # Errors
    /// `Conflict` when something is at that path already, when the log of another database is beside it, and when
    /// another copy to it is under way; `Invalid` for a database in memory; `Busy`,
    /// `Unavailable` and `StorageFull` from the engine and the file system.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let folder = std::env::temp_dir().join(format!("leasehold-doc-backup-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// let store = leasehold_sqlite::open(&format!("{}/jobs.db", folder.display())).await?;
    /// store.back_up(folder.join("copy.db")).await?;
    /// assert!(store.back_up(folder.join("copy.db")).await.is_err()); // never written over
    /// # store.close().await;
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), leasehold_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn back_up(&self, to: impl Into<PathBuf>) -> Result<()> {
        let (target, files) = (self.target_of_copies("back up")?, self.shared().files.clone());
        let to = to.into();
        off_thread("back up", move || {
            files.as_ref().map_or(Ok(()), Files::check)?;
            let part = Part::beside("back up", &to)?;
            copy(&target.open_reader()?, &part.path)?;
            part.publish(&to)
        })
        .await
    }
}

/// Makes a database from a copy, with an epoch above the copy's and above `above`, and gives that epoch.
///
/// Every fence and token from before the restore is then refused, those of workers that went on after the
/// copy was taken too. Give `above` the epoch of the database that the copy replaces, where that can
/// still be read: two restores of one copy are otherwise told apart by their claims alone.
///
/// # Errors
/// `Conflict` when something is at the URL's path already, or what SQLite keeps beside a file (`-wal`, `-shm`,
/// `-journal`) of one that was; `Corrupt` when the copy is damaged or no
/// database of ours; `Invalid` for a URL without a file; else as [`crate::open`].
pub async fn restore(
    copy_at: &Path,
    url: &str,
    above: Option<Epoch>,
    actor: Actor,
) -> Result<Epoch> {
    let target = Target::parse(url)?;
    let Place::File(to) = target.place.clone() else {
        return Err(in_memory("restore"));
    };
    let (from, place) = (copy_at.to_owned(), to.clone());
    let part = off_thread("restore", move || {
        let part = Part::beside("restore", &place)?;
        copy(&read_only(&from)?, &part.path)?;
        Ok(part)
    })
    .await?;
    let part_target = Target { place: Place::File(part.path.clone()), ..target };
    let origin = Origin { limits: Limits::default(), ids: Ids::random(), clock: None };
    let store =
        SqliteStore::start(part_target, origin).await.map_err(|error| named(error, "restore"))?;
    let raised = raise(&store, above, actor).await;
    store.close().await;
    let epoch = raised?;
    off_thread("restore", move || part.publish(&to)).await?;
    Ok(epoch)
}

async fn raise(store: &SqliteStore, above: Option<Epoch>, actor: Actor) -> Result<Epoch> {
    if let Some(above) = above {
        let lift =
            move |tx: &Transaction<'_>| execute(tx, sql!("raise_epoch"), params![above.get()]);
        store.call("restore", lift).await?;
    }
    match store.control(Control::BumpEpoch { actor }).await? {
        Controlled::Epoch(epoch) => Ok(epoch),
        _ => Err(corrupt("the epoch could not be raised")),
    }
}

/// Removes what a copy to this path has written so far, for a process that ends in the middle of it.
pub fn abandon_copy(to: &Path) {
    remove(&part_of(to));
}

/// Removes what a restore to this URL has written so far, for a process that ends in the middle of it.
pub fn abandon_restore(url: &str) {
    if let Ok(Target { place: Place::File(to), .. }) = Target::parse(url) {
        abandon_copy(&to);
    }
}

fn part_of(to: &Path) -> PathBuf {
    with_end(to, PART)
}

impl SqliteStore {
    fn target_of_copies(&self, operation: &'static str) -> Result<Target> {
        let target = self.target();
        match target.place {
            Place::File(_) => Ok(target.clone()),
            Place::Memory => Err(in_memory(operation)),
        }
    }
}

/// What SQLite keeps beside a file, and would take for that of another file in its place.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A file that becomes the copy once it is whole, and goes when it does not. Locked, so that of two copies to
/// one path the second is refused, and a part that nobody has locked is one that was cut off.
struct Part {
    path: PathBuf,
    operation: &'static str,
    locked: File,
}

impl Part {
    fn beside(operation: &'static str, to: &Path) -> Result<Self> {
        must_be_free(operation, to)?;
        let path = part_of(to);
        let failed = |error: std::io::Error| unavailable(operation, &path, &error);
        loop {
            let locked = File::options().create(true).truncate(false).write(true).open(&path);
            let locked = locked.map_err(failed)?;
            match locked.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(under_way(operation, to)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // Who had it may have removed it in between: then this is no longer the file of that name.
            let ours = locked.metadata().map_err(failed)?;
            if !fs::metadata(&path).is_ok_and(|named| named.ino() == ours.ino()) {
                continue;
            }
            if ours.nlink() > 1 {
                // A whole copy whose maker ended before it took this name away: the other one is in use.
                fs::remove_file(&path).map_err(failed)?;
            } else {
                BESIDE.iter().for_each(|end| drop(fs::remove_file(with_end(&path, end))));
                locked.set_len(0).map_err(failed)?; // what a copy that was cut off left behind
                return Ok(Self { path, operation, locked });
            }
        }
    }

    /// Gives the file its name, unless something has it by now.
    fn publish(&self, to: &Path) -> Result<()> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => there(self.operation, to),
            _ => unavailable(self.operation, to, &error),
        };
        self.locked.sync_all().map_err(failed)?;
        must_be_free(self.operation, to)?;
        fs::hard_link(&self.path, to).map_err(failed)?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(end);
    PathBuf::from(path)
}

fn remove(part: &Path) {
    std::iter::once("").chain(BESIDE).for_each(|end| drop(fs::remove_file(with_end(part, end))));
}

/// Refuses a path that something is at, or that a log of another file is beside: SQLite would read that log
/// into the new file.
fn must_be_free(operation: &'static str, to: &Path) -> Result<()> {
    let is_there =
        |path: &Path| path.try_exists().map_err(|error| unavailable(operation, path, &error));
    if is_there(to)? {
        return Err(there(operation, to));
    }
    for end in BESIDE {
        let left = with_end(to, end);
        if is_there(&left)? {
            let why = format!(
                "{} is left of a database that was at {}, and would be read into the new one: move it away with that one",
                left.display(),
                to.display()
            );
            return Err(Error::new(ErrorKind::Conflict, operation, why));
        }
    }
    Ok(())
}

fn under_way(operation: &'static str, to: &Path) -> Error {
    let why = format!("another copy to {} is under way", to.display());
    Error::new(ErrorKind::Conflict, operation, why)
}

/// Copies all pages of one snapshot into a new file, and has them checked there.
fn copy(from: &Connection, to: &Path) -> Result<()> {
    let mut fresh = Connection::open(to).map_err(engine)?;
    let copying = Backup::new(from, &mut fresh).map_err(engine)?;
    for _ in 0..TRIES {
        match copying.step(-1).map_err(engine)? {
            StepResult::Done => {
                drop(copying);
                return check(&fresh);
            }
            _ => thread::sleep(PAUSE),
        }
    }
    Err(Error::new(ErrorKind::Busy, "copy", "the database was locked all the time"))
}

fn check(fresh: &Connection) -> Result<()> {
    let said: Option<String> =
        row(fresh, sql!("check_copy"), [], |row| row.get(0).map_err(engine))?;
    match said.as_deref() {
        Some("ok") => Ok(()),
        said => Err(corrupt(format!("the copy is damaged: {}", said.unwrap_or("no answer")))),
    }
}

fn read_only(path: &Path) -> Result<Connection> {
    if !path.is_file() {
        let why = format!("there is no file {}", path.display());
        return Err(Error::new(ErrorKind::NotFound, "restore", why));
    }
    Target::to_write(Place::File(path.to_owned())).open_reader()
}

async fn off_thread<T: Send + 'static>(
    operation: &'static str,
    run: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let ran = tokio::task::spawn_blocking(run).await;
    let stopped = |_| Error::new(ErrorKind::Unavailable, operation, "the copying thread ended");
    ran.map_err(stopped)?.map_err(|error| named(error, operation))
}

fn in_memory(operation: &'static str) -> Error {
    Error::invalid(operation, "a database in memory has no file to copy")
}

fn there(operation: &'static str, to: &Path) -> Error {
    let why = format!("{} is there already and is not written over", to.display());
    Error::new(ErrorKind::Conflict, operation, why)
}

fn unavailable(operation: &'static str, to: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, operation, format!("{}: {error}", to.display()))
}
