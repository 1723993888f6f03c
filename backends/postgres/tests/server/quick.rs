//! Owns the quick ways: that each is taken, as one statement, and that what another process has changed meanwhile is
//! seen by them as by the long ones.

use leasehold_core::{
    Actor, Control, ErrorKind, Lifecycle, OnFailure, PartitionName, QueueName, QueueSettings,
    Settlement, Store, StoreExt, Verdict,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::Client;

use crate::place::{Place, fill, job, request, take, until_blocked};

fn done(claim: &leasehold_core::Claim) -> Settlement {
    Settlement::new(claim.fence, Verdict::Succeed { result: None })
}

async fn count(session: &Client, text: &str) -> i64 {
    session.query_one(text, &[]).await.expect("a count").get(0)
}

/// Whether the last statement of one of the store's sessions was one that is a transaction by itself.
async fn was_alone(session: &Client, application: &str, statement: &str) -> bool {
    let text = format!(
        "select count(*) from pg_stat_activity where application_name = '{application}' \
         and query like '-- {statement}%' and state = 'idle'"
    );
    count(session, &text).await > 0
}

/// Enqueue, claim and settlement of what is most common are a statement each.
///
/// Proves: WQ-1, WQ-3
pub(crate) async fn each_way_is_one_statement(place: Place) {
    let session = place.session().await;
    let name = format!("quick_{}", std::process::id());
    let join = if place.server().contains('?') { '&' } else { '?' };
    let url = format!("{}{join}application_name={name}", place.server());
    let store = PostgresStore::lab(&url, &place.schema, None).await.expect("a store");
    fill(&store, 1).await; // makes the queue
    let alone = |statement| was_alone(&session, &name, statement);
    fill(&store, 2).await;
    assert!(alone("An enqueue that is a transaction by itself").await);
    let claims = take(&store, 3).await;
    assert!(alone("A claim from one queue that is a transaction by itself").await);
    let settlements: Vec<Settlement> = claims.iter().map(done).collect();
    let settled = store.settle(settlements.clone()).await.expect("settled");
    assert!(settled.iter().all(|it| it.as_ref().is_ok_and(|it| !it.repeated)), "{settled:?}");
    assert!(alone("Ends leased jobs of one claim in one way").await);
    let again = store.settle(settlements).await.expect("settled");
    assert!(again.iter().all(|it| it.as_ref().is_ok_and(|it| it.repeated)), "{again:?}");
}

/// Claims of several calls, and one whose fence is lost, are answered each for itself in one call.
///
/// Proves: WQ-4, PAR-2
pub(crate) async fn each_fence_answers_for_itself(place: Place) {
    let store = place.store().await;
    fill(&store, 6).await;
    let mut claims = take(&store, 2).await;
    claims.extend(take(&store, 2).await);
    claims.extend(take(&store, 2).await);
    store
        .settle_one(Settlement::new(claims[1].fence, Verdict::Release { delay: None }))
        .await
        .expect("released");
    let newer = take(&store, 1).await.remove(0);
    let settled = store.settle(claims.iter().map(done).collect()).await.expect("answers");
    for (at, answer) in settled.iter().enumerate() {
        match answer {
            Ok(settled) => assert!(at != 1 && !settled.repeated),
            Err(error) => assert!(at == 1 && error.is_fence_lost(), "{at}: {error}"),
        }
    }
    store.settle_one(done(&newer)).await.expect("the newer claim's");
    let session = place.session().await;
    let ended = format!("select count(*) from \"{}\".jobs where state = 'succeeded'", place.schema);
    assert_eq!(count(&session, &ended).await, 6);
}

/// What another store changes holds for the next quick call: log, limits, a pause, jobs that wait, the
/// epoch, a lifecycle's revision.
///
/// Proves: WQ-5, PAR-2
pub(crate) async fn changes_by_others_are_seen(place: Place) {
    let store = place.store().await;
    fill(&store, 5).await;
    let claim = take(&store, 1).await.remove(0);
    let other =
        PostgresStore::lab_again(place.server(), &place.schema, None).await.expect("another");
    let session = place.session().await;
    let queue = QueueName::default_queue;
    let set = |settings| other.control(Control::SetQueue(queue(), settings));
    let claimed = |limit| store.claim(request(limit));

    let child = job(9).after(claim.job.id, OnFailure::Cancel);
    other.enqueue(vec![child.clone()]).await.expect("enqueued");
    store.settle_one(done(&claim)).await.expect("settled");
    let held = format!("select count(*) from \"{}\".jobs where held", place.schema);
    assert_eq!(count(&session, &held).await, 0, "the child is free");

    set(QueueSettings::new().limit(Some(2))).await.expect("limited");
    assert_eq!(claimed(5).await.expect("claimed").len(), 2);
    assert_eq!(claimed(5).await.expect("claimed").len(), 0);
    set(QueueSettings::new().limit(None)).await.expect("without limit");
    other.control(Control::Pause(queue())).await.expect("paused");
    assert_eq!(claimed(5).await.expect("claimed").len(), 0);
    other.control(Control::Resume(queue())).await.expect("resumed");
    other.control(Control::SetStoreLimit(Some(2))).await.expect("limited");
    assert_eq!(claimed(5).await.expect("claimed").len(), 0);
    other.control(Control::SetStoreLimit(None)).await.expect("without limit");
    let last = claimed(5).await.expect("claimed");
    assert_eq!(last.len(), 3);

    set(QueueSettings::new().log(Some(true))).await.expect("logged");
    fill(&store, 2).await;
    assert_eq!(claimed(5).await.expect("claimed").len(), 2);
    let logged =
        format!("select count(*) from \"{}\".transitions where verb = 'claim'", place.schema);
    assert_eq!(count(&session, &logged).await, 2);

    let text = Lifecycle::standard().to_json().expect("a text");
    let newer = text.replacen("\"revision\":1", "\"revision\":7", 1);
    let newer = Lifecycle::from_json(&newer).expect("a lifecycle");
    other.control(Control::Register(Box::new(newer))).await.expect("registered");
    fill(&store, 1).await;
    let newest = format!("select count(*) from \"{}\".jobs where revision = 7", place.schema);
    assert_eq!(count(&session, &newest).await, 1);

    let actor = Actor::new("operator").expect("an actor");
    other.control(Control::BumpEpoch { actor }).await.expect("raised");
    let lost = store.settle_one(done(&last[0])).await.expect_err("of an older epoch");
    assert_eq!(lost.kind(), ErrorKind::FenceLost);
}

/// A child that a transaction adds while the quick settlement waits for the parent's row is seen by it; so is one that is
/// enqueued together with its parents, by the store or in a caller's transaction.
///
/// Proves: FAN-1, FAN-2
pub(crate) async fn children_added_meanwhile_are_seen(place: Place) {
    let store = place.store().await;
    fill(&store, 1).await;
    let claim = take(&store, 1).await.remove(0);
    let (mut other, watcher) = (place.session().await, place.session().await);
    let tx = other.transaction().await.expect("begun");
    let child = job(7).after(claim.job.id, OnFailure::Cancel);
    store.join(&tx).enqueue(std::slice::from_ref(&child)).await.expect("asked");
    let (settling, settlement) = (store.clone(), done(&claim));
    let settling = tokio::spawn(async move { settling.settle_one(settlement).await });
    until_blocked(&watcher, &place.schema, 1).await;
    tx.commit().await.expect("committed");
    settling.await.expect("no panic").expect("settled");
    let claim = take(&store, 1).await.remove(0);
    assert_eq!(claim.job.id, child.id);
    store.settle_one(done(&claim)).await.expect("settled");

    let partition = PartitionName::new("p").expect("a name");
    for (joined, first) in [(false, 8), (true, 12)] {
        let parents = [job(first), job(first + 1), job(first + 2).partition(partition.clone())];
        let child =
            parents.iter().fold(job(first + 3), |it, one| it.after(one.id, OnFailure::Cancel));
        let all: Vec<_> = parents.into_iter().chain([child.clone()]).collect();
        let answers = if joined {
            let tx = other.transaction().await.expect("begun");
            let answers = store.join(&tx).enqueue(&all).await.expect("asked");
            tx.commit().await.expect("committed");
            answers
        } else {
            store.enqueue(all).await.expect("asked")
        };
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        for claim in take(&store, 3).await {
            store.settle_one(done(&claim)).await.expect("settled");
        }
        let claim = take(&store, 1).await.remove(0);
        assert_eq!(claim.job.id, child.id);
        store.settle_one(done(&claim)).await.expect("settled");
    }
}
