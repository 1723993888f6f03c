//! Owns what enqueues that come at once do to each other: they share transactions, never a fate.

use leasehold_core::{Enqueued, ErrorKind, Store, StoreExt};

use crate::place::{Place, fill, job, key, queue, soon, until_blocked};

/// Proves: WQ-1, WQ-2
pub(crate) async fn enqueues_at_once_share_transactions_and_no_fate(place: Place) {
    let store = place.store().await;
    let same = job(7).key(key());
    let mut calls = Vec::new();
    for number in 0..300_usize {
        let store = store.clone();
        let jobs = match number % 30 {
            // A key that another has with another payload, a bad job, and the same call over and over.
            1 => vec![job(number).key(key())],
            2 => vec![job(number).max_attempts(0)],
            3 => vec![same.clone()],
            4 => vec![job(number), job(number)],
            _ => vec![job(number)],
        };
        calls.push(tokio::spawn(async move { (number, store.enqueue(jobs).await) }));
    }
    let (mut new, mut same_new) = (0, 0);
    for call in calls {
        let (number, answer) = call.await.expect("no panic");
        match number % 30 {
            1 => drop(answer.expect("answered")[0].as_ref()),
            2 => assert_eq!(
                answer.map_or_else(|e| e.kind(), |_| ErrorKind::Busy),
                ErrorKind::Invalid
            ),
            3 => {
                let answers = answer.expect("answered");
                same_new += answers[0].as_ref().map_or(0, |it| usize::from(it.is_new()));
            }
            wide => {
                let answers = answer.expect("answered");
                assert_eq!(answers.len(), if wide == 4 { 2 } else { 1 });
                new += answers.iter().filter(|it| it.as_ref().is_ok_and(Enqueued::is_new)).count();
            }
        }
    }
    assert_eq!(new, 280, "all the ordinary jobs, two of some");
    assert!(same_new <= 1, "{same_new} of one key");
    let text =
        format!("select count(*), count(distinct xmin::text) from \"{}\".jobs", place.schema);
    let row = place.session().await.query_one(&text, &[]).await.expect("counted");
    let (jobs, transactions): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!(jobs, 281, "and one of the key's");
    assert!(transactions < jobs / 3, "{transactions} transactions for {jobs} jobs");
}

/// A job that the database refuses fails its own call, whatever else is sent along with it.
///
/// Proves: WQ-1
pub(crate) async fn a_refused_job_fails_its_own_call_only(place: Place) {
    let store = place.store().await;
    fill(&store, 1).await;
    let refuse = format!(
        "create function \"{0}\".refuse() returns trigger language plpgsql as \
         'begin raise exception ''no'' using errcode = ''23514''; end'; \
         create trigger refuse before insert on \"{0}\".jobs for each row when (new.priority = 7) \
         execute function \"{0}\".refuse()",
        place.schema
    );
    place.session().await.batch_execute(&refuse).await.expect("a trigger");
    let calls = (0..100).map(|number| {
        let (store, is_bad) = (store.clone(), number % 25 == 24);
        let new = if is_bad { job(number).priority(7) } else { job(number) };
        tokio::spawn(async move { (is_bad, store.enqueue_one(new).await) })
    });
    for call in calls.collect::<Vec<_>>() {
        let (is_bad, answer) = call.await.expect("no panic");
        match answer {
            Ok(answer) => assert!(!is_bad && answer.is_new()),
            Err(error) => assert!(is_bad && error.kind() == ErrorKind::Corrupt, "{error}"),
        }
    }
}

/// Proves: TX-2, WQ-3
pub(crate) async fn an_open_transaction_holds_up_only_who_waits_for_it(place: Place) {
    let store = place.store().await;
    fill(&store, 1).await;
    let keyed = || job(1).key(key());
    let queued = || job(1).queue(queue("fresh"));
    let mut other = place.session().await;
    let watcher = place.session().await;
    // A key and a queue that are not there yet for anybody else.
    for (held, blocked) in [(keyed(), 5), (queued(), 3)] {
        let tx = other.transaction().await.expect("begun");
        store.join(&tx).enqueue(std::slice::from_ref(&held)).await.expect("asked")[0]
            .as_ref()
            .expect("new");
        let waiting: Vec<_> = (0..5)
            .map(|_| if held.key.is_some() { keyed() } else { queued() })
            .map(|job| {
                let store = store.clone();
                tokio::spawn(async move { store.enqueue_one(job).await })
            })
            .collect();
        until_blocked(&watcher, &place.schema, blocked).await;
        let others = (0..20).map(|number| {
            let store = store.clone();
            async move { store.enqueue_one(job(number)).await }
        });
        for answer in soon("everybody else", futures_util::future::join_all(others)).await {
            assert!(answer.expect("enqueued").is_new());
        }
        assert!(waiting.iter().all(|it| !it.is_finished()), "they still wait");
        tx.rollback().await.expect("rolled back");
        let mut new = 0;
        for it in waiting {
            let answer = soon("those who waited", it).await.expect("no panic").expect("enqueued");
            new += usize::from(answer.is_new());
        }
        assert_eq!(new, if held.key.is_some() { 1 } else { 5 });
    }
}

/// What is nobody's own fault fails every call of a transaction, with its cause, and none is run by itself.
///
/// Proves: ERR-1
pub(crate) async fn a_full_disk_fails_every_call(place: Place) {
    let store = place.store().await;
    let full = format!(
        "create function \"{0}\".no_room() returns trigger language plpgsql as \
         'begin raise exception ''no room'' using errcode = ''53100''; end'; \
         create trigger full_disk before insert on \"{0}\".jobs for each row \
         execute function \"{0}\".no_room()",
        place.schema
    );
    place.session().await.batch_execute(&full).await.expect("a trigger");
    let calls = (0..40).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { store.enqueue_one(job(number)).await })
    });
    for call in calls.collect::<Vec<_>>() {
        let error = call.await.expect("no panic").expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
        assert!(error.message().contains("the disk is full"), "{error}");
        assert!(std::error::Error::source(&error).is_some(), "{error}");
    }
    let count = format!("select count(*) from \"{}\".jobs", place.schema);
    let row = place.session().await.query_one(&count, &[]).await.expect("counted");
    assert_eq!(row.get::<_, i64>(0), 0);
}
