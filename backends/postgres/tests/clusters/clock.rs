//! Owns the server's clock, set back and forward at random and hours off the hosts': a lease ends when the server's
//! clock says so, neither sooner nor later, no write makes it end earlier, and who lost it is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::invariants::broken;
use leasehold_core::lab::LabStore;
use leasehold_core::{
    ClaimRequest, ErrorKind, Fence, JobFilter, JobId, JobView, LeaseLength, Paging, QueueName,
    ReclaimRequest, Renewal, State, Store, StoreExt, Timestamp, WorkerId,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::Client;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::cluster::{Cluster, Host};
use crate::work::{add, answer, end, jobs_of};

/// Steps of the server's clock in one run.
const STEPS: usize = 60;

/// The library that shows a program another time, where it is.
pub(crate) fn library() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("LEASEHOLD_TEST_FAKETIME") {
        return Some(named.into());
    }
    let machine = std::env::consts::ARCH;
    let places = [
        format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1"),
        "/usr/lib64/faketime/libfaketime.so.1".to_owned(),
        "/usr/lib/faketime/libfaketime.so.1".to_owned(),
    ];
    places.into_iter().map(PathBuf::from).find(|place| place.exists())
}

/// A server whose clock a test sets.
struct Server {
    cluster: Cluster,
    /// What the library reads its offset from.
    offset: PathBuf,
    watcher: Client,
}

impl Server {
    async fn start(host: &Host, library: &Path) -> Self {
        let offset = host.file("clock");
        set(&offset, 0);
        let variables = [
            format!("LD_PRELOAD={}", library.display()),
            format!("FAKETIME_TIMESTAMP_FILE={}", offset.display()),
            "FAKETIME_NO_CACHE=1".to_owned(),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
            "FAKETIME_DISABLE_SHM=1".to_owned(),
        ];
        let cluster = Cluster::start(host, "clock", &variables.each_ref().map(|one| &**one));
        let watcher = cluster.session().await;
        Self { cluster, offset, watcher }
    }

    async fn now(&self) -> Timestamp {
        let text = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";
        let row = self.watcher.query_one(text, &[]).await.expect("a time");
        Timestamp::saturating(row.get(0))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.offset);
    }
}

/// Moves the server's clock to so many milliseconds off the machine's, at once.
fn set(file: &Path, offset_ms: i64) {
    let (sign, size) = (if offset_ms < 0 { '-' } else { '+' }, offset_ms.unsigned_abs());
    let next = file.with_extension("next");
    std::fs::write(&next, format!("{sign}{}.{:03}\n", size / 1_000, size % 1_000)).expect("set");
    std::fs::rename(next, file).expect("set");
}

/// A lease as its holder knows it.
struct Held {
    fence: Fence,
    length: Duration,
    since: Instant,
    /// How far the clock had been set forward in all when it began.
    forward: Duration,
    ends: Timestamp,
}

struct Run<'a> {
    server: &'a Server,
    stores: [PostgresStore; 2],
    draw: StdRng,
    offset_ms: i64,
    forward: Duration,
    held: BTreeMap<JobId, Held>,
    written: BTreeMap<JobId, Timestamp>,
    stepped: usize,
    taken_back: usize,
}

impl<'a> Run<'a> {
    async fn new(server: &'a Server, seed: u64) -> Self {
        let url = format!("{}&pool_size=2", server.cluster.url());
        let schema = format!("clock_{seed}");
        let first = PostgresStore::lab(&url, &schema, None).await.expect("a store");
        let second = PostgresStore::lab_from(&url, &schema, None, 1_000_000).await;
        Self {
            server,
            stores: [first, second.expect("a store")],
            draw: StdRng::seed_from_u64(seed),
            offset_ms: 0,
            forward: Duration::ZERO,
            held: BTreeMap::new(),
            written: BTreeMap::new(),
            stepped: 0,
            taken_back: 0,
        }
    }

    fn store(&mut self) -> PostgresStore {
        let [first, second] = &self.stores;
        if self.draw.random_bool(0.5) { first.clone() } else { second.clone() }
    }

    /// Mostly by seconds, as leases are long; by hours now and then.
    async fn step_clock(&mut self) {
        let most = if self.draw.random_bool(0.8) { 5_000 } else { 2 * 3_600_000 };
        let by = self.draw.random_range(-most..most);
        self.offset_ms += by;
        self.forward += Duration::from_millis(by.max(0).unsigned_abs());
        let (begun, before) = (Instant::now(), self.server.now().await);
        set(&self.server.offset, self.offset_ms);
        let moved = self.server.now().await.as_micros() - before.as_micros() - by * 1_000;
        let real = i64::try_from(begun.elapsed().as_micros()).expect("a short time");
        // A machine's own clock may be corrected a little meanwhile.
        assert!((-100_000..real + 100_000).contains(&moved), "a step of {by} ms is {moved} us off");
        self.stepped += 1;
    }

    async fn claim(&mut self) {
        let store = self.store();
        // Due by any clock: what counts here is its lease.
        let due = Timestamp::saturating(1_000_000_000_000_000);
        let jobs = jobs_of("clock", 1).into_iter().map(|job| job.run_at(due)).collect::<Vec<_>>();
        add(&store, &jobs).await;
        let length = Duration::from_millis(self.draw.random_range(1_000..20_000));
        let lease = LeaseLength::from_millis(length.as_millis().try_into().expect("small"));
        let queue = QueueName::new("clock").expect("a name");
        let request = ClaimRequest::new(WorkerId::new(), [queue]).lease(lease.expect("a lease"));
        let request = request.limit(2);
        let (since, forward) = (Instant::now(), self.forward);
        let claims = answer(async || store.claim(request.clone()).await).await.expect("claims");
        self.look().await;
        for claim in claims {
            assert!(claim.remaining <= length, "{:?} of {length:?}", claim.remaining);
            let (fence, ends) = (claim.fence, claim.lease_expires_at);
            let held = Held { fence, length, since, forward, ends };
            assert!(self.held.insert(fence.job(), held).is_none(), "claimed while it is held");
        }
    }

    async fn renew(&mut self) {
        let store = self.store();
        let held = self.held.len();
        if held == 0 {
            return;
        }
        let at = self.draw.random_range(0..held);
        let one = self.held.values_mut().nth(at).expect("one of them");
        let (since, before) = (Instant::now(), self.server.now().await);
        let told = answer(async || store.renew_one(one.fence).await).await.expect("an answer");
        match told {
            Renewal::Renewed { .. } => {
                let job = store.job(one.fence.job()).await.expect("an answer").expect("a job");
                let ends = job.lease_expires_at.expect("a lease");
                assert!(ends >= one.ends, "a renewal moved the end from {} to {ends}", one.ends);
                assert!(ends >= before.plus(one.length), "a renewal gave less than its length");
                (one.since, one.forward, one.ends) = (since, self.forward, ends);
            }
            _ => {
                let now = self.server.now().await;
                assert!(one.ends <= now, "a lease until {} was refused at {now}", one.ends);
            }
        }
    }

    async fn reclaim(&mut self) {
        let store = self.store();
        let before = self.server.now().await;
        let request = || ReclaimRequest::jobs().limit(1_000);
        let _back = answer(async || store.reclaim(request()).await).await.expect("a reclaim");
        self.look().await;
        for held in self.held.values() {
            assert!(held.ends > before, "a lease until {} still runs at {before}", held.ends);
        }
    }

    /// Reads every job: who has lost a lease lost it when it had run out, and is refused.
    async fn look(&mut self) {
        let store = self.store();
        let paging = || Paging::first(1_000);
        let found = answer(async || store.jobs(JobFilter::new(), paging()).await).await;
        let now = self.server.now().await;
        for job in found.expect("jobs").items {
            let latest = self.written.entry(job.id).or_insert(job.updated_at);
            assert!(job.updated_at >= *latest, "job {} was written in the past", job.id);
            *latest = job.updated_at;
            let is_lost = |held: &Held| !holds(&job, held.fence);
            if !self.held.get(&job.id).is_some_and(is_lost) {
                continue;
            }
            let held = self.held.remove(&job.id).expect("one that was held");
            assert!(held.ends <= now, "a lease until {} was taken back at {now}", held.ends);
            let forward = self.forward - held.forward;
            assert!(held.since.elapsed() + forward >= held.length, "{:?} early", held.length);
            let error = end(&store, held.fence).await.expect_err("a stale worker was let in");
            assert_eq!(error.kind(), ErrorKind::FenceLost, "{error}");
            self.taken_back += 1;
        }
    }

    async fn step(&mut self) {
        match self.draw.random_range(0..10) {
            0..=3 => self.step_clock().await,
            4..=6 => self.claim().await,
            7 => self.renew().await,
            _ => self.reclaim().await,
        }
    }

    /// Nothing is held for good.
    async fn end(&mut self) {
        let last = self.held.values().map(|held| held.ends).max();
        let now = self.server.now().await;
        let ahead = last.map_or(Duration::ZERO, |last| last.since(now)) + Duration::from_secs(1);
        self.offset_ms += i64::try_from(ahead.as_millis()).expect("a step");
        self.forward += ahead;
        set(&self.server.offset, self.offset_ms);
        self.reclaim().await;
        assert!(self.held.is_empty(), "{} leases still run", self.held.len());
        let broken = broken(&self.store().dump().await.expect("a dump"));
        assert!(broken.is_empty(), "{broken:?}");
    }
}

/// Whether a job is held by this very claim.
fn holds(job: &JobView, fence: Fence) -> bool {
    job.state == State::Leased && job.claim_version == fence.version()
}

/// Proves: GLO-6, WQ-5, WQ-6, WQ-7
pub(crate) async fn a_set_clock_of_the_server_ends_no_lease_but_those_it_has_passed(host: Host) {
    let library = library().expect("libfaketime, of the package of that name");
    let runs = std::env::var("LEASEHOLD_CLOCK_RUNS").ok().and_then(|n| n.parse().ok());
    let runs: u64 = runs.unwrap_or(9);
    let evidence = Evidence::of("clock steps", "postgres");
    let server = Server::start(&host, &library).await;
    let (mut stepped, mut taken_back) = (0, 0);
    for seed in 0..runs {
        set(&server.offset, 0);
        let mut run = Run::new(&server, seed).await;
        while run.stepped < STEPS {
            run.step().await;
        }
        run.end().await;
        stepped += run.stepped;
        taken_back += run.taken_back;
    }
    assert!(stepped >= 500 && taken_back > 100, "{stepped} steps, {taken_back} taken back");
    let evidence = evidence.count("steps of the wall clock", stepped).seeds(0..runs);
    evidence.count("leases taken back, none early", taken_back).tell();
}
