//! Owns what readers are told: every column, every filter, pages, and counts.

use leasehold_core::{
    Control, Cursor, EventFilter, EventState, EventVerdict, Found, JobFilter, JobId, JobKind,
    LeaseLength, NewJob, Ordering, Paging, Query, QueueName, QueueSettings, Result, Scope, State,
    Stats, StoreExt, Timestamp, Topic, Verdict,
};

use super::group;
use crate::lab::{Lab, event, events_with, job, json, key, passing, queue, retry, seconds};

group!("listing": every_column_is_told, jobs_are_filtered, key_finds_its_holder,
    events_are_filtered, dead_letters_are_listed_by_queue, cursor_reads_back,
    pages_hold_under_writes, queues_are_listed_by_name, stats_tell_of_queues_and_limits, stats_tell_when_the_first_job_is_due,
    stats_tell_of_the_outbox);

/// A job is told as it was asked for.
///
/// Proves: PAR-1, PAR-3
async fn every_column_is_told(lab: &Lab) -> Result<()> {
    let now = lab.clock().now();
    let new = NewJob::new(JobKind::new("print")?, json(41)).queue(queue("paper"));
    let new = new.scope(Scope::new("tenant-3")?).key(key("order-5")).priority(-6);
    let new = new.delay(seconds(7)).max_attempts(8).subject("invoice", 9);
    lab.add(new.clone()).await?;
    let row = lab.row(new.id).await?;
    assert_eq!((row.id, row.queue, row.kind), (new.id, new.queue, new.kind));
    assert_eq!((row.scope, row.key, row.subject), (new.scope, new.key, new.subject));
    assert_eq!((row.payload, row.priority, row.lifecycle), (json(41), -6, new.lifecycle));
    assert_eq!((row.run_at, row.created_at, row.updated_at), (now.plus(seconds(7)), now, now));
    assert_eq!(
        (row.state, &*row.status, row.stage.as_str()),
        (State::Waiting, "waiting", "running")
    );
    assert_eq!((row.attempts, row.max_attempts, row.executions), (0, 8, 0));
    assert_eq!((row.claim_version.get(), row.worker, row.lease_expires_at), (0, None, None));
    assert_eq!((row.result, row.checkpoint, row.failure), (None, None, None));
    assert_eq!((row.started_at, row.finished_at, row.cancel_requested), (None, None, false));
    Ok(())
}

async fn ids(lab: &Lab, set: impl FnOnce(&mut JobFilter)) -> Result<Vec<JobId>> {
    let mut filter = JobFilter::default();
    set(&mut filter);
    let page = lab.jobs(filter, Paging::first(100)).await?;
    Ok(page.items.into_iter().map(|row| row.id).collect())
}

/// Each filter lets through what it names, alone and together.
///
/// Proves: QUE-6
async fn jobs_are_filtered(lab: &Lab) -> Result<()> {
    let kind = JobKind::new("print")?;
    let a = lab.add(NewJob::new(kind.clone(), json(1)).queue(queue("paper"))).await?;
    let b = lab.add(job(2).queue(queue("paper")).subject("invoice", 3)).await?;
    let c = lab.add(job(4).subject("invoice", 5)).await?;
    let held = lab.take_one().await?;
    assert_eq!(held.job.id, c);
    let both = |mut ids: Vec<JobId>| {
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids(lab, |it| it.queue = Some(queue("paper"))).await?, both(vec![a, b]));
    assert_eq!(ids(lab, |it| it.kind = Some(kind)).await?, [a]);
    assert_eq!(ids(lab, |it| it.state = Some(State::Leased)).await?, [c]);
    assert_eq!(ids(lab, |it| it.subject = Some("invoice".to_owned())).await?, both(vec![b, c]));
    assert_eq!(ids(lab, |it| it.id = Some(b)).await?, [b]);
    let mixed = |it: &mut JobFilter| {
        (it.subject, it.state) = (Some("invoice".to_owned()), Some(State::Waiting));
    };
    assert_eq!(ids(lab, mixed).await?, [b]);
    assert!(ids(lab, |it| it.queue = Some(queue("none"))).await?.is_empty());
    Ok(())
}

/// A key finds the job that holds it, in its own scope, and after its end the next holder.
///
/// Proves: IDM-1, IDM-6
async fn key_finds_its_holder(lab: &Lab) -> Result<()> {
    let slot = |scope: &str| Some((Scope::new(scope).expect("a scope"), key("order-5")));
    let global = lab.add(job(1).key(key("order-5")).key_ttl(seconds(60))).await?;
    let tenant = lab.add(job(2).scope(Scope::new("tenant-3")?).key(key("order-5"))).await?;
    assert_eq!(ids(lab, |it| it.key = slot("")).await?, [global]);
    assert_eq!(ids(lab, |it| it.key = slot("tenant-3")).await?, [tenant]);
    assert!(ids(lab, |it| it.key = slot("tenant-4")).await?.is_empty());
    let both = async |id| ids(lab, |it| (it.id, it.key) = (Some(id), slot(""))).await;
    assert_eq!((both(global).await?, both(tenant).await?), (vec![global], vec![]));
    let mut filter = JobFilter::new();
    filter.id = Some(global);
    let behind = Paging::first(1).after(Cursor { id: global.as_uuid(), sequence: 0 });
    assert!(lab.jobs(filter, behind).await?.items.is_empty(), "a page after the only one");
    lab.advance(60);
    let next = lab.add(job(3).key(key("order-5"))).await?;
    assert_eq!(ids(lab, |it| it.key = slot("")).await?, [next]);
    Ok(())
}

/// Each filter of events lets through what it names.
///
/// Proves: QUE-6, TX-3
async fn events_are_filtered(lab: &Lab) -> Result<()> {
    let owner = Ordering::Job(lab.add(job(1)).await?);
    let chat = Topic::new("chat")?;
    let mut by_job = event(2).ordering(owner.clone());
    by_job.topic = chat.clone();
    lab.publish(vec![by_job.clone(), event(3)]).await?;
    let _held = lab.take_events(1).await?;
    let found = |filter: EventFilter| async {
        let found = lab.events(filter).await?;
        Ok::<_, leasehold_core::Error>(found.into_iter().map(|it| it.id).collect::<Vec<_>>())
    };
    assert_eq!(found(events_with(|it| it.topic = Some(chat))).await?, [by_job.id]);
    assert_eq!(found(events_with(|it| it.ordering = Some(owner))).await?, [by_job.id]);
    assert_eq!(found(events_with(|it| it.id = Some(by_job.id))).await?, [by_job.id]);
    assert_eq!(found(events_with(|it| it.state = Some(EventState::Leased))).await?.len(), 1);
    assert_eq!(found(EventFilter::default()).await?.len(), 2);
    Ok(())
}

/// Dead letters are listed by queue, each death of a job by itself.
///
/// Proves: DL-1, QUE-6
async fn dead_letters_are_listed_by_queue(lab: &Lab) -> Result<()> {
    for name in ["default", "paper", "default"] {
        lab.add(job(1).queue(queue(name))).await?;
        let names = [queue("default"), queue("paper")];
        let asked = leasehold_core::ClaimRequest::new(leasehold_core::WorkerId::new(), names);
        let claim = lab.claim(asked).await?.remove(0);
        lab.end(claim.fence, Verdict::DeadLetter { failure: passing() }).await?;
    }
    let of = |name: Option<QueueName>| Query::DeadLetters(name, Paging::first(100));
    assert_eq!(lab.find(of(None)).await?.items.len(), 3);
    assert_eq!(lab.find(of(Some(queue("default")))).await?.items.len(), 2);
    assert_eq!(lab.find(of(Some(queue("none")))).await?.items.len(), 0);
    let first = lab.find(Query::DeadLetters(None, Paging::first(2))).await?;
    let next = first.next.expect("a second page").to_string().parse()?;
    let second = lab.find(Query::DeadLetters(None, Paging::first(2).after(next))).await?;
    assert_eq!((first.items.len(), second.items.len(), second.next), (2, 1, None));
    Ok(())
}

/// A cursor written down and read back goes on where it stood; nonsense is refused.
///
/// Proves: QUE-6
async fn cursor_reads_back(lab: &Lab) -> Result<()> {
    for number in 0..3 {
        lab.add(job(number)).await?;
    }
    let page = lab.jobs(JobFilter::default(), Paging::first(2)).await?;
    let cursor = page.next.expect("a second page");
    let read: Cursor = cursor.to_string().parse()?;
    assert_eq!(read, cursor);
    let rest = lab.jobs(JobFilter::default(), Paging::first(2).after(read)).await?;
    assert_eq!((rest.items.len(), rest.next), (1, None));
    assert!(rest.items[0].id > page.items[1].id);
    assert!("yesterday".parse::<Cursor>().is_err() && "0.-1".parse::<Cursor>().is_err());
    Ok(())
}

/// Jobs that change between two pages are neither skipped nor repeated.
///
/// Proves: QUE-6
async fn pages_hold_under_writes(lab: &Lab) -> Result<()> {
    let mut expected = Vec::new();
    for number in 0..6 {
        expected.push(lab.add(job(number)).await?);
    }
    expected.sort_unstable();
    let (mut found, mut paging) = (Vec::new(), Paging::first(2));
    loop {
        let page = lab.jobs(JobFilter::default(), paging).await?;
        found.extend(page.items.iter().map(|row| row.id));
        let claim = lab.take(1).await?.remove(0);
        lab.end(claim.fence, retry(100)).await?;
        let Some(next) = page.next else { break };
        paging = Paging::first(2).after(next);
        assert!(found.len() <= expected.len(), "the pages do not end");
    }
    assert_eq!(found, expected);
    Ok(())
}

/// Queues are listed by name, those that only hold jobs too.
///
/// Proves: QUE-1
async fn queues_are_listed_by_name(lab: &Lab) -> Result<()> {
    lab.control(Control::Pause(queue("zeta"))).await?;
    lab.add(job(1).queue(queue("mid"))).await?;
    lab.set(QueueSettings::new().lease(LeaseLength::new(seconds(9))?)).await?;
    let page = lab.find(Query::Queues).await?;
    let rows: Vec<_> = page
        .items
        .iter()
        .filter_map(|found| match found {
            Found::Queue(row) => Some((row.name.as_str(), row.paused, row.lease.is_some())),
            _ => None,
        })
        .collect();
    assert_eq!(rows, [("default", false, true), ("mid", false, false), ("zeta", true, false)]);
    Ok(())
}

/// Stats tell each queue's settings, expired leases and how long its oldest due job has waited.
///
/// Proves: PAR-1, WQ-9
async fn stats_tell_of_queues_and_limits(lab: &Lab) -> Result<()> {
    let _held = lab.claimed().await?;
    lab.advance(10);
    let since = lab.clock().now();
    lab.add(job(2)).await?;
    lab.advance(20);
    lab.add(job(3)).await?;
    lab.set(QueueSettings::new().limit(Some(7))).await?;
    lab.control(Control::Pause(queue("default"))).await?;
    lab.control(Control::SetStoreLimit(Some(8))).await?;
    let stats = lab.stats().await?;
    assert_eq!((stats.now, stats.limit), (lab.clock().now(), Some(8)));
    let it = stats.queue(&queue("default")).expect("the queue");
    assert_eq!((it.paused, it.limit, it.leased, it.expired), (true, Some(7), 1, 1));
    assert_eq!((it.ready, it.later, it.oldest_ready), (2, 0, Some(since)));
    assert_eq!(it.first_due, Some(since));
    Ok(())
}

/// Stats tell when the first waiting job is due, also where none is due or all rest.
///
/// Proves: PAR-1, CLI-1
async fn stats_tell_when_the_first_job_is_due(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let failure = passing();
    lab.end(claim.fence, Verdict::Rest { failure }).await?;
    let first = |stats: Stats| stats.queue(&queue("default")).and_then(|it| it.first_due);
    assert_eq!(first(lab.stats().await?), Some(Timestamp::MAX), "what rests is never due");
    let due = lab.clock().now().plus(seconds(60));
    lab.add(job(2).delay(seconds(60))).await?;
    assert_eq!(first(lab.stats().await?), Some(due));
    Ok(())
}

/// Stats count events by where they are, and tell since when the oldest has waited.
///
/// Proves: PAR-1, TX-6
async fn stats_tell_of_the_outbox(lab: &Lab) -> Result<()> {
    let since = lab.clock().now();
    lab.publish((0..5).map(event).collect()).await?;
    lab.advance(9);
    let claims = lab.take_events(3).await?;
    lab.end_event(claims[0].fence, EventVerdict::Delivered).await?;
    lab.end_event(claims[1].fence, EventVerdict::DeadLetter { failure: passing() }).await?;
    let outbox = lab.stats().await?.outbox;
    assert_eq!((outbox.waiting, outbox.leased), (2, 1));
    assert_eq!((outbox.delivered, outbox.dead_letter), (1, 1));
    assert_eq!(outbox.oldest_waiting, Some(since));
    Ok(())
}
