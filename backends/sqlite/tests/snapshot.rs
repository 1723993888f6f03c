//! Owns the check that a reader who keeps an old view for long makes claims no dearer.
//! `LEASEHOLD_SNAPSHOT_JOBS` sets how many jobs pass under the reader.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

mod place;

use leasehold_core::{
    ClaimRequest, JobKind, Json, NewJob, QueueName, Result, Settlement, Store, Verdict, WorkerId,
};
use leasehold_sqlite::rusqlite::{Connection, StatementStatus, Transaction};
use leasehold_sqlite::{SqliteStore, open};
use place::Place;

const JOBS: usize = 3_000;
const BATCH: usize = 100;

/// Enqueues, claims and settles so many jobs; nothing is left.
async fn pass(store: &SqliteStore, jobs: usize) -> Result<()> {
    for _ in 0..jobs / BATCH {
        let kind = JobKind::new("resize")?;
        let new = (0..BATCH).map(|_| NewJob::new(kind.clone(), Json::null())).collect();
        for answer in store.enqueue(new).await? {
            let _new = answer?;
        }
        let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
        let claims = store.claim(request.limit(BATCH)).await?;
        assert_eq!(claims.len(), BATCH);
        let done = |fence| Settlement::new(fence, Verdict::Succeed { result: None });
        for answer in store.settle(claims.iter().map(|claim| done(claim.fence)).collect()).await? {
            answer?;
        }
    }
    Ok(())
}

/// How many steps the claim's statements have taken since they were last asked.
async fn steps(store: &SqliteStore) -> i32 {
    let look = |tx: &Transaction<'_>| {
        let texts = [
            include_str!("../src/sql/claim.sql"),
            include_str!("../src/sql/claim_priority.sql"),
            include_str!("../src/sql/claim_jobs.sql"),
            include_str!("../src/sql/lock_jobs.sql"),
            include_str!("../src/sql/end_jobs.sql"),
        ];
        let taken = |text| {
            let statement = tx.prepare_cached(text).expect("a statement");
            statement.reset_status(StatementStatus::VmStep)
        };
        Ok(texts.into_iter().map(taken).sum())
    };
    store.transaction(look).await.expect("a look")
}

/// Proves: WQ-3
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_with_an_old_view_makes_claims_no_dearer() {
    let asked = std::env::var("LEASEHOLD_SNAPSHOT_JOBS").ok();
    let jobs = asked.map_or(JOBS, |jobs| jobs.parse().expect("a number of jobs"));
    let place = Place::new("snapshot");
    let url = format!("sqlite:{}?synchronous=normal", place.url());
    let store = open(&url).await.expect("new");
    pass(&store, BATCH).await.expect("warm");
    let reader = Connection::open(place.url()).expect("a reader");
    let view = "begin; select count(*) from leasehold_jobs";
    reader.execute_batch(view).expect("an old view");
    let _before = steps(&store).await;
    pass(&store, BATCH).await.expect("the first");
    let first = steps(&store).await;
    pass(&store, jobs).await.expect("many");
    let _between = steps(&store).await;
    pass(&store, BATCH).await.expect("the last");
    let last = steps(&store).await;
    assert!(last <= first * 5 / 4, "{first} steps a batch became {last} after {jobs} jobs");
    let seen: i64 = reader
        .query_row("select count(*) from leasehold_jobs", [], |row| row.get(0))
        .expect("the old view");
    assert_eq!(seen, i64::try_from(BATCH).expect("a number"), "the view was held all the while");
}
