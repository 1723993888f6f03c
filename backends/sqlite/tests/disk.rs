//! Owns the loss of power: a child works on a store while `strace` writes down what it hands to the system
//! and what it syncs. For each of many points the files are made as a disk may hold them that lost all
//! power there: what was synced, and of the rest nothing, some writes, or some sectors. With
//! `synchronous=full` a store opened on that has all that was acknowledged; with `normal` it has what was
//! stored after some commit, and may lack the last ones.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]
#![allow(clippy::indexing_slicing, reason = "a panic is how a test fails")]
#![allow(clippy::print_stdout, reason = "a child speaks to its parent by lines")]

#[path = "disk/platter.rs"]
mod platter;
#[path = "disk/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_conformance::evidence::Evidence;
use leasehold_core::lab::LabStore;
use leasehold_core::{
    ClaimId, ClaimRequest, EventId, Fence, JobId, JobKind, Json, NewEvent, NewJob, QueueName,
    Result, Settlement, Store, StoreExt, Timestamp, Topic, Verdict, WorkerId,
};
use leasehold_sqlite::SqliteStore;
use leasehold_sqlite::rusqlite::Connection;
use libtest_mimic::{Arguments, Failed, Trial};
use platter::{Draw, Reached, after_power_loss};
use tokio::runtime::Runtime;
use trace::Done;

const CHILD: &str = "LEASEHOLD_DISK_CHILD";
/// How many transactions the child makes, and after which of them the log is brought into the file.
const COMMITS: usize = 150;
const CHECKPOINTS: [usize; 2] = [50, 110];
const THREADS: usize = 2;

fn start() -> Timestamp {
    Timestamp::saturating(1_800_000_000_000_000)
}

fn id(number: usize) -> uuid::Uuid {
    uuid::Uuid::from_u128(number as u128 + 1)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// All tables as one number.
async fn stored(store: &SqliteStore) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", store.dump().await?).hash(&mut hasher);
    Ok(hasher.finish())
}

/// One transaction of a service's day, the same in every run.
async fn act(store: &SqliteStore, number: usize, held: &mut Vec<Fence>) -> Result<()> {
    match number % 3 {
        0 => {
            let text = format!("{{\"number\":{number},\"filling\":\"{}\"}}", "x".repeat(700));
            let mut job = NewJob::new(JobKind::new("resize")?, Json::parse(text)?);
            job.id = JobId::from_uuid(id(number));
            let _new = store.enqueue_one(job).await?;
        }
        1 => {
            let worker = WorkerId::from_uuid(id(7));
            let request = ClaimRequest::new(worker, [QueueName::default_queue()]);
            let request = request.claim_id(ClaimId::from_uuid(id(2_000 + number)));
            held.extend(store.claim(request).await?.into_iter().map(|claim| claim.fence));
        }
        _ => {
            let event = NewEvent::new(Topic::new("mail")?, Json::null());
            let event = event.id(EventId::from_uuid(id(1_000 + number)));
            let fence = held.pop().expect("a claim before");
            let done = Settlement::new(fence, Verdict::Succeed { result: None });
            store.settle_one(done.event(event)).await?;
        }
    }
    Ok(())
}

/// Does all transactions; `after` each one, and once before the first.
async fn work(
    url: &str,
    mut after: impl AsyncFnMut(&SqliteStore, usize) -> Result<()>,
) -> Result<()> {
    let store = SqliteStore::lab(url, start()).await?;
    let file = url.split('?').next().unwrap_or(url);
    let beside = Connection::open(file.trim_start_matches("sqlite:")).expect("a connection");
    after(&store, 0).await?;
    let mut held = Vec::new();
    for number in 0..COMMITS {
        act(&store, number, &mut held).await?;
        after(&store, number + 1).await?;
        if CHECKPOINTS.contains(&number) {
            let flush = "pragma wal_checkpoint(passive)";
            beside.query_row(flush, [], |_| Ok(())).expect("a checkpoint");
        }
    }
    drop(beside);
    Ok(())
}

/// A folder that is gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let base = std::env::var_os("LEASEHOLD_TEST_DIR");
        let base = base.map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = base.join(format!("leasehold-disk-{name}-{}", std::process::id()));
        let _absent = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn database(&self) -> PathBuf {
        self.0.join("jobs.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// What the child did, and where its database was.
fn record(mode: &str) -> (Vec<Done>, String) {
    let folder = Folder::new(&format!("traced-{mode}"));
    let (database, output) = (folder.database(), folder.0.join("trace"));
    let url = format!("sqlite:{}?synchronous={mode}", database.display());
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-xx", "-s", "1000000", "-e", trace::CALLS, "-o"]).arg(&output);
    strace.arg(std::env::current_exe().expect("this program")).env(CHILD, url);
    let status = strace.stdout(Stdio::null()).status().expect("strace");
    assert!(status.success(), "the child failed: {status}");
    let text = std::fs::read_to_string(&output).expect("a trace");
    let file = database.display().to_string();
    (trace::read(&text, &file), file)
}

/// What a store finds on the files that are left.
fn found(
    runtime: &Runtime,
    folder: &Folder,
    traced: &str,
    left: BTreeMap<String, Vec<u8>>,
) -> Result<u64> {
    let database = folder.database();
    for end in ["", "-wal", "-shm"] {
        let _absent = std::fs::remove_file(format!("{}{end}", database.display()));
    }
    for (name, bytes) in left {
        let end = name.strip_prefix(traced).expect("a file of the database");
        std::fs::write(format!("{}{end}", database.display()), bytes).expect("written");
    }
    runtime.block_on(async {
        let store = SqliteStore::lab(&url_of(&database), start()).await?;
        let found = stored(&store).await;
        // Its writer must be gone before the next files lie there, or it takes their log away.
        store.close().await;
        found
    })
}

fn url_of(database: &Path) -> String {
    database.display().to_string()
}

/// Where the power fails: after so many entries of the trace, the last acknowledged transaction then.
fn points(trace: &[Done]) -> Vec<(usize, usize)> {
    let (mut acknowledged, mut begun, mut points) = (0, false, Vec::new());
    for (at, done) in trace.iter().enumerate() {
        if let Done::Said(line) = done
            && let Some(number) = line.strip_prefix("done ")
        {
            (acknowledged, begun) = (number.parse().expect("a number"), true);
        }
        if begun {
            points.push((at + 1, acknowledged));
        }
    }
    points
}

/// All that is needed to let the power fail.
struct Losses {
    full: bool,
    trace: Vec<Done>,
    traced: String,
    points: Vec<(usize, usize)>,
    commits: Vec<u64>,
    /// How many acknowledged commits were missing, each time that some were.
    missing: Mutex<Vec<usize>>,
}

impl Losses {
    /// Lets the power fail once: where and how much reached the disk is the seed's.
    fn suffer(&self, runtime: &Runtime, folder: &Folder, seed: usize, of: usize) {
        const HOW: [Reached; 4] =
            [Reached::SomeSectors, Reached::SomeWrites, Reached::None, Reached::All];
        let points = self.points.len();
        let place = if of < points { seed * points / of } else { seed % points };
        let (at, acknowledged) = self.points[place];
        let reached = HOW[(seed + seed / points) % HOW.len()];
        let told = format!("seed {seed}, entry {at}, {reached:?}");
        let left = after_power_loss(&self.trace[..at], reached, &mut Draw::seeded(seed as u64));
        let found = found(runtime, folder, &self.traced, left);
        let found = found.unwrap_or_else(|error| panic!("{told}: {error}"));
        let commit = self.commits.iter().position(|stored| *stored == found);
        let commit = commit.unwrap_or_else(|| panic!("{told}: half a commit is there"));
        assert!(commit <= acknowledged + 1, "{told}: from the future");
        if commit < acknowledged {
            assert!(!self.full, "{told}: {acknowledged} were acknowledged, {commit} are there");
            self.missing.lock().expect("a list").push(acknowledged - commit);
        }
    }
}

/// Proves: GLO-2, TX-1, WQ-11
fn power_loss_leaves_what_was_acknowledged(full: bool) -> Result<()> {
    let mode = if full { "full" } else { "normal" };
    let wanted: usize =
        std::env::var("LEASEHOLD_POWER_LOSSES").ok().and_then(|n| n.parse().ok()).unwrap_or(250);
    let evidence = Evidence::of(&format!("power loss, synchronous={mode}"), "sqlite");
    let evidence = evidence.seeds(0..wanted as u64);
    let mut commits: Vec<u64> = Vec::new();
    let folder = Folder::new(&format!("expected-{mode}"));
    let url = url_of(&folder.database());
    let expected = work(&url, async |store, _| {
        commits.push(stored(store).await?);
        Ok(())
    });
    runtime().block_on(expected)?;
    let (trace, traced) = record(mode);
    let syncs = trace.iter().filter(|done| matches!(done, Done::Sync { .. })).count();
    let (points, entries) = (points(&trace), trace.len());
    assert!(points.len() > 3 * COMMITS && syncs > 4, "{} points, {syncs} syncs", points.len());

    let losses = Losses { full, trace, traced, points, commits, missing: Mutex::default() };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (next, losses) = (&next, &losses);
            scope.spawn(move || {
                let (runtime, folder) = (runtime(), Folder::new(&format!("left-{mode}-{thread}")));
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= wanted {
                        return;
                    }
                    losses.suffer(&runtime, &folder, seed, wanted);
                }
            });
        }
    });
    let missing = losses.missing.into_inner().expect("a list");
    let (suffixes, lost) = (missing.len(), missing.iter().sum::<usize>());
    assert!(full || suffixes > 0, "nothing was ever lost: the power never failed");
    evidence
        .count("points", wanted)
        .count("entries of the trace", entries)
        .count("syncs", syncs)
        .count("half commits", 0)
        .count("points at which the last commits were missing", suffixes)
        .count("acknowledged commits lost", lost)
        .tell();
    Ok(())
}

/// Whether strace is here and may trace.
fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

fn main() {
    if let Ok(url) = std::env::var(CHILD) {
        let worked = work(&url, async |_, number| {
            println!("done {number}");
            Ok(())
        });
        return runtime().block_on(worked).expect("the work");
    }
    let absent = !can_trace();
    if absent {
        println!("NOT CHECKED: strace is not here, or may not trace");
    }
    let required = std::env::var_os("LEASEHOLD_REQUIRE_STRACE").is_some();
    let trial = |name: &str, full| {
        let run = move || power_loss_leaves_what_was_acknowledged(full).map_err(Failed::from);
        Trial::test(name, run).with_ignored_flag(absent && !required)
    };
    let check = |name: &str, check: fn()| {
        Trial::test(name, move || {
            check();
            Ok(())
        })
    };
    let trials = vec![
        check(
            "trace::calls_of_two_threads_are_told_apart",
            trace::calls_of_two_threads_are_told_apart,
        ),
        check(
            "platter::what_was_synced_stays_and_the_rest_may_go",
            platter::what_was_synced_stays_and_the_rest_may_go,
        ),
        trial("full_loses_nothing_that_was_acknowledged", true),
        trial("normal_loses_the_last_commits_only", false),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
