//! Owns the low-water marks: whatever is enqueued, kept open or given back behind one is still claimed
//! in its turn, and a claim under an old snapshot walks past little.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use leasehold_core::lab::LabStore;
use leasehold_core::{
    Claim, ErrorKind, JobId, QueueName, Settlement, Store, StoreExt, Timestamp, Verdict,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::{Client, IsolationLevel, SimpleQueryMessage};

use crate::place::{Place, fill, job, request, soon, take};
use crate::plans::{CLAIM, CLAIM_KINDS, claim_values};

fn default_queue() -> QueueName {
    QueueName::default_queue()
}

async fn end(store: &PostgresStore, claims: &[Claim], verdict: Verdict) {
    let ends = claims.iter().map(|claim| Settlement::new(claim.fence, verdict.clone()));
    let answers = store.settle(ends.collect()).await.expect("settled");
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

async fn drain(store: &PostgresStore, jobs: usize) {
    let claims = take(store, jobs).await;
    end(store, &claims, Verdict::Succeed { result: None }).await;
}

/// The earliest mark of the default priority.
async fn mark(session: &Client, place: &Place) -> Timestamp {
    let text = format!(
        "select (extract(epoch from min(run_at)) * 1000000)::bigint from \"{}\".low_water where priority = 0",
        place.schema
    );
    Timestamp::saturating(session.query_one(&text, &[]).await.expect("marks").get(0))
}

async fn claimed(store: &PostgresStore) -> Vec<JobId> {
    let claims = store.claim(request(100)).await.expect("claimed");
    claims.iter().map(|claim| claim.fence.job()).collect()
}

/// Proves: WQ-3
pub(crate) async fn job_behind_the_mark_keeps_its_turn(place: Place) {
    let (one, clock) = place.manual().await;
    let start = clock.now();
    let two = PostgresStore::lab_again(place.server(), &place.schema, Some(start)).await;
    let two = two.expect("a second store, whose clock is behind");
    fill(&one, 1).await;
    let first = take(&one, 1).await;
    clock.advance(Duration::from_secs(10));
    fill(&one, 20).await;
    drain(&one, 20).await;
    one.raise_low_water(&default_queue()).await.expect("raised");
    let session = place.session().await;
    assert_eq!(mark(&session, &place).await, clock.now(), "the mark has risen past all that ended");
    // Behind the mark come a job of the other process, and one that is given back to its old place.
    let (late, urgent, last) = (job(1), job(2).priority(7), job(3));
    assert!(one.enqueue_one(last.clone()).await.expect("enqueued").is_new());
    assert!(two.enqueue_one(urgent.clone()).await.expect("enqueued").is_new());
    two.clock().expect("manual").advance(Duration::from_secs(1));
    assert!(two.enqueue_one(late.clone()).await.expect("enqueued").is_new());
    end(&one, &first, Verdict::Release { delay: None }).await;
    let turn = vec![urgent.id, first[0].fence.job(), late.id, last.id];
    assert_eq!(claimed(&one).await, turn);
}

/// Proves: WQ-3, TX-1
pub(crate) async fn open_transaction_keeps_the_mark_down(place: Place) {
    let store = place.store().await;
    fill(&store, 5).await;
    let mut other = place.session().await;
    for level in [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead] {
        let tx = other.build_transaction().isolation_level(level).start().await.expect("begun");
        let early = job(1);
        store.join(&tx).enqueue(std::slice::from_ref(&early)).await.expect("asked")[0]
            .as_ref()
            .expect("new");
        let late = job(2);
        assert!(store.enqueue_one(late.clone()).await.expect("enqueued").is_new());
        let waiting = store.claim(request(100)).await.expect("claimed");
        end(&store, &waiting, Verdict::Succeed { result: None }).await;
        let error = store.raise_low_water(&default_queue()).await.expect_err("somebody is adding");
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        let later = job(3);
        assert!(store.enqueue_one(later.clone()).await.expect("enqueued").is_new());
        tx.commit().await.expect("committed");
        assert_eq!(claimed(&store).await, [early.id, later.id]);
    }
    store.raise_low_water(&default_queue()).await.expect("nobody is adding");
}

/// Proves: WQ-3, TX-1
pub(crate) async fn old_snapshot_adds_its_own_mark(place: Place) {
    let (one, clock) = place.manual().await;
    let start = clock.now();
    let two = PostgresStore::lab_again(place.server(), &place.schema, Some(start)).await;
    let two = two.expect("a second store, whose clock is behind");
    fill(&one, 5).await;
    let mut other = place.session().await;
    let stale = other.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let tx = stale.start().await.expect("begun");
    let text = format!("select count(*) from \"{}\".low_water", place.schema);
    tx.query_one(&text, &[]).await.expect("a snapshot");
    // After its snapshot the mark rises past the job that it adds.
    drain(&one, 5).await;
    clock.advance(Duration::from_secs(10));
    one.raise_low_water(&default_queue()).await.expect("raised");
    let (early, late) = (job(1), job(2));
    assert!(one.enqueue_one(late.clone()).await.expect("enqueued").is_new());
    two.join(&tx).enqueue(std::slice::from_ref(&early)).await.expect("asked")[0]
        .as_ref()
        .expect("new");
    tx.commit().await.expect("committed");
    assert_eq!(claimed(&one).await, [early.id, late.id]);
}

/// Proves: WQ-3
pub(crate) async fn strangers_rows_are_found(place: Place) {
    let store = place.store().await;
    fill(&store, 2).await;
    let session = place.session().await;
    let forget = format!("delete from \"{}\".low_water", place.schema);
    session.batch_execute(&forget).await.expect("forgotten");
    assert!(claimed(&store).await.is_empty(), "nothing lies above a mark");
    let found = async {
        while claimed(&store).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("the rows", found).await;
}

/// Proves: WQ-3
pub(crate) async fn no_claimable_row_lies_before_its_mark(place: Place) {
    let one = place.store().await;
    let two = PostgresStore::lab_again(place.server(), &place.schema, None).await.expect("another");
    let (stops, rises) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let mut tasks = Vec::new();
    for (number, store) in
        [one.clone(), two.clone(), one.clone(), two.clone()].into_iter().enumerate()
    {
        let stops = Arc::clone(&stops);
        tasks.push(tokio::spawn(async move {
            let mut round = number;
            while !stops.load(Ordering::Relaxed) {
                round += 1;
                let new = |n: usize| {
                    let delay = Duration::from_millis((n * 7 % 30) as u64);
                    job(n).priority((n % 3) as i16).delay(delay)
                };
                store.enqueue((round..round + 4).map(new).collect()).await.expect("enqueued");
                let claims = store.claim(request(5)).await.expect("claimed");
                let verdict = match round % 3 {
                    0 => Verdict::Release { delay: None },
                    1 => Verdict::Snooze { delay: Duration::from_millis(3) },
                    _ => Verdict::Succeed { result: None },
                };
                end(&store, &claims, verdict).await;
            }
        }));
    }
    let (raiser, stop, raised) = (two.clone(), Arc::clone(&stops), Arc::clone(&rises));
    tasks.push(tokio::spawn(async move {
        while !stop.load(Ordering::Relaxed) {
            if raiser.raise_low_water(&default_queue()).await.is_ok() {
                raised.fetch_add(1, Ordering::Relaxed);
            }
        }
    }));
    let session = place.session().await;
    let text =
        "select count(*) from \"s\".jobs j where state = 'waiting' and not held and not exists (
        select 1 from \"s\".low_water l
        where l.queue = j.queue and l.priority = j.priority and l.run_at <= j.run_at)";
    let text = text.replace("\"s\"", &format!("\"{}\"", place.schema));
    for _ in 0..150 {
        let before: i64 = session.query_one(&text, &[]).await.expect("counted").get(0);
        assert_eq!(before, 0);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stops.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no panic");
    }
    assert!(rises.load(Ordering::Relaxed) > 10, "{rises:?} rises");
}

/// How many pages a claim of 10 looks at; nothing stays claimed.
async fn pages_of_a_claim(session: &Client, schema: &str) -> u64 {
    let statement = CLAIM.replace("leasehold.", &format!("\"{schema}\"."));
    let text = format!(
        "deallocate all; prepare hot ({CLAIM_KINDS}) as {statement}; begin;
         explain (analyze, buffers, costs off, timing off, summary off, format json) execute hot ({})",
        claim_values(10)
    );
    let answers = session.simple_query(&text).await.expect("explained");
    session.batch_execute("rollback").await.expect("rolled back");
    let plan = answers.iter().find_map(|it| match it {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let plan: serde_json::Value = serde_json::from_str(plan.expect("a plan")).expect("JSON");
    let of = |name: &str| plan[0]["Plan"][name].as_u64().expect("a figure");
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}

/// Proves: WQ-3
pub(crate) async fn held_snapshot_does_not_slow_claims(place: Place) {
    let store = place.store().await;
    fill(&store, 10).await;
    let (session, other) = (place.session().await, place.session().await);
    let hold = format!(
        "begin isolation level repeatable read; select count(*) from \"{}\".jobs",
        place.schema
    );
    other.batch_execute(&hold).await.expect("a snapshot");
    let fresh = pages_of_a_claim(&session, &place.schema).await;
    for _ in 0..24 {
        fill(&store, 500).await;
        drain(&store, 500).await;
    }
    // Rises of its own accord come a moment after the claims that called for them.
    let dead = format!(
        "select count(*) from \"{0}\".jobs where state = 'succeeded' and run_at >=
         (select min(run_at) from \"{0}\".low_water)",
        place.schema
    );
    let risen = async {
        while session.query_one(&dead, &[]).await.expect("counted").get::<_, i64>(0) > 2_000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("a rise", risen).await;
    let after = pages_of_a_claim(&session, &place.schema).await;

    let forget = format!("update \"{}\".low_water set run_at = '-infinity'", place.schema);
    session.batch_execute(&forget).await.expect("forgotten");
    let without = pages_of_a_claim(&session, &place.schema).await;
    other.batch_execute("rollback").await.expect("let go");
    assert!(without > 4 * after, "{after} pages, {fresh} before, {without} without marks");
}
