//! Owns the hints that something in the folder has changed. They only bring the next scan forward: what there is
//! to do is what a scan finds, and where nothing can be watched the scans go on in their own time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Config as Settings, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// How long nothing must change before a scan; a scan that takes longer is given as much time again.
const QUIET: Duration = Duration::from_millis(200);
/// After how many such times a folder that never comes to rest is scanned all the same.
const QUIETS_MAX: u32 = 10;

/// A folder that is watched, or is not.
#[derive(Debug)]
pub(super) struct Watch {
    /// Ends the watch when it is dropped.
    _watcher: Option<RecommendedWatcher>,
    changed: Option<mpsc::Receiver<()>>,
}

impl Watch {
    /// Watches nothing.
    pub(super) fn none() -> Self {
        Self { _watcher: None, changed: None }
    }

    /// Watches a folder with all that is in it; a warning says so where that is not to be had.
    pub(super) async fn over(folder: PathBuf) -> Self {
        Self::by(folder, watch).await
    }

    async fn by(
        folder: PathBuf,
        watch: impl FnOnce(&Path, mpsc::Sender<()>) -> notify::Result<RecommendedWatcher>
        + Send
        + 'static,
    ) -> Self {
        // One hint waits; more of them would say the same.
        let (sender, changed) = mpsc::channel(1);
        // It walks the whole folder.
        let begun = tokio::task::spawn_blocking(move || watch(&folder, sender)).await;
        match begun {
            Ok(Ok(watcher)) => Self { _watcher: Some(watcher), changed: Some(changed) },
            Ok(Err(error)) => Self::told(&error),
            Err(error) => Self::told(&error),
        }
    }

    fn told(error: &dyn std::fmt::Display) -> Self {
        crate::log_line!(
            warn,
            error = error,
            "the folder is not watched; it is scanned all the same"
        );
        Self::none()
    }

    /// Waits until something has changed and then nothing more for a moment; for `pause` at most. `took` is
    /// how long the last scan took.
    pub(super) async fn wait(&mut self, pause: Duration, took: Duration) {
        let Some(changed) = &mut self.changed else { return tokio::time::sleep(pause).await };
        let quiet = QUIET.max(took);
        let settled = async {
            if changed.recv().await.is_none() {
                return std::future::pending().await; // the watch has ended
            }
            for _ in 0..QUIETS_MAX {
                tokio::time::sleep(quiet).await;
                if changed.try_recv().is_err() {
                    return;
                }
            }
        };
        let _in_its_own_time = tokio::time::timeout(pause, settled).await;
    }
}

fn watch(folder: &Path, sender: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let mut is_told = false;
    let hear = move |heard: notify::Result<Event>| {
        match heard {
            Ok(event) if !is_change(event.kind) => return,
            Err(error) if !is_told => {
                is_told = true;
                crate::log_line!(
                    warn,
                    error = error,
                    "a part of the folder is not watched; it is scanned all the same"
                );
            }
            _ => {}
        }
        // A hint that waits already says it.
        let _ = sender.try_send(());
    };
    let mut watcher =
        RecommendedWatcher::new(hear, Settings::default().with_follow_symlinks(false))?;
    watcher.watch(folder, RecursiveMode::Recursive)?;
    Ok(watcher)
}

/// Reading, a scan's own too, is none.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn folder(name: &str) -> PathBuf {
        let name = format!("leasehold-watch-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Proves: PRD-1
    #[tokio::test]
    async fn a_change_ends_the_pause_and_a_look_does_not() {
        let folder = folder("change");
        let mut watch = Watch::over(folder.clone()).await;
        std::fs::write(folder.join("a"), "x").unwrap();
        watch.wait(LONG, Duration::ZERO).await;
        std::fs::create_dir(folder.join("b")).unwrap();
        watch.wait(LONG, Duration::ZERO).await;
        // What was still on its way is heard before the look that must not be.
        watch.wait(QUIET * 2, Duration::ZERO).await;
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        std::fs::read(folder.join("a")).unwrap();
        let waited = watch.wait(LONG, Duration::ZERO);
        assert!(tokio::time::timeout(QUIET * 3, waited).await.is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Proves: PRD-1
    #[tokio::test(start_paused = true)]
    async fn without_watches_the_pause_is_as_long_as_it_is() {
        let exhausted = |_: &Path, _| Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch));
        let mut watch = Watch::by(folder("none"), exhausted).await;
        let began = crate::clock::steady();
        watch.wait(LONG, Duration::ZERO).await;
        assert_eq!(began.elapsed(), LONG);
    }

    /// Proves: PRD-1
    #[tokio::test(start_paused = true)]
    async fn a_folder_that_never_rests_is_scanned_all_the_same() {
        let (sender, changed) = mpsc::channel(1);
        let mut watch = Watch { _watcher: None, changed: Some(changed) };
        let busy = tokio::spawn(async move { while sender.send(()).await.is_ok() {} });
        let began = crate::clock::steady();
        watch.wait(LONG, Duration::from_secs(1)).await;
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        busy.abort();
    }
}
