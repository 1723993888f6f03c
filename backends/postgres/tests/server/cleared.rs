//! Owns the check that a schema cleared for the next test is as one that is made anew.

use std::time::Duration;

use leasehold_core::lab::{Dump, Ending, LabStore, Step};
use leasehold_core::{StoreExt, Timestamp};
use leasehold_postgres::{LabSchemas, PostgresStore};

use crate::place::{Place, job, request, soon};

fn start() -> Timestamp {
    Timestamp::saturating(1_800_000_000_000_000)
}

/// Leaves rows in many tables; what they come to.
async fn used(store: &dyn LabStore) -> Dump {
    let rows = vec![Step::OwnRow("mine".to_owned())];
    store.play(rows, Ending::Commit).await.expect("a row");
    let jobs: Vec<_> = (0..5).map(job).collect();
    for answer in store.enqueue(jobs).await.expect("enqueued") {
        assert!(answer.expect("a job").is_new());
    }
    let claims = store.claim(request(2)).await.expect("claimed");
    assert_eq!(claims.len(), 2);
    store.renew_one(claims[0].fence).await.expect("renewed");
    store.dump().await.expect("a dump")
}

/// The store of the same connections, and the next one in the same schema, hold what a fresh one does.
pub(crate) async fn a_schema_is_used_again_as_if_it_were_new(place: Place) {
    let fresh = PostgresStore::lab(place.server(), &place.schema, Some(start())).await;
    let empty = fresh.expect("a store").dump().await.expect("a dump");
    let same = |found: &Dump| assert_eq!(empty.difference(found), "");

    let schemas = LabSchemas::new(place.server(), "cleared");
    let first = schemas.store(start()).await.expect("a store");
    let beside = schemas.store(start()).await.expect("another");
    same(&first.dump().await.expect("a dump"));
    used(&first).await;
    let clock = first.clock().expect("a clock");
    clock.advance(Duration::from_secs(7));
    let second = first.anew(start()).await.expect("cleared").expect("a store");
    drop(first);
    same(&second.dump().await.expect("a dump"));
    assert_eq!(second.clock().expect("a clock").now(), start());
    used(&*second).await;
    same(&beside.dump().await.expect("a dump"));

    assert_eq!(schemas.idle(), 0, "a schema whose store is used");
    drop(second);
    // The listener of a store that is gone lets go of its schema a moment later.
    let idle = async {
        while schemas.idle() == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    soon("an idle schema", idle).await;
    let third = schemas.store(start()).await.expect("a store");
    assert_eq!(schemas.idle(), 0, "the idle one is used");
    same(&third.dump().await.expect("a dump"));
    assert!(!used(&third).await.difference(&empty).is_empty());
}
