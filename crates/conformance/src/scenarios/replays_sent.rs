//! Owns when the letter of a replay closes that leaves events of its own: once all have gone out.

use leasehold_core::{Control, EventVerdict, LetterState, Result, Settlement, StoreExt, Verdict};

use super::group;
use super::replays::{asked, states};
use crate::lab::{Lab, actor, event, job, lasting, seconds};

group!("replays_sent": letter_waits_for_the_events, undeliverable_event_keeps_the_letter);

/// A replay that leaves events of its own closes the letter when the last of them has gone out.
///
/// Proves: DL-3, TX-1
async fn letter_waits_for_the_events(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    lab.replay(asked(id)).await?;
    let claim = lab.take_one().await?;
    let done = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    lab.settle_one(done.event(event(1)).event(event(2))).await?;
    for _ in 0..2 {
        assert_eq!(states(lab).await?, [LetterState::Replaying]);
        let delivery = lab.take_event().await?;
        lab.end_event(delivery.fence, EventVerdict::Delivered).await?;
    }
    assert_eq!(states(lab).await?, [LetterState::Resolved]);
    Ok(())
}

/// An event that could not be delivered keeps the letter until it is replayed and has gone out.
///
/// Proves: DL-3, TX-6
async fn undeliverable_event_keeps_the_letter(lab: &Lab) -> Result<()> {
    let id = lab.dead(job(1)).await?;
    lab.replay(asked(id)).await?;
    let claim = lab.take_one().await?;
    let done = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    lab.settle_one(done.event(event(1))).await?;
    let delivery = lab.take_event().await?;
    let gone = EventVerdict::DeadLetter { failure: lasting() };
    lab.end_event(delivery.fence, gone).await?;
    assert_eq!(states(lab).await?, [LetterState::Replaying]);
    let event = delivery.fence.event();
    lab.control(Control::ReplayEvent { event, actor: actor() }).await?;
    lab.clock().advance(seconds(1));
    let delivery = lab.take_event().await?;
    lab.end_event(delivery.fence, EventVerdict::Delivered).await?;
    assert_eq!(states(lab).await?, [LetterState::Resolved]);
    Ok(())
}
