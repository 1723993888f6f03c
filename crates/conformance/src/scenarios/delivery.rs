//! Owns what deliveries promise: claimed, held, ended and taken back as jobs are, under a fence.

use std::time::Duration;

use leasehold_core::{
    Actor, Control, Controlled, EventFence, EventId, EventSettlement, EventState, EventVerdict,
    EventView, LeaseLength, LostReason, PruneRequest, ReclaimRequest, RenewRequest, Renewal,
    Result, StoreExt,
};

use super::group;
use crate::lab::{Lab, actor, assert_lost, assert_refused, event, events_with, passing, seconds};

group!("delivery": spent_budget_is_dead, lasting_failure_is_dead_at_once, retry_waits_its_delay,
    release_costs_no_attempt, replay_sends_again, only_dead_events_are_replayed,
    renewal_extends_the_lease, lapsed_lease_is_taken_back, takeover_raises_the_version_once,
    spent_lease_is_dead, spent_lease_is_not_claimed, repeat_writes_nothing, expired_changes_nothing, taken_over_changes_nothing,
    settled_changes_nothing, raised_epoch_changes_nothing, gone_changes_nothing,
    limit_out_of_range_is_refused, lost_reply_is_given_again, repeat_never_gives_a_lapsed_lease,
    repeat_is_the_same_relays_only,     bug_raises_an_alert, failing_alert_raises_no_other);

async fn sent(lab: &Lab, attempts: u16) -> Result<leasehold_core::EventClaim> {
    lab.publish_one(event(1).max_attempts(attempts)).await?;
    lab.take_event().await
}

async fn stored(lab: &Lab, id: EventId) -> Result<EventView> {
    let mut found = lab.events(events_with(|filter| filter.id = Some(id))).await?;
    Ok(found.pop().expect("the event"))
}

fn again(after: u64) -> EventVerdict {
    EventVerdict::Retry { failure: passing(), delay: Some(seconds(after)) }
}

/// The last attempt's retry ends in the outbox's dead letters.
///
/// Proves: TX-6
async fn spent_budget_is_dead(lab: &Lab) -> Result<()> {
    let first = sent(lab, 2).await?;
    lab.end_event(first.fence, again(0)).await?;
    let last = lab.take_event().await?;
    assert_eq!((last.attempt, last.max_attempts), (2, 2));
    lab.end_event(last.fence, again(0)).await?;
    let row = stored(lab, last.fence.event()).await?;
    assert_eq!((row.state, row.attempts), (EventState::DeadLetter, 2));
    assert!(row.failure.is_some());
    Ok(())
}

/// A delivery that will fail again is not tried again.
///
/// Proves: RT-1, TX-6
async fn lasting_failure_is_dead_at_once(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    let verdict = EventVerdict::Retry { failure: crate::lab::lasting(), delay: None };
    lab.end_event(claim.fence, verdict).await?;
    let row = stored(lab, claim.fence.event()).await?;
    assert_eq!((row.state, row.attempts), (EventState::DeadLetter, 1));
    Ok(())
}

/// A retry waits exactly as long as it was told.
///
/// Proves: TX-6
async fn retry_waits_its_delay(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.end_event(claim.fence, again(7)).await?;
    lab.advance(6);
    assert!(lab.take_events(9).await?.is_empty());
    lab.advance(1);
    assert_eq!(lab.take_event().await?.attempt, 2);
    Ok(())
}

/// A release gives the attempt back and raises the version.
///
/// Proves: TX-4, WQ-20
async fn release_costs_no_attempt(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.end_event(claim.fence, EventVerdict::Release { delay: Some(seconds(3)) }).await?;
    let row = stored(lab, claim.fence.event()).await?;
    assert_eq!((row.attempts, row.claim_version), (0, claim.fence.version().next()));
    assert!(lab.take_events(9).await?.is_empty());
    lab.advance(3);
    assert_eq!(lab.take_event().await?.attempt, 1);
    Ok(())
}

/// A replayed event is sent again with its whole budget, under its own id, and is audited.
///
/// Proves: TX-6
async fn replay_sends_again(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 1).await?;
    lab.end_event(claim.fence, again(0)).await?;
    let (id, by) = (claim.fence.event(), actor());
    let replayed = lab.control(Control::ReplayEvent { event: id, actor: by }).await?;
    assert_eq!(replayed, Controlled::Done);
    let next = lab.take_event().await?;
    assert_eq!((next.fence.event(), next.attempt), (id, 1));
    assert!(next.fence.version() > claim.fence.version());
    let dump = lab.dump().await?;
    assert!(dump.rows("audit")[0].contains("\"replay\""), "{dump:?}");
    Ok(())
}

/// An event that is not dead-lettered cannot be replayed; an unknown one is not found.
///
/// Proves: ERR-1, TX-6
async fn only_dead_events_are_replayed(lab: &Lab) -> Result<()> {
    use leasehold_core::ErrorKind;
    let act = |event| Control::ReplayEvent { event, actor: actor() };
    let claim = sent(lab, 5).await?;
    let id = claim.fence.event();
    assert_refused(lab.control(act(id)).await, ErrorKind::IllegalTransition);
    lab.end_event(claim.fence, EventVerdict::Delivered).await?;
    let before = lab.dump().await?;
    assert_refused(lab.control(act(id)).await, ErrorKind::IllegalTransition);
    assert_refused(lab.control(act(EventId::new())).await, ErrorKind::NotFound);
    lab.assert_unchanged(&before).await
}

async fn renewed(lab: &Lab, fence: EventFence, lease: Option<u64>) -> Result<Renewal> {
    let mut request = RenewRequest::new([fence]);
    if let Some(length) = lease {
        request = request.lease(LeaseLength::new(seconds(length))?);
    }
    Ok(lab.renew_events(request).await?.remove(0))
}

/// A renewal makes the lease run from the store's now, and takes a new length.
///
/// Proves: TX-4
async fn renewal_extends_the_lease(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.advance(20);
    let held = |remaining: Duration| Renewal::Renewed { remaining, cancel_requested: false };
    assert_eq!(renewed(lab, claim.fence, None).await?, held(seconds(30)));
    lab.advance(20);
    assert_eq!(renewed(lab, claim.fence, Some(90)).await?, held(seconds(90)));
    lab.advance(89);
    lab.end_event(claim.fence, EventVerdict::Delivered).await?;
    assert_eq!(stored(lab, claim.fence.event()).await?.state, EventState::Delivered);
    Ok(())
}

/// A lapsed delivery goes back to waiting, once, its version raised.
///
/// Proves: TX-4, WQ-7, WQ-8
async fn lapsed_lease_is_taken_back(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.advance(30);
    let back = lab.reclaim(ReclaimRequest::events()).await?;
    assert_eq!((back.events_returned, back.events_dead, back.jobs.len()), (1, 0, 0));
    let row = stored(lab, claim.fence.event()).await?;
    assert_eq!((row.state, row.attempts), (EventState::Waiting, 1));
    assert_eq!(row.claim_version, claim.fence.version().next());
    assert_eq!(lab.reclaim(ReclaimRequest::events()).await?.total(), 0);
    assert_eq!(lab.take_event().await?.attempt, 2);
    Ok(())
}

/// A claim that takes a lapsed delivery over raises the version once.
///
/// Proves: TX-4, WQ-8
async fn takeover_raises_the_version_once(lab: &Lab) -> Result<()> {
    let old = sent(lab, 5).await?;
    lab.advance(30);
    let new = lab.take_event().await?;
    assert_eq!(new.fence.version(), old.fence.version().next());
    assert_eq!((new.fence.event(), new.attempt), (old.fence.event(), 2));
    Ok(())
}

/// The last attempt's lapsed lease ends in the outbox's dead letters.
///
/// Proves: TX-4, TX-6
async fn spent_lease_is_dead(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 1).await?;
    lab.advance(30);
    let back = lab.reclaim(ReclaimRequest::events()).await?;
    assert_eq!((back.events_returned, back.events_dead), (0, 1));
    assert_eq!(stored(lab, claim.fence.event()).await?.state, EventState::DeadLetter);
    Ok(())
}

/// A claim that meets a last attempt's lapsed lease ends it, hands it to nobody, and gives what is behind it.
///
/// Proves: TX-4, TX-6
async fn spent_lease_is_not_claimed(lab: &Lab) -> Result<()> {
    let spent = sent(lab, 1).await?;
    lab.advance(30);
    let next = lab.publish_one(event(2)).await?;
    assert_eq!(lab.take_event().await?.fence.event(), next.event);
    assert_eq!(stored(lab, spent.fence.event()).await?.state, EventState::DeadLetter);
    Ok(())
}

fn verdicts() -> [EventVerdict; 4] {
    let release = EventVerdict::Release { delay: Some(seconds(9)) };
    [EventVerdict::Delivered, again(8), EventVerdict::DeadLetter { failure: passing() }, release]
}

/// A repeat of the same verdict by the same claim is answered and writes nothing.
///
/// Proves: GLO-2, TX-4
async fn repeat_writes_nothing(lab: &Lab) -> Result<()> {
    for verdict in verdicts() {
        lab.advance(60);
        for claim in lab.take_events(9).await? {
            lab.end_event(claim.fence, EventVerdict::Delivered).await?;
        }
        let claim = sent(lab, 5).await?;
        lab.end_event(claim.fence, verdict.clone()).await?;
        let before = lab.dump().await?;
        lab.end_event(claim.fence, verdict).await?;
        lab.assert_unchanged(&before).await?;
    }
    Ok(())
}

async fn refuses_all(lab: &Lab, fence: EventFence, reason: LostReason) -> Result<()> {
    let before = lab.dump().await?;
    for verdict in verdicts() {
        assert_lost(lab.end_event(fence, verdict).await, reason);
    }
    assert_eq!(renewed(lab, fence, None).await?, Renewal::Lost(reason));
    lab.assert_unchanged(&before).await
}

/// A lapsed delivery's fence counts for nothing.
///
/// Proves: TX-4, WQ-6
async fn expired_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.advance(30);
    refuses_all(lab, claim.fence, LostReason::Expired).await?;
    lab.reclaim(ReclaimRequest::events()).await?;
    refuses_all(lab, claim.fence, LostReason::Reclaimed).await
}

/// A fence that another claim took over counts for nothing.
///
/// Proves: TX-4, WQ-15
async fn taken_over_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.advance(30);
    let _newer = lab.take_event().await?;
    refuses_all(lab, claim.fence, LostReason::TakenOver).await
}

/// After its end a delivery takes no other verdict, in a batch with good ones too.
///
/// Proves: TX-4
async fn settled_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.end_event(claim.fence, EventVerdict::DeadLetter { failure: passing() }).await?;
    let next = sent(lab, 5).await?;
    let late = EventSettlement::new(claim.fence, EventVerdict::Delivered);
    let good = EventSettlement::new(next.fence, EventVerdict::Delivered);
    let mut answers = lab.settle_events(vec![late, good]).await?.into_iter();
    assert_lost(answers.next().expect("an answer"), LostReason::Settled);
    answers.next().expect("an answer")?;
    assert_eq!(stored(lab, claim.fence.event()).await?.state, EventState::DeadLetter);
    assert_eq!(stored(lab, next.fence.event()).await?.state, EventState::Delivered);
    Ok(())
}

/// A delivery from before the epoch was raised counts for nothing.
///
/// Proves: TX-4, WQ-12
async fn raised_epoch_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    let by: Actor = actor();
    lab.control(Control::BumpEpoch { actor: by }).await?;
    refuses_all(lab, claim.fence, LostReason::EpochRaised).await
}

/// A pruned event has no owner.
///
/// Proves: QUE-4, TX-4
async fn gone_changes_nothing(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.end_event(claim.fence, EventVerdict::Delivered).await?;
    lab.advance(25 * 3600);
    assert_eq!(lab.prune(PruneRequest::new()).await?.events, 1);
    refuses_all(lab, claim.fence, LostReason::Gone).await
}

/// A claim of no events or of too many is refused.
///
/// Proves: ERR-1
async fn limit_out_of_range_is_refused(lab: &Lab) -> Result<()> {
    use leasehold_core::{ErrorKind, EventClaimRequest, WorkerId};
    for limit in [0, 10_001] {
        assert_refused(lab.take_events(limit).await, ErrorKind::Invalid);
    }
    let nothing = EventClaimRequest::new(WorkerId::new()).topics([]);
    assert_refused(lab.claim_events(nothing).await, ErrorKind::Invalid);
    Ok(())
}

/// A repeated request gets what the lost reply had, under the same fence, then up to its limit what
/// is due now.
///
/// Proves: GLO-2, TX-4
async fn lost_reply_is_given_again(lab: &Lab) -> Result<()> {
    use leasehold_core::{EventClaimRequest, WorkerId};
    lab.publish_one(event(1)).await?;
    let asked = EventClaimRequest::new(WorkerId::new()).limit(2);
    let first = lab.claim_events(asked.clone()).await?;
    lab.publish(vec![event(2), event(3)]).await?;
    let again = lab.claim_events(asked.clone().repeat()).await?;
    assert_eq!((first.len(), again.len()), (1, 2));
    assert_eq!((first[0].fence, first[0].attempt), (again[0].fence, again[0].attempt));
    assert_ne!(again[0].fence.event(), again[1].fence.event());
    assert_eq!(lab.take_events(9).await?.len(), 1);
    let fences = |claims: &[leasehold_core::EventClaim]| -> Vec<EventFence> {
        claims.iter().map(|claim| claim.fence).collect()
    };
    let held = lab.claim_events(asked.repeat()).await?;
    assert_eq!(fences(&held), fences(&again), "its own, and nothing of the other's");
    Ok(())
}

/// A repeated request does not get back what has lapsed meanwhile, only a new claim of it.
///
/// Proves: TX-4, WQ-6, WQ-8
async fn repeat_never_gives_a_lapsed_lease(lab: &Lab) -> Result<()> {
    use leasehold_core::{EventClaimRequest, WorkerId};
    lab.publish_one(event(1)).await?;
    let asked = EventClaimRequest::new(WorkerId::new());
    let first = lab.claim_events(asked.clone()).await?.remove(0);
    lab.advance(30);
    let again = lab.claim_events(asked.repeat()).await?.remove(0);
    assert!(again.fence.version() > first.fence.version());
    assert_eq!(again.attempt, 2);
    Ok(())
}

/// The same call's id from another relay gets nothing that the first one holds.
///
/// Proves: TX-4, WQ-4
async fn repeat_is_the_same_relays_only(lab: &Lab) -> Result<()> {
    use leasehold_core::{EventClaimRequest, WorkerId};
    lab.publish_one(event(1)).await?;
    let asked = EventClaimRequest::new(WorkerId::new());
    let first = lab.claim_events(asked.clone()).await?;
    let mut theirs = EventClaimRequest::new(WorkerId::new());
    theirs.claim = asked.claim;
    assert_eq!((first.len(), lab.claim_events(theirs.repeat()).await?.len()), (1, 0));
    assert_eq!(lab.claim_events(asked.repeat()).await?.len(), 1);
    Ok(())
}

async fn alerts(lab: &Lab) -> Result<Vec<EventView>> {
    let topic = leasehold_core::Topic::new("leasehold.alerts")?;
    lab.events(events_with(|filter| filter.topic = Some(topic))).await
}

/// A delivery that ends by a bug calls a person: one alert event, which names the event and the
/// failure.
///
/// Proves: RT-1, TX-6
async fn bug_raises_an_alert(lab: &Lab) -> Result<()> {
    let retry = |failure| EventVerdict::Retry { failure, delay: None };
    let claim = sent(lab, 5).await?;
    lab.end_event(claim.fence, retry(crate::lab::lasting())).await?;
    assert!(alerts(lab).await?.is_empty());
    let claim = sent(lab, 5).await?;
    lab.end_event(claim.fence, retry(crate::lab::bug())).await?;
    let found = alerts(lab).await?;
    assert_eq!(found.len(), 1);
    let text = found[0].payload.as_str();
    assert!(text.contains(&claim.fence.event().to_string()), "{text}");
    assert!(text.contains("INVARIANT_BROKEN"), "{text}");
    Ok(())
}

/// An alert that cannot be delivered makes no further alert.
///
/// Proves: RT-1, TX-6
async fn failing_alert_raises_no_other(lab: &Lab) -> Result<()> {
    let claim = sent(lab, 5).await?;
    lab.end_event(claim.fence, EventVerdict::DeadLetter { failure: crate::lab::bug() }).await?;
    let alert = lab.take_event().await?;
    lab.end_event(alert.fence, EventVerdict::DeadLetter { failure: crate::lab::bug() }).await?;
    assert!(lab.take_events(9).await?.is_empty());
    assert_eq!(alerts(lab).await?.len(), 1);
    Ok(())
}
