//! What a running worker sends to its store.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use leasehold_core::{
    ErrorKind, Failure, FailureCode, JobKind, Json, LeaseLength, NewEvent, NewJob, Topic, Verdict,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::fake::{Fake, Renewing};
use crate::worker::{Context, Handled, Worker, WorkerBuilder};

const LONG: Duration = Duration::from_secs(60);

fn kind(name: &str) -> JobKind {
    JobKind::new(name).unwrap()
}

fn job(name: &str, payload: &str) -> NewJob {
    NewJob::new(kind(name), Json::parse(payload).unwrap())
}

fn worker(fake: &Fake) -> WorkerBuilder {
    let builder = Worker::builder(Arc::new(fake.clone())).lease(LeaseLength::MIN).upkeep(None);
    builder
        .handler(kind("double"), async |_: Context, n: u32| Ok(Handled::done_with(&(n * 2))))
        .handler(kind("panic"), |_: Context, (): ()| async { panic!("boom") })
        .handler(kind("fail"), |_: Context, (): ()| async {
            Err(Failure::new(FailureCode::VersionConflict, "taken").into())
        })
        .handler(kind("sleep"), |_: Context, (): ()| async {
            tokio::time::sleep(LONG).await;
            Ok(Handled::done())
        })
        .handler(kind("heed"), |context: Context, (): ()| async move {
            context.cancellation().cancelled().await;
            Err(std::io::Error::other("told to stop").into())
        })
}

fn codes(fake: &Fake) -> Vec<FailureCode> {
    fake.verdicts().iter().filter_map(|v| v.failure().map(Failure::code)).collect()
}

/// Proves: WQ-10
#[tokio::test]
async fn a_result_reaches_the_settlement() {
    let fake = Fake::with([job("double", "21")]);
    worker(&fake).build().run_until_idle().await.unwrap();
    let result = Some(Json::parse("42").unwrap());
    assert_eq!(fake.verdicts(), [Verdict::Succeed { result }]);
}

/// Proves: RT-1
#[tokio::test]
async fn panics_and_bad_payloads_fail_with_codes_of_their_own() {
    let fake = Fake::with([job("panic", "null"), job("double", "\"x\"")]);
    worker(&fake).slots(1).build().run_until_idle().await.unwrap();
    assert_eq!(codes(&fake), [FailureCode::Panic, FailureCode::SchemaInvalid]);
    let text = fake.verdicts().iter().filter_map(|v| v.failure().cloned()).next().unwrap();
    assert_eq!(text.message(), "boom");
}

/// What a handler publishes and enqueues goes on in the trace that its job came with, each from a span of the
/// execution's own; what has a trace keeps it.
///
/// Proves: TRC-1
#[tokio::test]
async fn what_comes_of_a_job_is_of_its_trace() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-";
    let carried = format!("{TRACE}00f067aa0ba902b7-01");
    let other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let fake = Fake::with([job("tell", "null").traceparent(&carried)]);
    let event = || NewEvent::new(Topic::new("told").unwrap(), Json::null());
    let tell = move |context: Context, (): ()| async move {
        context.publish(event());
        Ok(Handled::done().event(event().traceparent(other)).job(job("double", "1")))
    };
    worker(&fake).handler(kind("tell"), tell).build().run_until_idle().await.unwrap();
    let settled = fake.script(|script| script.settled.remove(0));
    let events: Vec<_> = settled.events.iter().map(|it| it.traceparent.clone().unwrap()).collect();
    let next = settled.jobs[0].traceparent.clone().unwrap();
    assert!(next.starts_with(TRACE) && next != carried, "{next}");
    assert_eq!(events, [next, other.to_owned()]);
}

/// However many slots there are, a claim asks for a thousand at most.
///
/// Proves: WQ-3
#[tokio::test]
async fn claims_are_bounded_whatever_the_slots() {
    let fake = Fake::with((0..2_500).map(|n| job("double", &n.to_string())));
    worker(&fake).slots(2_500).build().run_until_idle().await.unwrap();
    assert_eq!(fake.verdicts().len(), 2_500);
    let most = fake.script(|script| script.claims.iter().map(|claim| claim.limit).max());
    assert_eq!(most, Some(1_000));
}

/// No claim goes out while a job of the one before has not begun.
///
/// Proves: WQ-3
#[tokio::test]
async fn the_jobs_of_a_claim_begin_before_the_next_claim() {
    const JOBS: usize = 400;
    let fake = Fake::with((0..JOBS).map(|_| job("begins", "null")));
    let begun = Arc::new(AtomicUsize::new(0));
    let (counted, seen) = (begun.clone(), fake.clone());
    let begins = move |_: Context, (): ()| {
        let before = counted.fetch_add(1, Relaxed);
        let claims = seen.script(|script| script.claims.len());
        async move {
            assert_eq!(claims, 1, "before job {before} began");
            std::future::pending::<()>().await;
            Ok(Handled::done())
        }
    };
    let shutdown = CancellationToken::new();
    let (until, grace) = (shutdown.clone(), Duration::ZERO);
    let worker = worker(&fake).slots(2 * JOBS).grace(grace).handler(kind("begins"), begins);
    let running = tokio::spawn(worker.build().run(until));
    let claimed_again = async {
        while fake.script(|script| script.claims.len()) < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, claimed_again).await.expect("another claim");
    assert_eq!(begun.load(Relaxed), JOBS);
    shutdown.cancel();
    running.await.unwrap().unwrap();
}

/// Ends that are stored while the last claim is out leave nothing to wait for.
///
/// Proves: WQ-10
#[tokio::test(start_paused = true)]
async fn a_drain_does_not_pause_when_all_is_stored() {
    let fake = Fake::with([job("double", "1"), job("double", "2")]);
    fake.script(|script| script.claims_late = Duration::from_millis(10));
    let begun = tokio::time::Instant::now();
    worker(&fake).build().run_until_idle().await.unwrap();
    assert_eq!(fake.verdicts().len(), 2);
    let (taken, claims) = (begun.elapsed(), fake.script(|script| script.claims.len()));
    assert!(taken < Duration::from_millis(10) * u32::try_from(claims + 1).unwrap(), "{taken:?}");
}

/// Ten minutes of nothing to do: a claim every five to ten seconds.
///
/// Proves: WQ-3, CFG-3
#[tokio::test(start_paused = true)]
async fn the_wait_after_an_empty_claim_is_as_it_was_set() {
    let fake = Fake::default();
    let shutdown = CancellationToken::new();
    let running = worker(&fake).poll(Duration::from_secs(10)).build().run(shutdown.clone());
    let running = tokio::spawn(running);
    tokio::time::sleep(Duration::from_secs(600)).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    let claims = fake.script(|script| script.claims.len());
    assert!((60..=122).contains(&claims), "{claims} claims");
}

/// Proves: WQ-19
#[tokio::test]
async fn an_unknown_kind_is_given_back_with_a_delay() {
    let fake = Fake::with([job("strange", "null")]);
    worker(&fake).build().run_until_idle().await.unwrap();
    assert!(matches!(fake.verdicts()[..], [Verdict::Release { delay: Some(_) }]));
}

/// Proves: WQ-10
#[tokio::test]
async fn a_lost_reply_is_answered_by_the_same_settlement() {
    let fake = Fake::with([job("double", "1")]);
    fake.script(|script| script.settle_errors.push_back(ErrorKind::OutcomeUnknown));
    worker(&fake).build().run_until_idle().await.unwrap();
    let settled = fake.script(|script| script.settled.clone());
    assert_eq!(settled.len(), 2);
    assert_eq!(settled[0], settled[1]);
}

/// Proves: WQ-11
#[tokio::test]
async fn a_refused_settlement_fails_the_job_once() {
    let fake = Fake::with([job("double", "1")]);
    fake.script(|script| script.settle_errors.extend([ErrorKind::Invalid, ErrorKind::Invalid]));
    worker(&fake).build().run_until_idle().await.unwrap();
    assert_eq!(codes(&fake), [FailureCode::ResultInvalid]);
    assert_eq!(fake.verdicts().len(), 2);
}

/// Proves: WQ-3
#[tokio::test]
async fn a_claim_without_an_answer_is_sent_again() {
    let fake = Fake::with([job("double", "1")]);
    fake.script(|script| script.claims_unanswered = 1);
    worker(&fake).build().run_until_idle().await.unwrap();
    let claims = fake.script(|script| script.claims.clone());
    assert_eq!(claims[0].claim, claims[1].claim);
    assert!(!claims[0].repeat && claims[1].repeat);
    assert_eq!(fake.verdicts().len(), 1);
}

/// Proves: WQ-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_lease_stops_the_handler_and_nothing_is_settled() {
    for renewing in [Renewing::Lost, Renewing::Unreachable] {
        let fake = Fake::with([job("sleep", "null")]);
        fake.script(|script| script.renewing = renewing);
        let run = worker(&fake).build().run_until_idle();
        tokio::time::timeout(Duration::from_secs(5), run).await.expect("it ends").unwrap();
        assert_eq!(fake.verdicts(), [], "{renewing:?}");
    }
}

/// Proves: QUE-2
#[tokio::test]
async fn a_requested_cancel_reaches_the_handler() {
    let fake = Fake::with([job("heed", "null")]);
    fake.script(|script| script.renewing = Renewing::CancelRequested);
    worker(&fake).build().run_until_idle().await.unwrap();
    assert!(matches!(fake.verdicts()[..], [Verdict::Cancel { .. }]));
}

/// Proves: WQ-18
#[tokio::test]
async fn a_handler_that_blocks_its_thread_keeps_its_lease() {
    let fake = Fake::with([job("block", "null")]);
    let built = worker(&fake).handler(kind("block"), |_: Context, (): ()| async {
        std::thread::sleep(Duration::from_millis(2_500));
        Ok(Handled::done())
    });
    built.build().run_until_idle().await.unwrap();
    assert_eq!(fake.verdicts(), [Verdict::Succeed { result: None }]);
    assert!(fake.script(|script| script.renewals) >= 2);
}

/// Proves: WQ-20, WQ-19
#[tokio::test(start_paused = true)]
async fn what_a_claim_brings_after_the_shutdown_is_given_back() {
    let fake = Fake::with([job("double", "1"), job("double", "2")]);
    fake.script(|script| script.claims_late = Duration::from_secs(3));
    let shutdown = CancellationToken::new();
    let built = worker(&fake).lease(LeaseLength::new(LONG).unwrap()).build();
    let running = tokio::spawn(built.run(shutdown.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(fake.script(|script| script.claims.len()), 1);
    assert_eq!(
        fake.verdicts(),
        [Verdict::Release { delay: None }, Verdict::Release { delay: None }]
    );
}

/// Proves: WQ-20
#[tokio::test]
async fn a_shutdown_gives_back_what_does_not_end_in_time() {
    let fake = Fake::with([job("sleep", "null"), job("heed", "null"), job("double", "1")]);
    let shutdown = CancellationToken::new();
    let built = worker(&fake).grace(Duration::from_millis(300)).build();
    let running = tokio::spawn(built.run(shutdown.clone()));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begun = Instant::now();
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "took {:?}", begun.elapsed());
    let released = fake.verdicts().into_iter().filter(|v| matches!(v, Verdict::Release { .. }));
    assert_eq!((released.count(), fake.verdicts().len()), (2, 3));
}

/// Proves: QUE-5
#[tokio::test]
async fn events_go_with_the_next_report_or_the_end() {
    let fake = Fake::with([job("tell", "null")]);
    let (sender, mut ids) = mpsc::unbounded_channel();
    let built = worker(&fake).handler(kind("tell"), move |context: Context, (): ()| {
        let sender = sender.clone();
        async move {
            let events = [0, 1].map(|_| NewEvent::new(Topic::new("told").unwrap(), Json::null()));
            let [first, second] = events;
            sender.send([first.id, second.id])?;
            context.publish(first);
            context.checkpoint(Json::null()).await?;
            context.publish(second);
            Ok(Handled::done())
        }
    });
    built.build().run_until_idle().await.unwrap();
    let [first, second] = ids.recv().await.unwrap();
    let reports = fake.script(|script| script.reports.clone());
    let settled = fake.script(|script| script.settled.clone());
    assert_eq!((reports.len(), reports[0].step, reports[0].events[0].id), (1, 1, first));
    assert_eq!((settled[0].events.len(), settled[0].events[0].id), (1, second));
}

/// Proves: WQ-11
#[tokio::test]
async fn a_database_that_is_away_at_the_start_does_not_end_the_worker() {
    let fake = Fake::with([job("double", "1")]);
    let away = [ErrorKind::Unavailable, ErrorKind::Busy, ErrorKind::OutcomeUnknown];
    fake.script(|script| script.control_errors.extend(away));
    worker(&fake).build().run_until_idle().await.unwrap();
    assert_eq!(fake.verdicts().len(), 1);
}

/// Proves: WQ-11
#[tokio::test]
async fn an_error_that_no_repeat_mends_ends_the_start() {
    let fake = Fake::with([job("double", "1")]);
    fake.script(|script| script.control_errors.push_back(ErrorKind::Conflict));
    let error = worker(&fake).build().run_until_idle().await.unwrap_err();
    assert_eq!((error.kind(), fake.verdicts().len()), (ErrorKind::Conflict, 0));
}

/// Proves: WQ-18
#[tokio::test]
async fn a_worker_that_renews_too_late_is_refused() {
    let fake = Fake::default();
    let late = worker(&fake).renew_at(0.5).expect_err("refused");
    assert_eq!(late.kind(), ErrorKind::Invalid);
    assert!(worker(&fake).renew_at(0.49).is_ok());
}

/// Proves: WQ-20
#[tokio::test]
async fn a_shutdown_ends_a_start_that_waits() {
    let fake = Fake::default();
    fake.script(|script| script.control_errors.extend([ErrorKind::Unavailable; 99]));
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(worker(&fake).build().run(shutdown.clone()));
    fake.refused().await;
    fake.refused().await;
    shutdown.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(5), running).await.expect("it ends");
    assert_eq!(ended.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
}
