//! Owns which files there are, and the job that each of them is.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use leasehold::{IdempotencyKey, JobKind, Json, LifecycleName, NewJob, QueueName};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a job works on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The queue of this example's jobs, so that it may share a database with others.
pub(crate) fn queue() -> leasehold::Result<QueueName> {
    QueueName::new("quickstart")
}

/// Every file below a folder, but hidden ones, build output and what this example writes.
pub(crate) fn below(folder: &Path, place: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let hidden = name.to_string_lossy().starts_with('.') || name == "target";
            let sort = entry.file_type()?;
            let ours = entry.path() == place;
            if sort.is_dir() && !hidden && !ours {
                folders.push(entry.path());
            } else if sort.is_file() && !hidden && is_text(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A payload is JSON, which holds text only. The command keeps such names in hexadecimal; here they are left out.
fn is_text(path: &Path) -> bool {
    let is_text = path.to_str().is_some();
    if !is_text {
        eprintln!("left out, its name is not UTF-8: {}", path.display());
    }
    is_text
}

/// The job of a file: the same file in the same state is the same job, however often it is asked for.
pub(crate) fn job(path: &Path) -> Result<NewJob, Box<dyn Error>> {
    let about = std::fs::metadata(path)?;
    let changed = about.modified()?.duration_since(UNIX_EPOCH)?.as_micros();
    let version = format!("{}\0{}\0{changed}", path.display(), about.len());
    let key: String = Sha256::digest(version).iter().map(|byte| format!("{byte:02x}")).collect();
    let payload = Json::of(&File { path: path.to_owned(), bytes: about.len() })?;
    Ok(NewJob::new(JobKind::new("pack")?, payload)
        .queue(queue()?)
        .lifecycle(LifecycleName::new("transcode")?)
        .key(IdempotencyKey::new(key)?))
}
