//! Owns whose turn it is: which due job a claim takes, and with what lease.

use leasehold_core::{
    ClaimRequest, JobId, LeaseLength, NewJob, QueueSettings, Result, State, StoreExt, WorkerId,
};

use super::group;
use crate::lab::{Lab, job, json, queue, request, seconds};

group!("turns": earlier_run_at_comes_first, smaller_id_breaks_the_tie, time_past_counts_as_now,
    queues_are_taken_in_their_order, queue_named_twice_counts_once, unknown_queue_gives_nothing,
    lease_of_the_claim_comes_first, lease_of_the_queue_comes_next, claim_sets_its_columns,
    claim_carries_the_whole_job, repeat_is_filled_up, repeat_never_gives_a_lapsed_lease,
    not_yet_due_is_passed_over);

async fn order(lab: &Lab, limit: usize) -> Result<Vec<JobId>> {
    Ok(lab.take(limit).await?.iter().map(|claim| claim.job.id).collect())
}

/// Of one priority, the job that was due first is claimed first.
///
/// Proves: WQ-3
async fn earlier_run_at_comes_first(lab: &Lab) -> Result<()> {
    let late = lab.add(job(1).delay(seconds(9))).await?;
    let early = lab.add(job(2).delay(seconds(3))).await?;
    let now = lab.add(job(3)).await?;
    lab.advance(9);
    assert_eq!(order(lab, 9).await?, [now, early, late]);
    Ok(())
}

/// Of one priority and one instant, the smaller id is claimed first.
///
/// Proves: WQ-3
async fn smaller_id_breaks_the_tie(lab: &Lab) -> Result<()> {
    let jobs: Vec<NewJob> = (0..6).map(job).collect();
    let mut expected: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    expected.sort_unstable();
    for answer in lab.enqueue(jobs.into_iter().rev().collect()).await? {
        assert!(answer?.is_new());
    }
    assert_eq!(order(lab, 6).await?, expected);
    Ok(())
}

/// A time that has passed counts as now and jumps no queue.
///
/// Proves: WQ-3
async fn time_past_counts_as_now(lab: &Lab) -> Result<()> {
    let first = lab.add(job(1)).await?;
    lab.advance(5);
    let now = lab.clock().now();
    let second = lab.add(job(2).run_at(now.minus(seconds(3600)))).await?;
    assert_eq!(lab.row(second).await?.run_at, now);
    assert_eq!(order(lab, 9).await?, [first, second]);
    Ok(())
}

/// The first queue named is emptied first, whatever the priorities elsewhere.
///
/// Proves: PF-1, WQ-3
async fn queues_are_taken_in_their_order(lab: &Lab) -> Result<()> {
    let mut ids = Vec::new();
    for (name, priority) in [("c", 9), ("b", -9), ("b", 0), ("a", 100)] {
        ids.push(lab.add(job(1).queue(queue(name)).priority(priority)).await?);
    }
    let asked = ClaimRequest::new(WorkerId::new(), ["b", "c", "a"].map(queue)).limit(3);
    let taken: Vec<JobId> = lab.claim(asked).await?.iter().map(|claim| claim.job.id).collect();
    assert_eq!(taken, [ids[2], ids[1], ids[0]]);
    Ok(())
}

/// A queue named twice in a claim is one queue.
///
/// Proves: WQ-3, WQ-9
async fn queue_named_twice_counts_once(lab: &Lab) -> Result<()> {
    for number in 0..4 {
        lab.add(job(number)).await?;
    }
    lab.set(QueueSettings::new().limit(Some(2))).await?;
    let names = ["default", "none", "default"].map(queue);
    let claims = lab.claim(ClaimRequest::new(WorkerId::new(), names).limit(4)).await?;
    assert_eq!(claims.len(), 2);
    assert_ne!(claims[0].job.id, claims[1].job.id);
    Ok(())
}

/// A queue that nobody has used gives nothing and is not made by asking.
///
/// Proves: PAR-1
async fn unknown_queue_gives_nothing(lab: &Lab) -> Result<()> {
    lab.add(job(1)).await?;
    let before = lab.dump().await?;
    let asked = ClaimRequest::new(WorkerId::new(), [queue("none")]).limit(9);
    assert!(lab.claim(asked).await?.is_empty());
    lab.assert_unchanged(&before).await
}

/// A claim's own lease length comes before its queue's, and renewals keep it.
///
/// Proves: WQ-18
async fn lease_of_the_claim_comes_first(lab: &Lab) -> Result<()> {
    lab.add(job(1)).await?;
    lab.set(QueueSettings::new().lease(LeaseLength::new(seconds(45))?)).await?;
    let asked = request(WorkerId::new()).lease(LeaseLength::new(seconds(5))?);
    let claim = lab.claim(asked).await?.remove(0);
    assert_eq!(claim.remaining, seconds(5));
    assert_eq!(claim.lease_expires_at, lab.clock().now().plus(seconds(5)));
    lab.advance(4);
    lab.renew_one(claim.fence).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!(row.lease_expires_at, Some(lab.clock().now().plus(seconds(5))));
    Ok(())
}

/// A queue's lease length holds for claims that name none; without it it is 30 seconds.
///
/// Proves: WQ-18
async fn lease_of_the_queue_comes_next(lab: &Lab) -> Result<()> {
    assert_eq!(lab.claimed().await?.remaining, seconds(30));
    lab.set(QueueSettings::new().lease(LeaseLength::new(seconds(45))?)).await?;
    assert_eq!(lab.claimed().await?.remaining, seconds(45));
    Ok(())
}

/// A claim sets worker, state, lease, heartbeat and start, and raises the version.
///
/// Proves: WQ-4
async fn claim_sets_its_columns(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1)).await?;
    lab.advance(7);
    let (worker, now) = (WorkerId::new(), lab.clock().now());
    let claim = lab.take_by(worker).await?;
    let row = lab.row(id).await?;
    assert_eq!((row.state, row.worker), (State::Leased, Some(worker)));
    assert_eq!((row.started_at, row.updated_at), (Some(now), now));
    assert_eq!(row.lease_expires_at, Some(now.plus(seconds(30))));
    assert_eq!((row.claim_version.get(), row.claim_version), (1, claim.fence.version()));
    assert_eq!((claim.fence.worker(), row.attempts, row.executions), (worker, 1, 1));
    let heartbeat = format!("heartbeat_at={}", now.as_micros());
    assert!(lab.dump().await?.rows("jobs")[0].contains(&heartbeat));
    Ok(())
}

/// A claim carries all that its handler may want to know of the job.
///
/// Proves: PAR-3, TRC-1
async fn claim_carries_the_whole_job(lab: &Lab) -> Result<()> {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let new = job(8).priority(-7).max_attempts(3).subject("order-9", 4).traceparent(trace);
    lab.add(new.clone()).await?;
    let job = lab.take_one().await?.job;
    assert_eq!((job.id, &job.queue, &job.kind), (new.id, &new.queue, &new.kind));
    assert_eq!((job.payload, job.priority, job.lifecycle), (json(8), -7, new.lifecycle));
    assert_eq!((job.attempt, job.max_attempts, job.executions), (1, 3, 1));
    assert_eq!((job.subject, job.traceparent.as_deref()), (new.subject, Some(trace)));
    assert_eq!((job.created_at, job.run_at), (lab.clock().now(), lab.clock().now()));
    assert_eq!((job.stage.as_str(), job.checkpoint), ("running", None));
    Ok(())
}

/// A repeated request gets what it had, then up to its limit what is due now.
///
/// Proves: GLO-2, WQ-3
async fn repeat_is_filled_up(lab: &Lab) -> Result<()> {
    lab.add(job(1)).await?;
    let asked = request(WorkerId::new()).limit(2);
    let first = lab.claim(asked.clone()).await?;
    let other = lab.add(job(2)).await?;
    lab.add(job(3)).await?;
    let again = lab.claim(asked.repeat()).await?;
    assert_eq!((first.len(), again.len()), (1, 2));
    assert_eq!((again[0].fence, again[0].job.attempt), (first[0].fence, 1));
    assert_eq!(again[1].job.id, other);
    Ok(())
}

/// A repeated request does not get back what has lapsed meanwhile, only a new claim of it.
///
/// Proves: GLO-2, WQ-6
async fn repeat_never_gives_a_lapsed_lease(lab: &Lab) -> Result<()> {
    lab.add(job(1)).await?;
    let asked = request(WorkerId::new());
    let first = lab.claim(asked.clone()).await?.remove(0);
    lab.advance(30);
    let again = lab.claim(asked.repeat()).await?.remove(0);
    assert_eq!((again.job.id, again.job.attempt), (first.job.id, 2));
    assert!(again.fence.version() > first.fence.version());
    Ok(())
}

/// A job that is not due holds back none behind it, whatever its priority.
///
/// Proves: WQ-3
async fn not_yet_due_is_passed_over(lab: &Lab) -> Result<()> {
    let later = lab.add(job(1).priority(100).delay(std::time::Duration::from_micros(1))).await?;
    let low = lab.add(job(2).priority(-100)).await?;
    assert_eq!(order(lab, 9).await?, [low]);
    lab.clock().advance(std::time::Duration::from_micros(1));
    assert_eq!(order(lab, 9).await?, [later]);
    Ok(())
}
