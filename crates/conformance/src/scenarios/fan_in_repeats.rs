//! Owns what waits promise where requests are repeated, rolled back, late, or sent at once; and how
//! they are read.

use leasehold_core::lab::{Ending, Step};
use leasehold_core::{
    Found, JobId, LostReason, NewJob, OnFailure, Paging, Query, QueueName, Result, Settlement,
    State, StoreExt, Verdict, WaitView,
};

use super::fan_in::{BLOCKED, FREE, add_all, run_due, stands};
use super::group;
use crate::lab::{Lab, assert_lost, job, key, lasting, request};

group!("fan_in_repeats": rolled_back_enqueue_leaves_no_wait, rolled_back_settlement_frees_nobody,
    joined_enqueue_waits_for_its_own_transaction, repeat_of_the_enqueue_adds_nothing,
    batch_repeated_by_its_keys_is_one_batch, repeat_of_the_settlement_changes_nothing,
    stale_fence_ends_no_child, parents_that_end_at_once_free_their_child,
    child_enqueued_beside_the_end_is_never_stuck, counts_tell_how_far_a_batch_is,
    waits_are_read_in_pages, stats_tell_of_the_blocked);

fn chain() -> Vec<NewJob> {
    NewJob::chain([job(1), job(2)], OnFailure::Cancel)
}

/// Proves: FAN-1, TX-2
async fn rolled_back_enqueue_leaves_no_wait(lab: &Lab) -> Result<()> {
    let parent = lab.add(job(1)).await?;
    let before = lab.dump().await?;
    let call = || vec![job(2).after(parent, OnFailure::Cancel)];
    for ending in [Ending::RollBack, Ending::Drop] {
        lab.play(vec![Step::Enqueue(call())], ending).await?;
        lab.assert_unchanged(&before).await?;
    }
    let script = vec![Step::Savepoint, Step::Enqueue(call()), Step::RollbackToSavepoint];
    lab.play(script, Ending::Commit).await?;
    lab.assert_unchanged(&before).await?;
    assert_eq!(run_due(lab).await?, [parent]);
    Ok(())
}

/// Proves: FAN-2, TX-2
async fn rolled_back_settlement_frees_nobody(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, chain()).await?;
    let claim = lab.take_one().await?;
    let before = lab.dump().await?;
    let end = || Settlement::new(claim.fence, Verdict::Succeed { result: None });
    for ending in [Ending::RollBack, Ending::Drop] {
        lab.play(vec![Step::Settle(vec![end()])], ending).await?;
        lab.assert_unchanged(&before).await?;
        assert_eq!(stands(lab, ids[1]).await?, BLOCKED);
    }
    lab.play(vec![Step::Settle(vec![end()])], Ending::Commit).await?;
    assert_eq!(run_due(lab).await?, [ids[1]]);
    Ok(())
}

/// A caller's transaction may add a parent and its child by separate calls, and settle a parent and
/// add a child of it.
///
/// Proves: FAN-1, TX-2
async fn joined_enqueue_waits_for_its_own_transaction(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let (parent, child) = {
        let mut row = chain().into_iter();
        (row.next().expect("two"), row.next().expect("two"))
    };
    let late = job(3).after(claim.job.id, OnFailure::Cancel);
    let ids = [parent.id, child.id, late.id];
    let end = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    let script = vec![
        Step::Enqueue(vec![parent]),
        Step::Settle(vec![end]),
        Step::Enqueue(vec![child, late]),
    ];
    lab.play(script, Ending::Commit).await?;
    assert_eq!(stands(lab, ids[1]).await?, BLOCKED);
    assert_eq!(stands(lab, ids[2]).await?, FREE);
    let mut first = run_due(lab).await?;
    first.sort_unstable();
    let mut expected = vec![ids[0], ids[2]];
    expected.sort_unstable();
    assert_eq!(first, expected);
    assert_eq!(run_due(lab).await?, [ids[1]]);
    Ok(())
}

/// The same call again is the same jobs, whatever has become of them, and adds no wait; other waits
/// under the same ids are not compared.
///
/// Proves: FAN-5, IDM-1
async fn repeat_of_the_enqueue_adds_nothing(lab: &Lab) -> Result<()> {
    let call = chain();
    add_all(lab, call.clone()).await?;
    for _ in 0..3 {
        let before = lab.dump().await?;
        for (answer, job) in lab.enqueue(call.clone()).await?.into_iter().zip(&call) {
            let answer = answer?;
            assert_eq!((answer.is_new(), answer.job()), (false, job.id));
        }
        let other = call[1].clone().after(JobId::new(), OnFailure::Run);
        assert!(!lab.enqueue_one(other).await?.is_new());
        lab.assert_unchanged(&before).await?;
        run_due(lab).await?;
    }
    Ok(())
}

/// A batch sent again under its keys, with ids made anew, is the first batch; a new callback of it
/// waits for the first one's members.
///
/// Proves: FAN-5, IDM-1
async fn batch_repeated_by_its_keys_is_one_batch(lab: &Lab) -> Result<()> {
    let batch = |callback: &str| {
        let members = [job(1).key(key("a")), job(2).key(key("b"))];
        NewJob::batch(members, job(3).key(key(callback)), OnFailure::Cancel)
    };
    let first = add_all(lab, batch("c")).await?;
    let before = lab.dump().await?;
    for (answer, id) in lab.enqueue(batch("c")).await?.into_iter().zip(&first) {
        assert_eq!(answer?.job(), *id);
    }
    lab.assert_unchanged(&before).await?;
    let answers = lab.enqueue(batch("d")).await?;
    let other = answers.into_iter().next_back().expect("three")?;
    assert!(other.is_new());
    assert_eq!(lab.parent_counts(other.job()).await?.open, 2);
    assert_eq!(run_due(lab).await?.len(), 2);
    assert_eq!(run_due(lab).await?.len(), 2, "both callbacks");
    Ok(())
}

/// Proves: FAN-5, WQ-10
async fn repeat_of_the_settlement_changes_nothing(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, chain()).await?;
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    let before = lab.dump().await?;
    assert!(lab.succeed(claim.fence).await?.repeated);
    lab.assert_unchanged(&before).await?;
    assert_eq!(run_due(lab).await?, [ids[1]]);
    let before = lab.dump().await?;
    assert!(lab.succeed(claim.fence).await?.repeated);
    lab.assert_unchanged(&before).await
}

/// Proves: FAN-2, WQ-7
async fn stale_fence_ends_no_child(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, chain()).await?;
    let stale = lab.take_one().await?;
    lab.advance(30);
    let held = lab.take_one().await?;
    let before = lab.dump().await?;
    let failed = Verdict::Fail { failure: lasting() };
    assert_lost(lab.end(stale.fence, failed).await, LostReason::TakenOver);
    assert_lost(lab.succeed(stale.fence).await, LostReason::TakenOver);
    lab.assert_unchanged(&before).await?;
    lab.succeed(held.fence).await?;
    assert_eq!(stands(lab, ids[1]).await?, FREE);
    Ok(())
}

/// Of parents that end at once none takes another for still to come: the child is freed by the last,
/// and it is claimed once.
///
/// Proves: FAN-2, GLO-2
async fn parents_that_end_at_once_free_their_child(lab: &Lab) -> Result<()> {
    for _ in 0..10 {
        let ids = add_all(lab, NewJob::batch((0..4).map(job), job(9), OnFailure::Cancel)).await?;
        let held = lab.take(9).await?;
        let end = |at: usize| lab.succeed(held[at].fence);
        let (a, b, c, d) = tokio::join!(end(0), end(1), end(2), end(3));
        for answer in [a, b, c, d] {
            answer?;
        }
        assert_eq!(run_due(lab).await?, [ids[4]]);
    }
    Ok(())
}

/// A job that is enqueued while its parent ends is blocked by it or sees its end, never neither.
///
/// Proves: FAN-1, FAN-2, GLO-2
async fn child_enqueued_beside_the_end_is_never_stuck(lab: &Lab) -> Result<()> {
    for _ in 0..10 {
        let claim = lab.claimed().await?;
        let child = || lab.enqueue_one(job(2).after(claim.job.id, OnFailure::Cancel));
        let (a, end, b) = tokio::join!(child(), lab.succeed(claim.fence), child());
        end?;
        let mut expected = [a?.job(), b?.job()];
        expected.sort_unstable();
        let mut found = run_due(lab).await?;
        found.sort_unstable();
        assert_eq!(found, expected);
    }
    Ok(())
}

/// One query tells how many of a batch are done, how many went wrong, and how many are to come.
///
/// Proves: FAN-4
async fn counts_tell_how_far_a_batch_is(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::batch((0..20).map(job), job(99), OnFailure::Run)).await?;
    let claims = lab.claim(request(leasehold_core::WorkerId::new()).limit(19)).await?;
    for claim in &claims[..16] {
        lab.succeed(claim.fence).await?;
    }
    lab.end(claims[16].fence, Verdict::Fail { failure: lasting() }).await?;
    let counts = lab.parent_counts(ids[20]).await?;
    assert_eq!((counts.total, counts.ended(), counts.open), (20, 17, 3));
    assert_eq!((counts.succeeded, counts.failed), (16, 1));
    assert_eq!((counts.leased, counts.waiting), (2, 1));
    assert_eq!(lab.parent_counts(ids[0]).await?.total, 0);
    Ok(())
}

async fn waits(lab: &Lab, query: Query) -> Result<Vec<WaitView>> {
    let items = lab.find(query).await?.items.into_iter().map(|found| match found {
        Found::Wait(wait) => wait,
        other => panic!("not a wait: {other:?}"),
    });
    Ok(items.collect())
}

/// Parents and children are listed in id order, in pages, with their states.
///
/// Proves: FAN-4, QUE-6
async fn waits_are_read_in_pages(lab: &Lab) -> Result<()> {
    let ids = add_all(lab, NewJob::batch((0..3).map(job), job(9), OnFailure::Run)).await?;
    let claims = lab.take(1).await?;
    lab.end(claims[0].fence, Verdict::DeadLetter { failure: lasting() }).await?;
    let mut found = Vec::new();
    let mut paging = Paging::first(2);
    loop {
        found.extend(waits(lab, Query::Parents(ids[3], paging.clone())).await?);
        let page = lab.find(Query::Parents(ids[3], paging.clone())).await?;
        let Some(next) = page.next else { break };
        paging = paging.after(next);
    }
    let mut expected = ids[..3].to_vec();
    expected.sort_unstable();
    assert_eq!(found.iter().map(|wait| wait.parent).collect::<Vec<_>>(), expected);
    for wait in &found {
        let ended = wait.parent == claims[0].job.id;
        let state = if ended { State::DeadLetter } else { State::Waiting };
        assert_eq!((wait.parent_state, wait.open), (state, !ended));
        assert_eq!((wait.job, wait.job_state), (ids[3], State::Waiting));
        assert_eq!(wait.on_failure, OnFailure::Run);
        let children = waits(lab, Query::Children(wait.parent, Paging::first(9))).await?;
        assert_eq!(children, [*wait]);
    }
    assert!(waits(lab, Query::Children(ids[3], Paging::first(9))).await?.is_empty());
    let refused = lab.find(Query::Parents(ids[3], Paging::first(0))).await;
    crate::lab::assert_refused(refused, leasehold_core::ErrorKind::Invalid);
    Ok(())
}

/// Blocked jobs are counted by themselves, neither ready nor later.
///
/// Proves: FAN-4
async fn stats_tell_of_the_blocked(lab: &Lab) -> Result<()> {
    add_all(lab, NewJob::batch((0..2).map(job), job(9), OnFailure::Run)).await?;
    let figures = |stats: leasehold_core::Stats| {
        let queue = stats.queue(&QueueName::default_queue()).cloned().expect("the queue");
        (queue.ready, queue.later, queue.blocked)
    };
    assert_eq!(figures(lab.stats().await?), (2, 0, 1));
    run_due(lab).await?;
    assert_eq!(figures(lab.stats().await?), (1, 0, 0));
    Ok(())
}
