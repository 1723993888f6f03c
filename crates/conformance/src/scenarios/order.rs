//! Owns the order of events: within a key by number, between keys none, and numbers without a gap.

use leasehold_core::{
    Control, ErrorKind, EventClaimRequest, EventState, EventVerdict, JobId, NewEvent, OrderKey,
    Ordering, Result, StoreExt, Topic, WorkerId,
};

use super::group;
use crate::lab::{Lab, assert_refused, event, events_with, job, json, passing, seconds};

group!("order": keys_do_not_wait_for_each_other, job_and_text_keys_are_apart,
    unordered_topic_waits_for_nobody, unordered_events_have_no_number, numbers_have_no_gap,
    retried_head_still_holds_back, lapsed_head_still_holds_back, topics_are_picked,
    publish_is_all_or_nothing, same_id_other_event_conflicts, unknown_ordering_job_is_not_found,
    job_events_are_numbered_by_their_job, replayed_event_keeps_its_number,
    twice_in_one_batch_is_one_event, lapsed_one_waits_for_a_replayed_head);

fn keyed(number: i64, name: &str) -> NewEvent {
    event(number).ordering(Ordering::Key(OrderKey::new(name).expect("a key")))
}

fn numbers(claims: &[leasehold_core::EventClaim]) -> Vec<Option<i64>> {
    let mut numbers: Vec<_> = claims.iter().map(|claim| claim.sequence).collect();
    numbers.sort_unstable();
    numbers
}

/// The first undelivered event of each key can be claimed, whatever other keys do.
///
/// Proves: TX-9
async fn keys_do_not_wait_for_each_other(lab: &Lab) -> Result<()> {
    let events = vec![keyed(1, "a"), keyed(2, "a"), keyed(3, "b"), keyed(4, "b"), event(5)];
    let heads = [events[0].id, events[2].id, events[4].id];
    lab.publish(events).await?;
    let claims = lab.take_events(9).await?;
    let mut taken: Vec<_> = claims.iter().map(|claim| claim.fence.event()).collect();
    taken.sort_unstable();
    let mut expected = heads.to_vec();
    expected.sort_unstable();
    assert_eq!(taken, expected);
    Ok(())
}

/// A text key that reads like a job's id is another key than the job.
///
/// Proves: TX-3, TX-9
async fn job_and_text_keys_are_apart(lab: &Lab) -> Result<()> {
    let id = lab.add(job(1)).await?;
    let by_job = event(2).ordering(Ordering::Job(id));
    let answers = lab.publish(vec![by_job, keyed(3, &id.to_string())]).await?;
    assert_eq!(answers.iter().map(|it| it.sequence).collect::<Vec<_>>(), [Some(1), Some(1)]);
    assert_eq!(lab.take_events(9).await?.len(), 2);
    Ok(())
}

/// Events of a topic without order are all due at once, and keep their numbers.
///
/// Proves: TX-9
async fn unordered_topic_waits_for_nobody(lab: &Lab) -> Result<()> {
    let topic = event(1).topic;
    lab.control(Control::SetTopic { topic, ordered: false }).await?;
    lab.publish(vec![keyed(1, "a"), keyed(2, "a"), keyed(3, "a")]).await?;
    assert_eq!(numbers(&lab.take_events(9).await?), [Some(1), Some(2), Some(3)]);
    Ok(())
}

/// An event without a key has no number and waits for nobody.
///
/// Proves: TX-3
async fn unordered_events_have_no_number(lab: &Lab) -> Result<()> {
    let events = vec![event(1), event(2).ordering(Ordering::Unordered)];
    let answers = lab.publish(events).await?;
    assert!(answers.iter().all(|answer| answer.is_new && answer.sequence.is_none()));
    assert_eq!(lab.take_events(9).await?.len(), 2);
    Ok(())
}

/// A key's numbers rise by one over calls, refused calls and repeats.
///
/// Proves: TX-3
async fn numbers_have_no_gap(lab: &Lab) -> Result<()> {
    let known = keyed(1, "a");
    let mut found = vec![lab.publish_one(known.clone()).await?.sequence];
    let bad = vec![keyed(2, "a"), keyed(3, "a").max_attempts(0)];
    assert_refused(lab.publish(bad).await, ErrorKind::Invalid);
    let batch = vec![keyed(4, "a"), known, keyed(5, "b"), keyed(6, "a")];
    found.extend(lab.publish(batch).await?.iter().map(|answer| answer.sequence));
    assert_eq!(found, [Some(1), Some(2), Some(1), Some(1), Some(3)]);
    Ok(())
}

/// An event that is to be tried again still holds back those behind it.
///
/// Proves: TX-9
async fn retried_head_still_holds_back(lab: &Lab) -> Result<()> {
    lab.publish(vec![keyed(1, "a"), keyed(2, "a")]).await?;
    let head = lab.take_event().await?;
    let verdict = EventVerdict::Retry { failure: passing(), delay: Some(seconds(9)) };
    lab.end_event(head.fence, verdict).await?;
    assert!(lab.take_events(9).await?.is_empty());
    lab.advance(9);
    assert_eq!(lab.take_event().await?.payload, json(1));
    Ok(())
}

/// An event whose lease has lapsed is delivered again before those behind it.
///
/// Proves: TX-9
async fn lapsed_head_still_holds_back(lab: &Lab) -> Result<()> {
    lab.publish(vec![keyed(1, "a"), keyed(2, "a")]).await?;
    let head = lab.take_event().await?;
    lab.advance(30);
    let again = lab.take_event().await?;
    assert_eq!(again.fence.event(), head.fence.event());
    lab.end_event(again.fence, EventVerdict::Delivered).await?;
    assert_eq!(lab.take_event().await?.payload, json(2));
    Ok(())
}

/// A claim that names topics takes events of those only.
///
/// Proves: TX-4
async fn topics_are_picked(lab: &Lab) -> Result<()> {
    let topic = |name: &str| Topic::new(name).expect("a topic");
    let other = NewEvent::new(topic("chat"), json(2));
    lab.publish(vec![event(1), other.clone(), NewEvent::new(topic("log"), json(3))]).await?;
    let asked = EventClaimRequest::new(WorkerId::new()).topics([topic("chat"), topic("none")]);
    let claims = lab.claim_events(asked).await?;
    assert_eq!(claims.iter().map(|it| it.fence.event()).collect::<Vec<_>>(), [other.id]);
    assert_eq!(lab.take_events(9).await?.len(), 2);
    Ok(())
}

/// One bad event refuses the batch whole.
///
/// Proves: ERR-1, TX-1
async fn publish_is_all_or_nothing(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let bad = vec![keyed(1, "a"), event(2), event(3).traceparent("not a trace")];
    assert_refused(lab.publish(bad).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// An event's id sent again with another payload is a conflict and writes nothing.
///
/// Proves: IDM-5, TX-3
async fn same_id_other_event_conflicts(lab: &Lab) -> Result<()> {
    let first = lab.publish_one(keyed(1, "a")).await?;
    let before = lab.dump().await?;
    let other = vec![keyed(2, "a"), keyed(3, "a").id(first.event)];
    assert_refused(lab.publish(other).await, ErrorKind::Conflict);
    lab.assert_unchanged(&before).await
}

/// An event ordered by a job that does not exist is not found and writes nothing.
///
/// Proves: TX-3
async fn unknown_ordering_job_is_not_found(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let lost = event(2).ordering(Ordering::Job(JobId::new()));
    assert_refused(lab.publish(vec![event(1), lost]).await, ErrorKind::NotFound);
    lab.assert_unchanged(&before).await
}

/// Events ordered by jobs count by themselves for each job.
///
/// Proves: TX-3
async fn job_events_are_numbered_by_their_job(lab: &Lab) -> Result<()> {
    let (a, b) = (lab.add(job(1)).await?, lab.add(job(2)).await?);
    let of = |number, id| event(number).ordering(Ordering::Job(id));
    let answers = lab.publish(vec![of(1, a), of(2, b), of(3, a)]).await?;
    let found: Vec<_> = answers.iter().map(|answer| answer.sequence).collect();
    assert_eq!(found, [Some(1), Some(1), Some(2)]);
    assert_eq!(lab.publish_one(of(4, b)).await?.sequence, Some(2));
    Ok(())
}

/// A replayed event keeps its number and again goes before those behind it.
///
/// Proves: TX-6, TX-9
async fn replayed_event_keeps_its_number(lab: &Lab) -> Result<()> {
    lab.publish(vec![keyed(1, "a"), keyed(2, "a"), keyed(3, "a")]).await?;
    let head = lab.take_event().await?;
    lab.end_event(head.fence, EventVerdict::DeadLetter { failure: passing() }).await?;
    let next = lab.take_event().await?;
    let actor = crate::lab::actor();
    lab.control(Control::ReplayEvent { event: head.fence.event(), actor }).await?;
    assert_eq!(numbers(&lab.take_events(9).await?), [Some(1)]);
    lab.end_event(next.fence, EventVerdict::Delivered).await?;
    assert!(lab.take_events(9).await?.is_empty());
    let waiting = lab.events(events_with(|it| it.state = Some(EventState::Waiting))).await?;
    assert_eq!(waiting.iter().map(|it| it.sequence).collect::<Vec<_>>(), [Some(3)]);
    Ok(())
}

/// The same event twice in one batch is one event.
///
/// Proves: GLO-2, TX-3
async fn twice_in_one_batch_is_one_event(lab: &Lab) -> Result<()> {
    let new = event(1).ordering(Ordering::Unordered);
    lab.publish(vec![new.clone(), new.clone(), event(2)]).await?;
    assert_eq!(lab.dump().await?.rows("events").len(), 2);
    Ok(())
}

/// An event whose lease has lapsed waits for one before it that was replayed meanwhile.
///
/// Proves: TX-6, TX-9
async fn lapsed_one_waits_for_a_replayed_head(lab: &Lab) -> Result<()> {
    lab.publish(vec![keyed(1, "a"), keyed(2, "a")]).await?;
    let head = lab.take_event().await?;
    lab.end_event(head.fence, EventVerdict::DeadLetter { failure: passing() }).await?;
    let next = lab.take_event().await?;
    let actor = crate::lab::actor();
    lab.control(Control::ReplayEvent { event: head.fence.event(), actor }).await?;
    lab.advance(31);
    assert_eq!(numbers(&lab.take_events(9).await?), [Some(1)]);
    let row = lab.events(events_with(|it| it.state = Some(EventState::Waiting))).await?;
    assert_eq!(row.iter().map(|it| it.id).collect::<Vec<_>>(), [next.fence.event()]);
    Ok(())
}
