//! Owns what a crash leaves of a write-ahead log: every prefix of it in steps of a sector, sectors that
//! were never written, bytes that turned over. A store opened on that finds exactly what was stored
//! after some commit, the last one that is whole before the damage; nothing half, nothing later.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]
#![allow(clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod place;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_conformance::evidence::Evidence;
use leasehold_core::lab::LabStore;
use leasehold_core::{
    ClaimRequest, EventId, Fence, JobId, JobKind, Json, NewEvent, NewJob, QueueName, Result,
    Settlement, Store, StoreExt, Timestamp, Topic, Verdict, WorkerId,
};
use leasehold_sqlite::SqliteStore;
use leasehold_sqlite::rusqlite::Connection;
use place::Place;
use tokio::runtime::Runtime;

/// How many transactions the log holds.
const COMMITS: usize = 240;
/// What a disk writes at once.
const SECTOR: usize = 512;
const THREADS: usize = 2;

fn start() -> Timestamp {
    Timestamp::saturating(1_800_000_000_000_000)
}

fn id(number: usize) -> uuid::Uuid {
    uuid::Uuid::from_u128(number as u128 + 1)
}

fn log_of(place: &Place) -> PathBuf {
    PathBuf::from(format!("{}-wal", place.url()))
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A database file, a log of which nothing has reached it, and what was stored after each commit.
struct Recorded {
    file: Vec<u8>,
    log: Vec<u8>,
    /// The log's length after each commit and what was stored then; at first nothing of the log.
    commits: Vec<(usize, u64)>,
}

impl Recorded {
    /// The newest commit that lies wholly before a place in the log.
    fn before(&self, at: usize) -> usize {
        self.commits.partition_point(|(end, _)| *end <= at) - 1
    }
}

/// All tables as one number.
async fn stored(store: &SqliteStore) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", store.dump().await?).hash(&mut hasher);
    Ok(hasher.finish())
}

/// One transaction of a service's day: a new job, its claim, or its end with an event.
async fn act(store: &SqliteStore, number: usize, held: &mut Vec<Fence>) -> Result<()> {
    match number % 3 {
        0 => {
            let kind = JobKind::new("resize")?;
            let mut job = NewJob::new(kind, Json::parse(format!("{{\"number\":{number}}}"))?);
            job.id = JobId::from_uuid(id(number));
            let _new = store.enqueue_one(job).await?;
        }
        1 => {
            let worker = WorkerId::from_uuid(id(7));
            let request = ClaimRequest::new(worker, [QueueName::default_queue()]);
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

/// Writes the transactions while a reader keeps the log from being brought into the file.
async fn record() -> Result<Recorded> {
    let place = Place::new("power-recorded");
    let store = SqliteStore::lab(&place.url(), start()).await?;
    let beside = Connection::open(place.url()).expect("a connection");
    let flush = "pragma wal_checkpoint(truncate)";
    beside.query_row(flush, [], |_| Ok(())).expect("an empty log");
    let text = "begin; select count(*) from leasehold_jobs";
    beside.execute_batch(text).expect("a snapshot");
    let mut commits = vec![(0, stored(&store).await?)];
    let mut held = Vec::new();
    for number in 0..COMMITS {
        act(&store, number, &mut held).await?;
        let length = std::fs::metadata(log_of(&place)).expect("a log").len() as usize;
        commits.push((length, stored(&store).await?));
    }
    let file = std::fs::read(place.url()).expect("the file");
    let log = std::fs::read(log_of(&place)).expect("the log");
    assert!(commits.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1));
    Ok(Recorded { file, log, commits })
}

/// What a store finds that is opened on the file and what is left of a log.
fn found(runtime: &Runtime, recorded: &Recorded, name: &str, log: &[u8]) -> Result<u64> {
    let place = Place::new(&format!("power-{name}"));
    std::fs::write(place.url(), &recorded.file).expect("a file");
    std::fs::write(log_of(&place), log).expect("a log");
    runtime.block_on(async {
        let store = SqliteStore::lab(&place.url(), start()).await?;
        stored(&store).await
    })
}

/// Opens a store on each point's log and compares; how many points there were.
fn sweep(recorded: &Recorded, name: &str, points: &[(usize, Vec<u8>)]) -> usize {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let runtime = runtime();
                while let Some((at, damage)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut log = recorded.log.clone();
                    match damage.is_empty() {
                        true => log.truncate(*at),
                        false => log[*at..*at + damage.len()].copy_from_slice(damage),
                    }
                    let commit = recorded.before(*at);
                    let found = found(&runtime, recorded, &format!("{name}-{at}"), &log);
                    let found = found.expect("an end of the log is no reason to refuse");
                    let expected = recorded.commits[commit].1;
                    assert_eq!(found, expected, "{name} at {at}: not commit {commit}");
                }
            });
        }
    });
    points.len()
}

/// Every so many points one is taken, so that CI stays short; all where the environment asks for it.
fn thinned(points: Vec<(usize, Vec<u8>)>, most: usize) -> Vec<(usize, Vec<u8>)> {
    let all = std::env::var("LEASEHOLD_CRASH_POINTS").is_ok_and(|points| points == "all");
    let step = if all { 1 } else { points.len().div_ceil(most) };
    points.into_iter().step_by(step.max(1)).collect()
}

/// Proves: GLO-2, TX-1, WQ-11
#[test]
fn what_is_left_of_a_log_is_exactly_some_commit() {
    let evidence = Evidence::of("a log cut or damaged", "sqlite");
    let recorded = runtime().block_on(record()).expect("a recording");
    let length = recorded.log.len();
    let cuts: Vec<_> = (0..=length).step_by(SECTOR).map(|at| (at, Vec::new())).collect();
    let cuts = sweep(&recorded, "cut", &thinned(cuts, 8_000));
    // The first bytes of a sector, so that the damage begins where the point says.
    let sectors = (0..length).step_by(SECTOR).filter_map(|at| {
        let old = &recorded.log[at..(at + SECTOR).min(length)];
        let first = old.iter().position(|byte| *byte != 0)?;
        Some((at + first, vec![0; old.len() - first]))
    });
    let torn = sweep(&recorded, "torn", &thinned(sectors.collect(), 350));
    let flips = (0..length).step_by(97).map(|at| (at, vec![recorded.log[at] ^ 0x10]));
    let flipped = sweep(&recorded, "flip", &thinned(flips.collect(), 350));
    eprintln!("{length} bytes: {cuts} cuts, {torn} torn sectors, {flipped} flipped bytes");
    assert!(cuts + torn + flipped >= 5_000, "{cuts} cuts, {torn} torn, {flipped} flipped");
    let evidence = evidence.count("transactions in the log", COMMITS);
    let evidence = evidence.count("cuts", cuts).count("torn sectors", torn);
    evidence.count("flipped bytes", flipped).count("states that are no commit", 0).tell();
}
