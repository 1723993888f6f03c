//! Owns the workloads that time each claim: beside a crowd of rows, and while somebody's transaction
//! stays open. One client claims and settles in turn, so that a claim's time is its own.

use std::time::Instant;

use leasehold::{ClaimRequest, Error, ErrorKind, Result, Settlement, Verdict, WorkerId};

use super::sample::milliseconds;
use super::{Load, Payload, Sample, enqueue, settle_log};
use crate::bench::beside::{self, Crowd};

/// Jobs of one claim beside a crowd.
const BATCH: usize = 50;
/// Jobs of one claim beside an open transaction: small, since its cost is that of rows passed over.
const BATCH_HELD: usize = 10;

/// Drains `load.jobs` due jobs of a queue that a crowd of other rows is in.
pub(super) async fn beside_crowd(load: &Load, crowd: Crowd, rows: usize) -> Result<Sample> {
    prepare_crowd(load, crowd, rows).await?;
    take_crowd(load).await
}

/// Fills the queue: the crowd, and the due jobs unless they are part of it.
pub async fn prepare_crowd(load: &Load, crowd: Crowd, rows: usize) -> Result<()> {
    settle_log(load).await?;
    if crowd == Crowd::Due {
        return beside::fill(&load.opened, &load.queue, crowd, rows.max(load.jobs)).await;
    }
    beside::fill(&load.opened, &load.queue, crowd, rows).await?;
    beside::fill(&load.opened, &load.queue, Crowd::Due, load.jobs).await
}

/// Drains `load.jobs` of the jobs that are due.
pub async fn take_crowd(load: &Load) -> Result<Sample> {
    take(load, BATCH, 0).await
}

/// Drains the jobs with and without an open transaction; the last quarter of the claims counts.
pub(super) async fn beside_reader(load: &Load, held: bool) -> Result<Sample> {
    let open = if held { Some(beside::hold(&load.opened).await?) } else { None };
    enqueue::in_batches(load, 1_000).await?;
    let sample = take(load, BATCH_HELD, load.jobs / BATCH_HELD * 3 / 4).await?;
    if let Some(open) = open {
        open.end().await?;
    }
    Ok(sample.part(if held { "_held" } else { "_free" }))
}

/// Claims and settles in turn; the first claims are not among those timed.
async fn take(load: &Load, batch: usize, untimed: usize) -> Result<Sample> {
    let (store, worker) = (&load.opened.store, WorkerId::new());
    let (mut taken, mut sum, mut each) = (0, 0, Vec::new());
    let begun = Instant::now();
    while taken < load.jobs {
        let request = ClaimRequest::new(worker, [load.queue.clone()]);
        let asked = Instant::now();
        let claims = store.claim(request.limit(batch.min(load.jobs - taken))).await?;
        each.push(milliseconds(asked.elapsed()));
        if claims.is_empty() {
            let why = format!("only {taken} of {} jobs could be claimed", load.jobs);
            return Err(Error::new(ErrorKind::Corrupt, "bench", why));
        }
        taken += claims.len();
        let mut verdicts = Vec::with_capacity(claims.len());
        for claim in claims {
            sum += claim.job.payload.read::<Payload>()?.number;
            verdicts.push(Settlement::new(claim.fence, Verdict::Succeed { result: None }));
        }
        for answer in store.settle(verdicts).await? {
            let _settled = answer?;
        }
    }
    std::hint::black_box(sum);
    let timed = each.split_off(untimed.min(each.len().saturating_sub(1)));
    Ok(Sample::new(taken, begun.elapsed(), timed))
}
