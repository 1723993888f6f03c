//! Owns what taking lapsed leases back promises: by stored data alone, once, whoever does it.

use leasehold_core::{
    ClaimRequest, JobKind, Json, LeaseLength, NewJob, Place, QueueName, ReclaimRequest, Result,
    State, StoreExt, WorkerId,
};

use super::group;
use crate::lab::{Lab, job, queue, request, seconds};

group!("reclaim": second_reclaim_changes_nothing, version_is_raised_once,
    spent_budget_ends_in_the_dead_letters, lapsed_lease_costs_an_attempt,
    takeover_in_a_claim_raises_once, other_queues_are_left_alone, unknown_kinds_are_taken_back,
    limit_bounds_one_reclaim, lease_columns_are_cleared, claim_buries_what_is_spent,
    lease_is_owned_until_its_end, live_leases_do_not_stand_in_the_way,
    lapsed_ones_come_before_smaller_priorities);

/// A second reclaim finds nothing and writes nothing.
///
/// Proves: GLO-2, WQ-7
async fn second_reclaim_changes_nothing(lab: &Lab) -> Result<()> {
    let _held = lab.claimed().await?;
    lab.advance(30);
    assert_eq!(lab.reclaim(ReclaimRequest::jobs()).await?.total(), 1);
    lab.advance(1);
    let before = lab.dump().await?;
    assert_eq!(lab.reclaim(ReclaimRequest::jobs()).await?.total(), 0);
    lab.assert_unchanged(&before).await
}

/// A reclaim raises the version by one, and so does the next claim.
///
/// Proves: WQ-8
async fn version_is_raised_once(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    lab.reclaim(ReclaimRequest::jobs()).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!(row.claim_version, claim.fence.version().next());
    assert_eq!(lab.take_one().await?.fence.version(), row.claim_version.next());
    Ok(())
}

/// The last attempt's lapsed lease ends in the dead letters, version raised once.
///
/// Proves: DL-1, WQ-7, WQ-8
async fn spent_budget_ends_in_the_dead_letters(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1).max_attempts(1)).await?;
    let claim = lab.take_one().await?;
    lab.advance(31);
    let back = lab.reclaim(ReclaimRequest::jobs()).await?;
    assert_eq!(back.jobs, [(id, Place::DeadLetter)]);
    assert_eq!(lab.row(id).await?.claim_version, claim.fence.version().next());
    let letters = lab.letters().await?;
    assert_eq!((letters.len(), letters[0].error_class.as_str()), (1, "WORKER_LOST"));
    Ok(())
}

/// A lapsed lease has cost its attempt and leaves a failure that says so.
///
/// Proves: WQ-19
async fn lapsed_lease_costs_an_attempt(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    lab.reclaim(ReclaimRequest::jobs()).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.state, row.attempts, row.executions), (State::Waiting, 1, 1));
    assert!(row.failure.is_some_and(|failure| failure.as_str().contains("WORKER_LOST")));
    assert_eq!(lab.take_one().await?.job.attempt, 2);
    Ok(())
}

/// A claim that takes a lapsed lease over raises the version once.
///
/// Proves: WQ-7, WQ-8
async fn takeover_in_a_claim_raises_once(lab: &Lab) -> Result<()> {
    let old = lab.claimed().await?;
    lab.advance(30);
    let new = lab.take_one().await?;
    assert_eq!((new.job.id, new.job.attempt), (old.job.id, 2));
    assert_eq!(new.fence.version(), old.fence.version().next());
    Ok(())
}

/// A reclaim or a claim of one queue leaves the lapsed leases of others alone.
///
/// Proves: WQ-7
async fn other_queues_are_left_alone(lab: &Lab) -> Result<()> {
    let (mine, other) = (queue("mine"), queue("other"));
    for name in [&mine, &other] {
        lab.add(job(1).queue(name.clone())).await?;
    }
    let both = ClaimRequest::new(WorkerId::new(), [mine.clone(), other.clone()]).limit(2);
    let held = lab.claim(both).await?;
    lab.advance(30);
    let back = lab.reclaim(ReclaimRequest::queues([mine.clone()])).await?;
    assert_eq!(back.jobs, [(held[0].job.id, Place::Waiting)]);
    lab.claim(ClaimRequest::new(WorkerId::new(), [mine]).limit(9)).await?;
    let row = lab.row(held[1].job.id).await?;
    assert_eq!((row.state, row.claim_version), (State::Leased, held[1].fence.version()));
    Ok(())
}

/// What kind a job is of has no say in whether it is taken back.
///
/// Proves: WQ-7
async fn unknown_kinds_are_taken_back(lab: &Lab) -> Result<()> {
    let mut ids = Vec::new();
    for kind in ["resize", "a kind of another program", "\u{1f4a1}"] {
        ids.push(lab.add(NewJob::new(JobKind::new(kind)?, Json::null())).await?);
    }
    lab.take(3).await?;
    lab.advance(30);
    let back = lab.reclaim(ReclaimRequest::jobs()).await?;
    ids.sort_unstable();
    assert_eq!(back.jobs, ids.iter().map(|id| (*id, Place::Waiting)).collect::<Vec<_>>());
    Ok(())
}

/// One reclaim takes back no more than its limit; the next goes on.
///
/// Proves: RP-1, WQ-7
async fn limit_bounds_one_reclaim(lab: &Lab) -> Result<()> {
    for number in 0..5 {
        lab.add(job(number)).await?;
    }
    lab.take(5).await?;
    lab.advance(30);
    for expected in [2, 2, 1, 0] {
        assert_eq!(lab.reclaim(ReclaimRequest::jobs().limit(2)).await?.total(), expected);
    }
    Ok(())
}

/// A job taken back holds no trace of its worker.
///
/// Proves: WQ-7
async fn lease_columns_are_cleared(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(30);
    lab.reclaim(ReclaimRequest::jobs()).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.worker, row.lease_expires_at, row.last_verdict), (None, None, None));
    let dump = lab.dump().await?;
    for column in ["worker_id=-", "lease_expires_at=-", "heartbeat_at=-", "lease_ms=-"] {
        assert!(dump.rows("jobs")[0].contains(column), "{column} in {dump:?}");
    }
    Ok(())
}

/// A claim that comes upon a spent job's lapsed lease buries it and takes the next.
///
/// Proves: WQ-7, WQ-14
async fn claim_buries_what_is_spent(lab: &Lab) -> Result<()> {
    let spent = lab.add(job(1).max_attempts(1).priority(9)).await?;
    let _held = lab.take_one().await?;
    lab.advance(30);
    let next = lab.add(job(2)).await?;
    let claims = lab.take(9).await?;
    assert_eq!(claims.iter().map(|claim| claim.job.id).collect::<Vec<_>>(), [next]);
    assert_eq!(lab.row(spent).await?.state, State::DeadLetter);
    Ok(())
}

/// One microsecond before its end a lease is owned, and nobody takes it back.
///
/// Proves: WQ-6, WQ-7
async fn lease_is_owned_until_its_end(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let last = claim.lease_expires_at.minus(std::time::Duration::from_micros(1));
    assert_eq!(claim.lease_expires_at, lab.clock().now().plus(seconds(30)));
    lab.clock().set(last);
    assert_eq!(lab.reclaim(ReclaimRequest::jobs()).await?.total(), 0);
    assert!(lab.take(9).await?.is_empty());
    assert_eq!(lab.succeed(claim.fence).await?.place.state(), State::Succeeded);
    Ok(())
}

/// A reclaim of one finds the lapsed lease behind others that run, in all queues and in one.
///
/// Proves: WQ-7, RP-1
async fn live_leases_do_not_stand_in_the_way(lab: &Lab) -> Result<()> {
    for number in 0..3 {
        lab.add(job(number)).await?;
    }
    let hour = LeaseLength::from_millis(3_600_000)?;
    assert_eq!(lab.claim(request(WorkerId::new()).limit(3).lease(hour)).await?.len(), 3);
    let here = ReclaimRequest::queues([QueueName::default_queue()]);
    for asked in [ReclaimRequest::jobs(), here] {
        let lapsed = lab.claimed().await?;
        lab.advance(31);
        let back = lab.reclaim(asked.limit(1)).await?;
        assert_eq!(back.jobs, [(lapsed.job.id, Place::Waiting)]);
        let again = lab.take_one().await?;
        lab.succeed(again.fence).await?;
    }
    Ok(())
}

/// A claim with room for two takes two lapsed jobs before one of smaller priority that waits.
///
/// Proves: WQ-3, WQ-7
async fn lapsed_ones_come_before_smaller_priorities(lab: &Lab) -> Result<()> {
    let (one, two) = (lab.add(job(1).priority(9)).await?, lab.add(job(2).priority(9)).await?);
    assert_eq!(lab.take(2).await?.len(), 2);
    lab.add(job(3)).await?;
    lab.advance(31);
    let claims = lab.take(2).await?;
    let mut taken: Vec<_> = claims.iter().map(|claim| claim.job.id).collect();
    taken.sort_unstable();
    let mut expected = [one, two];
    expected.sort_unstable();
    assert_eq!(taken, expected);
    Ok(())
}
