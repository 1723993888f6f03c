//! Owns the line about upkeep: a drain beside the reapers of eight nodes, with the leases of a dead
//! worker for them to take back and a long history for them to pass over.

use std::sync::Arc;
use std::time::Duration;

use crate::Outcome;
use crate::measure::{Course, Run, load_average, only};
use crate::table::{Rounds, Table};
use leasehold::{
    CancellationToken, ClaimRequest, JobKind, Json, LeaseLength, Maintenance, NewJob, QueueName,
    StatsScope, Store, WorkerId,
};
use leasehold_cli::bench::beside::{self, Crowd};
use leasehold_cli::bench::workload::{Load, Workload, fresh_queue};
use leasehold_cli::connect::Opened;
use tokio::task::JoinSet;

const NODES: usize = 8;
/// Five times as often as by default, so that even a short drain meets many rounds.
const EVERY: Duration = Duration::from_secs(1);
/// What a worker of so many slots leaves behind when it is killed.
const LAPSED: usize = 1_000;
/// Ended jobs that the store keeps.
const HISTORY: usize = 1_000_000;

impl Run<'_> {
    pub(crate) async fn reapers(&self, course: &Course, table: &mut Table) -> Outcome<()> {
        let opened = self.place.open(self.engine, None).await?;
        let history = self.sizes.rows.unwrap_or(HISTORY);
        beside::fill(&opened, &fresh_queue()?, Crowd::Done, history).await?;
        let mut rounds = Rounds::default();
        for round in 0..self.rounds {
            for side in [round % 2, 1 - round % 2] {
                let load = Load { slots: 1_000, ..self.load(&opened, course.workload)? };
                let load = Load { jobs: load.jobs * 5, ..load };
                let beside = if side == 0 { None } else { Some(Reapers::begin(&opened).await?) };
                let sample = only(Workload::W3.run(&load).await?)?;
                if let Some(reapers) = beside {
                    reapers.end(&opened).await?;
                }
                let rates = if side == 0 { &mut rounds.base } else { &mut rounds.leasehold };
                rates.push(sample.rate());
            }
            rounds.loads.extend(load_average());
        }
        table.add(rounds.row(&self.head(course, "w3 by 1000, 8 reapers", "own w3")))?;
        self.place.remove(opened).await
    }
}

/// The upkeep of so many nodes.
struct Reapers {
    running: JoinSet<()>,
    shutdown: CancellationToken,
}

impl Reapers {
    /// Leaves lapsed leases in a queue of their own, and begins.
    async fn begin(opened: &Opened) -> Outcome<Self> {
        let queue = fresh_queue()?;
        lapse(&opened.store, &queue).await?;
        let (mut running, shutdown) = (JoinSet::new(), CancellationToken::new());
        for _ in 0..NODES {
            let (store, until) = (opened.store.clone(), shutdown.clone());
            running.spawn(async move { Maintenance::new(store).every(EVERY).run(&until).await });
        }
        Ok(Self { running, shutdown })
    }

    /// Ends them, and fails unless they have taken everything back.
    async fn end(mut self, opened: &Opened) -> Outcome<()> {
        self.shutdown.cancel();
        while self.running.join_next().await.transpose()?.is_some() {}
        match lapsed(&opened.store).await? {
            0 => Ok(()),
            left => {
                Err(format!("{left} lapsed leases were not taken back during the drain").into())
            }
        }
    }
}

async fn lapse(store: &Arc<dyn Store>, queue: &QueueName) -> Outcome<()> {
    let kind = JobKind::new("bench")?;
    let job = || Ok(NewJob::new(kind.clone(), Json::parse("1")?).queue(queue.clone()));
    let jobs = (0..LAPSED).map(|_| job()).collect::<Outcome<Vec<_>>>()?;
    store.enqueue(jobs).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let request = ClaimRequest::new(WorkerId::new(), [queue.clone()]).limit(LAPSED);
    let claims = store.claim(request.lease(LeaseLength::MIN)).await?;
    while lapsed(store).await? < u64::try_from(claims.len())? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn lapsed(store: &Arc<dyn Store>) -> Outcome<u64> {
    let stats = store.look(StatsScope::Live).await?;
    Ok(stats.queues.iter().map(|queue| queue.expired).sum())
}
