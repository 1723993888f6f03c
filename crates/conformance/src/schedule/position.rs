//! Owns where schedules begin: what is stored, what the time is, and which acts meet there.

use std::time::Duration;

use leasehold_core::lab::LabStore;
use leasehold_core::{
    ClaimRequest, Control, EventClaimRequest, JobId, OnFailure, PutDocument, QueueName,
    QueueSettings, RecordId, Result, StoreExt, VerdictKind,
};

use super::act::{Act, BEFORE, claim_id, id, numbered, ordered, request, settlement, worker};
use crate::lab::{job_in, json, key};

/// A beginning.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Its name in test lines.
    pub name: &'static str,
    /// The acts each of which meets each.
    pub acts: &'static [Act],
    /// How long after the preparation the acts are done.
    pub later: Duration,
}

impl Position {
    /// Whether the first job has been claimed before.
    pub(super) fn is_claimed(&self) -> bool {
        let unclaimed = ["nothing", "waiting", "partitions", "outbox", "delivery", "records"];
        !unclaimed.contains(&self.name)
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

use VerdictKind::{Cancel, DeadLetter, Fail, Release, Retry, Snooze, Succeed};

/// Every beginning.
pub const POSITIONS: [Position; 14] = [
    Position {
        name: "nothing",
        acts: &[
            Act::EnqueueKey,
            Act::EnqueueOther,
            Act::EnqueueSame,
            Act::JoinedEnqueueKey,
            Act::LooseEnqueueKey,
            Act::EnqueueVersion,
            Act::Claim,
            Act::PublishSame,
            Act::Find,
        ],
        later: seconds(0),
    },
    Position {
        name: "waiting",
        acts: &[
            Act::Claim,
            Act::ClaimTwo,
            Act::Cancel(1),
            Act::EnqueueKey,
            Act::EnqueueOther,
            Act::JoinedEnqueueKey,
            Act::EnqueueChild,
            Act::EnqueueNew,
            Act::Pause,
            Act::Reclaim,
            Act::Prune,
            Act::Stats,
        ],
        later: seconds(1),
    },
    Position {
        name: "leased",
        acts: &[
            Act::Claim,
            Act::Renew,
            Act::Progress,
            Act::Settle(Succeed),
            Act::Settle(Retry),
            Act::Settle(Snooze),
            Act::Settle(Release),
            Act::Settle(Fail),
            Act::Settle(DeadLetter),
            Act::Settle(Cancel),
            Act::JoinedSettle(Succeed),
            Act::JoinedSettle(Retry),
            Act::LooseSettle(Succeed),
            Act::JoinedProgress,
            Act::Cancel(1),
            Act::Reclaim,
            Act::Prune,
            Act::EnqueueKey,
            Act::BumpEpoch,
            Act::Find,
        ],
        later: seconds(10),
    },
    Position {
        name: "lapsed",
        acts: &[
            Act::Claim,
            Act::Reclaim,
            Act::Renew,
            Act::Progress,
            Act::Settle(Succeed),
            Act::Settle(Release),
            Act::JoinedSettle(Succeed),
            Act::LooseSettle(Succeed),
            Act::Cancel(1),
            Act::Prune,
            Act::Stats,
        ],
        later: seconds(60),
    },
    Position {
        name: "repeated",
        acts: &[
            Act::ClaimAgain,
            Act::Claim,
            Act::Settle(Succeed),
            Act::Settle(Release),
            Act::Progress,
            Act::JoinedProgress,
            Act::Cancel(1),
            Act::Renew,
        ],
        later: seconds(1),
    },
    Position {
        name: "ended",
        acts: &[
            Act::Prune,
            Act::Settle(Succeed),
            Act::Settle(Fail),
            Act::JoinedSettle(Succeed),
            Act::EnqueueKey,
            Act::EnqueueSame,
            Act::JoinedEnqueueKey,
            Act::EnqueueChild,
            Act::Claim,
            Act::Reopen,
            Act::Find,
        ],
        later: seconds(40 * 86_400),
    },
    Position {
        name: "failed",
        acts: &[Act::Reopen, Act::Claim, Act::Settle(Fail), Act::Cancel(1), Act::Prune, Act::Stats],
        later: seconds(40 * 86_400),
    },
    Position {
        name: "parent",
        acts: &[
            Act::Settle(Succeed),
            Act::Settle(Fail),
            Act::Settle(Retry),
            Act::JoinedSettle(Succeed),
            Act::LooseSettle(Succeed),
            Act::EnqueueChild,
            Act::Cancel(1),
            Act::Cancel(2),
            Act::Claim,
            Act::Find,
        ],
        later: seconds(1),
    },
    Position {
        name: "full",
        acts: &[
            Act::Claim,
            Act::ClaimTwo,
            Act::Settle(Succeed),
            Act::Settle(Release),
            Act::JoinedSettle(Succeed),
            Act::Limit(Some(2)),
            Act::StoreLimit,
            Act::Renew,
        ],
        later: seconds(1),
    },
    Position {
        name: "full_and_lapsed",
        acts: &[
            Act::Claim,
            Act::ClaimTwo,
            Act::Reclaim,
            Act::Renew,
            Act::Settle(Succeed),
            Act::Limit(None),
            Act::Cancel(2),
        ],
        later: seconds(60),
    },
    Position {
        name: "partitions",
        acts: &[
            Act::Claim,
            Act::ClaimTwo,
            Act::Cancel(1),
            Act::EnqueuePartition,
            Act::Limit(Some(1)),
            Act::Reclaim,
        ],
        later: seconds(1),
    },
    Position {
        name: "outbox",
        acts: &[
            Act::ClaimEvents,
            Act::PublishSame,
            Act::Publish,
            Act::JoinedPublish,
            Act::ReclaimEvents,
            Act::Prune,
        ],
        later: seconds(1),
    },
    Position {
        name: "delivery",
        acts: &[
            Act::ClaimEvents,
            Act::RenewEvent,
            Act::Deliver,
            Act::RetryEvent,
            Act::ReclaimEvents,
            Act::Publish,
            Act::JoinedPublish,
            Act::BumpEpoch,
        ],
        later: seconds(20),
    },
    Position {
        name: "records",
        acts: &[Act::Put, Act::Delete, Act::Once, Act::Take, Act::Prune],
        later: seconds(1),
    },
];

/// A claim by whoever came before the sessions.
fn before() -> ClaimRequest {
    request(BEFORE).limit(1)
}

/// Brings an empty store to a beginning.
pub(super) async fn prepare(store: &dyn LabStore, position: &str) -> Result<()> {
    match position {
        "nothing" => return Ok(()),
        "outbox" | "delivery" => return prepare_events(store, position).await,
        "records" => {
            let document = RecordId::new("files", "a")?;
            return store.put(PutDocument::new(document, json(1))).await.map(|_| ());
        }
        "partitions" => return prepare_partitions(store).await,
        _ => {}
    }
    let _first = store.enqueue_one(numbered(1).key(key("key 1"))).await?;
    if position == "waiting" {
        return Ok(());
    }
    assert_eq!(store.claim(before()).await?.len(), 1);
    match position {
        "ended" => drop(store.settle_one(settlement(Succeed)).await?),
        "failed" => drop(store.settle_one(settlement(Fail)).await?),
        "parent" => {
            let child = numbered(2).after(JobId::from_uuid(id(1)), OnFailure::Cancel);
            drop(store.enqueue_one(child).await?);
        }
        "full" | "full_and_lapsed" => {
            let one = QueueSettings::new().limit(Some(1));
            let _set = store.control(Control::SetQueue(QueueName::default_queue(), one)).await?;
            drop(store.enqueue_one(numbered(2)).await?);
        }
        _ => {}
    }
    Ok(())
}

async fn prepare_events(store: &dyn LabStore, position: &str) -> Result<()> {
    store.publish(vec![ordered(21), ordered(22)]).await?;
    if position == "delivery" {
        let claim = EventClaimRequest::new(worker(BEFORE)).claim_id(claim_id(BEFORE)).limit(1);
        assert_eq!(store.claim_events(claim).await?.len(), 1);
    }
    Ok(())
}

async fn prepare_partitions(store: &dyn LabStore) -> Result<()> {
    let one = QueueSettings::new().partition_limit(Some(1));
    let _set = store.control(Control::SetQueue(QueueName::default_queue(), one)).await?;
    let jobs = [(1, "a"), (2, "a"), (3, "b")];
    let jobs = jobs.map(|(number, name)| job_in(name, 1).id(JobId::from_uuid(id(number))));
    for answer in store.enqueue(jobs.into()).await? {
        let _new = answer?;
    }
    Ok(())
}
