//! Owns the trail of a job: its log of transitions, the events they make, and its times.

use std::time::Duration;

use leasehold_core::{
    EventVerdict, EventView, Found, JobId, Lifecycle, Paging, Progress, Query, QueueSettings,
    ReclaimRequest, Renewal, Result, StageName, StoreExt, Timestamp, Topic, TransitionView,
    Verdict,
};

use super::group;
use crate::lab::{Lab, actor, event, events_with, job, job_of, passing, retry, seconds};

group!("trail": every_transition_is_logged_once, every_transition_makes_one_event, events_of_a_job_go_along_in_its_trace,
    refused_transition_leaves_no_trace, queue_decides_over_the_log, log_is_read_in_pages,
    updated_at_never_goes_back, clock_set_back_shortens_no_lease, finer_times_are_cut,
    delay_beyond_all_time_is_the_end_of_time, last_event_tells_the_result,
    last_events_tell_the_error, only_the_end_tells_more);

async fn log_of(lab: &Lab, id: JobId) -> Result<Vec<TransitionView>> {
    let page = lab.find(Query::Transitions(id, Paging::first(100))).await?;
    let rows = page.items.into_iter().map(|found| match found {
        Found::Transition(row) => row,
        other => panic!("not a transition: {other:?}"),
    });
    Ok(rows.collect())
}

/// Takes a transcode through claim, advance, lapse, claim, failure and a retry by an operator.
async fn long_way(lab: &Lab) -> Result<JobId> {
    let id = lab.add(job_of(&Lifecycle::transcode())).await?;
    let claim = lab.take_one().await?;
    let stage = StageName::new("fetching")?;
    lab.progress_one(Progress::new(claim.fence, 1).advance(stage)).await?;
    lab.advance(30);
    lab.reclaim(ReclaimRequest::jobs()).await?;
    let claim = lab.take_one().await?;
    lab.end(claim.fence, Verdict::Fail { failure: passing() }).await?;
    lab.reopen(id).await?;
    Ok(id)
}

const LONG_WAY: [(&str, &str); 6] = [
    ("queued", "claimed"),
    ("claimed", "fetching"),
    ("fetching", "queued"),
    ("queued", "claimed"),
    ("claimed", "failed"),
    ("failed", "queued"),
];

/// Claim, worker, sweeper and operator alike leave one numbered entry a transition.
///
/// Proves: GLO-1
async fn every_transition_is_logged_once(lab: &Lab) -> Result<()> {
    let id = long_way(lab).await?;
    let log = log_of(lab, id).await?;
    let moves: Vec<_> = log.iter().map(|row| (&*row.from, &*row.to)).collect();
    assert_eq!(moves, LONG_WAY);
    assert_eq!(log.iter().map(|row| row.sequence).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert!(log[0].worker.is_some() && log[4].worker.is_some());
    assert_eq!((log[4].actor.clone(), log[5].actor.clone()), (None, Some(actor())));
    assert!(log.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert!(log.windows(2).all(|pair| pair[0].claim_version <= pair[1].claim_version));
    Ok(())
}

/// An event of a job is of the job's trace unless it names another, whoever makes it; one that belongs to no
/// job is of none.
///
/// Proves: TRC-1, TX-7
async fn events_of_a_job_go_along_in_its_trace(lab: &Lab) -> Result<()> {
    let [own, other] = [1, 2].map(|n| format!("00-0af7651916cd43dd8448eb211c80319c-{n:016x}-01"));
    lab.add(job_of(&Lifecycle::transcode()).traceparent(&own)).await?;
    lab.publish_one(event(1)).await?;

    let claim = lab.take_one().await?;
    let report = Progress::new(claim.fence, 1).event(event(2)).event(event(3).traceparent(&other));
    lab.progress_one(report).await?;
    lab.end(claim.fence, Verdict::Fail { failure: passing() }).await?;

    let mut traces = Vec::new();
    while let Some(claim) = lab.take_events(1).await?.pop() {
        traces.push((claim.sequence, claim.traceparent));
        lab.end_event(claim.fence, EventVerdict::Delivered).await?;
    }
    traces.sort();
    let of_job = |at, trace: &String| (Some(at), Some(trace.clone()));
    let numbered = [of_job(1, &own), of_job(2, &own), of_job(3, &other), of_job(4, &own)];
    assert_eq!(traces, [vec![(None, None)], numbered.to_vec()].concat());
    Ok(())
}

async fn told(lab: &Lab) -> Result<Vec<EventView>> {
    let topic = Topic::new("transcode")?;
    let mut found = lab.events(events_with(|filter| filter.topic = Some(topic))).await?;
    found.sort_by_key(|event| event.sequence);
    Ok(found)
}

/// Where a lifecycle declares events, every transition makes exactly one, whoever makes it.
///
/// Proves: TX-1, TX-7
async fn every_transition_makes_one_event(lab: &Lab) -> Result<()> {
    let id = long_way(lab).await?;
    let told = told(lab).await?;
    assert_eq!(told.len(), LONG_WAY.len());
    for (number, (event, (from, to))) in (1..).zip(told.iter().zip(LONG_WAY)) {
        assert_eq!(event.sequence, Some(number));
        let text = event.payload.as_str();
        let parts = [id.to_string(), format!("\"from\":\"{from}\""), format!("\"to\":\"{to}\"")];
        assert!(parts.iter().all(|part| text.contains(part)), "{from} to {to} in {text}");
    }
    Ok(())
}

/// A transition that is refused makes neither entry nor event.
///
/// Proves: TX-1, TX-7, WQ-2
async fn refused_transition_leaves_no_trace(lab: &Lab) -> Result<()> {
    let id = lab.add(job_of(&Lifecycle::transcode())).await?;
    let claim = lab.take_one().await?;
    assert!(lab.succeed(claim.fence).await.is_err());
    assert!(lab.cancel(id).await.is_err());
    lab.advance(30);
    assert!(lab.end(claim.fence, retry(0)).await.is_err());
    assert_eq!((log_of(lab, id).await?.len(), told(lab).await?.len()), (1, 1));
    Ok(())
}

/// A queue's own setting decides whether its new jobs keep a log.
///
/// Proves: GLO-1
async fn queue_decides_over_the_log(lab: &Lab) -> Result<()> {
    let quiet = lab.claimed().await?;
    lab.succeed(quiet.fence).await?;
    lab.set(QueueSettings::new().log(Some(true))).await?;
    let logged = lab.claimed().await?;
    lab.succeed(logged.fence).await?;
    lab.set(QueueSettings::new().log(Some(false))).await?;
    let review = lab.add(job_of(&Lifecycle::review())).await?;
    let _held = lab.take_one().await?;
    let mut lengths = Vec::new();
    for id in [quiet.job.id, logged.job.id, review] {
        lengths.push(log_of(lab, id).await?.len());
    }
    assert_eq!(lengths, [0, 2, 0]);
    Ok(())
}

/// The log is read in pages that neither skip nor repeat.
///
/// Proves: QUE-6
async fn log_is_read_in_pages(lab: &Lab) -> Result<()> {
    let id = long_way(lab).await?;
    let (mut numbers, mut paging) = (Vec::new(), Paging::first(4));
    loop {
        let page = lab.find(Query::Transitions(id, paging)).await?;
        numbers.push(page.items.len());
        let Some(next) = page.next else { break };
        paging = Paging::first(4).after(next.to_string().parse()?);
        assert!(numbers.len() < 9, "the pages do not end");
    }
    assert_eq!(numbers, [4, 2]);
    Ok(())
}

/// Though the clock goes back, a job's `updated_at` does not.
///
/// Proves: GLO-1
async fn updated_at_never_goes_back(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.advance(20);
    lab.progress_one(Progress::new(claim.fence, 1).event(event(2))).await?;
    let before = lab.row(claim.job.id).await?.updated_at;
    assert_eq!(before, lab.clock().now());
    lab.clock().set(before.minus(seconds(15)));
    lab.renew_one(claim.fence).await?;
    lab.progress_one(Progress::new(claim.fence, 2)).await?;
    assert_eq!(lab.row(claim.job.id).await?.updated_at, before);
    lab.succeed(claim.fence).await?;
    let row = lab.row(claim.job.id).await?;
    assert_eq!((row.updated_at, row.finished_at), (before, Some(before)));
    Ok(())
}

/// Though the clock goes back, a renewal never shortens a lease.
///
/// Proves: WQ-5
async fn clock_set_back_shortens_no_lease(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    lab.clock().set(lab.clock().now().minus(seconds(10)));
    let answer = lab.renew_one(claim.fence).await?;
    assert_eq!(answer, Renewal::Renewed { remaining: seconds(40), cancel_requested: false });
    let row = lab.row(claim.job.id).await?;
    assert_eq!(row.lease_expires_at, Some(claim.lease_expires_at));
    Ok(())
}

/// Times finer than a microsecond are cut, not rounded.
///
/// Proves: GLO-5
async fn finer_times_are_cut(lab: &Lab) -> Result<()> {
    let now = lab.clock().now();
    let id = lab.add(job(1).delay(Duration::from_nanos(7_999))).await?;
    assert_eq!(lab.row(id).await?.run_at, now.plus(Duration::from_micros(7)));
    lab.clock().advance(Duration::from_micros(7));
    let claim = lab.take_one().await?;
    let verdict = Verdict::Snooze { delay: Duration::from_nanos(1_999) };
    lab.end(claim.fence, verdict).await?;
    assert_eq!(lab.row(id).await?.run_at, now.plus(Duration::from_micros(8)));
    Ok(())
}

/// A delay beyond the last storable time is that time, and no earlier.
///
/// Proves: GLO-5
async fn delay_beyond_all_time_is_the_end_of_time(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1).delay(Duration::MAX)).await?;
    assert_eq!(lab.row(id).await?.run_at, Timestamp::MAX);
    lab.advance(1000 * 365 * 24 * 3600);
    assert!(lab.take(1).await?.is_empty());
    Ok(())
}

fn payload(event: &EventView) -> serde_json::Value {
    serde_json::from_str(event.payload.as_str()).expect("JSON")
}

/// A result stands in the event as the worker gave it, to the byte.
///
/// Proves: WH-3, TX-1
async fn last_event_tells_the_result(lab: &Lab) -> Result<()> {
    lab.add(job_of(&Lifecycle::transcode())).await?;
    let claim = lab.take_one().await?;
    for (step, stage) in (1..).zip(["fetching", "processing", "uploading"]) {
        let stage = StageName::new(stage)?;
        lab.progress_one(Progress::new(claim.fence, step).advance(stage)).await?;
    }
    let result = leasehold_core::Json::parse(r#"{ "outputs": ["a", 1.50] }"#)?;
    lab.end(claim.fence, Verdict::Succeed { result: Some(result) }).await?;
    let told = told(lab).await?;
    let (last, before) = told.split_last().expect("events");
    let end = r#","result":{ "outputs": ["a", 1.50] }}"#;
    assert!(last.payload.as_str().ends_with(end), "{}", last.payload.as_str());
    assert!(before.iter().all(|event| payload(event).get("result").is_none()));
    Ok(())
}

/// Both events of a job that goes by way of failed to the dead letters.
///
/// Proves: WH-3, WQ-16
async fn last_events_tell_the_error(lab: &Lab) -> Result<()> {
    lab.add(job_of(&Lifecycle::transcode())).await?;
    let claim = lab.take_one().await?;
    let failure = crate::lab::lasting();
    lab.end(claim.fence, Verdict::Retry { failure, delay: None }).await?;
    let told = told(lab).await?;
    let ends: Vec<_> = told.iter().rev().take(2).map(payload).collect();
    for (event, to) in ends.iter().zip(["dead_letter", "failed"]) {
        assert_eq!(event["to"], to);
        let error = serde_json::json!({
            "code": "SCHEMA_INVALID", "class": "validation", "message": "no width", "retryable": false,
        });
        assert_eq!(event["error"], error);
    }
    Ok(())
}

/// Proves: WH-3
async fn only_the_end_tells_more(lab: &Lab) -> Result<()> {
    let id = long_way(lab).await?;
    for event in told(lab).await? {
        let told = payload(&event);
        assert_eq!(told["job_id"], id.to_string());
        assert!(told.get("result").is_none());
        assert_eq!(told.get("error").is_some(), told["to"] == "failed", "{told}");
    }
    Ok(())
}
