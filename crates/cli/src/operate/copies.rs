//! Owns backup and restore of SQLite databases. PostgreSQL has its own tools, which this says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::{Actor, CancellationToken, Epoch, Error, Result, sqlite};
use serde_json::json;

use super::answer::Answer;
use crate::role::signals;

/// How often it is told how far a copy is.
const TELL: Duration = Duration::from_secs(5);

/// Copies a database.
pub(super) async fn back_up(url: &str, to: PathBuf) -> Result<Answer> {
    refuse_server("backup", url)?;
    let shutdown = CancellationToken::new();
    signals::listen(&shutdown)?;
    let store = sqlite::open(url).await?;
    let shown = to.display().to_string();
    let part = to.clone();
    tokio::select! {
        done = store.back_up(to) => done?,
        () = progress(&part) => {}
        () = shutdown.cancelled() => ended(|| sqlite::abandon_copy(&part)),
    }
    store.close().await;
    Ok(Answer::facts([("copied_to", json!(shown))]))
}

/// Makes a database from a copy.
pub(super) async fn restore(
    url: &str,
    from: &Path,
    above: Option<i64>,
    actor: Actor,
) -> Result<Answer> {
    refuse_server("restore", url)?;
    let above = above.map(Epoch::new).transpose()?;
    let shutdown = CancellationToken::new();
    signals::listen(&shutdown)?;
    let epoch = tokio::select! {
        epoch = sqlite::restore(from, url, above, actor) => epoch?,
        () = shutdown.cancelled() => ended(|| sqlite::abandon_restore(url)),
    };
    Ok(Answer::facts([("epoch", json!(epoch.get()))]))
}

/// Tells how much of a copy is there, every few seconds, for as long as it is made.
async fn progress(to: &Path) {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    loop {
        tokio::time::sleep(TELL).await;
        if let Ok(facts) = std::fs::metadata(&part) {
            crate::failure::tell(format!("{} MB copied", facts.len() / 1_000_000));
        }
    }
}

/// Ends the process at once: the thread that copies cannot be stopped, what it has written can go.
fn ended(remove: impl FnOnce()) -> ! {
    remove();
    std::process::exit(130)
}

fn refuse_server(operation: &'static str, url: &str) -> Result<()> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let why = "PostgreSQL makes and restores its copies by its own tools (pg_dump, pg_basebackup); after a \
                   restore run `leasehold raise-epoch` before the first worker starts";
        return Err(Error::invalid(operation, why));
    }
    Ok(())
}
