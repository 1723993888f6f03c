//! Owns the failover to an asynchronous standby: what it had received stays, what it had not is lost and told of
//! to whoever asks, and no claim that is lost or from before a raised epoch changes anything.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::invariants::broken;
use leasehold_core::lab::LabStore;
use leasehold_core::{
    Actor, Claim, Control, Controlled, JobId, LostReason, NewJob, State, Store, StoreExt,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::Client;

use crate::cluster::{Cluster, Host, until_true, url};
use crate::work::{add, answer, claim, end, end_all, jobs_in, jobs_of, told_of};

/// Jobs of each fate.
const EACH: usize = 25;

/// A primary with a standby, and the address that leads to whichever is the primary.
struct Pair {
    primary: Cluster,
    standby: Cluster,
    address: PathBuf,
}

impl Pair {
    fn start(host: &Host) -> Self {
        let primary = Cluster::start(host, "primary", &[]);
        let standby = primary.standby("standby");
        let address = PathBuf::from(format!("{}-address", primary.sockets()));
        symlink(primary.sockets(), &address).expect("an address");
        Self { primary, standby, address }
    }

    async fn store(&self) -> PostgresStore {
        let url = format!("{}&pool_size=2", url(&self.address.to_string_lossy()));
        PostgresStore::lab(&url, "failover", None).await.expect("a store")
    }

    /// Waits until the standby has what the primary has: received, or shown to readers too.
    async fn until_followed(&self, until: &str) -> Client {
        let primary = self.primary.session().await;
        let row = primary.query_one("select pg_current_wal_lsn()::text", &[]).await;
        let end: String = row.expect("a place").get(0);
        let standby = self.standby.session().await;
        until_true(&standby, &format!("select pg_last_wal_{until}_lsn() >= '{end}'::pg_lsn")).await;
        standby
    }

    /// The standby receives nothing any more.
    async fn cut(&self) {
        let standby = self.until_followed("replay").await;
        for text in ["alter system set primary_conninfo = ''", "select pg_reload_conf()"] {
            standby.execute(text, &[]).await.expect("done");
        }
        until_true(&standby, "select not exists (select from pg_stat_wal_receiver)").await;
    }

    /// The primary is lost, and the address leads to the standby.
    fn fail_over(&mut self) {
        self.primary.crash();
        self.standby.promote();
        std::fs::remove_file(&self.address).expect("an address");
        symlink(self.standby.sockets(), &self.address).expect("an address");
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.address);
    }
}

/// What was done before the failover.
struct Before {
    /// Claimed by what the standby has seen, and held.
    standing: Vec<Claim>,
    /// The same; the epoch is raised before they are ended.
    outlived: Vec<Claim>,
    /// Claimed by what the standby has seen, ended after that.
    unended: Vec<Claim>,
    /// The same; the epoch is raised before they are asked for again.
    unended_outlived: Vec<Claim>,
    /// Claimed when the standby was cut off.
    unclaimed: Vec<Claim>,
    /// Enqueued when it was cut off.
    unknown: Vec<NewJob>,
    /// Those of them that were claimed.
    unknown_claims: Vec<Claim>,
}

/// Works on the primary, and cuts the standby off in the middle.
async fn work(pair: &Pair, store: &PostgresStore) -> Before {
    for name in ["ended", "standing", "outlived", "unended", "unended-outlived", "unclaimed"] {
        assert_eq!(add(store, &jobs_of(name, EACH)).await, EACH);
    }
    end_all(store, &claim(store, "ended").await).await;
    let standing = claim(store, "standing").await;
    let outlived = claim(store, "outlived").await;
    let unended = claim(store, "unended").await;
    let unended_outlived = claim(store, "unended-outlived").await;
    pair.cut().await;
    let unclaimed = claim(store, "unclaimed").await;
    end_all(store, &unended).await;
    end_all(store, &unended_outlived).await;
    let unknown = jobs_of("unknown", EACH);
    assert_eq!(add(store, &unknown).await, EACH);
    let unknown_claims = claim(store, "unknown").await;
    Before { standing, outlived, unended, unended_outlived, unclaimed, unknown, unknown_claims }
}

/// Each of these claims is refused for a reason, and its job stays as it is.
async fn refused(store: &PostgresStore, claims: &[Claim], reason: LostReason) -> usize {
    let before = store.dump().await.expect("a dump");
    for claim in claims {
        let error = end(store, claim.fence).await.expect_err("a stale worker was let in");
        assert_eq!(error.lost_reason(), Some(reason), "{error}");
    }
    let after = store.dump().await.expect("a dump");
    assert!(before.difference(&after).is_empty(), "{}", before.difference(&after));
    claims.len()
}

/// A system behind the handlers, which keeps the largest token of each job.
#[derive(Default)]
struct Behind(BTreeMap<JobId, i64>);

impl Behind {
    fn takes(&mut self, claim: &Claim) -> bool {
        let token = claim.fence.fencing_token();
        let known = self.0.entry(claim.fence.job()).or_insert(0);
        let takes = token > *known;
        *known = token.max(*known);
        takes
    }
}

/// What a worker is told that goes on before anybody has raised the epoch; how many were refused.
async fn go_on(store: &PostgresStore, before: &Before) -> usize {
    // Its claim is there, and nothing of it was lost.
    end_all(store, &before.standing).await;
    // The end is lost. Who asks again is not told that it was there, and so it is done, once.
    end_all(store, &before.unended).await;
    let mut stale = refused(store, &before.unclaimed, LostReason::TakenOver).await;
    let anew = claim(store, "unclaimed").await;
    let versions = |claims: &[Claim]| -> BTreeMap<_, _> {
        claims.iter().map(|claim| (claim.fence.job(), claim.fence.version())).collect()
    };
    assert_eq!(versions(&anew), versions(&before.unclaimed), "the versions are issued twice");
    stale += refused(store, &before.unclaimed, LostReason::TakenOver).await;
    end_all(store, &anew).await;
    for job in &before.unknown {
        let found = answer(async || store.job(job.id).await).await.expect("an answer");
        assert!(found.is_none(), "{} was cut off", job.id);
    }
    stale += refused(store, &before.unknown_claims, LostReason::Gone).await;
    assert_eq!(add(store, &before.unknown).await, EACH, "each is told to be new");
    stale
}

/// What a worker from before is told once an operator has raised the epoch; how many were refused.
async fn raise_epoch(store: &PostgresStore, before: &Before) -> usize {
    let actor = Actor::new("operator").expect("an actor");
    let raised = store.control(Control::BumpEpoch { actor }).await.expect("raised");
    assert!(matches!(raised, Controlled::Epoch(_)), "{raised:?}");
    let mut stale = 0;
    for claims in [&before.outlived, &before.unended_outlived, &before.unknown_claims] {
        stale += refused(store, claims, LostReason::EpochRaised).await;
    }
    stale
}

/// The leases of everybody who is left run out, and new workers do the rest.
async fn do_the_rest(pair: &Pair, store: &PostgresStore, behind: &mut Behind) {
    let operator = pair.standby.session().await;
    let text =
        "update failover.jobs set lease_expires_at = clock_timestamp() where state = 'leased'";
    operator.execute(text, &[]).await.expect("run out");
    for name in ["outlived", "unended-outlived", "unknown"] {
        let claims = claim(store, name).await;
        assert_eq!(claims.len(), EACH, "{name}");
        assert!(claims.iter().all(|claim| behind.takes(claim)), "{name}: a token did not rise");
        end_all(store, &claims).await;
    }
}

/// Each job has ended well, and its end has been told of once.
async fn each_ended_once(store: &PostgresStore, jobs: usize) {
    let ended = jobs_in(store, State::Succeeded).await;
    let told = told_of(store).await;
    assert_eq!((ended.len(), told.len()), (jobs, jobs));
    for job in ended {
        assert_eq!(told.get(&job.to_string()), Some(&1), "{job}");
    }
    let broken = broken(&store.dump().await.expect("a dump"));
    assert!(broken.is_empty(), "{broken:?}");
}

/// Proves: WQ-12, WQ-15, WQ-8, GLO-2
pub(crate) async fn to_a_standby_that_lags_lets_no_stale_worker_in(host: Host) {
    let evidence = Evidence::of("failover to a standby that lags", "postgres");
    let mut pair = Pair::start(&host);
    let store = pair.store().await;
    let before = work(&pair, &store).await;
    let mut behind = Behind::default();
    for claims in
        [&before.outlived, &before.unended_outlived, &before.unclaimed, &before.unknown_claims]
    {
        assert!(claims.iter().all(|claim| behind.takes(claim)));
    }
    pair.fail_over();

    let refused = go_on(&store, &before).await + raise_epoch(&store, &before).await;
    do_the_rest(&pair, &store, &mut behind).await;
    each_ended_once(&store, 7 * EACH).await;
    let lost = EACH;
    evidence
        .count("jobs", 7 * EACH)
        .count("acknowledged enqueues lost, and told to be new when asked for again", lost)
        .count("acknowledged claims lost", 2 * lost)
        .count("acknowledged ends lost, and done or refused when asked for again", 2 * lost)
        .count("writes of stale workers refused", refused)
        .tell();
}

/// Proves: WQ-10, GLO-2
pub(crate) async fn to_a_standby_that_has_all_loses_nothing(host: Host) {
    let mut pair = Pair::start(&host);
    let store = pair.store().await;
    let standby = pair.until_followed("replay").await;
    // It receives, and shows none of it until it is promoted.
    standby.execute("select pg_wal_replay_pause()", &[]).await.expect("paused");
    until_true(&standby, "select pg_get_wal_replay_pause_state() = 'paused'").await;
    assert_eq!(add(&store, &jobs_of("ended", EACH)).await, EACH);
    let ended = claim(&store, "ended").await;
    end_all(&store, &ended).await;
    assert_eq!(add(&store, &jobs_of("held", EACH)).await, EACH);
    let held = claim(&store, "held").await;
    pair.until_followed("receive").await;
    pair.fail_over();

    for claim in &ended {
        assert!(end(&store, claim.fence).await.expect("its own end").repeated);
    }
    end_all(&store, &held).await;
    each_ended_once(&store, 2 * EACH).await;
}
