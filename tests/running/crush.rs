//! Everything at once: batches that end in any order, heartbeats of all, enqueues whose keys collide, the reaper and
//! an operator who calls jobs off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::{
    Actor, ClaimRequest, Control, ErrorKind, Found, IdempotencyKey, JobFilter, JobId, LeaseLength,
    NewJob, Paging, Query, QueueName, ReclaimRequest, RenewRequest, Settlement, State, Store,
    Verdict, WorkerId,
};
use tokio::task::JoinSet;

use crate::{Told, job, stories};

stories![batches_at_once_block_nobody_and_cost_no_attempt];

const JOBS: usize = 600;
const BATCH: usize = 50;
const ENQUEUERS: usize = 4;
const WORKERS: usize = 8;

/// No call fails but for what the other calls lawfully did, no job is lost or run twice, and none is made twice.
///
/// Proves: WQ-3, WQ-10, IDM-1, ERR-1
async fn batches_at_once_block_nobody_and_cost_no_attempt(store: Arc<dyn Store>) -> Told {
    let (mut tasks, left) = (JoinSet::new(), Arc::new(AtomicUsize::new(ENQUEUERS)));
    for seat in 0..ENQUEUERS {
        tasks.spawn(enqueue(store.clone(), seat, left.clone()));
    }
    for seat in 0..WORKERS {
        tasks.spawn(work(store.clone(), seat, left.clone()));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let (mut jobs, mut paging) = (Vec::new(), Paging::first(1_000));
    loop {
        let page = store.find(Query::Jobs(JobFilter::new(), paging)).await?;
        jobs.extend(page.items);
        let Some(next) = page.next else { break };
        paging = Paging::first(1_000).after(next);
    }
    assert_eq!(jobs.len(), JOBS);
    for found in &jobs {
        let Found::Job(job) = found else { panic!("{found:?}") };
        match job.state {
            State::Succeeded => assert_eq!((job.executions, job.claim_version.get()), (1, 1)),
            state => assert_eq!((state, job.executions), (State::Cancelled, 0)),
        }
    }
    Ok(())
}

/// All jobs in batches, in an order of its own; calls some of them off as it goes.
async fn enqueue(
    store: Arc<dyn Store>,
    seat: usize,
    left: Arc<AtomicUsize>,
) -> leasehold::Result<()> {
    let mut order: Vec<usize> = (0..JOBS).map(|n| (n * 7 + seat * 131) % JOBS).collect();
    if seat % 2 == 1 {
        order.reverse();
    }
    for numbers in order.chunks(BATCH) {
        let batch = numbers.iter().map(|n| keyed(*n)).collect::<leasehold::Result<_>>()?;
        let answers = store.enqueue(batch).await?;
        for (answer, number) in answers.into_iter().zip(numbers) {
            let id = answer?.job();
            if number % 10 == 3 {
                call_off(&*store, id).await?;
            }
        }
    }
    left.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

fn keyed(number: usize) -> leasehold::Result<NewJob> {
    let payload = u32::try_from(number).unwrap_or(u32::MAX);
    Ok(job("crush", payload).key(IdempotencyKey::new(format!("key {number}"))?))
}

/// A job that is over cannot be called off any more.
async fn call_off(store: &dyn Store, job: JobId) -> leasehold::Result<()> {
    let (actor, reason) = (Actor::new("operator")?, None);
    match store.control(Control::RequestCancel { job, actor, reason }).await {
        Err(error) if error.kind() != ErrorKind::IllegalTransition => Err(error),
        _ => Ok(()),
    }
}

/// Claims in batches, renews them, and ends them in an order of its own, until nothing is left.
async fn work(store: Arc<dyn Store>, seat: usize, left: Arc<AtomicUsize>) -> leasehold::Result<()> {
    let worker = WorkerId::new();
    loop {
        let is_last = left.load(Ordering::SeqCst) == 0;
        let lease = LeaseLength::new(Duration::from_secs(600))?;
        let request = ClaimRequest::new(worker, [QueueName::default_queue()]);
        let claims = store.claim(request.limit(BATCH).lease(lease)).await?;
        if claims.is_empty() && is_last {
            return Ok(());
        }
        let mut fences: Vec<_> = claims.iter().map(|claim| claim.fence).collect();
        store.renew(RenewRequest::new(fences.clone())).await?;
        store.reclaim(ReclaimRequest::jobs()).await?;
        match fences.len() {
            0 => tokio::time::sleep(Duration::from_millis(5)).await,
            count => fences.rotate_left(seat * 7 % count),
        }
        if seat % 2 == 1 {
            fences.reverse();
        }
        let end = |fence| Settlement::new(fence, Verdict::Succeed { result: None });
        for answer in store.settle(fences.into_iter().map(end).collect()).await? {
            answer?;
        }
    }
}
