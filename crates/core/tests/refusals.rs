//! What is refused before any store sees it: lifecycles that could strand a job, jobs, events and audit
//! entries that break a limit. Each table names the reason that is given.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is how a test fails"
)]

use leasehold_core::lifecycle::{Budget, BudgetScope, LifecycleBuilder, Place};
use leasehold_core::{
    Actor, AuditEntry, Error, ErrorKind, JobId, JobKind, Json, LeaseLength, Lifecycle,
    LifecycleName, Limits, NewEvent, NewJob, OnFailure, Result, StageName, State, Timestamp, Topic,
    Verb,
};

fn stages(number: usize) -> Vec<StageName> {
    (0..number).map(|at| StageName::new(format!("stage-{at}")).unwrap()).collect()
}

/// A lifecycle of so many stages that is complete.
fn whole(number: usize) -> LifecycleBuilder {
    let name = LifecycleName::new("import").unwrap();
    Lifecycle::builder(name, stages(number)).from_leased(Verb::Exhaust, State::DeadLetter)
}

fn assert_refused<T: std::fmt::Debug>(answer: Result<T>, reason: &str) {
    let error: Error = answer.expect_err(reason);
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains(reason), "{error} does not say {reason:?}");
}

/// Proves: WQ-1
#[test]
fn a_lifecycle_that_could_strand_a_job_is_none() {
    assert!(whole(1).build().is_ok() && whole(64).build().is_ok());
    assert_refused(whole(0).build(), "has 0 stages");
    assert_refused(whole(65).build(), "has 65 stages");
    assert_refused(whole(2).revision(0).build(), "revision and attempts start at 1");
    let none = Budget { scope: BudgetScope::Stage, attempts: 0 };
    assert_refused(whole(2).budget(none).build(), "revision and attempts start at 1");
    let twice = [stages(1), stages(1)].concat();
    let name = LifecycleName::new("import").unwrap();
    assert_refused(Lifecycle::builder(name.clone(), twice).build(), "is listed twice");
    let again = whole(1).from_leased(Verb::Exhaust, State::Failed);
    assert_refused(again.build(), "is listed twice");
    let one = Lifecycle::builder(name, stages(2));
    let one = one.edge(Place::Leased(0), Verb::Exhaust, Place::Failed);
    assert_refused(one.build(), "stage 1 has no exhaust");
}

/// Proves: WQ-1
#[test]
fn a_verb_joins_only_the_places_it_can() {
    let (first, second, third) = (Place::Leased(0), Place::Leased(1), Place::Leased(2));
    let wrong = [
        (Place::Failed, Verb::Claim, first),
        (third, Verb::Advance, first),
        (Place::Waiting, Verb::Advance, second),
        (Place::Failed, Verb::Retry, Place::Waiting),
        (Place::Waiting, Verb::Reclaim, Place::Waiting),
        (Place::Waiting, Verb::Succeed, Place::Succeeded),
        (first, Verb::Succeed, Place::Failed),
        (Place::Waiting, Verb::Fail, Place::Failed),
        (first, Verb::Fail, Place::DeadLetter),
        (Place::Waiting, Verb::Exhaust, Place::Failed),
        (Place::Failed, Verb::DeadLetter, Place::DeadLetter),
        (first, Verb::DeadLetter, Place::Cancelled),
        (Place::Waiting, Verb::Cancel, Place::Cancelled),
        (first, Verb::Cancel, Place::Failed),
        (Place::Waiting, Verb::Bury, Place::DeadLetter),
        (Place::Failed, Verb::Bury, Place::Failed),
        (first, Verb::RequestCancel, Place::Cancelled),
        (Place::Waiting, Verb::RequestCancel, Place::Failed),
        (Place::DeadLetter, Verb::Reopen, Place::Waiting),
        (Place::Failed, Verb::Reopen, Place::Succeeded),
        (Place::Failed, Verb::Replay, Place::Waiting),
        (Place::DeadLetter, Verb::Replay, Place::Failed),
    ];
    for (from, verb, to) in wrong {
        let built = whole(3).edge(from, verb, to).build();
        assert_refused(built, "joins places this verb cannot join");
    }
    let doubled = [(Place::Waiting, Verb::Claim), (first, Verb::Snooze), (first, Verb::Exhaust)];
    for (from, verb) in doubled {
        assert_refused(whole(3).edge(from, verb, second).build(), "is listed twice");
    }
    for (from, to) in [(Place::Leased(3), Place::Failed), (first, Place::Leased(3))] {
        let built = whole(3).edge(from, Verb::Fail, to).build();
        assert_refused(built, "names a stage that does not exist");
    }
}

#[test]
fn a_job_that_breaks_a_limit_is_refused() {
    let plain = || NewJob::new(JobKind::new("resize").unwrap(), Json::null());
    let limits = Limits::default();
    assert!(plain().subject("picture", 0).check(&limits).is_ok());
    for (job, reason) in [
        (plain().max_attempts(0), "max_attempts is 0"),
        (plain().rerun(), "a rerun without a subject"),
        (plain().traceparent("x".repeat(256)), "traceparent is not"),
        (plain().traceparent("caf\u{e9}"), "traceparent is not"),
        (plain().subject("", 1), "the subject has 0 bytes"),
        (plain().subject("x".repeat(256), 1), "the subject has 256 bytes"),
        (plain().subject("a\u{7}b", 1), "without control characters"),
        (plain().subject("picture", -1), "the subject's version -1 is negative"),
    ] {
        assert_refused(job.check(&limits), reason);
    }
    let rerun = plain().subject("picture", 1).rerun();
    assert!(rerun.check(&limits).is_ok());
    assert_refused(rerun.check_as_statements(&limits), "a rerun needs the store's own enqueue");
    let waiting = plain().after(JobId::new(), OnFailure::Cancel);
    assert_refused(waiting.check_as_statements(&limits), "a job that waits for others");
}

#[test]
fn an_audit_entry_that_breaks_a_limit_is_refused() {
    let entry = |action: &str, target: &str| {
        AuditEntry::new(Actor::new("operator").unwrap(), action, target)
    };
    assert!(entry("look", "job 1").detail("x".repeat(16_384)).check().is_ok());
    for (entry, reason) in [
        (entry("", "job 1"), "the action has 0 bytes"),
        (entry("look", &"x".repeat(256)), "the target has 256 bytes"),
        (entry("lo\nok", "job 1"), "without control characters"),
        (entry("look", "job 1").detail("x".repeat(16_385)), "the detail has 16385 bytes"),
        (entry("look", "job 1").detail("a\0b"), "without U+0000"),
    ] {
        assert_refused(entry.check(), reason);
    }
}

#[test]
fn an_event_that_breaks_a_limit_is_refused() {
    let plain = || NewEvent::new(Topic::new("mail").unwrap(), Json::null());
    let mut limits = Limits::default();
    limits.payload_bytes_max = 10;
    assert!(plain().check(&limits).is_ok());
    let mut long = plain();
    long.payload = Json::of(&"x".repeat(9)).unwrap();
    for (event, reason) in [
        (long, "the payload has 11 bytes, at most 10"),
        (plain().max_attempts(0), "max_attempts is 0"),
        (plain().traceparent("x".repeat(256)), "traceparent is not"),
        (plain().traceparent("a b"), "traceparent is not"),
    ] {
        assert_refused(event.check(&limits), reason);
    }
}

#[test]
fn times_and_leases_out_of_range_are_refused() {
    for micros in [-1, Timestamp::MAX.as_micros() + 1] {
        assert_refused(Timestamp::from_micros(micros), "outside the years 1970 to 9999");
        assert!(Timestamp::from_micros(Timestamp::saturating(micros).as_micros()).is_ok());
    }
    for ms in [0, 999, 86_400_001, u64::MAX] {
        assert_refused(LeaseLength::from_millis(ms), "lies outside 1,000 ms");
    }
    assert_eq!(LeaseLength::from_millis(1_000).unwrap(), LeaseLength::MIN);
    assert_eq!(LeaseLength::from_millis(86_400_000).unwrap(), LeaseLength::MAX);
}

/// The leap years of four, of a hundred and of four hundred.
#[test]
fn times_are_shown_by_the_calendar() {
    for (seconds, shown) in [
        (0, "1970-01-01T00:00:00.000000Z"),
        (951_782_399, "2000-02-28T23:59:59.000000Z"),
        (951_782_400, "2000-02-29T00:00:00.000000Z"),
        (1_709_164_800, "2024-02-29T00:00:00.000000Z"),
        (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
        (253_402_300_799, "9999-12-31T23:59:59.000000Z"),
    ] {
        assert_eq!(Timestamp::saturating(seconds * 1_000_000).to_string(), shown);
    }
}
