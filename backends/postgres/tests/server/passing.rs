//! Owns who passes over rows that another session has locked, and who waits for them.

use std::time::Duration;

use leasehold_core::{
    Claim, ClaimRequest, Control, EventClaim, EventClaimRequest, EventSettlement, EventVerdict,
    Failure, FailureCode, Json, NewEvent, PartitionName, Progress, PruneRequest, QueueName,
    QueueSettings, ReclaimRequest, RenewRequest, Renewal, Store, StoreExt, Topic, WorkerId,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::place::{Place, fill, job, queue, request, soon, take, until_blocked};

/// Locks a row in a transaction of somebody else's.
async fn locked<'a>(
    session: &'a mut Client,
    place: &Place,
    table: &str,
    id: Uuid,
) -> Transaction<'a> {
    let tx = session.transaction().await.expect("begun");
    let lock = format!("select 1 from \"{}\".{table} where id = $1 for update", place.schema);
    assert_eq!(tx.execute(&lock, &[&id]).await.expect("locked"), 1);
    tx
}

async fn publish(store: &PostgresStore, number: i64) {
    let topic = Topic::new("mail").expect("a topic");
    let event = |n: i64| NewEvent::new(topic.clone(), Json::parse(n.to_string()).expect("JSON"));
    store.publish((0..number).map(event).collect()).await.expect("published");
}

async fn claim_events(store: &PostgresStore) -> Vec<EventClaim> {
    let claims = store.claim_events(EventClaimRequest::new(WorkerId::new()));
    soon("a claim of events", claims).await.expect("claimed")
}

async fn claim(store: &PostgresStore, request: ClaimRequest) -> Vec<Claim> {
    soon("a claim", store.claim(request)).await.expect("claimed")
}

/// A claim takes what is free: from one queue, from two, and from partitions.
///
/// Proves: WQ-3
pub(crate) async fn claims_pass_over_locked_jobs(place: Place) {
    let store = place.store().await;
    let mut other = place.session().await;
    for ways in 0..3 {
        let here = queue(&format!("way-{ways}"));
        let part = |n: usize| PartitionName::new(format!("p{n}")).expect("a partition");
        let new = |n: usize| match ways {
            2 => job(n).queue(here.clone()).partition(part(n)),
            _ => job(n).queue(here.clone()),
        };
        let jobs = store.enqueue((0..2).map(new).collect()).await.expect("enqueued");
        let first = jobs[0].as_ref().expect("new").job();
        let tx = locked(&mut other, &place, "jobs", first.as_uuid()).await;
        let queues = if ways == 1 { vec![here.clone(), queue("none")] } else { vec![here] };
        let asked = || ClaimRequest::new(WorkerId::new(), queues.clone()).limit(2);
        assert_eq!(claim(&store, asked()).await.len(), 1, "way {ways}");
        tx.rollback().await.expect("rolled back");
        assert_eq!(claim(&store, asked()).await[0].job.id, first, "way {ways}");
    }
}

/// Lapsed leases are taken back past one whose row is in use: in a queue, and in all.
///
/// Proves: WQ-7
pub(crate) async fn lapsed_leases_are_taken_back_past_a_locked_one(place: Place) {
    let (store, clock) = place.manual().await;
    fill(&store, 2).await;
    let here = ReclaimRequest::queues([QueueName::default_queue()]);
    for asked in [here, ReclaimRequest::jobs()] {
        let claims = take(&store, 2).await;
        clock.advance(Duration::from_secs(31));
        let mut other = place.session().await;
        let tx = locked(&mut other, &place, "jobs", claims[0].job.id.as_uuid()).await;
        let back = soon("a reclaim", store.reclaim(asked.clone())).await.expect("taken back");
        assert_eq!(back.jobs.iter().map(|it| it.0).collect::<Vec<_>>(), [claims[1].job.id]);
        tx.rollback().await.expect("rolled back");
        let back = store.reclaim(asked).await.expect("taken back");
        assert_eq!(back.jobs.iter().map(|it| it.0).collect::<Vec<_>>(), [claims[0].job.id]);
    }
}

/// A lease that has run out counts under the store's limit while somebody uses its row.
///
/// Proves: WQ-9
pub(crate) async fn lease_being_used_counts_for_all_queues(place: Place) {
    let (store, clock) = place.manual().await;
    store.control(Control::SetStoreLimit(Some(1))).await.expect("set");
    fill(&store, 2).await;
    let held = take(&store, 1).await.remove(0);
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    let report = Progress::new(held.fence, 1);
    store.join(&tx).progress(&[report]).await.expect("asked")[0].as_ref().expect("reported");
    clock.advance(Duration::from_secs(31));
    assert!(claim(&store, request(2)).await.is_empty());
    tx.rollback().await.expect("rolled back");
    assert_eq!(claim(&store, request(2)).await.len(), 1);
}

/// Claims, heartbeats and reclaims of deliveries pass over one whose row is in use.
///
/// Proves: WQ-5, TX-4
pub(crate) async fn deliveries_pass_over_locked_ones(place: Place) {
    let (store, clock) = place.manual().await;
    publish(&store, 2).await;
    let text = format!("select id from \"{}\".events order by run_at, id limit 1", place.schema);
    let mut other = place.session().await;
    let first: Uuid = other.query_one(&text, &[]).await.expect("an event").get(0);
    let tx = locked(&mut other, &place, "events", first).await;
    let mut claims = claim_events(&store).await;
    assert_eq!(claims.len(), 1);
    tx.rollback().await.expect("rolled back");
    claims.extend(claim_events(&store).await);
    assert_eq!(claims[1].fence.event().as_uuid(), first);
    let tx = locked(&mut other, &place, "events", first).await;
    let beat = store.renew_events(RenewRequest::new(claims.iter().map(|claim| claim.fence)));
    let answers = soon("a heartbeat", beat).await.expect("renewed");
    assert!(matches!(answers[..], [Renewal::Renewed { .. }, Renewal::Locked]), "{answers:?}");
    clock.advance(Duration::from_secs(31));
    let back = soon("a reclaim", store.reclaim(ReclaimRequest::events())).await;
    assert_eq!(back.expect("taken back").events_returned, 1);
    tx.rollback().await.expect("rolled back");
}

/// Of two ends of one delivery at once the second waits for the first, and is told that it came too late.
///
/// Proves: TX-6
pub(crate) async fn two_ends_of_a_delivery_have_one_winner(place: Place) {
    let store = place.store().await;
    publish(&store, 1).await;
    let fence = claim_events(&store).await.remove(0).fence;
    let mut other = place.session().await;
    let tx = locked(&mut other, &place, "events", fence.event().as_uuid()).await;
    let failure = Failure::new(FailureCode::SchemaInvalid, "no");
    let mut ending = Vec::new();
    for verdict in [EventVerdict::Delivered, EventVerdict::DeadLetter { failure }] {
        let beside = leasehold_postgres::open(&place.url("")).await.expect("a store beside");
        let end = EventSettlement::new(fence, verdict);
        ending.push(tokio::spawn(async move { beside.settle_events(vec![end]).await }));
    }
    until_blocked(&place.session().await, &place.schema, 2).await;
    tx.rollback().await.expect("rolled back");
    let mut won = 0;
    for it in ending {
        let answers = soon("an answer", it).await.expect("no panic").expect("asked");
        won += usize::from(answers[0].is_ok());
    }
    assert_eq!(won, 1);
}

/// A prune lets go of what is free.
///
/// Proves: QUE-4
pub(crate) async fn prunes_pass_over_locked_jobs(place: Place) {
    let store = place.store().await;
    fill(&store, 2).await;
    let claims = take(&store, 2).await;
    for claim in &claims {
        store.succeed(claim.fence).await.expect("settled");
    }
    let mut other = place.session().await;
    let tx = locked(&mut other, &place, "jobs", claims[0].job.id.as_uuid()).await;
    let all = || PruneRequest::new().older_than(Duration::ZERO);
    let pruned = soon("a prune", store.prune(all())).await.expect("pruned");
    assert_eq!(pruned.jobs, 1);
    tx.rollback().await.expect("rolled back");
    assert_eq!(store.prune(all()).await.expect("pruned").jobs, 1);
}

/// A limit holds for two claims at once: the second counts what the first has taken.
///
/// Proves: WQ-9
pub(crate) async fn limited_claims_wait_for_each_other(place: Place) {
    let store = place.store().await;
    let of_queue =
        |limit| Control::SetQueue(QueueName::default_queue(), QueueSettings::new().limit(limit));
    let ways = [
        ("queues where name = 'default'", [of_queue(Some(1)), Control::SetStoreLimit(None)]),
        ("store where id = 1", [of_queue(None), Control::SetStoreLimit(Some(1))]),
    ];
    for (row, limits) in ways {
        for limit in limits {
            store.control(limit).await.expect("set");
        }
        fill(&store, 2).await;
        let mut other = place.session().await;
        let tx = other.transaction().await.expect("begun");
        let lock = format!("select 1 from \"{}\".{row} for update", place.schema);
        assert_eq!(tx.execute(&lock, &[]).await.expect("locked"), 1);
        let mut claiming = Vec::new();
        for _ in 0..2 {
            let beside = leasehold_postgres::open(&place.url("")).await.expect("a store beside");
            claiming.push(tokio::spawn(async move { beside.claim(request(2)).await }));
        }
        until_blocked(&place.session().await, &place.schema, 2).await;
        tx.rollback().await.expect("rolled back");
        let mut claims = Vec::new();
        for it in claiming {
            claims.extend(soon("a claim", it).await.expect("no panic").expect("claimed"));
        }
        assert_eq!(claims.len(), 1, "{row}");
        store.succeed(claims[0].fence).await.expect("settled");
    }
}
