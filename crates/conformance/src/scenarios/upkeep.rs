//! Owns what old jobs, paging and counting promise.

use std::time::Duration;

use leasehold_core::{
    Control, ErrorKind, EventVerdict, Found, JobFilter, OutboxStats, Paging, PruneRequest, Query,
    Result, Scope, Settlement, State, StatsScope, StoreExt, Verdict,
};

use super::group;
use crate::lab::{Lab, event, job, passing};

group!("upkeep": live_jobs_are_never_pruned, tombstone_answers_the_repeated_settle,
    tombstone_tells_of_the_pruned_job, pages_neither_skip_nor_repeat, page_size_is_bounded, stats_count_each_state,
    a_look_counts_no_more_than_it_is_asked_for);

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

/// A look tells of settings whatever its scope, of what has ended only when asked for everything, and each scope
/// counts all that a narrower one does.
///
/// Proves: PAR-1, MET-1
async fn a_look_counts_no_more_than_it_is_asked_for(lab: &Lab) -> Result<()> {
    let (done, dead) = (lab.claimed().await?, lab.claimed().await?);
    lab.succeed(done.fence).await?;
    lab.end(dead.fence, Verdict::DeadLetter { failure: passing() }).await?;
    lab.add(job(3)).await?;
    lab.publish((0..3).map(event).collect()).await?;
    let claims = lab.take_events(2).await?;
    lab.end_event(claims[0].fence, EventVerdict::Delivered).await?;
    lab.end_event(claims[1].fence, EventVerdict::DeadLetter { failure: passing() }).await?;
    lab.control(Control::Pause(dead.job.queue.clone())).await?;

    let all = lab.look(StatsScope::All).await?;
    assert_eq!(all, lab.stats().await?, "the short form asks for everything");
    let queue = all.queue(&dead.job.queue).expect("the default queue");
    assert_eq!((queue.ready, queue.succeeded, queue.dead_letter, queue.paused), (1, 1, 1, true));
    assert_eq!((all.outbox.waiting, all.outbox.delivered, all.outbox.dead_letter), (1, 1, 1));

    let mut expected = all;
    expected.outbox.delivered = 0;
    expected.queues.iter_mut().for_each(|it| (it.succeeded, it.dead_letter) = (0, 0));
    assert_eq!(
        lab.look(StatsScope::Live).await?,
        expected,
        "what has ended is left out, but dead events"
    );
    expected.outbox = OutboxStats::default();
    expected.queues.iter_mut().for_each(|it| {
        (it.ready, it.oldest_ready, it.first_due) = (0, None, None);
    });
    assert_eq!(lab.look(StatsScope::Health).await?, expected, "nothing is counted");
    Ok(())
}
