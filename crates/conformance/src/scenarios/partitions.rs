//! Owns how the partitions of a queue take turns, whatever each has waiting.

use leasehold_core::{
    ClaimRequest, Control, JobFilter, NewJob, Paging, PartitionName, Result, Settlement, State,
    StoreExt, Verdict, WorkerId,
};

use super::group;
use crate::lab::{
    Lab, assert_refused, job, job_in, key, partitions, queue, request, retry, seconds,
};

group!("partitions": one_job_overtakes_a_crowd, turns_go_round, batch_is_shared_out,
    what_some_lack_others_give, priority_and_age_decide_within_a_partition,
    jobs_without_a_partition_take_their_turn, turns_are_kept_per_queue,
    later_job_hides_no_due_one, due_job_is_taken_back_in_its_turn, partition_stays_with_its_job,
    partition_is_no_part_of_the_request, follow_on_job_has_its_own_partition,
    paused_queue_keeps_the_turn, shares_hold_over_priorities, shares_hold_what_is_due, thousand_partitions_give_one_each, large_claim_takes_a_helping_of_each,
    empty_partition_name_is_refused);

async fn fill(lab: &Lab, crowd: &[(&str, i64)]) -> Result<()> {
    let mut jobs: Vec<NewJob> = Vec::new();
    for (partition, count) in crowd {
        let new = |number| if *partition == "-" { job(number) } else { job_in(partition, number) };
        jobs.extend((0..*count).map(new));
    }
    for answer in lab.enqueue(jobs).await? {
        assert!(answer?.is_new());
    }
    Ok(())
}

/// The partitions of the next claims of one job each.
async fn turns(lab: &Lab, claims: usize) -> Result<String> {
    let mut out = String::new();
    for _claim in 0..claims {
        out.extend(partitions(&lab.take(1).await?));
    }
    Ok(out)
}

async fn shares(lab: &Lab, limit: usize) -> Result<String> {
    let mut of = partitions(&lab.take(limit).await?);
    of.sort_unstable();
    Ok(of.concat())
}

/// One job of a partition waits for one job of each other at most, not for their crowds.
///
/// Proves: WQ-3, QUE-8
async fn one_job_overtakes_a_crowd(lab: &Lab) -> Result<()> {
    fill(lab, &[("m", 50), ("n", 50)]).await?;
    assert_eq!(turns(lab, 3).await?, "mnm");
    fill(lab, &[("a", 1), ("z", 1)]).await?;
    assert_eq!(turns(lab, 6).await?, "nzamnm");
    Ok(())
}

/// Partitions take turns by name, from the one after the last on.
///
/// Proves: QUE-8
async fn turns_go_round(lab: &Lab) -> Result<()> {
    fill(lab, &[("c", 3), ("a", 3), ("b", 3)]).await?;
    assert_eq!(turns(lab, 10).await?, "abcabcabc");
    Ok(())
}

/// A batch takes equal shares, and what is left over goes on from the one that had more last.
///
/// Proves: QUE-8
async fn batch_is_shared_out(lab: &Lab) -> Result<()> {
    fill(lab, &[("a", 40), ("b", 40), ("c", 40)]).await?;
    assert_eq!(shares(lab, 7).await?, "aaabbcc");
    assert_eq!(shares(lab, 7).await?, "aabbbcc");
    assert_eq!(shares(lab, 8).await?, "aaabbccc");
    assert_eq!(shares(lab, 2).await?, "bc");
    Ok(())
}

/// A batch is filled up by those that have more than their share.
///
/// Proves: WQ-3, QUE-8
async fn what_some_lack_others_give(lab: &Lab) -> Result<()> {
    fill(lab, &[("a", 1), ("b", 2), ("c", 9), ("d", 9)]).await?;
    assert_eq!(shares(lab, 12).await?, "abbccccccddd");
    assert_eq!(shares(lab, 99).await?, "cccdddddd");
    assert_eq!(shares(lab, 99).await?, "");
    Ok(())
}

/// Within a partition the claim order holds; between partitions priority does not count.
///
/// Proves: WQ-3, QUE-8
async fn priority_and_age_decide_within_a_partition(lab: &Lab) -> Result<()> {
    let low = lab.add(job_in("a", 1).priority(-5)).await?;
    let second = lab.add(job_in("a", 2)).await?;
    let high = lab.add(job_in("a", 3).priority(9)).await?;
    let other = lab.add(job_in("b", 4).priority(-9)).await?;
    lab.advance(1);
    let third = lab.add(job_in("a", 5)).await?;
    let mut taken = Vec::new();
    for _turn in 0..5 {
        taken.push(lab.take_one().await?.job.id);
    }
    assert_eq!(taken, [high, other, second, third, low]);
    Ok(())
}

/// Jobs that name no partition are one more in the round, the first by name.
///
/// Proves: QUE-8
async fn jobs_without_a_partition_take_their_turn(lab: &Lab) -> Result<()> {
    fill(lab, &[("a", 5), ("-", 5), ("b", 5)]).await?;
    assert_eq!(turns(lab, 7).await?, "-ab-ab-");
    assert_eq!(shares(lab, 6).await?, "--aabb");
    Ok(())
}

/// Each queue has a round of its own.
///
/// Proves: QUE-8
async fn turns_are_kept_per_queue(lab: &Lab) -> Result<()> {
    for name in ["q", "r"] {
        for partition in ["a", "b"] {
            lab.add(job_in(partition, 1).queue(queue(name))).await?;
            lab.add(job_in(partition, 2).queue(queue(name))).await?;
        }
    }
    let mut out = String::new();
    for name in ["q", "q", "r", "q", "r", "r"] {
        let asked = ClaimRequest::new(WorkerId::new(), [queue(name)]);
        out.extend(partitions(&lab.claim(asked).await?));
    }
    assert_eq!(out, "abaaba");
    Ok(())
}

/// A job of a larger priority that is not due yet hides none that is.
///
/// Proves: WQ-3, QUE-8
async fn later_job_hides_no_due_one(lab: &Lab) -> Result<()> {
    let later = lab.add(job_in("a", 1).priority(9).delay(seconds(60))).await?;
    lab.add(job_in("b", 2).priority(9).delay(seconds(60))).await?;
    let due = lab.add(job_in("a", 3).priority(-9)).await?;
    let claim = lab.take_one().await?;
    assert_eq!(claim.job.id, due);
    lab.succeed(claim.fence).await?;
    assert!(lab.take(9).await?.is_empty());
    lab.advance(60);
    let claims = lab.take(9).await?;
    assert_eq!(partitions(&claims).concat(), "ab");
    assert!(claims.iter().any(|claim| claim.job.id == later));
    Ok(())
}

/// The share of a partition is one over all its priorities.
///
/// Proves: WQ-3, QUE-8
async fn shares_hold_over_priorities(lab: &Lab) -> Result<()> {
    fill(lab, &[("a", 2), ("b", 4)]).await?;
    for number in 2..4 {
        lab.add(job_in("a", number).priority(5)).await?;
    }
    assert_eq!(shares(lab, 4).await?, "aabb");
    assert_eq!(shares(lab, 9).await?, "aabb");
    Ok(())
}

/// The share of a partition holds only what is due.
///
/// Proves: WQ-3, QUE-8
async fn shares_hold_what_is_due(lab: &Lab) -> Result<()> {
    fill(lab, &[("a", 1), ("b", 4)]).await?;
    lab.add(job_in("a", 2).delay(seconds(20))).await?;
    assert_eq!(shares(lab, 4).await?, "abbb");
    lab.advance(20);
    assert_eq!(shares(lab, 4).await?, "ab");
    Ok(())
}

/// A job whose lease has run out is taken again in the turn of its partition.
///
/// Proves: WQ-6, QUE-8
async fn due_job_is_taken_back_in_its_turn(lab: &Lab) -> Result<()> {
    fill(lab, &[("a", 2), ("b", 1)]).await?;
    let first = lab.take(3).await?;
    assert_eq!(first.len(), 3);
    lab.advance(31);
    let again = lab.take(2).await?;
    assert_eq!(partitions(&again).concat(), "ab");
    assert!(
        again.iter().all(|claim| claim.job.executions == 2 && claim.fence.version().get() == 2)
    );
    assert_eq!(turns(lab, 2).await?, "a");
    Ok(())
}

/// A partition is shown, can be asked for, and outlasts every retry.
///
/// Proves: PAR-3, QUE-8
async fn partition_stays_with_its_job(lab: &Lab) -> Result<()> {
    lab.add(job(2)).await?;
    lab.add(job_in("tenant/6", 3)).await?;
    let id = lab.add(job_in("tenant/7 ä", 1)).await?;
    let name = PartitionName::new("tenant/7 ä")?;
    let of_it = JobFilter::new().partition(name.clone());
    for filter in [of_it.clone(), of_it.queue(queue("default")).state(State::Waiting)] {
        let found = lab.jobs(filter, Paging::first(1)).await?;
        assert_eq!(found.items.iter().map(|job| job.id).collect::<Vec<_>>(), [id]);
    }
    for _attempt in 0..2 {
        let claims = lab.take(9).await?;
        let claim = claims.iter().find(|claim| claim.job.id == id).expect("it is due");
        assert_eq!(claim.job.partition.as_ref(), Some(&name));
        lab.end(claim.fence, retry(0)).await?;
        assert_eq!(lab.row(id).await?.partition.as_ref(), Some(&name));
    }
    Ok(())
}

/// The same key with another partition is the same job, and its partition stays.
///
/// Proves: IDM-1, QUE-8
async fn partition_is_no_part_of_the_request(lab: &Lab) -> Result<()> {
    let id = lab.add(job_in("a", 1).key(key("once"))).await?;
    let before = lab.dump().await?;
    let again = lab.enqueue_one(job_in("b", 1).key(key("once"))).await?;
    assert_eq!((again.job(), again.is_new()), (id, false));
    lab.assert_unchanged(&before).await
}

/// A job that a settlement enqueues belongs where it says.
///
/// Proves: QUE-8
async fn follow_on_job_has_its_own_partition(lab: &Lab) -> Result<()> {
    lab.add(job_in("a", 1)).await?;
    let claim = lab.take_one().await?;
    let next = Settlement::new(claim.fence, Verdict::Succeed { result: None }).job(job_in("b", 2));
    lab.settle_one(next).await?;
    assert_eq!(turns(lab, 2).await?, "b");
    Ok(())
}

/// A pause gives nothing, and afterwards the round goes on where it was.
///
/// Proves: QUE-8
async fn paused_queue_keeps_the_turn(lab: &Lab) -> Result<()> {
    fill(lab, &[("a", 3), ("b", 3), ("c", 3)]).await?;
    assert_eq!(turns(lab, 2).await?, "ab");
    lab.control(Control::Pause(queue("default"))).await?;
    let before = lab.dump().await?;
    assert!(lab.take(9).await?.is_empty());
    lab.assert_unchanged(&before).await?;
    lab.control(Control::Resume(queue("default"))).await?;
    assert_eq!(turns(lab, 2).await?, "ca");
    Ok(())
}

/// Claims of 125 jobs take one of each of the next 125 partitions; a larger one goes on to as many as it
/// needs where each has less than it might give.
///
/// Proves: QUE-8
async fn thousand_partitions_give_one_each(lab: &Lab) -> Result<()> {
    let names = fill_numbered(lab, 1_000, 2).await?;
    for part in names.chunks(125).chain([&names[..600]]) {
        assert_eq!(taken_of(lab, part.len()).await?, part);
    }
    assert_eq!(lab.take(999).await?.len(), 400);
    Ok(())
}

/// A claim of more than 125 jobs takes several of each, and goes around once for what some lack.
///
/// Proves: QUE-8
async fn large_claim_takes_a_helping_of_each(lab: &Lab) -> Result<()> {
    let names = fill_numbered(lab, 200, 3).await?;
    let twice = |names: &[String]| names.iter().flat_map(|it| [it.clone(), it.clone()]).collect();
    let first: Vec<String> = twice(&names[..125]);
    assert_eq!(taken_of(lab, 250).await?, first);
    let second: Vec<String> = names[..100].iter().cloned().chain(twice(&names[125..])).collect();
    assert_eq!(taken_of(lab, 250).await?, second);
    assert_eq!(turns(lab, 1).await?, "0100", "the next one in the ring");
    assert_eq!(lab.take(999).await?.len(), 99);
    Ok(())
}

/// Jobs of numbered partitions, so many of each; and the names.
async fn fill_numbered(lab: &Lab, partitions: usize, each: i64) -> Result<Vec<String>> {
    let names: Vec<String> = (0..partitions).map(|number| format!("{number:04}")).collect();
    let jobs = names.iter().flat_map(|name| (1..=each).map(move |number| job_in(name, number)));
    for answer in lab.enqueue(jobs.collect()).await? {
        assert!(answer?.is_new());
    }
    Ok(names)
}

/// The partitions of a claim's jobs, by name.
async fn taken_of(lab: &Lab, limit: usize) -> Result<Vec<String>> {
    let mut taken = partitions(&lab.claim(request(WorkerId::new()).limit(limit)).await?);
    taken.sort_unstable();
    Ok(taken)
}

/// A partition has a name.
///
/// Proves: ERR-1
async fn empty_partition_name_is_refused(lab: &Lab) -> Result<()> {
    for text in ["", "a\nb", &"x".repeat(256)] {
        assert_refused(PartitionName::new(text), leasehold_core::ErrorKind::Invalid);
    }
    lab.add(job_in(&"x".repeat(255), 1)).await?;
    assert_eq!(lab.take(9).await?.len(), 1);
    Ok(())
}
