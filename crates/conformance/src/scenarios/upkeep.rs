//! Owns what old jobs, paging and counting promise.

use std::time::Duration;

use leasehold_core::{
    ErrorKind, Found, JobFilter, Paging, PruneRequest, Query, Result, Scope, Settlement, State,
    StoreExt, Verdict,
};

use super::group;
use crate::lab::{Lab, job};

group!("upkeep": live_jobs_are_never_pruned, tombstone_answers_the_repeated_settle,
    tombstone_tells_of_the_pruned_job, pages_neither_skip_nor_repeat, page_size_is_bounded, stats_count_each_state);

/// Prune leaves waiting and leased jobs alone, however old.
///
/// Proves: QUE-4
async fn live_jobs_are_never_pruned(lab: &Lab) -> Result<()> {
    let _held = lab.claimed().await?;
    lab.add(job(2)).await?;
    lab.advance(400 * 24 * 3600);
    let pruned = lab.prune(PruneRequest::new().older_than(Duration::ZERO)).await?;
    assert_eq!(pruned.jobs, 0);
    assert_eq!(lab.jobs(JobFilter::default(), Paging::first(9)).await?.items.len(), 2);
    Ok(())
}

/// The settlement of a pruned job can still be repeated.
///
/// Proves: GLO-2, QUE-4
async fn tombstone_answers_the_repeated_settle(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let done = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    lab.settle_one(done.clone()).await?;
    lab.advance(60);
    let pruned = lab.prune(PruneRequest::new().older_than(Duration::from_secs(1))).await?;
    assert_eq!(pruned.jobs, 1);
    assert!(lab.job(claim.job.id).await?.is_none());
    let before = lab.dump().await?;
    assert!(lab.settle_one(done).await?.repeated);
    lab.assert_unchanged(&before).await
}

/// While anything is left of a pruned job, a reader is told whose it was and how it ended.
///
/// Proves: QUE-4
async fn tombstone_tells_of_the_pruned_job(lab: &Lab) -> Result<()> {
    let scope = Scope::new("tenant-1")?;
    let id = lab.add(job(1).scope(scope.clone()).key("order-7".parse()?)).await?;
    let ask = || lab.find(Query::Tombstone(id));
    assert!(ask().await?.items.is_empty(), "the job is there itself");
    let claim = lab.take_one().await?;
    lab.succeed(claim.fence).await?;
    lab.advance(60);
    lab.prune(PruneRequest::new().older_than(Duration::from_secs(1))).await?;
    match &ask().await?.items[..] {
        [Found::Tombstone(left)] => {
            assert_eq!((left.job, &left.scope, left.outcome), (id, &scope, State::Succeeded));
            assert_eq!(left.queue.as_str(), "default");
        }
        other => panic!("{other:?}"),
    }
    lab.advance(8 * 24 * 3600);
    lab.prune(PruneRequest::new()).await?;
    assert!(ask().await?.items.is_empty(), "then it is forgotten");
    Ok(())
}

/// Pages give every job once, in id order.
///
/// Proves: QUE-6
async fn pages_neither_skip_nor_repeat(lab: &Lab) -> Result<()> {
    let mut expected = Vec::new();
    for number in 0..7 {
        expected.push(lab.add(job(number)).await?);
    }
    expected.sort_unstable();
    let (mut found, mut paging) = (Vec::new(), Paging::first(3));
    loop {
        let page = lab.jobs(JobFilter::default(), paging).await?;
        found.extend(page.items.iter().map(|row| row.id));
        match page.next {
            Some(cursor) => paging = Paging::first(3).after(cursor),
            None => break,
        }
        assert!(found.len() <= expected.len(), "the pages do not end");
    }
    assert_eq!(found, expected);
    Ok(())
}

/// A page of no rows or of too many is refused.
///
/// Proves: QUE-6
async fn page_size_is_bounded(lab: &Lab) -> Result<()> {
    for size in [0, 1001] {
        let error = lab.jobs(JobFilter::default(), Paging::first(size)).await.expect_err("invalid");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    Ok(())
}

/// Stats count the jobs of a queue by where they are.
///
/// Proves: PAR-1
async fn stats_count_each_state(lab: &Lab) -> Result<()> {
    let done = lab.claimed().await?;
    lab.succeed(done.fence).await?;
    let held = lab.claimed().await?;
    lab.add(job(3)).await?;
    lab.add(job(4).delay(Duration::from_secs(60))).await?;
    let stats = lab.stats().await?;
    let queue = stats.queue(&held.job.queue).expect("the default queue");
    assert_eq!((queue.ready, queue.later, queue.leased, queue.succeeded), (1, 1, 1, 1));
    Ok(())
}
