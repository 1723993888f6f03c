//! Owns what open transactions do to the outbox: what commits late is delivered late, never lost.

use leasehold_core::{
    EventClaimRequest, EventId, EventSettlement, EventVerdict, Json, NewEvent, OrderKey, Ordering,
    Store, Topic, WorkerId,
};
use leasehold_postgres::PostgresStore;

use crate::place::{Place, soon, until_blocked};

fn event(number: usize) -> NewEvent {
    let payload = Json::parse(number.to_string()).expect("JSON");
    NewEvent::new(Topic::new("mail").expect("a topic"), payload)
}

/// Delivers all that is due, and says what it was.
async fn deliver(store: &PostgresStore) -> Vec<EventId> {
    let mut delivered = Vec::new();
    loop {
        let request = EventClaimRequest::new(WorkerId::new());
        let claims = store.claim_events(request).await.expect("claimed");
        if claims.is_empty() {
            return delivered;
        }
        for claim in claims {
            delivered.push(claim.fence.event());
            let end = EventSettlement::new(claim.fence, EventVerdict::Delivered);
            store.settle_events(vec![end]).await.expect("asked").remove(0).expect("settled");
        }
    }
}

/// An event whose transaction began first and commits last is delivered after one that overtook it.
///
/// Proves: TX-1, TX-9
pub(crate) async fn late_commits_are_delivered(place: Place) {
    let (store, _clock) = place.manual().await;
    for ordering in [None, Some(Ordering::Key(OrderKey::new("late").expect("a key")))] {
        let of = |number, ordering: &Option<Ordering>| match ordering {
            Some(ordering) => event(number).ordering(ordering.clone()),
            None => event(number),
        };
        let mut session = place.session().await;
        let open = session.transaction().await.expect("begun");
        let (late, early) = (of(1, &ordering), event(2));
        let ids = (late.id, early.id);
        store.join(&open).publish(&[late]).await.expect("published");
        soon("a publish", store.publish(vec![early])).await.expect("published");
        assert_eq!(deliver(&store).await, [ids.1]);
        open.commit().await.expect("committed");
        assert_eq!(deliver(&store).await, [ids.0]);
        assert_eq!(deliver(&store).await, []);
    }
}

/// Under one key the second publisher waits for the first, so that no number overtakes a lower one.
///
/// Proves: TX-3, TX-9
pub(crate) async fn one_key_waits_for_its_open_publisher(place: Place) {
    let (store, _clock) = place.manual().await;
    let of = |number| {
        let key = OrderKey::new("account-7").expect("a key");
        event(number).ordering(Ordering::Key(key))
    };
    let watcher = place.session().await;
    for commits in [true, false] {
        let mut session = place.session().await;
        let open = session.transaction().await.expect("begun");
        let (first, second) = (of(1), of(2));
        let ids = (first.id, second.id);
        let numbered = store.join(&open).publish(&[first]).await.expect("published");
        let publisher = store.clone();
        let waiting = tokio::spawn(async move { publisher.publish(vec![second]).await });
        until_blocked(&watcher, &place.schema, 1).await;
        assert_eq!(deliver(&store).await, []);
        if commits {
            open.commit().await.expect("committed");
        } else {
            open.rollback().await.expect("rolled back");
        }
        let answer = soon("a publish", waiting).await.expect("no panic").expect("published");
        let first_number = numbered[0].sequence.expect("a number");
        let expected = if commits { first_number + 1 } else { first_number };
        assert_eq!(answer[0].sequence, Some(expected));
        let both = if commits { vec![ids.0, ids.1] } else { vec![ids.1] };
        assert_eq!(deliver(&store).await, both);
    }
}
