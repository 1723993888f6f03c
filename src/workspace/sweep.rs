//! Owns the folder of this process below the root, and the removal of what dead processes left. Who
//! lives is told by a lock, which the system lets go of however a process ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The file by which openers of one root take turns.
const DOOR: &str = "leasehold.lock";
/// The file that a living process has locked, in its own folder.
const ALIVE: &str = "alive.lock";
/// How the folders of processes begin; everything else in the root is somebody else's.
const PREFIX: &str = "leasehold-";

/// The folder of this process; it goes with this value.
#[derive(Debug)]
pub(super) struct Home {
    folder: PathBuf,
    _alive: File,
}

impl Home {
    /// Sweeps the root and makes a folder in it; one opener at a time, so that nobody is swept while
    /// it has no lock yet.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let door = File::create(root.join(DOOR))?;
        door.lock()?;
        sweep(root);
        let name: [u8; 16] = rand::random();
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = root.join(format!("{PREFIX}{name}"));
        fs::create_dir(&folder)?;
        let alive = File::create_new(folder.join(ALIVE))?;
        alive.lock()?;
        door.unlock()?;
        Ok(Self { folder, _alive: alive })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Still locked: nobody sweeps it at the same time.
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, "workspaces {} not removed", self.folder.display());
        }
    }
}

/// Removes the folders whose processes are dead. What cannot be removed now is left for the next.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !(is_folder && is_ours && is_dead(&entry.path())) {
            continue;
        }
        match fs::remove_dir_all(entry.path()) {
            Ok(()) => tracing::info!("leftovers {} removed", entry.path().display()),
            Err(error) => {
                tracing::warn!(%error, "leftovers {} not removed", entry.path().display());
            }
        }
    }
}

/// Whether nobody holds the folder's lock; without its file the process died before it had one.
fn is_dead(folder: &Path) -> bool {
    match File::open(folder.join(ALIVE)) {
        Ok(alive) => match alive.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(_)) => false,
        },
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
