//! Owns what each end of a job means for those that wait for it: by policy, down the graph, whoever
//! ends it, and after a retry.

use leasehold_core::{
    ClaimRequest, Controlled, ErrorKind, Failure, FailureCode, JobId, NewJob, OnFailure,
    PruneRequest, QueueName, ReclaimRequest, Result, State, StoreExt, Verdict, WorkerId,
};

use super::fan_in::{BLOCKED, FREE, add_all, run_due, stands};
use super::group;
use crate::lab::{Lab, assert_refused, job, lasting, queue, retry, seconds};

group!("fan_in_ends": each_policy_follows_each_end, cancel_goes_down_the_graph,
    cancelled_parent_ends_its_children, flagged_parent_that_lapses_ends_its_children,
    lapsed_lease_ends_a_parent_too, claim_that_takes_back_frees_children,
    claim_finds_what_it_freed_in_a_later_queue, parent_that_has_ended_decides_at_once,
    pruned_parent_is_known_by_its_tombstone, pruned_parent_stays_in_the_counts,
    parent_that_is_waited_for_is_not_pruned, retried_parent_frees_those_that_wait,
    what_is_waited_for_holds_up_no_prune, retry_runs_no_child_again, cancelled_child_tells_why);

/// Ends a claimed job at a state.
async fn end_at(lab: &Lab, id: JobId, end: State) -> Result<()> {
    let claims = lab.take(9).await?;
    let claim = claims.iter().find(|claim| claim.job.id == id).expect("it is due");
    let verdict = match end {
        State::Succeeded => Verdict::Succeed { result: None },
        State::Failed => Verdict::Fail { failure: lasting() },
        State::DeadLetter => Verdict::DeadLetter { failure: lasting() },
        _ => Verdict::Cancel { reason: None },
    };
    assert_eq!(lab.end(claim.fence, verdict).await?.place.state(), end);
    Ok(())
}

/// What an end comes to: success meets every wait; else `Run` runs, `Cancel` cancels, and `Wait`
/// waits where a retry may come, which is after `failed` alone.
///
/// Proves: FAN-3
async fn each_policy_follows_each_end(lab: &Lab) -> Result<()> {
    let over = (State::Cancelled, false);
    let ends = [
        (State::Succeeded, [FREE, FREE, FREE]),
        (State::Failed, [over, FREE, BLOCKED]),
        (State::DeadLetter, [over, FREE, over]),
        (State::Cancelled, [over, FREE, over]),
    ];
    for (end, expected) in ends {
        let parent = job(1);
        let of = |policy| job(2).after(parent.id, policy).delay(seconds(900));
        let children = OnFailure::ALL.map(of);
        let mut call = vec![parent];
        call.extend(children);
        let ids = add_all(lab, call).await?;
        end_at(lab, ids[0], end).await?;
        for (id, expected) in ids[1..].iter().zip(expected) {
            assert_eq!(stands(lab, *id).await?, expected, "{end}");
        }
    }
    Ok(())
}

/// A cancel goes on to whoever waits for the cancelled, in the same transaction, logged as such; who
/// asked to run after any end is freed.
///
/// Proves: FAN-3, TX-1
async fn cancel_goes_down_the_graph(lab: &Lab) -> Result<()> {
    let mut call = NewJob::chain((0..6).map(job), OnFailure::Cancel);
    let (third, last) = (call[3].id, call[5].id);
    call.push(job(7).after(last, OnFailure::Run).after(third, OnFailure::Run));
    call.push(job(8).after(last, OnFailure::Wait));
    let ids = add_all(lab, call).await?;
    end_at(lab, ids[0], State::DeadLetter).await?;
    for id in &ids[1..6] {
        assert_eq!(stands(lab, *id).await?, (State::Cancelled, false));
    }
    assert_eq!(stands(lab, ids[7]).await?.0, State::Cancelled);
    assert_eq!(run_due(lab).await?, [ids[6]]);
    Ok(())
}

/// An operator's cancel of a waiting parent ends its children in the same transaction.
///
/// Proves: FAN-3, QUE-2
async fn cancelled_parent_ends_its_children(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::chain((0..3).map(job), OnFailure::Cancel)).await?;
    assert_eq!(lab.cancel(ids[0]).await?, Controlled::Cancelled);
    assert_eq!(stands(lab, ids[2]).await?.0, State::Cancelled);
    assert!(run_due(lab).await?.is_empty());
    Ok(())
}

/// A flagged parent ends when its lease lapses, and its children with it.
///
/// Proves: FAN-3, QUE-2
async fn flagged_parent_that_lapses_ends_its_children(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::chain([job(1), job(2)], OnFailure::Cancel)).await?;
    let _held = lab.take_one().await?;
    assert_eq!(lab.cancel(ids[0]).await?, Controlled::CancelRequested);
    assert_eq!(stands(lab, ids[1]).await?, BLOCKED);
    lab.advance(30);
    lab.reclaim(ReclaimRequest::jobs()).await?;
    assert_eq!(stands(lab, ids[1]).await?.0, State::Cancelled);
    Ok(())
}

/// A lapsed lease with the budget spent ends a parent as a report does.
///
/// Proves: FAN-3, WQ-4
async fn lapsed_lease_ends_a_parent_too(lab: &Lab) -> Result<()> {
    let parent = job(1).max_attempts(1);
    let run = job(2).after(parent.id, OnFailure::Run);
    let cancel = job(3).after(parent.id, OnFailure::Cancel);
    let ids = add_all(lab, vec![parent, run, cancel]).await?;
    let _held = lab.take_one().await?;
    lab.advance(30);
    lab.reclaim(ReclaimRequest::jobs()).await?;
    assert_eq!(stands(lab, ids[1]).await?, FREE);
    assert_eq!(stands(lab, ids[2]).await?.0, State::Cancelled);
    Ok(())
}

/// A claim that takes lapsed leases back in passing takes what their end has freed, too.
///
/// Proves: FAN-2, WQ-3
async fn claim_that_takes_back_frees_children(lab: &Lab) -> Result<()> {
    let parent = job(1).max_attempts(1);
    let child = job(2).after(parent.id, OnFailure::Run).priority(3);
    let other = job(3).max_attempts(2);
    let ids = add_all(lab, vec![parent, child, other]).await?;
    assert_eq!(lab.take(9).await?.len(), 2);
    lab.advance(30);
    let claims = lab.take(9).await?;
    let found: Vec<_> =
        claims.iter().map(|it| (it.job.id, it.fence.version().get(), it.job.attempt)).collect();
    assert_eq!(found, [(ids[1], 1, 1), (ids[2], 2, 2)], "each version is raised once");
    for claim in claims {
        lab.succeed(claim.fence).await?;
    }
    Ok(())
}

/// What is freed in a queue that the claim comes to later is found there, by its place in the order.
///
/// Proves: FAN-2, WQ-3
async fn claim_finds_what_it_freed_in_a_later_queue(lab: &Lab) -> Result<()> {
    let parent = job(1).max_attempts(1).queue(queue("a"));
    let child = job(2).after(parent.id, OnFailure::Run).priority(3).queue(queue("b"));
    let before = job(3).queue(queue("b")).priority(1);
    let ids = add_all(lab, vec![parent, child, before]).await?;
    let ask = |queues: &[&str], limit| {
        let queues: Vec<QueueName> = queues.iter().map(|name| queue(name)).collect();
        ClaimRequest::new(WorkerId::new(), queues).limit(limit)
    };
    assert_eq!(lab.claim(ask(&["a"], 1)).await?.len(), 1);
    lab.advance(30);
    let claims = lab.claim(ask(&["a", "b"], 1)).await?;
    assert_eq!(claims.iter().map(|it| it.job.id).collect::<Vec<_>>(), [ids[1]]);
    assert_eq!(lab.claim(ask(&["b"], 9)).await?.len(), 1);
    Ok(())
}

/// A parent that has ended before the enqueue decides at once, and so for those behind it.
///
/// Proves: FAN-1, FAN-3
async fn parent_that_has_ended_decides_at_once(lab: &Lab) -> Result<()> {
    let [good, bad] = [lab.add(job(1).priority(2)).await?, lab.add(job(2)).await?];
    let claims = lab.take(9).await?;
    lab.succeed(claims[0].fence).await?;
    lab.end(claims[1].fence, Verdict::Fail { failure: lasting() }).await?;
    let free = lab.enqueue_one(job(3).after(good, OnFailure::Cancel)).await?;
    assert_eq!(free.state(), Some(State::Waiting));
    assert_eq!(stands(lab, free.job()).await?, FREE);
    let row = NewJob::chain([job(4).after(bad, OnFailure::Cancel), job(5)], OnFailure::Cancel);
    let answers = lab.enqueue(row).await?;
    for answer in answers {
        assert_eq!(answer?.state(), Some(State::Cancelled));
    }
    let runs = lab.add(job(6).after(bad, OnFailure::Run)).await?;
    let waits = lab.add(job(7).after(bad, OnFailure::Wait).after(good, OnFailure::Wait)).await?;
    assert_eq!(stands(lab, waits).await?, BLOCKED);
    assert_eq!(run_due(lab).await?, [free.job(), runs]);
    Ok(())
}

/// A pruned parent is as good as an ended one while its tombstone is kept, and unknown after that.
///
/// Proves: FAN-1, QUE-4
async fn pruned_parent_is_known_by_its_tombstone(lab: &Lab) -> Result<()> {
    let [good, bad] = [lab.add(job(1).priority(2)).await?, lab.add(job(2)).await?];
    let claims = lab.take(9).await?;
    lab.succeed(claims[0].fence).await?;
    lab.end(claims[1].fence, Verdict::Fail { failure: lasting() }).await?;
    assert_eq!(lab.prune(PruneRequest::new().older_than(seconds(0))).await?.jobs, 2);
    let expected = [
        (good, OnFailure::Cancel, State::Waiting),
        (bad, OnFailure::Run, State::Waiting),
        (bad, OnFailure::Cancel, State::Cancelled),
        (bad, OnFailure::Wait, State::Cancelled),
    ];
    for (parent, policy, state) in expected {
        let answer = lab.enqueue_one(job(3).after(parent, policy)).await?;
        assert_eq!(answer.state(), Some(state), "{policy:?}");
    }
    assert_eq!(run_due(lab).await?.len(), 2);
    lab.advance(7 * 86_400);
    lab.prune(PruneRequest::new()).await?;
    let late = lab.enqueue_one(job(4).after(good, OnFailure::Run)).await;
    assert_refused(late, ErrorKind::NotFound);
    Ok(())
}

/// Members may be pruned before their batch is over: the callback and the counts know how they ended.
/// The waits go with the callback.
///
/// Proves: FAN-4, QUE-4
async fn pruned_parent_stays_in_the_counts(lab: &Lab) -> Result<()> {
    let slow = job(1).delay(seconds(50));
    let ids = add_all(lab, NewJob::batch([job(2), slow], job(3), OnFailure::Run)).await?;
    end_at(lab, ids[0], State::DeadLetter).await?;
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new().older_than(seconds(1))).await?.jobs, 1);
    let counts = lab.parent_counts(ids[2]).await?;
    assert_eq!((counts.total, counts.open, counts.dead_letter, counts.waiting), (2, 1, 1, 1));
    lab.advance(60);
    assert_eq!(run_due(lab).await?, [ids[1]]);
    assert_eq!(run_due(lab).await?, [ids[2]]);
    assert_eq!(lab.dump().await?.rows("waits").len(), 2);
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new().older_than(seconds(1))).await?.jobs, 2);
    assert!(lab.dump().await?.rows("waits").is_empty());
    Ok(())
}

/// A failed parent stays while somebody waits for its retry, and goes once nobody does.
///
/// Proves: FAN-3, QUE-4
async fn parent_that_is_waited_for_is_not_pruned(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::chain([job(1), job(2)], OnFailure::Wait)).await?;
    end_at(lab, ids[0], State::Failed).await?;
    lab.advance(90 * 86_400);
    assert_eq!(lab.prune(PruneRequest::new()).await?.jobs, 0);
    assert_eq!(stands(lab, ids[1]).await?, BLOCKED);
    lab.reopen(ids[0]).await?;
    assert_eq!(run_due(lab).await?, [ids[0]]);
    assert_eq!(run_due(lab).await?, [ids[1]]);
    lab.advance(90 * 86_400);
    assert_eq!(lab.prune(PruneRequest::new()).await?.jobs, 2);
    Ok(())
}

/// Parents that stay take no room in a prune's limit from what may go.
///
/// Proves: FAN-3, QUE-4
async fn what_is_waited_for_holds_up_no_prune(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::chain([job(1), job(2)], OnFailure::Wait)).await?;
    end_at(lab, ids[0], State::Failed).await?;
    lab.advance(1);
    let later = lab.add(job(3)).await?;
    end_at(lab, later, State::Failed).await?;
    let one = PruneRequest::new().older_than(seconds(0)).limit(1);
    assert_eq!(lab.prune(one).await?.jobs, 1);
    assert!(lab.job(ids[0]).await?.is_some() && lab.job(later).await?.is_none());
    Ok(())
}

/// A retry takes a failed parent back, and its success frees those that waited for that; a last
/// failure, after which no retry can come, cancels them.
///
/// Proves: FAN-3, FAN-5
async fn retried_parent_frees_those_that_wait(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::chain([job(1), job(2)], OnFailure::Wait)).await?;
    end_at(lab, ids[0], State::Failed).await?;
    lab.reopen(ids[0]).await?;
    assert_eq!(stands(lab, ids[1]).await?, BLOCKED);
    assert_eq!(run_due(lab).await?, [ids[0]]);
    assert_eq!(run_due(lab).await?, [ids[1]]);

    let parent = job(3).max_attempts(2);
    let ids = add_all(lab, NewJob::chain([parent, job(4)], OnFailure::Wait)).await?;
    end_at(lab, ids[0], State::Failed).await?;
    lab.reopen(ids[0]).await?;
    end_at(lab, ids[0], State::Failed).await?;
    assert_eq!(stands(lab, ids[1]).await?.0, State::Cancelled, "the budget is spent");
    Ok(())
}

/// A retried parent neither runs a child again that ran at its failure nor brings a cancelled one back.
///
/// Proves: FAN-5
async fn retry_runs_no_child_again(lab: &Lab) -> Result<()> {
    let parent = job(1).max_attempts(3);
    let run = job(2).after(parent.id, OnFailure::Run);
    let cancel = job(3).after(parent.id, OnFailure::Cancel);
    let ids = add_all(lab, vec![parent, run, cancel]).await?;
    end_at(lab, ids[0], State::Failed).await?;
    assert_eq!(run_due(lab).await?, [ids[1]]);
    lab.reopen(ids[0]).await?;
    assert_eq!(run_due(lab).await?, [ids[0]]);
    assert!(run_due(lab).await?.is_empty());
    assert_eq!(stands(lab, ids[1]).await?.0, State::Succeeded);
    assert_eq!(stands(lab, ids[2]).await?.0, State::Cancelled);
    // A child that fails is tried again without its parents.
    let ids = add_all(lab, NewJob::chain([job(4), job(5)], OnFailure::Cancel)).await?;
    assert_eq!(run_due(lab).await?, [ids[0]]);
    let claim = lab.take_one().await?;
    lab.end(claim.fence, retry(0)).await?;
    assert_eq!(run_due(lab).await?, [ids[1]]);
    Ok(())
}

/// A child that a parent's end has cancelled says so in its failure.
///
/// Proves: FAN-3
async fn cancelled_child_tells_why(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::chain([job(1), job(2)], OnFailure::Cancel)).await?;
    end_at(lab, ids[0], State::DeadLetter).await?;
    let why = format!("job {}, which it waited for, ended as dead_letter", ids[0]);
    let failure = Failure::new(FailureCode::Cancelled, why).to_json();
    assert_eq!(lab.row(ids[1]).await?.failure, Some(failure));
    Ok(())
}
