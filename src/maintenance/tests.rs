//! The skew of clocks, and what a pass of the reaper moves and says.

use leasehold_core::lab::LabStore;
use leasehold_core::{
    AuditFilter, ClaimRequest, JobKind, Json, MemoryStore, NewJob, Paging, QueueName, StoreExt,
    WorkerId,
};

use super::*;
use crate::worker::tests::fake::Fake;

/// Proves: GLO-7
#[test]
fn skew_is_what_the_call_itself_cannot_explain() {
    let at = |s: u64| Timestamp::MIN.plus(Duration::from_secs(s));
    assert_eq!(skew(at(10), at(12), at(13)), Duration::ZERO);
    assert_eq!(skew(at(10), at(7), at(13)), Duration::from_secs(3));
    assert_eq!(skew(at(10), at(17), at(13)), Duration::from_secs(4));
}

/// Passes go on until nothing is left, however much each of them manages; what their reports say adds up.
///
/// Proves: RP-1, LOG-2
#[tokio::test]
async fn passes_take_everything_back_and_report_what_they_moved() {
    let store = Arc::new(MemoryStore::lab(Timestamp::MIN.plus(Duration::from_secs(1_000))));
    for _ in 0..250 {
        let job = NewJob::new(JobKind::new("k").unwrap(), Json::parse("1").unwrap());
        let _new = store.enqueue_one(job).await.unwrap();
    }
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(250);
    assert_eq!(store.claim(request).await.unwrap().len(), 250);
    store.clock().unwrap().advance(Duration::from_secs(3600));
    let upkeep = Maintenance::new(store.clone()).page_pause(Duration::ZERO);
    let mut moved = 0;
    let mut passes = 0;
    while moved < 250 {
        let pass = upkeep.run_once().await.unwrap().jobs;
        assert!(pass == 250 - moved || (pass > 0 && pass.is_multiple_of(100)), "whole pages");
        moved += pass;
        passes += 1;
    }
    assert_eq!(upkeep.run_once().await.unwrap().jobs, 0);
    let filter = AuditFilter::new().action(report::PASS);
    let said = store.records().audit(filter, Paging::first(1_000)).await.unwrap().items;
    assert_eq!(said.len(), passes, "a report for each pass that moved anything, and no other");
    let returned: u64 = said
        .iter()
        .map(|entry| {
            let detail = Json::parse(entry.detail.as_deref().unwrap()).unwrap();
            let fields: std::collections::BTreeMap<String, u64> = detail.read().unwrap();
            assert_eq!(fields.len(), 6, "fixed fields");
            fields["jobs_returned"]
        })
        .sum();
    assert_eq!(returned, 250);
}

/// A round costs the same however long a history the store keeps: it counts nothing.
///
/// Proves: RP-1
#[tokio::test]
async fn a_round_counts_no_rows() {
    let store = Fake::default();
    let _upkept = Maintenance::new(Arc::new(store.clone())).run_once().await.unwrap();
    assert_eq!(store.script(|script| script.looks.clone()), [StatsScope::Health]);
}
