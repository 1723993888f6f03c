//! The rules every engine shares, asked directly: rows in, decisions out, no database.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::row::JobRow;
use leasehold_core::rules::{Ids, Lifecycles, Work};
use leasehold_core::{
    ClaimRequest, Epoch, ErrorKind, Failure, FailureCode, Fence, HintKind, Hints, JobKind, Json,
    LeaseLength, LifecycleName, Limits, LostReason, NewJob, Place, QueueName, RenewRequest,
    Renewal, Settlement, State, Timestamp, Verdict, WorkerId,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + seconds * 1_000_000).unwrap()
}

fn work(now: Timestamp) -> Work {
    let mut limits = Limits::default();
    limits.id_skew_max = None;
    Work::new(now, Epoch::default(), limits, Arc::new(Lifecycles::shipped()), Ids::random())
}

/// A job of a lifecycle, leased for ten seconds from second 0 on.
fn leased(lifecycle: &str, attempts: u16) -> (JobRow, Fence) {
    let mut work = work(at(0));
    let job = NewJob::new(JobKind::new("resize").unwrap(), Json::parse("{}").unwrap())
        .lifecycle(LifecycleName::new(lifecycle).unwrap())
        .max_attempts(attempts);
    let hints = Hints::new();
    work.check_new_jobs(std::slice::from_ref(&job)).unwrap();
    let answers = work.enqueue(std::slice::from_ref(&job), &hints).unwrap();
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().is_new()));
    drop(hints.listen(HintKind::Jobs));
    let (mut row, _) = work.into_changes().jobs_new.pop().unwrap();

    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let lease = LeaseLength::from_millis(10_000).unwrap();
    self::work(at(0)).claim_row(&mut row, &request, lease);
    let fence =
        Fence::from_parts(row.id, row.version, request.claim, request.worker, Epoch::default());
    (row, fence)
}

fn verdicts() -> Vec<Verdict> {
    let failure = || Failure::new(FailureCode::NetworkTimeout, "no answer");
    vec![
        Verdict::Succeed { result: None },
        Verdict::Retry { failure: failure(), delay: None },
        Verdict::Snooze { delay: Duration::from_secs(1) },
        Verdict::Release { delay: None },
        Verdict::Fail { failure: failure() },
        Verdict::DeadLetter { failure: failure() },
        Verdict::Cancel { reason: None },
    ]
}

/// Proves: WQ-6
#[test]
fn no_verdict_counts_from_the_instant_the_lease_ends() {
    for verdict in verdicts() {
        let (row, fence) = leased("standard", 5);
        let mut work = work(at(10));
        work.load_jobs([row]);
        let error = work.settle(&Settlement::new(fence, verdict)).unwrap_err();
        assert_eq!(error.lost_reason(), Some(LostReason::Expired));
        assert!(work.into_changes().is_empty());
    }
}

/// Proves: WQ-8, WQ-15
#[test]
fn a_rewound_version_lets_no_earlier_claim_in() {
    for verdict in verdicts() {
        let (row, fence) = leased("standard", 5);
        let (mut other, _) = leased("standard", 5);
        other.id = row.id;
        assert_eq!(other.version, fence.version());
        let mut work = work(at(1));
        work.load_jobs([other]);
        let error = work.settle(&Settlement::new(fence, verdict)).unwrap_err();
        assert_eq!(error.lost_reason(), Some(LostReason::TakenOver));
        assert!(work.into_changes().is_empty());
    }
}

/// Proves: WQ-10, GLO-2
#[test]
fn a_repeated_verdict_is_recognised_and_writes_nothing() {
    for verdict in verdicts() {
        let (row, fence) = leased("standard", 5);
        let settlement = Settlement::new(fence, verdict);
        let mut first = work(at(1));
        first.load_jobs([row]);
        let settled = first.settle(&settlement).unwrap();
        let after = first.into_changes().jobs.pop().unwrap();

        let mut again = work(at(60));
        again.load_jobs([after]);
        let repeated = again.settle(&settlement).unwrap();
        assert!(repeated.repeated && !settled.repeated);
        assert_eq!(repeated.place, settled.place);
        assert!(again.into_changes().is_empty());
    }
}

/// Proves: WQ-8, WQ-20
#[test]
fn a_release_costs_no_attempt_and_raises_the_version() {
    let (row, fence) = leased("standard", 5);
    let mut work = work(at(1));
    work.load_jobs([row]);
    work.settle(&Settlement::new(fence, Verdict::Release { delay: None })).unwrap();
    let row = work.into_changes().jobs.pop().unwrap();
    assert_eq!((row.state, row.attempts, row.executions), (State::Waiting, 0, 0));
    assert_eq!(row.version, fence.version().next());
    assert!(row.lease.is_none());
}

/// Proves: WQ-16
#[test]
fn transcode_reaches_the_dead_letters_by_way_of_failed() {
    let (row, fence) = leased("transcode", 1);
    let mut work = work(at(1));
    work.load_jobs([row]);
    let failure = Failure::new(FailureCode::NetworkTimeout, "no answer");
    let verdict = Verdict::Retry { failure, delay: None };
    assert_eq!(work.settle(&Settlement::new(fence, verdict)).unwrap().place, Place::DeadLetter);
    let changes = work.into_changes();
    let moves: Vec<_> =
        changes.transitions.iter().map(|t| (t.sequence, &*t.from, &*t.to)).collect();
    assert_eq!(moves, [(1, "claimed", "failed"), (2, "failed", "dead_letter")]);
    assert_eq!(changes.events_new.len(), 2);
    assert_eq!(changes.dead_letters.len(), 1);
}

/// Proves: WQ-2
#[test]
fn an_unlisted_verdict_is_refused_and_writes_nothing() {
    let (row, fence) = leased("work_queue", 5);
    let mut work = work(at(1));
    work.load_jobs([row]);
    let error = work.settle(&Settlement::new(fence, Verdict::Cancel { reason: None })).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IllegalTransition);
    assert!(error.message().contains("work_queue"), "{error}");
    assert!(work.into_changes().is_empty());
}

/// Proves: WQ-7, WQ-8
#[test]
fn a_reclaim_raises_the_version_once_and_is_idempotent() {
    for attempts in [1, 5] {
        let (row, fence) = leased("standard", attempts);
        let id = row.id;
        let mut work = work(at(10));
        work.load_jobs([row]);
        let place = work.reclaim(id).unwrap().unwrap();
        let expected = if attempts == 1 { Place::DeadLetter } else { Place::Waiting };
        assert_eq!(place, expected);
        assert_eq!(work.reclaim(id).unwrap(), None);
        let row = work.into_changes().jobs.pop().unwrap();
        assert_eq!(row.version, fence.version().next());
    }
}

/// Proves: WQ-5
#[test]
fn a_renewal_after_the_end_revives_nothing() {
    let (row, fence) = leased("standard", 5);
    let mut work = work(at(10));
    work.load_jobs([row]);
    let renewal = work.renew(&fence, &RenewRequest::new([fence]));
    assert_eq!(renewal, Renewal::Lost(LostReason::Expired));
    assert!(work.into_changes().is_empty());
}
