//! Owns what stands in the database before the inserts, a bench's jobs among it, and how it has to go
//! on afterwards.

use std::time::Duration;

use leasehold::{
    ClaimRequest, Failure, FailureCode, Fence, IdempotencyKey, JobKind, Json, LeaseLength, NewJob,
    PruneRequest, QueueName, Settlement, StoreExt, Verdict, WorkerId,
};
use leasehold_cli::bench::workload::{Load, Workload, fresh_queue};
use leasehold_cli::connect::{Opened, connect};
use leasehold_conformance::invariants;
use leasehold_core::lab::{Cell, Cells, Dump};

use crate::place::Place;

/// A store in use, and the claims that somebody holds in it.
pub(crate) struct Crowd {
    opened: Opened,
    held: Vec<Fence>,
}

/// Runs a drain of the bench, then leaves jobs in every state under keys that inserts will ask for.
pub(crate) async fn fill(place: &Place) -> Crowd {
    let opened = connect(&place.url()).await.expect("a store");
    let load = Load {
        opened: opened.clone(),
        queue: fresh_queue().expect("a queue"),
        jobs: 200,
        slots: 20,
        rows: 0,
        processes: vec![],
        log: true,
        partitions: 0,
    };
    for workload in [Workload::W3, Workload::W2By100] {
        assert_eq!(workload.run(&load).await.expect("a run").len(), 1);
    }
    let store = &opened.store;
    for key in ["one", "two", "held", "done", "dead", "failed", "gone", "open"] {
        let kind = JobKind::new("k").expect("a kind");
        let job = NewJob::new(kind, Json::parse("{\"first\": true}").expect("JSON"));
        let job = job.key(IdempotencyKey::new(key).expect("a key"));
        assert!(store.enqueue_one(job).await.expect("enqueued").is_new());
    }
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]).limit(7);
    let claims = store.claim(request.lease(LeaseLength::MAX)).await.expect("claimed");
    assert_eq!(claims.len(), 7);
    let mut fences: Vec<Fence> = claims.into_iter().map(|claim| claim.fence).collect();
    let held = fences.split_off(3);
    let failure = || Failure::new(FailureCode::InvariantBroken, "no");
    let ends = [
        Verdict::Succeed { result: Some(Json::null()) },
        Verdict::DeadLetter { failure: failure() },
        Verdict::Fail { failure: failure() },
    ];
    for (fence, verdict) in fences.into_iter().zip(ends) {
        store.settle_one(Settlement::new(fence, verdict)).await.expect("settled");
    }
    let late = NewJob::new(JobKind::new("k").expect("a kind"), Json::null());
    let late = late.delay(Duration::from_secs(86_400 * 30));
    assert!(store.enqueue_one(late).await.expect("enqueued").is_new());
    Crowd { opened, held }
}

pub(crate) fn is_sound(dump: &Dump) {
    let broken = invariants::broken(dump);
    assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), first(&broken));
}

fn first(lines: &[String]) -> String {
    lines.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// Nothing but jobs, their keys and their queues has come, and every key belongs to the job that has it.
pub(crate) fn has_only_added(before: &Dump, after: &Dump) {
    let beyond = invariants::beyond_added(before, after);
    assert!(beyond.is_empty(), "{} changes:\n{}", beyond.len(), first(&beyond));
    let table = if after.cells("requests").is_empty() { "jobs" } else { "requests" };
    let id = if table == "jobs" { "id" } else { "job_id" };
    for row in after.cells(table).iter().filter(|row| row.get("key") != Some(&Cell::Null)) {
        let owns = |key: &Cells| {
            key.get("job_id") == row.get(id)
                && ["scope", "key"].iter().all(|column| key.get(*column) == row.get(*column))
        };
        assert!(after.cells("keys").iter().any(owns), "a job without its key: {row:?}");
    }
}

fn number(row: &Cells, column: &str) -> i64 {
    match row.get(column) {
        Some(Cell::Int(number)) => *number,
        _ => i64::MIN,
    }
}

impl Crowd {
    /// The held claims settle, every due job is claimed once and settles, and the rest stays.
    pub(crate) async fn goes_on(self, place: &Place, dump: &Dump) {
        let store = &self.opened.store;
        for fence in self.held {
            store.succeed(fence).await.expect("a claim that was held all along settles");
        }
        let waiting = dump.cells("jobs").iter();
        let waiting = waiting.filter(|row| row.get("state") == Some(&Cell::Text("waiting".into())));
        let hour = 3_600_000_000;
        let due = waiting.filter(|row| number(row, "run_at") <= number(row, "created_at") + hour);
        let due = due.count();
        let mut ended = 0;
        let names = dump.cells("queues").iter().filter_map(|row| match row.get("name") {
            Some(Cell::Text(name)) => QueueName::new(name).ok(),
            _ => None,
        });
        let queues: Vec<QueueName> = names.collect();
        loop {
            let mut taken = 0;
            for some in queues.chunks(50) {
                let request = ClaimRequest::new(WorkerId::new(), some.to_vec()).limit(500);
                let claims = store.claim(request).await.expect("every job can be read");
                taken += claims.len();
                let ends = claims
                    .iter()
                    .map(|claim| Settlement::new(claim.fence, Verdict::Succeed { result: None }));
                for told in store.settle(ends.collect()).await.expect("settled") {
                    told.expect("each settles");
                }
            }
            ended += taken;
            if taken == 0 {
                break;
            }
        }
        assert_eq!(ended, due, "each due job is claimed, once");
        store.prune(PruneRequest::default()).await.expect("pruned");
        is_sound(&place.dump().await);
    }
}
