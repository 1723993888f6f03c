//! Owns what prune promises: what has ended long enough ago goes, bounded, and nothing else.

use leasehold_core::{
    ErrorKind, EventVerdict, Lifecycle, Progress, PruneRequest, QueueSettings, Result, StageName,
    State, StoreExt, Verdict, WorkerId,
};

use super::group;
use crate::lab::{
    Lab, assert_refused, event, job, job_of, json, json_of, key, passing, queue, seconds,
};

group!("prune": each_state_has_its_own_age, queues_keep_as_long_as_they_say,
    key_goes_at_its_end_and_not_before, one_call_is_bounded, everything_of_a_job_goes_with_it,
    tombstones_stay_seven_days, events_have_their_own_age, lapsed_records_go, limit_is_checked,
    live_events_stay, each_queue_has_its_own_ages);

const DAY: u64 = 24 * 3600;

async fn ended(lab: &Lab, verdict: Verdict) -> Result<leasehold_core::JobId> {
    let claim = lab.claimed().await?;
    lab.end(claim.fence, verdict).await?;
    Ok(claim.job.id)
}

/// Succeeded and cancelled jobs go after a day, failed ones after seven, dead ones after thirty.
///
/// Proves: QUE-4
async fn each_state_has_its_own_age(lab: &Lab) -> Result<()> {
    let failure = passing();
    ended(lab, Verdict::Succeed { result: None }).await?;
    ended(lab, Verdict::Cancel { reason: None }).await?;
    let failed = ended(lab, Verdict::Fail { failure: failure.clone() }).await?;
    let dead = ended(lab, Verdict::DeadLetter { failure }).await?;
    let mut left = vec![];
    for (days, back) in [(1, 1), (0, 0), (6, 1), (0, 0), (23, 1), (0, 0)] {
        lab.advance(days * DAY - back);
        left.push(lab.prune(PruneRequest::new()).await?.jobs);
        lab.advance(back);
    }
    assert_eq!(left, [0, 2, 0, 1, 0, 1]);
    assert!(lab.job(failed).await?.is_none() && lab.job(dead).await?.is_none());
    Ok(())
}

/// A queue's own ages replace the usual ones; an age in the request replaces all.
///
/// Proves: QUE-4
async fn queues_keep_as_long_as_they_say(lab: &Lab) -> Result<()> {
    let failure = passing();
    lab.set(QueueSettings::new().keep(seconds(5), seconds(60), seconds(9000))).await?;
    ended(lab, Verdict::Succeed { result: None }).await?;
    ended(lab, Verdict::Fail { failure: failure.clone() }).await?;
    ended(lab, Verdict::DeadLetter { failure }).await?;
    let mut gone = Vec::new();
    for (wait, older) in [(4, None), (1, None), (55, None), (0, Some(60))] {
        lab.advance(wait);
        let request = PruneRequest::new();
        let request = older.map_or(request.clone(), |age| request.older_than(seconds(age)));
        gone.push(lab.prune(request).await?.jobs);
    }
    assert_eq!(gone, [0, 1, 1, 1]);
    Ok(())
}

/// What one queue keeps for a moment another keeps for its usual time.
///
/// Proves: QUE-4
async fn each_queue_has_its_own_ages(lab: &Lab) -> Result<()> {
    lab.set(QueueSettings::new().keep(seconds(5), seconds(5), seconds(5))).await?;
    let short = ended(lab, Verdict::Succeed { result: None }).await?;
    let other = lab.add(job(2).queue(queue("other"))).await?;
    let asked = leasehold_core::ClaimRequest::new(WorkerId::new(), [queue("other")]);
    let claim = lab.claim(asked).await?.remove(0);
    lab.end(claim.fence, Verdict::Succeed { result: None }).await?;
    lab.advance(5);
    assert_eq!(lab.prune(PruneRequest::new()).await?.jobs, 1);
    assert!(lab.job(short).await?.is_none() && lab.job(other).await?.is_some());
    lab.advance(DAY);
    assert_eq!(lab.prune(PruneRequest::new()).await?.jobs, 1);
    Ok(())
}

/// A key is let go at its end and not before, its job there or not.
///
/// Proves: IDM-6, QUE-4
async fn key_goes_at_its_end_and_not_before(lab: &Lab) -> Result<()> {
    lab.add(job(1).key(key("short")).key_ttl(seconds(60))).await?;
    lab.add(job(2).key(key("endless"))).await?;
    let everything = || PruneRequest::new().older_than(seconds(0));
    lab.advance(59);
    assert_eq!(lab.prune(everything()).await?.total(), 0);
    lab.advance(1);
    let pruned = lab.prune(everything()).await?;
    assert_eq!((pruned.keys, pruned.total()), (1, 1));
    let dump = lab.dump().await?;
    assert!(dump.rows("keys").len() == 1 && dump.rows("keys")[0].contains("endless"), "{dump:?}");
    Ok(())
}

/// One call lets go of no more than its limit, the longest ended first; the next goes on.
///
/// Proves: QUE-4
async fn one_call_is_bounded(lab: &Lab) -> Result<()> {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(ended(lab, Verdict::Succeed { result: None }).await?);
        lab.advance(1);
    }
    let request = || PruneRequest::new().older_than(seconds(0)).limit(2);
    assert_eq!(lab.prune(request()).await?.jobs, 2);
    let mut left = Vec::new();
    for id in &ids {
        left.extend(lab.job(*id).await?.map(|row| row.id));
    }
    assert_eq!(left, ids[2..]);
    assert_eq!((lab.prune(request()).await?.jobs, lab.prune(request()).await?.jobs), (2, 1));
    Ok(())
}

/// Request (a long payload too), outcome, transitions and dead letters go with their job; a tombstone stays.
///
/// Proves: DL-1, QUE-4
async fn everything_of_a_job_goes_with_it(lab: &Lab) -> Result<()> {
    let mut new = job_of(&Lifecycle::transcode()).key(key("film-7")).subject("film", 3);
    new.payload = json_of(70_000);
    lab.add(new).await?;
    let claim = lab.take_one().await?;
    let stage = StageName::new("fetching")?;
    lab.progress_one(Progress::new(claim.fence, 1).advance(stage).checkpoint(json(5))).await?;
    lab.end(claim.fence, Verdict::DeadLetter { failure: passing() }).await?;
    lab.advance(9);
    lab.prune(PruneRequest::new().older_than(seconds(9))).await?;
    let dump = lab.dump().await?;
    for table in ["jobs", "requests", "outcomes", "transitions", "dead_letters"] {
        assert!(dump.rows(table).is_empty(), "{table}: {dump:?}");
    }
    let [row] = dump.rows("tombstones") else { panic!("one tombstone: {dump:?}") };
    let claim_id = format!("claim_id={}", claim.fence.claim());
    for part in ["\"film-7\"", "\"film\"", "\"dead_letter\"", "\"default\"", &claim_id] {
        assert!(row.contains(part), "{part} in {row}");
    }
    Ok(())
}

/// A tombstone stays seven days and goes then.
///
/// Proves: QUE-4
async fn tombstones_stay_seven_days(lab: &Lab) -> Result<()> {
    ended(lab, Verdict::Succeed { result: None }).await?;
    lab.advance(DAY);
    lab.prune(PruneRequest::new()).await?;
    lab.advance(7 * DAY - 1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.tombstones, 0);
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.tombstones, 1);
    assert!(lab.dump().await?.rows("tombstones").is_empty());
    Ok(())
}

/// Delivered events go after a day, dead-lettered ones after thirty.
///
/// Proves: QUE-4, TX-6
async fn events_have_their_own_age(lab: &Lab) -> Result<()> {
    lab.publish(vec![event(1), event(2)]).await?;
    let claims = lab.take_events(2).await?;
    lab.end_event(claims[0].fence, EventVerdict::Delivered).await?;
    lab.end_event(claims[1].fence, EventVerdict::DeadLetter { failure: passing() }).await?;
    let mut gone = Vec::new();
    for wait in [DAY - 1, 1, 29 * DAY - 1, 1] {
        lab.advance(wait);
        gone.push(lab.prune(PruneRequest::new()).await?.events);
    }
    assert_eq!(gone, [0, 1, 0, 1]);
    Ok(())
}

/// A record goes at its end and not before.
///
/// Proves: IDM-2, QUE-4
async fn lapsed_records_go(lab: &Lab) -> Result<()> {
    lab.once(super::records::once(1, 10).ttl(seconds(60))).await?;
    lab.advance(59);
    assert_eq!(lab.prune(PruneRequest::new()).await?.records, 0);
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.records, 1);
    assert!(lab.dump().await?.rows("records").is_empty());
    Ok(())
}

/// A prune of nothing or of too much is refused.
///
/// Proves: QUE-4
async fn limit_is_checked(lab: &Lab) -> Result<()> {
    ended(lab, Verdict::Succeed { result: None }).await?;
    lab.advance(2 * DAY);
    let before = lab.dump().await?;
    for limit in [0, 10_001] {
        assert_refused(lab.prune(PruneRequest::new().limit(limit)).await, ErrorKind::Invalid);
    }
    lab.assert_unchanged(&before).await
}

/// Events that wait or are under way stay, however old, though their job is gone.
///
/// Proves: QUE-4, TX-1
async fn live_events_stay(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let verdict = Verdict::Succeed { result: None };
    let settlement = leasehold_core::Settlement::new(claim.fence, verdict);
    lab.settle_one(settlement.event(event(1)).event(event(2))).await?;
    let _under_way = lab.take_event().await?;
    lab.advance(400 * DAY);
    let pruned = lab.prune(PruneRequest::new().older_than(seconds(0))).await?;
    assert_eq!((pruned.jobs, pruned.events), (1, 0));
    assert_eq!(lab.take_event().await?.sequence, Some(1));
    assert!(lab.job(claim.job.id).await?.is_none_or(|row| row.state == State::Succeeded));
    Ok(())
}
