//! Owns what the outbox promises: order within a key, and one delivery at a time.

use leasehold_core::{ErrorKind, EventVerdict, OrderKey, Ordering, Result, StoreExt, Topic};

use super::group;
use crate::lab::{Lab, assert_refused, event, passing};

group!("outbox": head_of_line_holds_back_the_key, dead_letter_releases_those_behind,
    same_event_is_published_once);

pub(super) fn ordering() -> Ordering {
    Ordering::Key(OrderKey::new("customer-7").expect("a key"))
}

/// Only the first undelivered event of a key can be claimed.
///
/// Proves: TX-9
async fn head_of_line_holds_back_the_key(lab: &Lab) -> Result<()> {
    let events = vec![event(1).ordering(ordering()), event(2).ordering(ordering())];
    let ids = [events[0].id, events[1].id];
    lab.publish(events).await?;
    for id in ids {
        let claims = lab.take_events(9).await?;
        assert_eq!(claims.iter().map(|claim| claim.fence.event()).collect::<Vec<_>>(), [id]);
        assert!(lab.take_events(9).await?.is_empty());
        lab.end_event(claims[0].fence, EventVerdict::Delivered).await?;
    }
    Ok(())
}

/// A dead-lettered event lets the next of its key go.
///
/// Proves: TX-9
async fn dead_letter_releases_those_behind(lab: &Lab) -> Result<()> {
    let next = event(2).ordering(ordering());
    lab.publish(vec![event(1).ordering(ordering()), next.clone()]).await?;
    let first = lab.take_event().await?;
    lab.end_event(first.fence, EventVerdict::DeadLetter { failure: passing() }).await?;
    let claims = lab.take_events(9).await?;
    assert_eq!(claims.iter().map(|claim| claim.fence.event()).collect::<Vec<_>>(), [next.id]);
    Ok(())
}

/// A known event answers with itself; another topic or payload under its id is refused; neither writes anything.
///
/// Proves: GLO-2, TX-3
async fn same_event_is_published_once(lab: &Lab) -> Result<()> {
    let new = event(1).ordering(ordering());
    let first = lab.publish_one(new.clone()).await?;
    let before = lab.dump().await?;
    let again = lab.publish_one(new.clone()).await?;
    assert_eq!((first.is_new, again.is_new, again.sequence), (true, false, first.sequence));
    let mut elsewhere = new.clone();
    elsewhere.topic = Topic::new("letters")?;
    let other = event(2).id(new.id);
    for taken in [elsewhere, other] {
        assert_refused(lab.publish_one(taken).await, ErrorKind::Conflict);
    }
    lab.assert_unchanged(&before).await
}
