//! Owns the finer points of a caller's transaction: savepoints, its own view, and wake-ups.

use std::time::Duration;

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{
    HintKind, JobId, Listener, LostReason, NewJob, Progress, Result, Settlement, State, StoreExt,
    Verdict,
};

use super::group;
use crate::lab::{Lab, assert_lost, event, job, json, key, passing};

group!("savepoints": nested_ones_take_back_their_own, rolled_back_settlement_leaves_the_claim,
    rolled_back_key_is_free, numbers_go_on_after_a_rollback, transaction_sees_its_own_writes,
    progress_and_end_in_one_transaction, repeat_in_one_transaction_is_recognised,
    rollback_wakes_nobody, own_verbs_wake, refused_enqueue_leaves_the_transaction_usable);

/// Each rollback takes back what its own savepoint opened, inner ones included.
///
/// Proves: TX-2
async fn nested_ones_take_back_their_own(lab: &Lab) -> Result<()> {
    let jobs: Vec<NewJob> = (0..6).map(job).collect();
    let add = |at: usize| Step::Enqueue(vec![jobs[at].clone()]);
    let script = vec![
        add(0),
        Step::Savepoint,
        add(1),
        Step::Savepoint,
        add(2),
        Step::RollbackToSavepoint,
        add(3),
        Step::ReleaseSavepoint,
        Step::Savepoint,
        Step::Savepoint,
        add(4),
        Step::ReleaseSavepoint,
        Step::RollbackToSavepoint,
        add(5),
    ];
    lab.play(script, Ending::Commit).await?;
    let mut kept: Vec<JobId> = lab.take(9).await?.iter().map(|claim| claim.job.id).collect();
    kept.sort_unstable();
    let mut expected = [0, 1, 3, 5].map(|at: usize| jobs[at].id);
    expected.sort_unstable();
    assert_eq!(kept, expected);
    Ok(())
}

fn done(claim: &leasehold_core::Claim) -> Settlement {
    Settlement::new(claim.fence, Verdict::Succeed { result: Some(json(9)) })
}

/// A settlement taken back to a savepoint leaves the claim as it was, free to end otherwise.
///
/// Proves: TX-2, WQ-10
async fn rolled_back_settlement_leaves_the_claim(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let fail = Settlement::new(claim.fence, Verdict::Fail { failure: passing() });
    let script = vec![
        Step::Savepoint,
        Step::Settle(vec![done(&claim).event(event(1)).job(job(2))]),
        Step::RollbackToSavepoint,
        Step::Settle(vec![fail]),
    ];
    lab.play(script, Ending::Commit).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.state, row.result), (State::Failed, None));
    let dump = lab.dump().await?;
    assert_eq!((dump.rows("jobs").len(), dump.rows("events").len()), (1, 0));
    Ok(())
}

/// A key taken in what is rolled back is free for another request.
///
/// Proves: IDM-1, TX-2
async fn rolled_back_key_is_free(lab: &Lab) -> Result<()> {
    let (lost, kept) = (job(1).key(key("order-5")), job(2).key(key("order-5")));
    let script = vec![
        Step::Savepoint,
        Step::Enqueue(vec![lost]),
        Step::RollbackToSavepoint,
        Step::Enqueue(vec![kept.clone()]),
    ];
    lab.play(script, Ending::Commit).await?;
    let again = lab.enqueue_one(job(2).key(key("order-5"))).await?;
    assert_eq!((again.is_new(), again.job()), (false, kept.id));
    Ok(())
}

/// Numbers given in what is rolled back are given again.
///
/// Proves: TX-2, TX-3
async fn numbers_go_on_after_a_rollback(lab: &Lab) -> Result<()> {
    let of = |number| event(number).ordering(super::outbox::ordering());
    let script = vec![
        Step::Publish(vec![of(1)]),
        Step::Savepoint,
        Step::Publish(vec![of(2), of(3)]),
        Step::RollbackToSavepoint,
        Step::Publish(vec![of(4)]),
    ];
    let mut numbers = Vec::new();
    for reply in lab.play(script, Ending::Commit).await? {
        if let Reply::Publish(answers) = reply {
            numbers.extend(answers?.iter().map(|answer| answer.sequence));
        }
    }
    assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(2)]);
    assert_eq!(lab.publish_one(of(5)).await?.sequence, Some(3));
    Ok(())
}

/// Within a transaction a key and an id that it took itself are known.
///
/// Proves: IDM-1, TX-2
async fn transaction_sees_its_own_writes(lab: &Lab) -> Result<()> {
    let first = job(1).key(key("order-5"));
    let other = job(1).key(key("order-5"));
    let script = vec![
        Step::Enqueue(vec![first.clone()]),
        Step::Enqueue(vec![other, first.clone(), job(2).key(key("order-5"))]),
    ];
    let reply = lab.play(script, Ending::Commit).await?.remove(1);
    let Reply::Enqueue(answers) = reply else { panic!("an enqueue answers as one") };
    let answers = answers?;
    for answer in &answers[..2] {
        let answer = answer.as_ref().expect("an answer");
        assert_eq!((answer.is_new(), answer.job()), (false, first.id));
    }
    assert_eq!(answers[2].as_ref().err().and_then(|e| e.existing_job()), Some(first.id));
    assert_eq!(lab.dump().await?.rows("jobs").len(), 1);
    Ok(())
}

/// Progress and the end it leads to can share one transaction.
///
/// Proves: QUE-5, TX-2
async fn progress_and_end_in_one_transaction(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let report = Progress::new(claim.fence, 1).checkpoint(json(4)).event(event(5));
    let script = vec![
        Step::Progress(vec![report]),
        Step::Settle(vec![done(&claim).event(event(6))]),
        Step::Progress(vec![Progress::new(claim.fence, 2)]),
    ];
    let mut replies = lab.play(script, Ending::Commit).await?;
    let Some(Reply::Progress(late)) = replies.pop() else { panic!("an answer") };
    assert_lost(late?.remove(0), LostReason::Settled);
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.state, row.checkpoint), (State::Succeeded, Some(json(4))));
    assert_eq!(lab.take_event().await?.sequence, Some(1));
    Ok(())
}

/// A settlement repeated in its own transaction is recognised.
///
/// Proves: GLO-2, TX-2
async fn repeat_in_one_transaction_is_recognised(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let settle = || Step::Settle(vec![done(&claim).job(job(2))]);
    let replies = lab.play(vec![settle(), settle()], Ending::Commit).await?;
    let mut repeated = Vec::new();
    for reply in replies {
        let Reply::Settle(answers) = reply else { panic!("a settle answers as one") };
        repeated.push(answers?.remove(0)?.repeated);
    }
    assert_eq!(repeated, [false, true]);
    assert_eq!(lab.dump().await?.rows("jobs").len(), 2);
    Ok(())
}

pub(super) async fn hears(listener: &mut Listener, within: Duration) -> bool {
    tokio::time::timeout(within, listener.heard()).await.is_ok()
}

/// What is rolled back wakes nobody, by a word or by a drop.
///
/// Proves: TX-2
async fn rollback_wakes_nobody(lab: &Lab) -> Result<()> {
    for ending in [Ending::RollBack, Ending::Drop] {
        // A store may wake for reasons of its own; a wake-up that leaks would come each time.
        let mut woken = true;
        for _ in 0..4 {
            woken = woken && wakes(lab, ending).await?;
        }
        assert!(!woken, "woken each time by {ending:?}");
    }
    Ok(())
}

async fn wakes(lab: &Lab, ending: Ending) -> Result<bool> {
    let (mut jobs, mut events) =
        (lab.hints().listen(HintKind::Jobs), lab.hints().listen(HintKind::Events));
    let script = vec![Step::Enqueue(vec![job(1)]), Step::Publish(vec![event(2)])];
    lab.play(script, ending).await?;
    let wait = Duration::from_millis(60);
    Ok(hears(&mut jobs, wait).await || hears(&mut events, wait).await)
}

/// An enqueue wakes those who wait for jobs, a publish those who wait for events.
///
/// Proves: TX-5, WQ-3
async fn own_verbs_wake(lab: &Lab) -> Result<()> {
    let (mut jobs, mut events) =
        (lab.hints().listen(HintKind::Jobs), lab.hints().listen(HintKind::Events));
    let soon = Duration::from_secs(60);
    lab.add(job(1)).await?;
    assert!(hears(&mut jobs, soon).await);
    lab.publish_one(event(2)).await?;
    assert!(hears(&mut events, soon).await);
    let claim = lab.take_one().await?;
    lab.settle_one(done(&claim).event(event(3)).job(job(4))).await?;
    assert!(hears(&mut events, soon).await && hears(&mut jobs, soon).await);
    Ok(())
}

/// A refused batch is an answer: nothing of it is kept, and the caller's transaction goes on.
///
/// Proves: ERR-1, TX-2
async fn refused_enqueue_leaves_the_transaction_usable(lab: &Lab) -> Result<()> {
    let script = vec![
        Step::OwnRow("order 7".to_owned()),
        Step::Enqueue(vec![job(1), job(2).max_attempts(0)]),
        Step::Publish(vec![event(3), event(4).max_attempts(0)]),
        Step::Enqueue(vec![job(5)]),
    ];
    let replies = lab.play(script, Ending::Commit).await?;
    assert!(
        matches!(replies[1], Reply::Enqueue(Err(_)))
            && matches!(replies[2], Reply::Publish(Err(_)))
    );
    let dump = lab.dump().await?;
    let counts = ["jobs", "events", "lab_rows"].map(|table| dump.rows(table).len());
    assert_eq!(counts, [1, 0, 1]);
    Ok(())
}
