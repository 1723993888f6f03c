//! Owns a database file of one test: its name, and its removal before and after.

use std::path::PathBuf;

/// A file that is gone when the test ends.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::var_os("LEASEHOLD_TEST_DIR");
        let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
        let place = Self(folder.join(format!("leasehold-{name}-{}.db", std::process::id())));
        place.remove();
        place
    }

    pub(crate) fn url(&self) -> String {
        self.0.display().to_string()
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm"] {
            let _absent = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove();
    }
}
