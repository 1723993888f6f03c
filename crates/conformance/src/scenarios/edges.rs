//! Owns the edges where queues of this kind have failed in use: requests sent at once or written
//! otherwise, sizes and names that a notification cannot carry, callers with wrong clocks.

use std::time::Duration;

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{
    ClaimRequest, ErrorKind, HintKind, JobId, Json, NewJob, QueueName, Result, StoreExt, WorkerId,
};
use uuid::Uuid;

use super::group;
use super::savepoints::hears;
use crate::lab::{Lab, job, json_of, key, queue, seconds};

group!("edges": request_written_otherwise_is_the_same_job, key_sent_at_once_is_one_job,
    two_requests_of_one_key_at_once_make_one_job, callers_clock_has_no_say,
    payload_of_any_size_wakes_or_is_refused, odd_queue_names_stay_apart,
    many_jobs_join_one_transaction, rolled_back_savepoint_wakes_nobody);

/// How long a wake-up may take to arrive.
const SOON: Duration = Duration::from_secs(60);

fn of(payload: &str) -> NewJob {
    NewJob::new(job(1).kind, Json::parse(payload).expect("JSON")).key(key("order-5"))
}

/// Members in another order, other blanks and other escapes are the same request; another number
/// token is not.
///
/// Proves: IDM-1, IDM-5
async fn request_written_otherwise_is_the_same_job(lab: &Lab) -> Result<()> {
    let first = lab.add(of(r#"{"a":1,"b":{"c":"\u00e9","d":[1,2]}}"#)).await?;
    let before = lab.dump().await?;
    for same in [
        r#"{"b":{"d":[1,2],"c":"é"},"a":1}"#,
        "{ \"a\" : 1 ,\n\t\"b\" : { \"c\" : \"\\u00E9\", \"d\" : [ 1, 2 ] } }",
        r#"{"\u0061":1,"b":{"c":"\u00e9","d":[1,2]}}"#,
    ] {
        let answer = lab.enqueue_one(of(same)).await?;
        assert_eq!((answer.is_new(), answer.job()), (false, first), "{same}");
    }
    for other in [
        r#"{"a":1.0,"b":{"c":"\u00e9","d":[1,2]}}"#,
        r#"{"a":1,"b":{"c":"\u00e9","d":[2,1]}}"#,
        r#"{"a":1,"b":{"c":"e\u0301","d":[1,2]}}"#,
    ] {
        let error = lab.enqueue_one(of(other)).await.expect_err(other);
        assert_eq!((error.kind(), error.existing_job()), (ErrorKind::Conflict, Some(first)));
    }
    lab.assert_unchanged(&before).await
}

/// One request sent four times at once is one job, and every sender is told which.
///
/// Proves: GLO-2, IDM-1
async fn key_sent_at_once_is_one_job(lab: &Lab) -> Result<()> {
    for number in 0..10 {
        let send = || lab.enqueue_one(job(number).key(key(&format!("order-{number}"))));
        let (a, b, c, d) = tokio::join!(send(), send(), send(), send());
        let answers = [a?, b?, c?, d?];
        assert_eq!(answers.iter().filter(|answer| answer.is_new()).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| answer.job() == answers[0].job()), "{answers:?}");
    }
    assert_eq!(lab.dump().await?.rows("jobs").len(), 10);
    Ok(())
}

/// Of two requests that come with one key at once, one has it and the other is told whose it is.
///
/// Proves: IDM-1
async fn two_requests_of_one_key_at_once_make_one_job(lab: &Lab) -> Result<()> {
    for number in 0..10 {
        let send = |payload| lab.enqueue_one(job(payload).key(key(&format!("order-{number}"))));
        let (a, b) = tokio::join!(send(1), send(2));
        let (won, lost) = if a.is_ok() { (a, b) } else { (b, a) };
        let error = lost.expect_err("a conflict");
        assert_eq!((error.kind(), error.existing_job()), (ErrorKind::Conflict, Some(won?.job())));
    }
    assert_eq!(lab.dump().await?.rows("jobs").len(), 10);
    Ok(())
}

/// A caller's id from an hour ago or in an hour moves neither due time, creation nor lease.
///
/// Proves: GLO-6, WQ-3, WQ-4
async fn callers_clock_has_no_say(lab: &Lab) -> Result<()> {
    let now = lab.clock().now();
    let hour = 3_600_000;
    for skew in [-hour, 0, hour] {
        let millis = u128::try_from(now.as_micros() / 1000 + skew).expect("a time");
        let bits = Uuid::now_v7().as_u128() & ((1 << 80) - 1);
        let id = JobId::from_uuid(Uuid::from_u128((millis << 80) | bits));
        let mut new = job(1);
        new.id = id;
        lab.add(new).await?;
        let row = lab.row(id).await?;
        assert_eq!((row.created_at, row.run_at), (now, now), "skew {skew}");
        let mut later = job(2).delay(seconds(5));
        later.id = JobId::from_uuid(Uuid::from_u128((millis << 80) | (bits ^ 1)));
        lab.add(later).await?;
    }
    let held = lab.take(9).await?;
    assert_eq!(held.len(), 3);
    for claim in &held {
        assert_eq!(claim.lease_expires_at, now.plus(seconds(30)));
    }
    lab.clock().advance(Duration::from_micros(4_999_999));
    assert!(lab.take(9).await?.is_empty());
    lab.clock().advance(Duration::from_micros(1));
    assert_eq!(lab.take(9).await?.len(), 3);
    Ok(())
}

/// A wake-up carries no payload: nine kilobytes and the limit itself wake as one byte does, and what
/// lies beyond is refused with the limit's name.
///
/// Proves: PAR-3, PAR-4, WQ-3
async fn payload_of_any_size_wakes_or_is_refused(lab: &Lab) -> Result<()> {
    let sized = |bytes| NewJob::new(job(1).kind, json_of(bytes));
    for bytes in [2, 9 * 1024, 1 << 20] {
        let mut jobs = lab.hints().listen(HintKind::Jobs);
        lab.add(sized(bytes)).await?;
        assert!(hears(&mut jobs, SOON).await, "{bytes} bytes wake nobody");
        let claim = lab.take_one().await?;
        assert_eq!(claim.job.payload.len(), bytes);
        lab.succeed(claim.fence).await?;
    }
    let before = lab.dump().await?;
    let error = lab.enqueue_one(sized(64 << 20)).await.expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("1048576"), "the limit is not named: {error}");
    lab.assert_unchanged(&before).await
}

/// Long names with quotes and capitals are names: those that differ late or by case stay apart.
///
/// Proves: PAR-1, WQ-3
async fn odd_queue_names_stay_apart(lab: &Lab) -> Result<()> {
    let long = format!("\"Mail\"'; $1 -- {}", "Ä".repeat(92));
    let names = [format!("{long}x"), format!("{long}X"), format!("{long}x "), "default ".into()];
    assert_eq!(names[0].len(), 200);
    let names: Vec<QueueName> = names.iter().map(|name| queue(name)).collect();
    for (number, name) in (0..).zip(&names) {
        let mut jobs = lab.hints().listen(HintKind::Jobs);
        lab.add(job(number).queue(name.clone())).await?;
        assert!(hears(&mut jobs, SOON).await, "{name} wakes nobody");
    }
    assert!(lab.take(9).await?.is_empty());
    for (number, name) in (0..).zip(&names) {
        let claims = lab.claim(ClaimRequest::new(WorkerId::new(), [name.clone()]).limit(9)).await?;
        let found: Vec<_> = claims.iter().map(|claim| &claim.job.payload).collect();
        assert_eq!(found, [&job(number).payload], "{name}");
    }
    Ok(())
}

/// Fifteen thousand jobs join one transaction of the caller's, and are there at its end.
///
/// Proves: PAR-1, TX-2
async fn many_jobs_join_one_transaction(lab: &Lab) -> Result<()> {
    let batch = |from: i64| Step::Enqueue((from * 10_000..(from + 1) * 10_000).map(job).collect());
    let mut script: Vec<Step> = (0..5).map(batch).collect();
    script.push(Step::OwnRow("order 7".to_owned()));
    for reply in lab.play(script, Ending::Commit).await? {
        let Reply::Enqueue(answers) = reply else { continue };
        assert!(answers?.iter().all(|answer| answer.as_ref().is_ok_and(|job| job.is_new())));
    }
    let stats = lab.stats().await?;
    assert_eq!(stats.queue(&QueueName::default_queue()).map(|queue| queue.ready), Some(50_000));
    Ok(())
}

/// Whether a script's commit wakes those who wait for jobs, each of four times.
async fn always_wakes(lab: &Lab, script: &[Step]) -> Result<bool> {
    for _ in 0..4 {
        let mut jobs = lab.hints().listen(HintKind::Jobs);
        lab.play(script.to_vec(), Ending::Commit).await?;
        if !hears(&mut jobs, Duration::from_millis(60)).await {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An enqueue that went back to a savepoint wakes nobody: the commit is heard as one without it is.
///
/// Proves: TX-2
async fn rolled_back_savepoint_wakes_nobody(lab: &Lab) -> Result<()> {
    let own = || Step::OwnRow("order 7".to_owned());
    let undone = [own(), Step::Savepoint, Step::Enqueue(vec![job(1)]), Step::RollbackToSavepoint];
    // Where any commit to the file is heard, the caller's own row alone is.
    if always_wakes(lab, &undone).await? {
        assert!(always_wakes(lab, &[own()]).await?, "woken by what was rolled back");
    }
    assert!(lab.take(9).await?.is_empty());
    Ok(())
}
