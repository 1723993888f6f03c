//! Owns the crossing of every verb that presents an event's fence with every way to lose one.

use leasehold_core::{
    ClaimId, Control, EventClaim, EventClaimRequest, EventFence, EventId, EventSettlement,
    EventVerdict, PruneRequest, ReclaimRequest, RenewRequest, Renewal, Result, StoreExt, WorkerId,
};

use super::crossed::{LOSSES, Loss, Presents, VERBS, lost, presenting, unchanged};
use super::group;
use crate::lab::{Lab, actor, event, passing, seconds};

group!("crossed_events": every_event_verb_refuses_every_stale_fence);

async fn take_by(lab: &Lab, relay: WorkerId) -> Result<EventClaim> {
    let mut claims = lab.claim_events(EventClaimRequest::new(relay)).await?;
    assert_eq!(claims.len(), 1, "exactly one event is due");
    Ok(claims.remove(0))
}

/// Claims an event and loses the claim; `None` where events cannot be lost so.
async fn lose_event(lab: &Lab, loss: Loss) -> Result<Option<EventFence>> {
    let relay = WorkerId::new();
    lab.publish_one(event(1)).await?;
    let it = take_by(lab, relay).await?.fence;
    let fence = EventFence::from_parts;
    match loss {
        Loss::Expired => lab.advance(30),
        Loss::Reclaimed => {
            lab.advance(30);
            lab.reclaim(ReclaimRequest::events()).await?;
        }
        Loss::TakenOver => {
            lab.advance(30);
            let _newer = lab.take_event().await?;
        }
        Loss::TakenOverBySameWorker => {
            lab.advance(30);
            let _newer = take_by(lab, relay).await?;
        }
        Loss::Ended => lab.end_event(it, EventVerdict::Delivered).await?,
        Loss::Reopened => {
            lab.end_event(it, EventVerdict::DeadLetter { failure: passing() }).await?;
            lab.control(Control::ReplayEvent { event: it.event(), actor: actor() }).await?;
            let _newer = take_by(lab, relay).await?;
        }
        Loss::EpochRaised => {
            lab.control(Control::BumpEpoch { actor: actor() }).await?;
        }
        Loss::Gone => {
            lab.end_event(it, EventVerdict::Delivered).await?;
            lab.advance(31 * 24 * 3600);
            lab.prune(PruneRequest::new()).await?;
        }
        Loss::OtherJob => {
            let parts = (it.version(), it.claim(), it.worker(), it.epoch());
            return Ok(Some(fence(EventId::new(), parts.0, parts.1, parts.2, parts.3)));
        }
        Loss::OtherVersion => {
            let next = it.version().next();
            return Ok(Some(fence(it.event(), next, it.claim(), it.worker(), it.epoch())));
        }
        Loss::OtherClaim => {
            let other = ClaimId::new();
            return Ok(Some(fence(it.event(), it.version(), other, it.worker(), it.epoch())));
        }
        Loss::OtherWorker => {
            let other = WorkerId::new();
            return Ok(Some(fence(it.event(), it.version(), it.claim(), other, it.epoch())));
        }
        Loss::SnoozedAndClaimedBySameWorker | Loss::Cancelled | Loss::Pruned => return Ok(None),
    }
    Ok(Some(it))
}

async fn refuses_event(lab: &Lab, verb: &str, fence: EventFence, what: &str) -> Result<()> {
    match verb {
        "renew_events" => {
            let answers = lab.renew_events(RenewRequest::new([fence])).await?;
            assert!(matches!(answers[..], [Renewal::Lost(_)]), "{what}: {answers:?}");
        }
        "settle_events" => {
            let verdicts = [
                EventVerdict::Retry { failure: passing(), delay: Some(seconds(8)) },
                EventVerdict::Release { delay: Some(seconds(9)) },
            ];
            let late = verdicts.map(|verdict| EventSettlement::new(fence, verdict));
            for answer in lab.settle_events(late.to_vec()).await? {
                lost(what, answer);
            }
        }
        other => panic!("{other} presents an event's fence and is not crossed"),
    }
    Ok(())
}

/// Each way to lose a delivery, each verb that presents its fence: refused, and nothing is written.
///
/// Proves: GLO-3, PAR-1, TX-4, WQ-15
async fn every_event_verb_refuses_every_stale_fence(lab: &Lab) -> Result<()> {
    for loss in LOSSES {
        if let Some(fence) = lose_event(lab, loss).await? {
            let before = lab.dump().await?;
            for verb in presenting(Presents::EventFence, &VERBS) {
                let what = format!("{verb} after {loss:?}");
                refuses_event(lab, verb, fence, &what).await?;
                unchanged(lab, &before, &what).await?;
            }
        }
        lab.advance(60);
        for claim in lab.take_events(99).await? {
            lab.end_event(claim.fence, EventVerdict::Delivered).await?;
        }
    }
    Ok(())
}
