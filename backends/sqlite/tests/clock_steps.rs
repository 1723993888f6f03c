//! The store's own clock while the machine's wall clock is stepped back and forward at random, over
//! restarts too, by two handles on one file: no lease is taken back early, none for good, and time never
//! goes back. Time passes at once here, so that hundreds of steps take seconds.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

mod place;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use leasehold_conformance::evidence::Evidence;
use leasehold_core::{
    ClaimRequest, Fence, JobId, JobKind, Json, LeaseLength, Limits, NewJob, QueueName,
    ReclaimRequest, Renewal, Store, StoreExt, Timestamp, WorkerId,
};
use leasehold_sqlite::rusqlite::Transaction;
use leasehold_sqlite::{SqliteStore, own_error, pass, step_wall};
use place::Place;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Steps of the wall clock in one run.
const STEPS: usize = 60;
const HOUR_US: i64 = 3_600_000_000;

/// A store that takes ids of any time: the machine's wall is hours off.
async fn opened(url: &str) -> SqliteStore {
    let mut limits = Limits::default();
    limits.id_skew_max = None;
    SqliteStore::open_with(url, limits).await.expect("a store")
}

/// A lease, and when it began to run on the steady clock.
struct Held {
    fence: Fence,
    length: Duration,
    since: Duration,
}

struct Run {
    place: Place,
    stores: [Option<SqliteStore>; 2],
    draw: StdRng,
    begun: Instant,
    passed: Duration,
    held: BTreeMap<JobId, Held>,
    latest: Timestamp,
    stepped: usize,
    taken_back: usize,
}

impl Run {
    async fn new(seed: u64) -> Self {
        let place = Place::new(&format!("clock-steps-{seed}"));
        let url = format!("sqlite:{}?synchronous=normal", place.url());
        let stores = [Some(opened(&url).await), Some(opened(&url).await)];
        Self {
            place,
            stores,
            draw: StdRng::seed_from_u64(seed),
            begun: Instant::now(),
            passed: Duration::ZERO,
            held: BTreeMap::new(),
            latest: Timestamp::MIN,
            stepped: 0,
            taken_back: 0,
        }
    }

    /// What has passed on the steady clock.
    fn steady(&self) -> Duration {
        self.begun.elapsed() + self.passed
    }

    fn store(&mut self) -> SqliteStore {
        let at = usize::from(self.draw.random_bool(0.5));
        self.stores.get(at).and_then(Clone::clone).expect("a store")
    }

    /// The time of the latest write, which the file keeps.
    async fn mark(&mut self) -> Timestamp {
        let read = |tx: &Transaction<'_>| {
            tx.query_row("select now_us from leasehold_clock", [], |row| row.get(0))
                .map_err(own_error)
        };
        Timestamp::saturating(self.store().transaction(read).await.expect("a time"))
    }

    async fn claim(&mut self) {
        let store = self.store();
        let job = NewJob::new(JobKind::new("wait").expect("a kind"), Json::null());
        // The machine's wall is where it is; the store's time is what counts.
        let job = job.run_at(self.latest);
        let _new = store.enqueue_one(job).await.expect("a job");
        let length = Duration::from_millis(self.draw.random_range(1_000..20_000));
        let lease = LeaseLength::from_millis(length.as_millis().try_into().expect("small"));
        let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
        let since = self.steady();
        let claims = store.claim(request.limit(1).lease(lease.expect("a lease"))).await;
        for claim in claims.expect("a claim") {
            assert!(claim.remaining <= length, "{:?} of {length:?}", claim.remaining);
            assert!(!self.held.contains_key(&claim.fence.job()), "claimed while it is held");
            self.held.insert(claim.fence.job(), Held { fence: claim.fence, length, since });
        }
    }

    async fn renew(&mut self) {
        let store = self.store();
        let (before, held) = (self.steady(), self.held.len());
        if held == 0 {
            return;
        }
        let at = self.draw.random_range(0..held);
        let one = self.held.values_mut().nth(at).expect("one of them");
        let length = one.length;
        let early = before.saturating_sub(one.since) < early_end(length);
        match store.renew_one(one.fence).await.expect("an answer") {
            Renewal::Renewed { .. } => one.since = before,
            other => assert!(!early, "a live lease of {length:?} was refused: {other:?}"),
        }
    }

    async fn reclaim(&mut self) {
        let store = self.store();
        let back = store.reclaim(ReclaimRequest::jobs().limit(1_000)).await.expect("a reclaim");
        let after = self.steady();
        for (job, _) in back.jobs {
            let held = self.held.remove(&job).expect("one that was held");
            let ran = after - held.since;
            assert!(ran >= early_end(held.length), "{:?} taken back after {ran:?}", held.length);
            self.taken_back += 1;
        }
    }

    /// Every handle writes, as workers' heartbeats do: a handle goes on from the latest write of all, and
    /// cannot know how long ago that was.
    async fn beat(&mut self) {
        for store in self.stores.clone().iter().flatten() {
            let job = NewJob::new(JobKind::new("wait").expect("a kind"), Json::null());
            let _new = store.enqueue_one(job.run_at(Timestamp::MAX)).await.expect("a job");
        }
    }

    /// Nothing is held for good.
    async fn end(&mut self) {
        for _ in 0..20 {
            pass(Duration::from_secs(10));
            self.passed += Duration::from_secs(10);
            self.beat().await;
            self.reclaim().await;
        }
        assert!(self.held.is_empty(), "{} leases still run", self.held.len());
    }

    async fn step(&mut self) {
        match self.draw.random_range(0..10) {
            0..=2 => {
                let by = self.draw.random_range(-2 * HOUR_US..2 * HOUR_US);
                step_wall(by);
                self.stepped += 1;
            }
            3..=4 => self.claim().await,
            5 => self.renew().await,
            6 => {
                self.beat().await;
                let at = usize::from(self.draw.random_bool(0.5));
                let closed = self.stores.get_mut(at).and_then(Option::take).expect("a store");
                closed.close().await;
                let url = format!("sqlite:{}?synchronous=normal", self.place.url());
                let again = opened(&url).await;
                if let Some(place) = self.stores.get_mut(at) {
                    *place = Some(again);
                }
            }
            7..=8 => {
                let time = Duration::from_millis(self.draw.random_range(0..8_000));
                pass(time);
                self.passed += time;
                self.beat().await;
            }
            _ => self.reclaim().await,
        }
        let now = self.mark().await;
        assert!(now >= self.latest, "time goes back from {} to {now}", self.latest);
        self.latest = now;
    }
}

/// The clock may run a tenth faster than the steady one; a little is lost to rounding.
fn early_end(length: Duration) -> Duration {
    (length * 10 / 11).saturating_sub(Duration::from_millis(5))
}

/// Proves: GLO-6, WQ-6, WQ-7
#[tokio::test(flavor = "multi_thread")]
async fn no_step_of_the_wall_ends_a_lease_early_or_keeps_it() {
    let runs = std::env::var("LEASEHOLD_CLOCK_RUNS").ok().and_then(|n| n.parse().ok());
    let runs: u64 = runs.unwrap_or(9);
    let evidence = Evidence::of("clock steps", "sqlite");
    let (mut stepped, mut taken_back) = (0, 0);
    for seed in 0..runs {
        let mut run = Run::new(seed).await;
        while run.stepped < STEPS {
            run.step().await;
        }
        run.end().await;
        stepped += run.stepped;
        taken_back += run.taken_back;
    }
    assert!(stepped >= 500 && taken_back > 100, "{stepped} steps, {taken_back} taken back");
    let evidence = evidence.count("steps of the wall clock", stepped as u64).seeds(0..runs);
    evidence.count("leases taken back, none early", taken_back as u64).tell();
}
