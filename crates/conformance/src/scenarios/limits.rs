//! Owns what limits promise: on leased jobs, on batches and on sizes.

use leasehold_core::{
    ClaimRequest, Control, ErrorKind, NewJob, QueueName, QueueSettings, Result, State, StoreExt,
    WorkerId,
};

use super::group;
use crate::lab::{Lab, assert_refused, job, json_of, queue, request};

group!("limits": ten_thousand_jobs_are_one_batch, larger_batch_is_refused,
    payload_at_the_limit_is_kept, larger_payload_is_refused, store_limit_bounds_all_queues,
    both_limits_hold, expired_leases_free_room, lowered_limit_drains, limit_of_nought_gives_nothing,
    claim_without_queues_or_room_is_refused);

/// Ten thousand jobs go in with one call.
///
/// Proves: PAR-1
async fn ten_thousand_jobs_are_one_batch(lab: &Lab) -> Result<()> {
    let answers = lab.enqueue((0..10_000).map(job).collect()).await?;
    assert_eq!(answers.len(), 10_000);
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|job| job.is_new())));
    let stats = lab.stats().await?;
    assert_eq!(stats.queue(&QueueName::default_queue()).map(|queue| queue.ready), Some(10_000));
    Ok(())
}

/// One job more than a batch may hold refuses the whole batch.
///
/// Proves: PAR-4
async fn larger_batch_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let jobs: Vec<NewJob> = vec![job(1); 10_001];
    assert_refused(lab.enqueue(jobs).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

fn sized(bytes: usize) -> NewJob {
    NewJob::new(job(1).kind, json_of(bytes))
}

/// A payload of exactly the limit is kept byte for byte.
///
/// Proves: PAR-3, PAR-4
async fn payload_at_the_limit_is_kept(lab: &Lab) -> Result<()> {
    let new = sized(1 << 20);
    lab.add(new.clone()).await?;
    assert_eq!(lab.take_one().await?.job.payload, new.payload);
    Ok(())
}

/// A payload of one byte more is refused.
///
/// Proves: PAR-4
async fn larger_payload_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    assert_refused(lab.enqueue(vec![sized((1 << 20) + 1)]).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

async fn fill(lab: &Lab, queues: &[&str], each: i64) -> Result<()> {
    for name in queues {
        let jobs = (0..each).map(|number| job(number).queue(queue(name)));
        for answer in lab.enqueue(jobs.collect()).await? {
            assert!(answer?.is_new());
        }
    }
    Ok(())
}

fn from(queues: &[&str]) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(), queues.iter().map(|name| queue(name))).limit(99)
}

/// No more jobs are leased at once over all queues than the store's limit.
///
/// Proves: WQ-9
async fn store_limit_bounds_all_queues(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b"], 4).await?;
    lab.control(Control::SetStoreLimit(Some(5))).await?;
    assert_eq!(lab.claim(from(&["a"]).limit(3)).await?.len(), 3);
    let held = lab.claim(from(&["b", "a"])).await?;
    assert_eq!(held.len(), 2);
    assert!(lab.claim(from(&["a", "b"])).await?.is_empty());
    lab.succeed(held[0].fence).await?;
    assert_eq!(lab.claim(from(&["a", "b"])).await?.len(), 1);
    Ok(())
}

/// The smaller of the queue's and the store's room decides, within one claim too.
///
/// Proves: WQ-9
async fn both_limits_hold(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b"], 4).await?;
    lab.control(Control::SetStoreLimit(Some(5))).await?;
    let two = QueueSettings::new().limit(Some(2));
    lab.control(Control::SetQueue(queue("a"), two)).await?;
    let held = lab.claim(from(&["a", "b"])).await?;
    let of = |name: &str| held.iter().filter(|claim| claim.job.queue == queue(name)).count();
    assert_eq!((of("a"), of("b")), (2, 3));
    assert!(lab.claim(from(&["a", "b"])).await?.is_empty());
    Ok(())
}

/// A lease that has run out takes up no room.
///
/// Proves: WQ-6, WQ-9
async fn expired_leases_free_room(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 3).await?;
    let two = QueueSettings::new().limit(Some(2));
    lab.control(Control::SetQueue(queue("a"), two)).await?;
    assert_eq!(lab.claim(from(&["a"])).await?.len(), 2);
    lab.advance(29);
    assert!(lab.claim(from(&["a"])).await?.is_empty());
    lab.advance(1);
    assert_eq!(lab.claim(from(&["a"])).await?.len(), 2);
    assert!(lab.claim(from(&["a"])).await?.is_empty());
    Ok(())
}

/// A limit below what is leased takes nothing away and gives nothing until there is room.
///
/// Proves: WQ-9
async fn lowered_limit_drains(lab: &Lab) -> Result<()> {
    fill(lab, &["default"], 5).await?;
    let held = lab.take(3).await?;
    lab.set(QueueSettings::new().limit(Some(2))).await?;
    for claim in &held[..2] {
        assert!(lab.take(9).await?.is_empty());
        assert_eq!(lab.succeed(claim.fence).await?.place.state(), State::Succeeded);
    }
    assert_eq!(lab.take(9).await?.len(), 1);
    Ok(())
}

/// A limit of nought stops a queue, and no limit opens it again.
///
/// Proves: WQ-9
async fn limit_of_nought_gives_nothing(lab: &Lab) -> Result<()> {
    fill(lab, &["default"], 2).await?;
    lab.set(QueueSettings::new().limit(Some(0))).await?;
    assert!(lab.take(9).await?.is_empty());
    lab.set(QueueSettings::new().limit(None)).await?;
    assert_eq!(lab.take(9).await?.len(), 2);
    Ok(())
}

/// A claim that names no queue, or asks for none or too many, is refused.
///
/// Proves: ERR-1
async fn claim_without_queues_or_room_is_refused(lab: &Lab) -> Result<()> {
    lab.add(job(1)).await?;
    let before = lab.dump().await?;
    assert_refused(lab.claim(ClaimRequest::new(WorkerId::new(), [])).await, ErrorKind::Invalid);
    for limit in [0, 10_001] {
        let asked = request(WorkerId::new()).limit(limit);
        assert_refused(lab.claim(asked).await, ErrorKind::Invalid);
    }
    lab.assert_unchanged(&before).await
}
