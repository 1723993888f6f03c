//! Owns what stored answers promise: the first one, to every repeat, until its end.

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{ErrorKind, IdempotencyKey, Once, Remembered, RequestHash, Result, Scope};

use super::group;
use crate::lab::{Lab, assert_refused, json, json_of, seconds};

group!("records": record_answers_once, record_of_another_request_conflicts,
    lapsed_record_counts_as_new, scopes_are_separate, oversized_response_is_refused,
    rolled_back_record_is_not_kept, committed_record_answers, begun_request_is_in_progress,
    first_answer_of_a_begun_request_counts, lapsed_mark_lets_another_begin);

/// An answer to one of some requests under one key.
pub(super) fn once(number: i64, response: i64) -> Once {
    let key = IdempotencyKey::new("payment-7").expect("a key");
    let hash = RequestHash::of_job("pay", "default", &json(number));
    Once::new(Scope::global(), key, hash, json(response))
}

/// The first answer to a request is the answer to its repeats.
///
/// Proves: IDM-2
async fn record_answers_once(lab: &Lab) -> Result<()> {
    assert_eq!(lab.once(once(1, 10)).await?, Remembered::New);
    let before = lab.dump().await?;
    assert_eq!(lab.once(once(1, 20)).await?, Remembered::Stored(json(10)));
    lab.assert_unchanged(&before).await
}

/// A record's key under another request is a conflict and writes nothing.
///
/// Proves: IDM-2
async fn record_of_another_request_conflicts(lab: &Lab) -> Result<()> {
    lab.once(once(1, 10)).await?;
    let before = lab.dump().await?;
    assert_refused(lab.once(once(2, 10)).await, ErrorKind::Conflict);
    lab.assert_unchanged(&before).await
}

/// At its end a record counts as new, for another request too, pruned or not.
///
/// Proves: IDM-2
async fn lapsed_record_counts_as_new(lab: &Lab) -> Result<()> {
    lab.once(once(1, 10).ttl(seconds(60))).await?;
    lab.advance(59);
    assert_eq!(lab.once(once(1, 20)).await?, Remembered::Stored(json(10)));
    lab.advance(1);
    assert_eq!(lab.once(once(2, 30).ttl(seconds(90))).await?, Remembered::New);
    lab.advance(89);
    assert_eq!(lab.once(once(2, 40)).await?, Remembered::Stored(json(30)));
    assert_eq!(lab.dump().await?.rows("records").len(), 1);
    Ok(())
}

/// The same key under another scope is another record.
///
/// Proves: IDM-2
async fn scopes_are_separate(lab: &Lab) -> Result<()> {
    let mut other = once(2, 20);
    other.scope = Scope::new("tenant-1")?;
    assert_eq!(lab.once(once(1, 10)).await?, Remembered::New);
    assert_eq!(lab.once(other.clone()).await?, Remembered::New);
    assert_eq!(lab.once(other).await?, Remembered::Stored(json(20)));
    assert_eq!(lab.once(once(1, 30)).await?, Remembered::Stored(json(10)));
    Ok(())
}

/// A response over the limit is refused and not kept.
///
/// Proves: PAR-4
async fn oversized_response_is_refused(lab: &Lab) -> Result<()> {
    let mut large = once(1, 10);
    large.response = Some(json_of((1 << 20) + 1));
    let before = lab.dump().await?;
    assert_refused(lab.once(large).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await
}

/// A record of a transaction that is rolled back was never there.
///
/// Proves: IDM-3, TX-2
async fn rolled_back_record_is_not_kept(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let script = vec![Step::Once(once(1, 10)), Step::OwnRow("paid".to_owned())];
    lab.play(script, Ending::RollBack).await?;
    lab.assert_unchanged(&before).await?;
    assert_eq!(lab.once(once(1, 20)).await?, Remembered::New);
    Ok(())
}

/// A record commits with its effect, and answers within the transaction and after it.
///
/// Proves: IDM-3, TX-2
async fn committed_record_answers(lab: &Lab) -> Result<()> {
    let script = vec![
        Step::Once(once(1, 10)),
        Step::OwnRow("paid".to_owned()),
        Step::Once(once(1, 20)),
        Step::Once(once(2, 30)),
    ];
    let replies = lab.play(script, Ending::Commit).await?;
    let answers: Vec<_> = replies
        .into_iter()
        .filter_map(|reply| match reply {
            Reply::Once(answer) => Some(answer),
            _ => None,
        })
        .collect();
    assert_eq!(answers[0].as_ref().ok(), Some(&Remembered::New));
    assert_eq!(answers[1].as_ref().ok(), Some(&Remembered::Stored(json(10))));
    assert_eq!(answers[2].as_ref().err().map(|error| error.kind()), Some(ErrorKind::Conflict));
    assert_eq!(lab.once(once(1, 40)).await?, Remembered::Stored(json(10)));
    assert_eq!(lab.dump().await?.rows("lab_rows").len(), 1);
    Ok(())
}

fn begin(number: i64) -> Once {
    let Once { scope, key, hash, .. } = once(number, 0);
    Once::begin(scope, key, hash)
}

/// A request that was begun is nobody else's until it is answered; another one conflicts.
///
/// Proves: IDM-2, REC-1
async fn begun_request_is_in_progress(lab: &Lab) -> Result<()> {
    assert_eq!(lab.once(begin(1)).await?, Remembered::New);
    let before = lab.dump().await?;
    assert_eq!(lab.once(begin(1)).await?, Remembered::InProgress);
    assert_refused(lab.once(begin(2)).await, ErrorKind::Conflict);
    assert_refused(lab.once(once(2, 10)).await, ErrorKind::Conflict);
    lab.assert_unchanged(&before).await?;
    assert_eq!(lab.once(once(1, 10)).await?, Remembered::New);
    assert_eq!(lab.once(begin(1)).await?, Remembered::Stored(json(10)));
    Ok(())
}

/// Of two answers to one request the first counts, and it lasts from when it was given.
///
/// Proves: IDM-2, REC-1
async fn first_answer_of_a_begun_request_counts(lab: &Lab) -> Result<()> {
    lab.once(begin(1).ttl(seconds(60))).await?;
    lab.advance(59);
    assert_eq!(lab.once(once(1, 10).ttl(seconds(90))).await?, Remembered::New);
    assert_eq!(lab.once(once(1, 20)).await?, Remembered::Stored(json(10)));
    lab.advance(89);
    assert_eq!(lab.once(begin(1)).await?, Remembered::Stored(json(10)));
    lab.advance(1);
    assert_eq!(lab.once(begin(1)).await?, Remembered::New);
    Ok(())
}

/// Whoever began and was not heard of again is replaced, by another request too.
///
/// Proves: IDM-2, REC-1
async fn lapsed_mark_lets_another_begin(lab: &Lab) -> Result<()> {
    lab.once(begin(1).ttl(seconds(60))).await?;
    lab.advance(60);
    assert_eq!(lab.once(begin(2)).await?, Remembered::New);
    assert_refused(lab.once(once(1, 10)).await, ErrorKind::Conflict);
    Ok(())
}
