//! Files of jobs stay within their limits and go on every way out: return, panic, cancel, kill. The
//! killed and the living process are this program again.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use leasehold::memory::MemoryStore;
use leasehold::workspace::{Limits, Workspaces, failure};
use leasehold::{
    Context, FailureCode, Handled, HandlerError, JobKind, Json, NewJob, RetryPolicy, State,
    StoreExt, Worker,
};
use leasehold_conformance::faults::process::Victim;

use crate::{Told, pure};

pure![
    a_file_stops_at_its_limit_while_it_streams,
    outputs_may_be_so_large_and_no_larger,
    names_stay_within_the_folder,
    files_go_by_return_error_panic_and_cancel,
    a_thread_that_still_writes_is_refused,
    the_dead_are_swept_and_the_living_are_not,
];

const CHILD: &str = "LEASEHOLD_WORKSPACE_CHILD";
const PATIENCE: Duration = Duration::from_secs(60);

/// The child: makes files, says so, and lives until it is killed.
pub(crate) fn play_role() -> Option<ExitCode> {
    let root = std::env::var(CHILD).ok()?;
    let workspaces = Workspaces::open(root, Limits::default()).expect("a root");
    let workspace = workspaces.begin().expect("a workspace");
    let mut file = workspace.source("in.wav", None).expect("a file");
    file.write_all(b"some of it").expect("written");
    let told = format!("at {}\n", workspace.folder().display());
    std::io::stdout().write_all(told.as_bytes()).expect("told");
    std::io::stdout().flush().expect("told");
    loop {
        std::thread::park();
    }
}

/// A folder that goes when the test ends.
struct Root(PathBuf);

impl Root {
    fn new() -> Self {
        let name = format!("workspace_{}", leasehold::WorkerId::new().as_uuid().as_simple());
        let folder = std::env::var_os("LEASEHOLD_TEST_DIR");
        Self(folder.map_or_else(std::env::temp_dir, PathBuf::from).join(name))
    }

    fn open(&self) -> std::io::Result<Workspaces> {
        Workspaces::open(&self.0, Limits::default().source_bytes_max(1_000).outputs(100, 200))
    }

    /// The files below, but for the locks.
    fn files(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, found);
                } else if path.extension().is_none_or(|ending| ending != "lock") {
                    found.push(path);
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.0, &mut found);
        found
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _it_may_not_be_there = std::fs::remove_dir_all(&self.0);
    }
}

/// Proves: DSK-1
fn a_file_stops_at_its_limit_while_it_streams() -> Told {
    let root = Root::new();
    let workspace = root.open()?.begin()?;
    crate::runtime().block_on(async {
        let mut whole = workspace.source("whole", Some(1_000))?;
        assert_eq!(whole.fill(&vec![7_u8; 1_000][..]).await?, 1_000);
        // A source without end is left at the first piece too many.
        let mut endless = workspace.source("endless", None)?;
        let error = endless.fill(tokio::io::repeat(7)).await.expect_err("too large");
        assert_eq!(failure(&error).code(), FailureCode::SizeExceeded);
        assert!(!failure(&error).is_retryable());
        assert!(std::fs::metadata(workspace.path("endless")?)?.len() <= 1_000);
        let declared = workspace.source("declared", Some(1_001)).expect_err("too large");
        assert_eq!(failure(&declared).code(), FailureCode::SizeExceeded);
        assert!(!workspace.path("declared")?.exists());
        Ok(())
    })
}

/// Proves: DSK-1
fn outputs_may_be_so_large_and_no_larger() -> Told {
    let root = Root::new();
    let workspace = root.open()?.begin()?;
    let mut free = workspace.output("of a small source", 100)?;
    free.write_all(&[0; 5_000])?;
    let mut bound = workspace.output("of a large source", 101)?;
    bound.write_all(&[0; 202])?;
    let error = bound.write_all(&[0]).expect_err("one byte too many");
    assert_eq!(failure(&error).code(), FailureCode::SizeExceeded);
    // Written over, it grows no further.
    std::io::Seek::seek(&mut bound, std::io::SeekFrom::Start(0))?;
    bound.write_all(&[1; 202])?;
    assert_eq!(bound.size(), 202);
    Ok(())
}

/// Proves: DSK-1
fn names_stay_within_the_folder() -> Told {
    let root = Root::new();
    let workspace = root.open()?.begin()?;
    for name in ["", ".", "..", "a/b", "/etc/passwd", "../x", "a/"] {
        assert!(workspace.path(name).is_err(), "{name:?}");
        assert!(workspace.source(name, None).is_err(), "{name:?}");
    }
    assert!(workspace.path("a b.flac").is_ok());
    Ok(())
}

/// Proves: DSK-1
fn files_go_by_return_error_panic_and_cancel() -> Told {
    let root = Root::new();
    let workspaces = Arc::new(root.open()?);
    crate::runtime().block_on(async {
        let store = Arc::new(MemoryStore::new());
        for way in ["return", "error", "panic", "cancel"] {
            let job = NewJob::new(JobKind::new("make")?, Json::of(way)?).max_attempts(1);
            let _enqueued = store.enqueue_one(job).await?;
        }
        let (making, seen) = (workspaces.clone(), Arc::new(std::sync::Mutex::new(0)));
        let counting = seen.clone();
        let worker = Worker::builder(store.clone())
            .handler(JobKind::new("make")?, move |_: Context, way: String| {
                let (workspaces, counting) = (making.clone(), counting.clone());
                async move {
                    let workspace = workspaces.begin()?;
                    workspace.source("in", None)?.fill(&b"some"[..]).await?;
                    *counting.lock().expect("no panic under this lock") += 1;
                    match way.as_str() {
                        "error" => return Err(HandlerError::from(std::io::Error::other("no"))),
                        "panic" => panic!("no"),
                        // Cancelled without a word, as the worker's grace is over at once.
                        "cancel" => std::future::pending().await,
                        _ => {}
                    }
                    Ok(Handled::done())
                }
            })
            .retry(RetryPolicy::new(Duration::ZERO, Duration::ZERO)?)
            .grace(Duration::ZERO)
            .upkeep(None)
            .build();
        let shutdown = leasehold::CancellationToken::new();
        let others = async {
            let mut look = tokio::time::interval(Duration::from_millis(10));
            loop {
                look.tick().await;
                let filter = leasehold::JobFilter::new();
                let page = store.jobs(filter, leasehold::Paging::first(10)).await?;
                let over = page.items.iter().filter(|job| job.finished_at.is_some()).count();
                if over == 3 && *seen.lock().expect("no panic under this lock") == 4 {
                    shutdown.cancel();
                    return Ok::<_, leasehold::Error>(());
                }
            }
        };
        let others = tokio::time::timeout(PATIENCE, others);
        let (ran, waited) = tokio::join!(worker.run(shutdown.clone()), others);
        ran?;
        waited??;
        let filter = leasehold::JobFilter::new();
        let page = store.jobs(filter, leasehold::Paging::first(10)).await?;
        let ended = page.items.iter().filter(|job| job.state == State::Succeeded).count();
        assert_eq!(ended, 1, "one returned, one was given back");
        Ok::<_, libtest_mimic::Failed>(())
    })?;
    // The runtime is gone, and with it every task.
    assert_eq!(root.files(), Vec::<PathBuf>::new());
    Ok(())
}

/// Proves: DSK-1
fn a_thread_that_still_writes_is_refused() -> Told {
    let root = Root::new();
    let workspaces = root.open()?;
    let workspace = workspaces.begin()?;
    let mut file = workspace.output("out", 1)?;
    file.write_all(b"some")?;
    drop(workspace);
    assert!(file.write_all(b"more").is_err());
    assert_eq!(root.files(), Vec::<PathBuf>::new());
    drop(workspaces);
    let left = std::fs::read_dir(&root.0)?.flatten().filter(|it| it.path().is_dir()).count();
    assert_eq!(left, 0, "the process's own folder goes too");
    Ok(())
}

/// Proves: DSK-1
fn the_dead_are_swept_and_the_living_are_not() -> Told {
    let root = Root::new();
    std::fs::create_dir_all(root.0.join("somebody else's"))?;
    std::fs::write(root.0.join("somebody else's/file"), "kept")?;
    let start = || {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = Victim::start(command.env(CHILD, &root.0))?;
        let line = child.wait_for("at ", PATIENCE)?;
        let folder = PathBuf::from(line.strip_prefix("at ").unwrap_or_default().trim());
        Ok::<_, std::io::Error>((child, folder))
    };
    let (mut killed, of_the_dead) = start()?;
    let (_living, of_the_living) = start()?;
    killed.kill()?;
    assert!(of_the_dead.join("in.wav").exists(), "nothing of its own cleans up after a kill");
    let own = root.open()?;
    let workspace = own.begin()?;
    assert!(!of_the_dead.exists() && of_the_living.join("in.wav").exists());
    // Another opener within this process sweeps neither.
    let other = root.open()?;
    assert!(workspace.folder().exists() && of_the_living.exists());
    drop(other);
    assert!(root.0.join("somebody else's/file").exists());
    Ok(())
}
