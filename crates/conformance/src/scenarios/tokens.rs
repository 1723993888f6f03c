//! Owns what rate tokens promise: never more than the burst and the rate allow, and none lost.

use leasehold_core::lab::{Ending, RecordReply, RecordStep, Reply, Step};
use leasehold_core::{BucketName, ErrorKind, PruneRequest, Rate, Result, Take, Taken};

use super::group;
use crate::lab::{Lab, assert_refused, seconds};

group!("tokens": burst_is_granted_and_no_more, tokens_come_at_their_rate, all_or_none_are_granted,
    buckets_are_separate, wait_is_exact, full_bucket_is_let_go, impossible_wish_is_refused,
    rolled_back_tokens_are_there_again);

fn wish(rate: Rate, burst: u32) -> Take {
    Take::new(BucketName::new("mail").expect("a bucket"), rate, burst)
}

/// A fresh bucket grants its burst; a refusal changes nothing.
///
/// Proves: REC-1
async fn burst_is_granted_and_no_more(lab: &Lab) -> Result<()> {
    let one = || wish(Rate::per_second(2), 3);
    for _ in 0..3 {
        assert_eq!(lab.records().take(one()).await?, Taken::Granted);
    }
    let before = lab.dump().await?;
    let half = Taken::Wait(std::time::Duration::from_millis(500));
    assert_eq!(lab.records().take(one()).await?, half);
    lab.assert_unchanged(&before).await
}

/// Over a long time exactly the burst and the rate's tokens are granted.
///
/// Proves: REC-1
async fn tokens_come_at_their_rate(lab: &Lab) -> Result<()> {
    let mut granted = 0;
    for _ in 0..70 {
        while lab.records().take(wish(Rate::per_minute(7), 3)).await? == Taken::Granted {
            granted += 1;
        }
        lab.advance(6);
    }
    // 69 steps of 6 s at 7 a minute, cut to whole tokens, and the burst.
    assert_eq!(granted, 3 + 69 * 6 * 7 / 60);
    Ok(())
}

/// A wish for several is granted whole or not at all.
///
/// Proves: REC-1
async fn all_or_none_are_granted(lab: &Lab) -> Result<()> {
    let some = |tokens| wish(Rate::per_second(1), 5).tokens(tokens);
    assert_eq!(lab.records().take(some(3)).await?, Taken::Granted);
    assert_eq!(lab.records().take(some(3)).await?, Taken::Wait(seconds(1)));
    assert_eq!(lab.records().take(some(2)).await?, Taken::Granted);
    assert_eq!(lab.records().take(some(5)).await?, Taken::Wait(seconds(5)));
    Ok(())
}

/// One bucket's tokens are no other's.
///
/// Proves: REC-1
async fn buckets_are_separate(lab: &Lab) -> Result<()> {
    let mut other = wish(Rate::per_hour(1), 1);
    other.bucket = BucketName::new("calls")?;
    assert_eq!(lab.records().take(wish(Rate::per_hour(1), 1)).await?, Taken::Granted);
    assert_eq!(lab.records().take(other.clone()).await?, Taken::Granted);
    assert_eq!(lab.records().take(other).await?, Taken::Wait(seconds(3600)));
    Ok(())
}

/// After the wait that was named the wish is granted, a microsecond earlier it is not.
///
/// Proves: REC-1
async fn wait_is_exact(lab: &Lab) -> Result<()> {
    let one = || wish(Rate::per_second(3), 1);
    assert_eq!(lab.records().take(one()).await?, Taken::Granted);
    let Taken::Wait(wait) = lab.records().take(one()).await? else { panic!("nothing is left") };
    let moment = std::time::Duration::from_micros(1);
    lab.clock().advance(wait - moment);
    assert_eq!(lab.records().take(one()).await?, Taken::Wait(moment));
    lab.clock().advance(moment);
    assert_eq!(lab.records().take(one()).await?, Taken::Granted);
    Ok(())
}

/// A bucket's row goes once it is full again, and the bucket is as before.
///
/// Proves: REC-1
async fn full_bucket_is_let_go(lab: &Lab) -> Result<()> {
    let two = || wish(Rate::per_second(1), 2).tokens(2);
    assert_eq!(lab.records().take(two()).await?, Taken::Granted);
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.buckets, 0);
    lab.advance(1);
    assert_eq!(lab.prune(PruneRequest::new()).await?.buckets, 1);
    assert_eq!(lab.records().take(two()).await?, Taken::Granted);
    assert_eq!(lab.records().take(two()).await?, Taken::Wait(seconds(2)));
    Ok(())
}

/// What could never be granted is refused at once.
///
/// Proves: REC-1
async fn impossible_wish_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    for bad in [
        wish(Rate::per_second(1), 3).tokens(4),
        wish(Rate::per_second(1), 3).tokens(0),
        wish(Rate::per_second(0), 3),
        wish(Rate::per_second(1), 0),
        wish(Rate::per_second(1), u32::MAX),
        wish(Rate::per_second(u32::MAX), 1),
    ] {
        assert_refused(lab.records().take(bad).await, ErrorKind::Invalid);
    }
    lab.assert_unchanged(&before).await
}

/// Tokens taken in what is rolled back are there again; within the transaction they are gone.
///
/// Proves: REC-1, TX-2
async fn rolled_back_tokens_are_there_again(lab: &Lab) -> Result<()> {
    let take = || Step::Record(RecordStep::Take(wish(Rate::per_second(1), 1)));
    let before = lab.dump().await?;
    lab.play(vec![take()], Ending::RollBack).await?;
    lab.assert_unchanged(&before).await?;
    let script = vec![Step::Savepoint, take(), Step::RollbackToSavepoint, take(), take()];
    let mut answers = Vec::new();
    for reply in lab.play(script, Ending::Commit).await? {
        if let Reply::Record(RecordReply::Take(answer)) = reply {
            answers.push(answer?);
        }
    }
    assert_eq!(answers, [Taken::Granted, Taken::Granted, Taken::Wait(seconds(1))]);
    Ok(())
}
