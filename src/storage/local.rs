//! Owns the local folder: only regular files below it, on a way without symbolic links. Refuses to know who
//! may change the folder meanwhile; that is the operator's.

use std::io::ErrorKind;
use std::path::Path as FilePath;

use leasehold_core::{Failure, FailureCode};
use object_store::local::LocalFileSystem;
use object_store::path::Path;

use super::failure::failure_of;
use super::{Place, workspace};

/// Opens the folder for a path in it.
pub(super) fn open(
    root: Option<&FilePath>,
    place: &Place,
    path: &Path,
) -> Result<LocalFileSystem, Box<Failure>> {
    let refuse = |why: &str| Box::new(Failure::new(FailureCode::PayloadInvalid, why));
    let root = root.ok_or_else(|| refuse("no local folder is allowed"))?;
    let root = root.canonicalize().map_err(|error| Box::new(workspace::failure(&error)))?;
    walk(&root, path)?;
    LocalFileSystem::new_with_prefix(root).map_err(|error| Box::new(failure_of(&error, place)))
}

/// Looks at every part that is there: a link may lead anywhere, and a pipe may never answer.
fn walk(root: &FilePath, path: &Path) -> Result<(), Box<Failure>> {
    let refuse = |why: &str| Box::new(Failure::new(FailureCode::PolicyRejected, why));
    let mut at = root.to_owned();
    for part in path.parts() {
        at.push(part.as_ref());
        match at.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                return Err(refuse("the path leads over a symbolic link"));
            }
            Ok(found) if found.is_file() || found.is_dir() => {}
            Ok(_) => return Err(refuse("the path leads to what is no regular file")),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Box::new(workspace::failure(&error))),
        }
    }
    Ok(())
}
