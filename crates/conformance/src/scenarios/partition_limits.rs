//! Owns what the limits of a queue's partitions promise: on their leases, and on their starts.

use std::time::Duration;

use leasehold_core::{
    ClaimRequest, Control, Controlled, NewJob, PruneRequest, QueueSettings, Rate, Result,
    StartRate, StoreExt, WorkerId,
};

use super::group;
use crate::lab::{Lab, job, job_in, partitions, queue, request, retry};

group!("partition_limits": leases_of_each_partition_are_bounded, bound_holds_within_its_queue,
    racing_claims_keep_the_bound, lapsed_leases_free_their_partition, lowered_bound_drains,
    bound_of_nought_stops_partitions_only, queue_and_partition_bounds_hold_together,
    starts_keep_to_the_rate, burst_is_all_a_pause_saves, starts_are_counted_per_partition,
    another_attempt_is_another_start, lost_reply_takes_no_second_start, thirds_of_a_second_are_exact,
    new_rate_begins_with_a_full_burst, rate_and_bound_hold_together, full_buckets_are_pruned,
    settings_are_shown);

async fn fill(lab: &Lab, names: &[&str], each: i64) -> Result<()> {
    let jobs = names.iter().flat_map(|name| (0..each).map(|number| job_in(name, number)));
    for answer in lab.enqueue(jobs.collect()).await? {
        assert!(answer?.is_new());
    }
    Ok(())
}

fn bound(limit: u32) -> QueueSettings {
    QueueSettings::new().partition_limit(Some(limit))
}

fn rate(per_second: u32, burst: u32) -> Result<QueueSettings> {
    let rate = StartRate::new(Rate::per_second(per_second), burst)?;
    Ok(QueueSettings::new().partition_rate(Some(rate)))
}

async fn all(lab: &Lab) -> Result<String> {
    let mut of = partitions(&lab.take(99).await?);
    of.sort_unstable();
    Ok(of.concat())
}

/// No more jobs of a partition are leased at once than the bound, to the last one.
///
/// Proves: WQ-9, QUE-8
async fn leases_of_each_partition_are_bounded(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b", "c"], 4).await?;
    lab.set(bound(2)).await?;
    let held = lab.take(5).await?;
    assert_eq!(held.len(), 5);
    assert_eq!(all(lab).await?, "c");
    assert_eq!(all(lab).await?, "");
    let of_b = held.iter().find(|claim| partitions(&[(*claim).clone()]) == ["b"]);
    lab.succeed(of_b.expect("one of b").fence).await?;
    assert_eq!(all(lab).await?, "b");
    Ok(())
}

/// The bound counts in its own queue; another queue's partition of that name has its own.
///
/// Proves: QUE-8
async fn bound_holds_within_its_queue(lab: &Lab) -> Result<()> {
    for name in ["q", "r"] {
        for number in 0..3 {
            lab.add(job_in("a", number).queue(queue(name))).await?;
        }
    }
    for (name, limit) in [("q", 1), ("r", 2)] {
        lab.control(Control::SetQueue(queue(name), bound(limit))).await?;
    }
    let asked = ClaimRequest::new(WorkerId::new(), ["q", "r"].map(queue)).limit(99);
    let held = lab.claim(asked).await?;
    let of = |name: &str| held.iter().filter(|claim| claim.job.queue == queue(name)).count();
    assert_eq!((of("q"), of("r")), (1, 2));
    Ok(())
}

/// Claims at once take what one after the other would, and not one more.
///
/// Proves: WQ-9, QUE-8
async fn racing_claims_keep_the_bound(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b"], 20).await?;
    lab.set(bound(3)).await?;
    for round in 1..=3 {
        let claim = || lab.claim(request(WorkerId::new()).limit(2));
        let (a, b, c, d, e, f) = tokio::join!(claim(), claim(), claim(), claim(), claim(), claim());
        let claims = [a?, b?, c?, d?, e?, f?].concat();
        let of = |name: &str| partitions(&claims).iter().filter(|it| *it == name).count();
        assert_eq!((of("a"), of("b")), (3, 3), "round {round}");
        for claim in claims {
            lab.succeed(claim.fence).await?;
        }
    }
    Ok(())
}

/// A worker that is killed holds its partition's room until its leases lapse, and no longer.
///
/// Proves: WQ-6, QUE-8
async fn lapsed_leases_free_their_partition(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b"], 3).await?;
    lab.set(bound(2)).await?;
    assert_eq!(all(lab).await?, "aabb");
    lab.advance(29);
    assert_eq!(all(lab).await?, "");
    lab.advance(1);
    assert_eq!(all(lab).await?, "aabb");
    assert_eq!(all(lab).await?, "");
    Ok(())
}

/// A bound below what is leased takes nothing away and gives nothing until there is room.
///
/// Proves: WQ-9, QUE-8
async fn lowered_bound_drains(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 6).await?;
    let held = lab.take(3).await?;
    lab.set(bound(2)).await?;
    for claim in &held[..2] {
        assert_eq!(all(lab).await?, "");
        lab.succeed(claim.fence).await?;
    }
    assert_eq!(all(lab).await?, "a");
    lab.set(QueueSettings::new().partition_limit(None)).await?;
    assert_eq!(all(lab).await?, "aa");
    Ok(())
}

/// A bound of nought holds back every partition, and no job without one.
///
/// Proves: QUE-8
async fn bound_of_nought_stops_partitions_only(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b"], 2).await?;
    lab.set(bound(0)).await?;
    assert_eq!(all(lab).await?, "");
    lab.add(job(1)).await?;
    lab.add(job(2)).await?;
    assert_eq!(all(lab).await?, "--");
    Ok(())
}

/// The smallest room decides: the store's, the queue's, the partition's.
///
/// Proves: WQ-9, QUE-8
async fn queue_and_partition_bounds_hold_together(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b", "c"], 3).await?;
    lab.set(bound(2).limit(Some(5))).await?;
    assert_eq!(all(lab).await?, "aabbc");
    assert_eq!(all(lab).await?, "");
    lab.set(QueueSettings::new().limit(None)).await?;
    lab.control(Control::SetStoreLimit(Some(6))).await?;
    assert_eq!(all(lab).await?, "c");
    lab.control(Control::SetStoreLimit(None)).await?;
    assert_eq!(all(lab).await?, "");
    Ok(())
}

/// What is begun in any stretch of time is at most the burst and what the rate gives in it.
///
/// Proves: QUE-8
async fn starts_keep_to_the_rate(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 40).await?;
    lab.set(rate(2, 3)?).await?;
    assert_eq!(lab.take(99).await?.len(), 3);
    for second in 1..=10 {
        assert!(lab.take(99).await?.is_empty(), "second {second}");
        lab.clock().advance(Duration::from_millis(499));
        assert!(lab.take(99).await?.is_empty(), "second {second}");
        lab.clock().advance(Duration::from_millis(1));
        assert_eq!(lab.take(99).await?.len(), 1, "second {second}");
        lab.clock().advance(Duration::from_millis(500));
        assert_eq!(lab.take(99).await?.len(), 1, "second {second}");
    }
    Ok(())
}

/// However long nothing was begun, no more than the burst is begun at once.
///
/// Proves: QUE-8
async fn burst_is_all_a_pause_saves(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 20).await?;
    lab.set(rate(1, 4)?).await?;
    assert_eq!(lab.take(2).await?.len(), 2);
    lab.advance(3600);
    // Those two have lapsed and are due again.
    assert_eq!(lab.take(99).await?.len(), 4);
    lab.advance(2);
    assert_eq!(lab.take(99).await?.len(), 2);
    Ok(())
}

/// Each partition has a bucket of its own; jobs without a partition are not limited.
///
/// Proves: QUE-8
async fn starts_are_counted_per_partition(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b"], 4).await?;
    lab.set(rate(1, 2)?).await?;
    let free: Vec<NewJob> = (0..5).map(job).collect();
    assert_eq!(lab.enqueue(free).await?.len(), 5);
    assert_eq!(all(lab).await?, "-----aabb");
    lab.advance(1);
    assert_eq!(all(lab).await?, "ab");
    Ok(())
}

/// A start that came to nothing was a start: another attempt needs another.
///
/// Proves: QUE-8
async fn another_attempt_is_another_start(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 1).await?;
    lab.set(rate(1, 1)?).await?;
    let claim = lab.take_one().await?;
    lab.end(claim.fence, retry(0)).await?;
    assert_eq!(all(lab).await?, "");
    lab.advance(1);
    assert_eq!(lab.take_one().await?.job.attempt, 2);
    Ok(())
}

/// A claim sent again after its reply was lost gives what it took, at no new start.
///
/// Proves: GLO-2, QUE-8
async fn lost_reply_takes_no_second_start(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 9).await?;
    lab.set(rate(1, 3)?.partition_limit(Some(4))).await?;
    let asked = request(WorkerId::new()).limit(2);
    let first = lab.claim(asked.clone()).await?;
    let before = lab.dump().await?;
    assert_eq!(lab.claim(asked.repeat()).await?, first);
    lab.assert_unchanged(&before).await?;
    assert_eq!(all(lab).await?, "a");
    lab.advance(9);
    assert_eq!(all(lab).await?, "a");
    Ok(())
}

/// A rate that does not divide a second loses and gains nothing over many of them.
///
/// Proves: QUE-8
async fn thirds_of_a_second_are_exact(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 40).await?;
    lab.set(rate(3, 2)?).await?;
    assert_eq!(all(lab).await?, "aa");
    for _second in 0..4 {
        for us in [333_334, 333_333, 333_333] {
            lab.clock().advance(Duration::from_micros(us - 1));
            assert_eq!(all(lab).await?, "");
            lab.clock().advance(Duration::from_micros(1));
            assert_eq!(all(lab).await?, "a");
        }
    }
    Ok(())
}

/// Another rate starts afresh, the same one again does not.
///
/// Proves: QUE-8
async fn new_rate_begins_with_a_full_burst(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 20).await?;
    lab.set(rate(1, 2)?).await?;
    assert_eq!(all(lab).await?, "aa");
    assert_eq!(lab.set(rate(1, 2)?).await?, Controlled::Unchanged);
    assert_eq!(lab.set(rate(1, 2)?.limit(Some(50))).await?, Controlled::Done);
    assert_eq!(all(lab).await?, "");
    lab.set(rate(1, 3)?).await?;
    assert_eq!(all(lab).await?, "aaa");
    lab.set(QueueSettings::new().partition_rate(None)).await?;
    assert_eq!(lab.take(99).await?.len(), 15);
    Ok(())
}

/// Of the rate and the bound the smaller decides.
///
/// Proves: QUE-8
async fn rate_and_bound_hold_together(lab: &Lab) -> Result<()> {
    fill(lab, &["a"], 20).await?;
    lab.set(rate(1, 3)?.partition_limit(Some(2))).await?;
    let held = lab.take(99).await?;
    assert_eq!(held.len(), 2);
    for claim in held {
        lab.succeed(claim.fence).await?;
    }
    assert_eq!(all(lab).await?, "a");
    assert_eq!(all(lab).await?, "");
    Ok(())
}

/// A bucket that is full again says nothing and is let go of.
///
/// Proves: QUE-8
async fn full_buckets_are_pruned(lab: &Lab) -> Result<()> {
    fill(lab, &["a", "b"], 2).await?;
    lab.set(rate(1, 2)?).await?;
    assert_eq!(lab.take(3).await?.len(), 3);
    assert_eq!(lab.dump().await?.rows("starts").len(), 2);
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.starts, 1);
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.starts, 1);
    assert!(lab.dump().await?.rows("starts").is_empty());
    Ok(())
}

/// Both settings are shown with their queue.
///
/// Proves: QUE-8
async fn settings_are_shown(lab: &Lab) -> Result<()> {
    let set = StartRate::new(Rate::per_minute(7), 11)?;
    lab.set(bound(5).partition_rate(Some(set))).await?;
    let page = lab.find(leasehold_core::Query::Queues).await?;
    let Some(leasehold_core::Found::Queue(found)) = page.items.first() else {
        panic!("no queue: {page:?}")
    };
    assert_eq!((found.partition_limit, found.partition_rate), (Some(5), Some(set)));
    assert!(StartRate::new(Rate::per_hour(0), 1).is_err());
    assert!(StartRate::new(Rate::per_hour(1), 0).is_err());
    Ok(())
}
