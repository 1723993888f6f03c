//! Owns what two sessions do to each other: locks, limits, keys, snapshots.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::failpoint::Session;
use leasehold_core::{
    Actor, Admission, Admitted, Control, ErrorKind, EventClaimRequest, IdempotencyKey, Json,
    LeaseLength, LostReason, NewEvent, Once, Progress, QueueSettings, RenewRequest, Renewal,
    RequestHash, Scope, Settlement, Store, StoreExt, Topic, Verdict, WorkerId,
};
use leasehold_postgres::tokio_postgres::IsolationLevel;

use crate::place::{Place, fill, job, key, queue, request, soon, take, until_blocked};

/// Proves: WQ-5
pub(crate) async fn renewal_passes_over_locked_rows(place: Place) {
    let store = place.store().await;
    fill(&store, 2).await;
    let claims = take(&store, 2).await;
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    let report = Progress::new(claims[0].fence, 1);
    store.join(&tx).progress(&[report]).await.expect("asked")[0].as_ref().expect("reported");
    let fences = claims.iter().map(|claim| claim.fence);
    let renewals = soon("a renewal", store.renew(RenewRequest::new(fences))).await;
    let renewals = renewals.expect("renewed");
    assert_eq!(renewals[0], Renewal::Locked);
    assert!(matches!(renewals[1], Renewal::Renewed { .. }), "{renewals:?}");
    tx.commit().await.expect("committed");
    let renewal = store.renew_one(claims[0].fence).await.expect("renewed");
    assert!(matches!(renewal, Renewal::Renewed { .. }), "{renewal:?}");
}

/// Whoever holds the rows, a lease from before the epoch was raised is lost, and that is told at once.
///
/// Proves: WQ-5, WQ-12
pub(crate) async fn raised_epoch_is_told_past_locked_rows(place: Place) {
    let store = place.store().await;
    fill(&store, 1).await;
    let job = take(&store, 1).await.remove(0).fence;
    let topic = Topic::new("mail").expect("a topic");
    store.publish(vec![NewEvent::new(topic, Json::null())]).await.expect("published");
    let asked = EventClaimRequest::new(WorkerId::new());
    let event = store.claim_events(asked).await.expect("claimed").remove(0).fence;
    let actor = Actor::new("operator-7").expect("an actor");
    store.control(Control::BumpEpoch { actor }).await.expect("raised");
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    let schema = &place.schema;
    for table in ["jobs", "events"] {
        let lock = format!("select id from \"{schema}\".{table} for update");
        assert_eq!(tx.query(&lock, &[]).await.expect("locked").len(), 1);
    }
    let lost = [Renewal::Lost(LostReason::EpochRaised)];
    let answer = soon("a renewal", store.renew(RenewRequest::new([job]))).await;
    assert_eq!(answer.expect("answered"), lost);
    let answer = soon("a renewal", store.renew_events(RenewRequest::new([event]))).await;
    assert_eq!(answer.expect("answered"), lost);
    tx.rollback().await.expect("let go");
}

/// Proves: WQ-3
pub(crate) async fn no_job_is_claimed_twice(place: Place) {
    let store = place.store().await;
    fill(&store, 400).await;
    let mut workers = Vec::new();
    for _ in 0..8 {
        let store = store.clone();
        workers.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claims = store.claim(request(7)).await.expect("claimed");
                if claims.is_empty() {
                    return mine;
                }
                assert!(claims.len() <= 7);
                mine.extend(claims.iter().map(|claim| claim.fence.job()));
            }
        }));
    }
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.expect("no panic"));
    }
    assert_eq!(all.len(), 400);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 400);
}

/// Proves: WQ-9
pub(crate) async fn lease_limits_are_exact(place: Place) {
    let store = place.store().await;
    let limit = |limit| QueueSettings::new().limit(Some(limit));
    store.control(Control::SetQueue(queue("a"), limit(3))).await.expect("set");
    store.control(Control::SetStoreLimit(Some(5))).await.expect("set");
    for (name, number) in [("a", 30), ("b", 30)] {
        let jobs = (0..number).map(|n| job(n).queue(queue(name))).collect();
        store.enqueue(jobs).await.expect("enqueued");
    }
    for round in 0..6 {
        let mut workers = Vec::new();
        for number in 0..8 {
            let store = store.clone();
            let first = if number % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
            workers.push(tokio::spawn(async move {
                let mut wanted = request(2);
                wanted.queues = first.map(queue).to_vec();
                store.claim(wanted).await.expect("claimed")
            }));
        }
        let mut claims = Vec::new();
        for worker in workers {
            claims.extend(worker.await.expect("no panic"));
        }
        assert_eq!(claims.len(), 5, "round {round}");
        let of_a = claims.iter().filter(|claim| claim.job.queue == queue("a")).count();
        assert!(of_a <= 3, "round {round}: {of_a} of a");
        let ends = claims.iter();
        let ends = ends.map(|it| Settlement::new(it.fence, Verdict::Succeed { result: None }));
        store.settle(ends.collect()).await.expect("settled");
    }
}

/// Proves: WQ-9
pub(crate) async fn lease_being_used_counts_as_held(place: Place) {
    let (store, clock) = place.manual().await;
    let one = QueueSettings::new().limit(Some(1));
    let name = leasehold_core::QueueName::default_queue();
    store.control(Control::SetQueue(name, one)).await.expect("set");
    fill(&store, 2).await;
    let claim = take(&store, 1).await.remove(0);
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    let report = Progress::new(claim.fence, 1);
    store.join(&tx).progress(&[report]).await.expect("asked")[0].as_ref().expect("reported");
    clock.advance(Duration::from_secs(31));
    // It has run out, but who holds its row may have written a longer lease already.
    assert!(store.claim(request(2)).await.expect("claimed").is_empty());
    tx.rollback().await.expect("rolled back");
    assert_eq!(store.claim(request(2)).await.expect("claimed").len(), 1);
}

/// Proves: WQ-6, WQ-10
pub(crate) async fn lock_wait_does_not_lengthen_a_lease(place: Place) {
    let store = place.store().await;
    fill(&store, 1).await;
    let lease = LeaseLength::from_millis(1_000).expect("a lease");
    let claim = store.claim(request(1).lease(lease)).await.expect("claimed").remove(0);
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    let lock = format!("select 1 from \"{}\".jobs for update", place.schema);
    tx.execute(&lock, &[]).await.expect("locked");
    let (settling, fence) = (store.clone(), claim.fence);
    let settled = tokio::spawn(async move { settling.succeed(fence).await });
    let watcher = place.session().await;
    until_blocked(&watcher, &place.schema, 1).await;
    // Begun in time, but the lease runs out while it waits.
    let end = claim.lease_expires_at.to_system_time();
    watcher.execute("select pg_sleep_until($1)", &[&end]).await.expect("past its end");
    tx.rollback().await.expect("rolled back");
    let error = settled.await.expect("no panic").expect_err("too late");
    assert_eq!(error.lost_reason(), Some(LostReason::Expired), "{error}");
}

/// Proves: WQ-6
pub(crate) async fn heartbeat_passes_waiting_settlements(place: Place) {
    let store = place.store().await;
    fill(&store, 3).await;
    let claims = take(&store, 3).await;
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    let ids: Vec<_> = claims.iter().take(2).map(|claim| claim.fence.job().as_uuid()).collect();
    let lock = format!("select 1 from \"{}\".jobs where id = any($1) for update", place.schema);
    tx.execute(&lock, &[&ids]).await.expect("locked");
    let settling: Vec<_> = claims
        .iter()
        .take(2)
        .map(|claim| {
            let (store, fence) = (store.clone(), claim.fence);
            tokio::spawn(async move { store.succeed(fence).await })
        })
        .collect();
    let watcher = place.session().await;
    until_blocked(&watcher, &place.schema, 2).await;
    let beat = store.renew(RenewRequest::new(claims.iter().map(|claim| claim.fence)));
    let answers = soon("a heartbeat", beat).await.expect("renewed");
    assert!(matches!(answers[..2], [Renewal::Locked, Renewal::Locked]), "{answers:?}");
    assert!(matches!(answers[2], Renewal::Renewed { .. }), "{answers:?}");
    tx.rollback().await.expect("rolled back");
    for settled in settling {
        settled.await.expect("no panic").expect("settled");
    }
}

/// Proves: IDM-1
pub(crate) async fn key_taken_meanwhile_is_the_same_job(place: Place) {
    let store = place.store().await;
    let watcher = place.session().await;
    for commits in [false, true] {
        let mut other = place.session().await;
        let tx = other.transaction().await.expect("begun");
        let theirs = job(1).key(key());
        let theirs_id = theirs.id;
        store.join(&tx).enqueue(&[theirs]).await.expect("enqueued");
        let (enqueuing, ours) = (store.clone(), job(1).key(key()));
        let ours_id = ours.id;
        let answer = tokio::spawn(async move { enqueuing.enqueue_one(ours).await });
        until_blocked(&watcher, &place.schema, 1).await;
        if commits {
            tx.commit().await.expect("committed");
        } else {
            tx.rollback().await.expect("rolled back");
        }
        let answer = soon("an answer", answer).await.expect("no panic").expect("enqueued");
        if commits {
            assert_eq!((answer.job(), answer.is_new()), (theirs_id, false));
        } else {
            assert_eq!((answer.job(), answer.is_new()), (ours_id, true));
            // The next round begins without the key.
            let table = format!("delete from \"{}\".keys", place.schema);
            watcher.execute(&table, &[]).await.expect("freed");
        }
    }
}

/// Proves: IDM-5, TX-2
pub(crate) async fn id_taken_meanwhile_is_the_same_job(place: Place) {
    let store = place.store().await;
    let watcher = place.session().await;
    for commits in [false, true] {
        let mut other = place.session().await;
        let tx = other.transaction().await.expect("begun");
        let (new, third) = (job(1), job(3));
        store.join(&tx).enqueue(&[new.clone(), third.clone()]).await.expect("enqueued");
        let (enqueuing, batch) = (store.clone(), vec![job(0), new.clone(), job(2)]);
        let own = tokio::spawn(async move { enqueuing.enqueue(batch).await });
        until_blocked(&watcher, &place.schema, 1).await;
        let (joining, mut second) = (store.clone(), place.session().await);
        let joined = tokio::spawn(async move {
            let tx = second.transaction().await.expect("begun");
            let answers = joining.join(&tx).enqueue(&[third]).await;
            // Whoever came first, the caller's transaction goes on.
            tx.execute("select 1", &[]).await.expect("not spoiled");
            tx.commit().await.expect("committed");
            answers
        });
        until_blocked(&watcher, &place.schema, 2).await;
        if commits {
            tx.commit().await.expect("committed");
        } else {
            tx.rollback().await.expect("rolled back");
        }
        let answers = soon("an answer", own).await.expect("no panic").expect("enqueued");
        let is_new: Vec<bool> =
            answers.iter().map(|it| it.as_ref().expect("enqueued").is_new()).collect();
        assert_eq!(is_new, [true, !commits, true]);
        let answers = soon("an answer", joined).await.expect("no panic").expect("enqueued");
        assert_eq!(answers[0].as_ref().expect("enqueued").is_new(), !commits);
    }
    let dump = leasehold_core::lab::LabStore::dump(&store).await.expect("a dump");
    assert_eq!(dump.rows("jobs").len(), 8);
}

/// Proves: ERR-1, TX-2
pub(crate) async fn stale_snapshot_asks_for_a_restart(place: Place) {
    let store = place.store().await;
    let mut other = place.session().await;
    let builder = other.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let tx = builder.start().await.expect("begun");
    tx.execute("select 1", &[]).await.expect("a snapshot");
    assert!(store.enqueue_one(job(1).key(key())).await.expect("enqueued").is_new());
    let error = store.join(&tx).enqueue(&[job(1).key(key())]).await.expect_err("stale");
    assert!(error.is_transaction_restart(), "{error}");
    assert_eq!(error.kind(), ErrorKind::Busy);
    tx.rollback().await.expect("rolled back");
    let tx = other.transaction().await.expect("begun");
    let answers = store.join(&tx).enqueue(&[job(1).key(key())]).await.expect("enqueued");
    assert!(!answers[0].as_ref().expect("an answer").is_new());
}

/// Proves: ERR-1
pub(crate) async fn crossed_locks_end_in_an_answer(place: Place) {
    let store = place.store().await;
    fill(&store, 2).await;
    let mut claims = take(&store, 2).await;
    claims.sort_by_key(|claim| claim.fence.job());
    let mut other = place.session().await;
    let tx = other.transaction().await.expect("begun");
    let joined = store.join(&tx);
    let second = [Progress::new(claims[1].fence, 1)];
    joined.progress(&second).await.expect("asked")[0].as_ref().expect("reported");
    let succeed = |at: usize| Settlement::new(claims[at].fence, Verdict::Succeed { result: None });
    let (settling, both) = (store.clone(), vec![succeed(0), succeed(1)]);
    let settled = tokio::spawn(async move { settling.settle(both).await });
    until_blocked(&place.session().await, &place.schema, 1).await;
    // The store holds the first row and waits for the second: now both wait for each other.
    let first = [Progress::new(claims[0].fence, 1)];
    let ours = soon("an end", joined.progress(&first)).await;
    match &ours {
        Ok(_) => tx.commit().await.expect("committed"),
        Err(error) => {
            assert!(error.is_transaction_restart(), "{error}");
            tx.rollback().await.expect("rolled back");
        }
    }
    let settled = soon("an answer", settled).await.expect("no panic").expect("settled");
    assert!(settled.iter().all(Result::is_ok), "{settled:?}");
}

/// Proves: IDM-2, IDM-4, REC-1
pub(crate) async fn records_have_one_winner(place: Place) {
    let one: Arc<dyn Store> = Arc::new(place.store().await);
    let other = leasehold_postgres::open(&place.url("")).await.expect("a second store");
    let contest = leasehold_conformance::contest::run(&[one, Arc::new(other)]).await;
    contest.expect("only foreseen answers");
}

/// A repeat of a request whose twin is admitted between its two looks is told what the twin's own repeat is:
/// that the first of its keys is known.
///
/// Proves: IDM-3, WH-2
pub(crate) async fn twin_between_two_looks_is_seen_whole(place: Place) {
    let store = place.store().await;
    let asked = || {
        let one = |name: &str| {
            let (scope, key) = (Scope::global(), IdempotencyKey::new(name).expect("a key"));
            let hash = RequestHash::of_job("a", "b", &Json::null());
            Once::new(scope, key, hash, Json::null())
        };
        Admission::new([one("nonce"), one("event")]).jobs([job(1)])
    };
    let (session, slow) = (Session::new(), store.clone());
    let inside = session.clone();
    // Before the task's own first poll: a session without a task is still, too.
    session.begin();
    let answer = tokio::spawn(async move { inside.run(slow.records().admit(asked())).await });
    let mut looks = 0;
    while looks < 2 {
        soon("a step", session.still()).await;
        looks += usize::from(session.next() == Some("once_load"));
        if looks < 2 {
            assert!(session.allow().is_some(), "it looks twice");
        }
    }
    let twin = store.records().admit(asked()).await.expect("admitted");
    assert!(matches!(twin, Admitted::New(_)), "{twin:?}");
    session.set_free(true);
    let answer = soon("an answer", answer).await.expect("no panic").expect("answered");
    assert!(matches!(answer, Admitted::Known { at: 0, .. }), "{answer:?}");
}
