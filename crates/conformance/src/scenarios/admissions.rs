//! Owns what admissions promise: requests are taken once, and with their jobs or not at all.

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{
    Admission, Admitted, ErrorKind, IdempotencyKey, Once, Remembered, RequestHash, Result, Scope,
};

use super::group;
use super::records::once;
use crate::lab::{Lab, assert_refused, job, json, seconds};

group!("admissions": admitted_once_with_its_jobs, known_request_writes_nothing,
    other_request_is_a_conflict, refused_job_leaves_the_keys_free, lapsed_request_is_admitted_again,
    request_named_twice_is_refused, sent_at_once_is_admitted_once,
    admission_shares_the_fate_of_its_transaction);

/// A request under a key of its own.
fn request(name: &str) -> Once {
    let hash = RequestHash::of_job("told", "default", &json(1));
    let key = IdempotencyKey::new(name).expect("a key");
    Once::new(Scope::new("sender").expect("a scope"), key, hash, json(2)).ttl(seconds(600))
}

fn both() -> Admission {
    Admission::new([request("nonce"), request("event")])
}

fn jobs_of(admitted: Admitted) -> usize {
    match admitted {
        Admitted::New(jobs) => jobs.len(),
        known => panic!("not new: {known:?}"),
    }
}

/// New requests are kept and their jobs wait.
///
/// Proves: IDM-3, TX-1
async fn admitted_once_with_its_jobs(lab: &Lab) -> Result<()> {
    assert_eq!(jobs_of(lab.admit(both().jobs([job(1), job(2)])).await?), 2);
    assert_eq!(lab.dump().await?.rows("records").len(), 2);
    assert_eq!(lab.take(9).await?.len(), 2);
    Ok(())
}

/// One known request is enough that nothing is written, the other requests included.
///
/// Proves: IDM-3
async fn known_request_writes_nothing(lab: &Lab) -> Result<()> {
    assert_eq!(jobs_of(lab.admit(Admission::new([request("event")])).await?), 0);
    let before = lab.dump().await?;
    match lab.admit(both().jobs([job(1)])).await? {
        Admitted::Known { at: 1, answer } => assert_eq!(answer, Remembered::Stored(json(2))),
        other => panic!("{other:?}"),
    }
    lab.assert_unchanged(&before).await?;
    assert_eq!(jobs_of(lab.admit(Admission::new([request("nonce")])).await?), 0);
    Ok(())
}

/// A key that holds another request is a conflict, and nothing is written.
///
/// Proves: IDM-2, IDM-3
async fn other_request_is_a_conflict(lab: &Lab) -> Result<()> {
    lab.once(once(1, 10)).await?;
    let before = lab.dump().await?;
    let wanted = Admission::new([request("nonce"), once(2, 20)]).jobs([job(1)]);
    assert_refused(lab.admit(wanted).await, ErrorKind::Conflict);
    lab.assert_unchanged(&before).await
}

/// A job that cannot be enqueued takes the requests and the other jobs back, whatever refuses it.
///
/// Proves: IDM-3, TX-1
async fn refused_job_leaves_the_keys_free(lab: &Lab) -> Result<()> {
    let keyed = |number| job(number).key(IdempotencyKey::new("order-7").expect("a key"));
    lab.add(keyed(1)).await?;
    let before = lab.dump().await?;
    let conflict = both().jobs([job(5), keyed(2)]);
    assert_refused(lab.admit(conflict).await, ErrorKind::Conflict);
    let invalid = both().jobs([job(5), job(6).max_attempts(0)]);
    assert_refused(lab.admit(invalid).await, ErrorKind::Invalid);
    lab.assert_unchanged(&before).await?;
    assert_eq!(jobs_of(lab.admit(both().jobs([job(5)])).await?), 1);
    Ok(())
}

/// At its end a request counts as new.
///
/// Proves: IDM-2
async fn lapsed_request_is_admitted_again(lab: &Lab) -> Result<()> {
    assert_eq!(jobs_of(lab.admit(both()).await?), 0);
    lab.advance(599);
    assert!(matches!(lab.admit(both()).await?, Admitted::Known { at: 0, .. }));
    lab.advance(1);
    assert_eq!(jobs_of(lab.admit(both().jobs([job(1)])).await?), 1);
    Ok(())
}

/// Too few, too many and doubled requests are refused.
///
/// Proves: ERR-1
async fn request_named_twice_is_refused(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let many = (0..11).map(|n| request(&n.to_string()));
    for bad in [vec![], vec![request("a"), request("a")], many.collect()] {
        assert_refused(lab.admit(Admission::new(bad)).await, ErrorKind::Invalid);
    }
    lab.assert_unchanged(&before).await
}

/// Of equal admissions that come at once, one is new and the others find it.
///
/// Proves: IDM-3
async fn sent_at_once_is_admitted_once(lab: &Lab) -> Result<()> {
    for number in 0..5_i64 {
        let send = |n| {
            let name = |what: &str| request(&format!("{what}-{number}"));
            lab.admit(Admission::new([name("nonce"), name("event")]).jobs([job(10 * number + n)]))
        };
        let (a, b, c, d) = tokio::join!(send(1), send(2), send(3), send(4));
        let answers = [a?, b?, c?, d?];
        let new = answers.iter().filter(|answer| matches!(answer, Admitted::New(_))).count();
        assert_eq!(new, 1, "{answers:?}");
    }
    assert_eq!(lab.dump().await?.rows("jobs").len(), 5);
    Ok(())
}

/// In a caller's transaction an admission is kept or taken back with the caller's rows.
///
/// Proves: IDM-3, TX-2
async fn admission_shares_the_fate_of_its_transaction(lab: &Lab) -> Result<()> {
    let before = lab.dump().await?;
    let script = || {
        vec![
            Step::Admit(both().jobs([job(1)])),
            Step::Admit(both().jobs([job(2)])),
            Step::OwnRow("paid".to_owned()),
        ]
    };
    lab.play(script(), Ending::RollBack).await?;
    lab.assert_unchanged(&before).await?;
    let replies = lab.play(script(), Ending::Commit).await?;
    let admitted: Vec<_> = replies
        .into_iter()
        .filter_map(|reply| match reply {
            Reply::Admit(answer) => Some(answer),
            _ => None,
        })
        .collect();
    assert!(matches!(admitted[0], Ok(Admitted::New(ref jobs)) if jobs.len() == 1));
    assert!(matches!(admitted[1], Ok(Admitted::Known { at: 0, .. })));
    assert_eq!(lab.dump().await?.rows("jobs").len(), 1);
    Ok(())
}
