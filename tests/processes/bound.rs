//! Owns the contest for a queue's bound: eight processes of eight claimers each, processes killed and
//! claimers dropped at any moment, and never more leases at once than the bound, by the database's clock.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use leasehold_conformance::evidence::Evidence;
use leasehold_core::{
    ClaimRequest, Control, JobFilter, LeaseLength, Paging, QueueName, QueueSettings, Result,
    Settlement, State, Store, StoreExt, Verdict, WorkerId,
};
use libtest_mimic::Failed;
use tokio::task::JoinHandle;

use crate::child::{Child, say};
use crate::engine::Engine;
use crate::{add_jobs, runs, runtime};

const PROCESSES: usize = 8;
const CLAIMERS: usize = 8;
const BOUND: u32 = 400;
const JOBS: usize = 1_600;
/// The most that one claim takes: large, so that many leases begin with few calls, and a few claims meet the bound.
const AT_ONCE: usize = 160;
/// How long a claimer holds what it has: long enough that the bound is met, and short enough for many turns.
const HOLD: Duration = Duration::from_millis(10);
/// Between two kills; the leases that a dead process leaves must not fill the bound.
const KILL_EVERY: Duration = Duration::from_millis(1_500);

/// Proves: WQ-6, WQ-9
pub(crate) fn sixty_four_claimers_keep_the_bound(engine: &Engine) -> Result<(), Failed> {
    let wanted = runs("LEASEHOLD_ACQUISITIONS", 100_000);
    let evidence = Evidence::of("the bound on leases", engine.name());
    runtime().block_on(async {
        let store = engine.open().await?;
        add_jobs(&*store, JOBS).await?;
        let settings = QueueSettings::new().limit(Some(BOUND));
        let settings = settings.lease(LeaseLength::from_millis(1_000)?);
        store.control(Control::SetQueue(QueueName::default_queue(), settings)).await?;
        let start = || Child::start("contender", engine);
        let mut children: Vec<Child> =
            (0..PROCESSES).map(|_| start()).collect::<std::io::Result<_>>()?;
        let (mut acquired, mut kills, mut looks, mut most) = (0, 0, 0, 0);
        let (begun, mut last) = (Instant::now(), Instant::now());
        while acquired < wanted {
            if begun.elapsed() > Duration::from_secs(3_600) {
                return Err(format!("only {acquired} acquisitions in an hour").into());
            }
            let held = held(&*store).await?;
            most = most.max(held);
            looks += 1;
            if held > BOUND as usize {
                return Err(format!("{held} leases run, and {BOUND} may").into());
            }
            for child in &mut children {
                while let Ok(line) = child.0.wait_for("claimed", Duration::ZERO) {
                    acquired += line.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                }
            }
            if last.elapsed() > KILL_EVERY {
                last = Instant::now();
                children.remove(0).kill()?;
                kills += 1;
                children.push(start()?);
            }
        }
        if most < BOUND as usize / 2 {
            return Err(format!("at most {most} leases ran: the bound was never near").into());
        }
        let evidence = evidence.count("claimers", PROCESSES * CLAIMERS).count("bound", BOUND);
        let evidence = evidence.count("acquisitions", acquired).count("processes killed", kills);
        let evidence = evidence.count("looks", looks).count("most leases at once", most);
        evidence.count("leases over the bound", 0).tell();
        Ok(())
    })
}

/// How many leases run: those that still do after the look did so at the look.
async fn held(store: &dyn Store) -> Result<usize> {
    let leased = JobFilter::new().state(State::Leased);
    let leased = store.jobs(leased, Paging::first(1_000)).await?.items;
    let now = store.stats().await?.now;
    Ok(leased.iter().filter(|job| job.lease_expires_at > Some(now)).count())
}

/// The child: claimers that give their jobs back at once, one of which is dropped now and then in the
/// middle of whatever it does.
pub(crate) async fn contend(url: &str) -> Result<()> {
    let store = leasehold::connect(url).await?;
    let claimer = |number: usize| -> JoinHandle<Result<()>> {
        let store = store.clone();
        tokio::spawn(async move {
            let worker = WorkerId::new();
            loop {
                let asked = ClaimRequest::new(worker, [QueueName::default_queue()]);
                let claims = store.claim(asked.limit(1 + number * 31 % AT_ONCE)).await?;
                if claims.is_empty() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    continue;
                }
                say(&format!("claimed {}", claims.len()));
                tokio::time::sleep(HOLD).await;
                let back = claims
                    .iter()
                    .map(|claim| Settlement::new(claim.fence, Verdict::Release { delay: None }));
                // A lease that has lapsed on a busy machine is somebody else's by now.
                let _ends = store.settle(back.collect()).await?;
            }
        })
    };
    let mut claimers: VecDeque<JoinHandle<Result<()>>> = (0..CLAIMERS).map(claimer).collect();
    for number in 0_usize.. {
        tokio::time::sleep(Duration::from_millis(2_000)).await;
        let Some(dropped) = claimers.pop_front() else { break };
        if dropped.is_finished() {
            dropped.await.expect("no panic")?;
        } else {
            dropped.abort();
        }
        claimers.push_back(claimer(number));
    }
    Ok(())
}
