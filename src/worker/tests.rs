//! What a handler's end becomes, without a store.

use leasehold_core::{
    ClaimId, ClaimVersion, Epoch, Failure, FailureCode, Fence, JobId, RetryPolicy, Verdict,
    WorkerId,
};

use super::{Handled, HandlerError};

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
    let settlement = Handled::done_with(&bad).into_settlement(fence());
    let failure = settlement.verdict.failure().expect("a failure");
    assert_eq!(failure.code(), FailureCode::ResultInvalid);
}
