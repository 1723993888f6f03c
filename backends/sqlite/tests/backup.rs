//! Copies of a database and their return: taken under load, never over a file, with a raised epoch.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first thing that is not as it should be"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold_core::{
    Actor, ClaimRequest, ErrorKind, JobKind, Json, LostReason, NewJob, QueueName, Settlement,
    Stats, Store, StoreExt, Verdict, WorkerId,
};
use leasehold_sqlite::{SqliteStore, abandon_restore, restore};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("leasehold-backup-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn url(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn actor() -> Actor {
    Actor::new("tester").unwrap()
}

fn job() -> NewJob {
    NewJob::new(JobKind::new("print").unwrap(), Json::parse("1").unwrap())
}

fn claim() -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()])
}

async fn stats(path: &Path) -> Stats {
    let store = SqliteStore::open(&path.display().to_string()).await.unwrap();
    let stats = store.stats().await.unwrap();
    store.close().await;
    stats
}

fn waiting(stats: &Stats) -> u64 {
    stats.queue(&QueueName::default_queue()).map_or(0, |queue| queue.ready)
}

/// Proves: WQ-8, WQ-12, WQ-15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_copy_refuses_every_earlier_fence() {
    let folder = Folder::new("fence");
    let store = SqliteStore::open(&folder.url("jobs.db")).await.unwrap();
    for _ in 0..3 {
        let _ = store.enqueue_one(job()).await.unwrap();
    }
    let before = store.claim(claim()).await.unwrap().remove(0);
    store.back_up(folder.0.join("copy.db")).await.unwrap();
    let after = store.claim(claim()).await.unwrap().remove(0);
    let old = store.stats().await.unwrap().epoch;
    store.close().await;

    let epoch =
        restore(&folder.0.join("copy.db"), &folder.url("back.db"), None, actor()).await.unwrap();
    assert!(epoch > old);
    let back = SqliteStore::open(&folder.url("back.db")).await.unwrap();
    for fence in [before.fence, after.fence] {
        let late = Settlement::new(fence, Verdict::Succeed { result: None });
        let refused = back.settle_one(late).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::FenceLost, "{refused}");
        assert!(
            matches!(refused.lost_reason(), Some(reason) if reason != LostReason::Gone),
            "{refused}"
        );
    }
    let next = back.claim(claim()).await.unwrap().remove(0);
    assert!(next.fence.fencing_token() > after.fence.fencing_token());
    assert!(next.fence.fencing_token() > before.fence.fencing_token());
    back.close().await;

    let again =
        restore(&folder.0.join("copy.db"), &folder.url("again.db"), Some(epoch), actor()).await;
    let again = again.unwrap();
    assert!(again > epoch);

    // A number below the copy's own lowers nothing.
    let store = SqliteStore::open(&folder.url("again.db")).await.unwrap();
    store.back_up(folder.0.join("later.db")).await.unwrap();
    store.close().await;
    let last =
        restore(&folder.0.join("later.db"), &folder.url("last.db"), Some(old), actor()).await;
    assert!(last.unwrap() > again);
}

/// Proves: TX-1, WQ-11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_under_load_are_whole_commits() {
    let folder = Folder::new("load");
    let store = SqliteStore::open(&folder.url("jobs.db")).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (writing, told) = (store.clone(), stop.clone());
    let writer = tokio::spawn(async move {
        let mut batches = 0;
        while !told.load(Ordering::Relaxed) {
            writing.enqueue((0..7).map(|_| job()).collect()).await.unwrap();
            batches += 1;
        }
        batches
    });
    let mut last = 0;
    for number in 0..12 {
        let path = folder.0.join(format!("{number}.db"));
        let least = waiting(&store.stats().await.unwrap());
        store.back_up(&path).await.unwrap();
        let copied = waiting(&stats(&path).await);
        assert_eq!(copied % 7, 0, "a part of a batch was copied");
        assert!(copied >= least, "a commit from before the copy is missing");
        assert!(copied >= last);
        last = copied;
    }
    stop.store(true, Ordering::Relaxed);
    let batches: u64 = writer.await.unwrap();
    assert!(last > 0 && batches * 7 >= last);
    assert_eq!(waiting(&store.stats().await.unwrap()), batches * 7);
    store.close().await;
}

#[tokio::test]
async fn nothing_is_written_over_and_nothing_is_left_behind() {
    let folder = Folder::new("over");
    let store = SqliteStore::open(&folder.url("jobs.db")).await.unwrap();
    let _ = store.enqueue_one(job()).await.unwrap();
    std::fs::write(folder.0.join("there.db"), "mine").unwrap();
    let refused = store.back_up(folder.0.join("there.db")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert_eq!(std::fs::read(folder.0.join("there.db")).unwrap(), b"mine");
    let refused = store.back_up(folder.0.join("no/such/folder.db")).await.unwrap_err();
    assert_eq!(refused.operation(), "back up");

    std::fs::write(folder.0.join("copy.db.part"), "cut off").unwrap();
    store.back_up(folder.0.join("copy.db")).await.unwrap();
    let copy = std::fs::read(folder.0.join("copy.db")).unwrap();
    let refused = restore(&folder.0.join("copy.db"), &folder.url("there.db"), None, actor()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(std::fs::read(folder.0.join("there.db")).unwrap(), b"mine");

    // A page of the middle is damaged, and a text file is no database.
    let mut damaged = copy;
    let middle = damaged.len() / 2;
    damaged[middle..middle + 4096].fill(0xa5);
    std::fs::write(folder.0.join("damaged.db"), damaged).unwrap();
    std::fs::write(
        folder.0.join("text.db"),
        "no database at all, but a text of some length".repeat(100),
    )
    .unwrap();
    for name in ["damaged.db", "text.db", "missing.db"] {
        let refused =
            restore(&folder.0.join(name), &folder.url("new.db"), None, actor()).await.unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Corrupt | ErrorKind::NotFound),
            "{name}: {refused}"
        );
        assert!(!folder.0.join("new.db").exists(), "{name}");
    }
    let left: Vec<_> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");

    let memory = SqliteStore::open(":memory:").await.unwrap();
    let refused = memory.back_up(folder.0.join("memory.db")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    store.close().await;
}

/// Whoever made a copy was ended between its two last steps: it has its name, and still the one from its making.
#[tokio::test]
async fn a_whole_copy_whose_maker_was_ended_is_used_and_kept() {
    let folder = Folder::new("linked");
    let store = SqliteStore::open(&folder.url("jobs.db")).await.unwrap();
    let _ = store.enqueue_one(job()).await.unwrap();
    let (copy, part) = (folder.0.join("copy.db"), folder.0.join("copy.db.part"));
    store.back_up(&copy).await.unwrap();
    let link = || std::fs::hard_link(&copy, &part).unwrap();
    link();
    let looking = SqliteStore::open(&format!("sqlite:{}?mode=ro", copy.display())).await.unwrap();
    assert_eq!(waiting(&looking.stats().await.unwrap()), 1);
    looking.close().await;
    assert!(part.exists(), "a look changes nothing");
    assert_eq!(waiting(&stats(&copy).await), 1);
    assert!(!part.exists());

    // Put away, and another one made in its place: what was its name is not written to.
    link();
    let first = folder.0.join("first.db");
    std::fs::rename(&copy, &first).unwrap();
    let _ = store.enqueue_one(job()).await.unwrap();
    store.back_up(&copy).await.unwrap();
    assert_eq!((waiting(&stats(&first).await), waiting(&stats(&copy).await)), (1, 2));
    assert!(!part.exists());

    // A second name of any other kind is still one.
    link();
    std::fs::hard_link(&copy, folder.0.join("other.db")).unwrap();
    let refused = SqliteStore::open(&copy.display().to_string()).await.unwrap_err();
    assert!(refused.message().contains("more than one name"), "{refused}");
    assert!(part.exists());
    store.close().await;
}

/// The log of the file that was there would be read into the new one, which then is damaged, or silently the
/// old one again.
#[tokio::test]
async fn a_log_that_was_left_behind_is_no_place_for_a_copy() {
    let folder = Folder::new("left");
    let store = SqliteStore::open(&folder.url("jobs.db")).await.unwrap();
    let _ = store.enqueue_one(job()).await.unwrap();
    store.back_up(folder.0.join("copy.db")).await.unwrap();
    for end in ["-wal", "-shm", "-journal"] {
        let left = folder.0.join(format!("new.db{end}"));
        std::fs::write(&left, "a log").unwrap();
        let restored =
            restore(&folder.0.join("copy.db"), &folder.url("new.db"), None, actor()).await;
        let refused = restored.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(refused.to_string().contains(&format!("new.db{end} is left")), "{refused}");
        let refused = store.back_up(folder.0.join("new.db")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(!folder.0.join("new.db").exists());
        assert_eq!(std::fs::read(&left).unwrap(), b"a log");
        std::fs::remove_file(left).unwrap();
    }
    let _epoch =
        restore(&folder.0.join("copy.db"), &folder.url("new.db"), None, actor()).await.unwrap();
    store.close().await;
}

/// A restore that ends in the middle takes away what it has written, and nothing that is not its own.
#[tokio::test]
async fn a_restore_that_is_given_up_leaves_no_part_and_one_into_memory_is_refused() {
    let folder = Folder::new("given-up");
    let store = SqliteStore::open(&folder.url("jobs.db")).await.unwrap();
    store.back_up(folder.0.join("copy.db")).await.unwrap();
    store.close().await;
    for url in [":memory:", "sqlite::memory:"] {
        let refused = restore(&folder.0.join("copy.db"), url, None, actor()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.message().contains("has no file"), "{refused}");
    }
    let names = ["new.db", "new.db.part", "new.db.part-wal", "new.db.part-shm"];
    for name in names {
        std::fs::write(folder.0.join(name), "some").unwrap();
    }
    let left = || names.map(|name| folder.0.join(name).exists());
    for url in [":memory:", "postgres://host/db", "sqlite:x?mode=rw"] {
        abandon_restore(url);
        assert_eq!(left(), [true; 4], "{url}");
    }
    abandon_restore(&format!("sqlite:{}", folder.url("new.db")));
    assert_eq!(left(), [true, false, false, false]);
}

/// Of two copies to one path one is made, whole; the other is refused and takes nothing away.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_copies_to_one_path_the_second_is_refused() {
    let folder = Folder::new("twice");
    let store = SqliteStore::open(&folder.url("jobs.db")).await.unwrap();
    let _ = store.enqueue_one(job()).await.unwrap();
    let part = folder.0.join("copy.db.part");
    let other = std::fs::File::create(&part).unwrap();
    other.lock().unwrap();
    let refused = store.back_up(folder.0.join("copy.db")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("under way"), "{refused}");
    assert!(part.exists(), "it is the other's");
    drop(other);
    store.back_up(folder.0.join("copy.db")).await.unwrap();
    assert!(!part.exists());
    store.close().await;
}
