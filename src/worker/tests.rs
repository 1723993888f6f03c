//! What a handler's end becomes, without a store; `running` plays whole workers.

pub(crate) mod fake;
mod lanes;
mod running;

use leasehold_core::{
    ClaimId, ClaimVersion, Epoch, Error, Failure, FailureCode, Fence, JobId, RetryPolicy, Verdict,
    WorkerId,
};

use super::name::name_of;
use super::run::rotated;
use super::settle::stand_in;
use super::{Handled, HandlerError};
use crate::trace::Trace;

fn fence() -> Fence {
    let version = ClaimVersion::ZERO.next();
    Fence::from_parts(JobId::new(), version, ClaimId::new(), WorkerId::new(), Epoch::default())
}

/// Proves: RT-1
#[test]
fn a_conflict_is_tried_again_only_where_idempotent() {
    let end = |idempotent| {
        let failed = HandlerError::from(Failure::new(FailureCode::VersionConflict, "taken"));
        failed.into_verdict(1, idempotent, &RetryPolicy::default())
    };
    assert!(matches!(end(true), Verdict::Retry { .. }));
    assert!(matches!(end(false), Verdict::DeadLetter { .. }));
}

/// Proves: RT-1
#[test]
fn any_error_becomes_a_failure() {
    let error = HandlerError::from(std::io::Error::other("disk gone"));
    assert_eq!(error.failure().code(), FailureCode::HandlerFailed);
    assert_eq!(error.failure().message(), "disk gone");
}

/// Proves: RT-1
#[test]
fn a_result_that_is_no_json_is_a_failure_of_its_own() {
    let bad = std::collections::BTreeMap::from([((1, 2), 3)]);
    let settlement = Handled::done_with(&bad).into_settlement(fence(), Vec::new(), Trace::of(None));
    let failure = settlement.as_ref().expect("a settlement").verdict.failure().expect("a failure");
    assert_eq!(failure.code(), FailureCode::ResultInvalid);
}

/// Proves: WQ-13
#[test]
fn an_empty_name_counts_as_unset() {
    let (id, some) = (WorkerId::new(), |text: &str| Some(text.to_owned()));
    assert_eq!(name_of(id, some("pod"), some("host")), "pod");
    assert_eq!(name_of(id, some(""), some("host")), "host");
    assert_eq!(name_of(id, some(""), some("")), id.to_string());
    assert_eq!(name_of(id, None, None), id.to_string());
}

/// Proves: PF-1
#[test]
fn every_sixteenth_claim_starts_at_another_queue() {
    let first = |claim| rotated(&["a", "b", "c"], claim).first().copied();
    for claim in (1..=160).filter(|claim| claim % 16 != 0) {
        assert_eq!(first(claim), Some("a"), "claim {claim}");
    }
    let others: Vec<_> = (1..=4).filter_map(|round| first(round * 16)).collect();
    assert_eq!(others, ["b", "c", "b", "c"]);
    assert_eq!(rotated(&["only"], 16), ["only"]);
}

/// Proves: WQ-11
#[test]
fn a_refused_settlement_becomes_a_failure_of_the_job() {
    let verdict = stand_in(&Error::invalid("settle", "the result is too large"));
    let failure = verdict.failure().expect("a failure");
    assert_eq!(failure.code(), FailureCode::ResultInvalid);
    assert!(!failure.is_retryable());
}
