//! What becomes of a worker that loses a lane of its own, and what it says before it starts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold_core::{ErrorKind, JobKind, Json, LeaseLength, NewJob, Verdict};
use tokio_util::sync::CancellationToken;

use super::fake::{Fake, Renewing};
use crate::worker::{Context, Handled, Worker, WorkerBuilder};

fn worker(fake: &Fake) -> WorkerBuilder {
    let pending = |_: Context, (): ()| async {
        std::future::pending::<()>().await;
        Ok(Handled::done())
    };
    Worker::builder(Arc::new(fake.clone()))
        .lease(LeaseLength::MIN)
        .upkeep(None)
        .grace(Duration::from_secs(60))
        .handler(kind("pending"), pending)
        .handler(kind("quick"), async |_: Context, (): ()| Ok(Handled::done()))
}

fn kind(name: &str) -> JobKind {
    JobKind::new(name).unwrap()
}

fn job(name: &str) -> NewJob {
    NewJob::new(kind(name), Json::null())
}

/// Runs a worker that is expected to end by itself, with an error.
async fn ends_by_itself(fake: &Fake) -> ErrorKind {
    let run = worker(fake).build().run(CancellationToken::new());
    let ended = tokio::time::timeout(Duration::from_secs(4), run).await.expect("it ends");
    ended.expect_err("it cannot go on").kind()
}

/// Proves: WQ-5, WQ-11
#[tokio::test]
async fn a_worker_that_cannot_renew_any_more_gives_its_jobs_back_and_ends() {
    let fake = Fake::with([job("pending")]);
    fake.script(|script| script.renewing = Renewing::Panics);
    assert_eq!(ends_by_itself(&fake).await, ErrorKind::Unavailable);
    assert_eq!(fake.verdicts(), [Verdict::Release { delay: None }]);
}

/// Proves: WQ-11
#[tokio::test]
async fn a_worker_that_cannot_settle_any_more_ends() {
    let fake = Fake::with([job("pending"), job("quick")]);
    fake.script(|script| script.settle_panics = true);
    assert_eq!(ends_by_itself(&fake).await, ErrorKind::Unavailable);
    assert_eq!(fake.verdicts(), []);
}

/// Panics once more whenever it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

/// Proves: RT-1, WQ-11
#[tokio::test]
async fn panics_while_something_is_dropped_are_failures_like_others() {
    let fake = Fake::with([job("drops"), job("throws"), job("quick")]);
    let built = worker(&fake)
        .handler(kind("drops"), |_: Context, (): ()| async {
            let _bomb = Bomb;
            Ok(Handled::done())
        })
        .handler(kind("throws"), |_: Context, (): ()| async { std::panic::panic_any(Bomb) });
    built.slots(1).build().run_until_idle().await.unwrap();
    let [drops, throws, quick] = &fake.verdicts()[..] else { panic!("{:?}", fake.verdicts()) };
    assert_eq!(drops.failure().map(|failure| failure.message()), Some("dropped"));
    assert!(throws.failure().is_some_and(|failure| failure.message().contains("without a text")));
    assert_eq!(quick, &Verdict::Succeed { result: None });
}

/// Proves: WQ-10
#[tokio::test]
async fn large_results_are_settled_a_few_at_a_time() {
    let fake = Fake::with((0..12).map(|_| job("large")));
    let all_in = Arc::new(tokio::sync::Barrier::new(12));
    let large = move |_: Context, (): ()| {
        let all_in = all_in.clone();
        async move {
            all_in.wait().await;
            Ok(Handled::done_with(&"x".repeat(1_000_000)))
        }
    };
    worker(&fake).slots(12).handler(kind("large"), large).build().run_until_idle().await.unwrap();
    let calls = fake.script(|script| script.settle_calls.clone());
    assert_eq!(calls.iter().sum::<usize>(), 12, "{calls:?}");
    assert_eq!(calls.iter().max(), Some(&4), "{calls:?}");
}

/// Proves: WQ-20
#[tokio::test]
async fn a_start_that_gets_no_answer_ends_five_seconds_after_the_shutdown() {
    let fake = Fake::default();
    fake.script(|script| script.silent = true);
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(worker(&fake).build().run(shutdown.clone()));
    fake.refused().await;
    assert!(!running.is_finished());
    shutdown.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(6), running).await.expect("it ends");
    assert_eq!(ended.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
}

/// Proves: WQ-5
#[tokio::test]
async fn too_few_connections_for_the_slots_are_warned_about() {
    for (connections, warnings) in [(None, 0), (Some(5), 0), (Some(4), 1), (Some(1), 1)] {
        let fake = Fake::default();
        fake.script(|script| script.connections = connections);
        let built = bare(&fake).slots(4).handler(kind("quick"), quick).build();
        assert_eq!(built.warnings().len(), warnings, "{connections:?}");
    }
}

fn bare(fake: &Fake) -> WorkerBuilder {
    Worker::builder(Arc::new(fake.clone()))
}

async fn quick(_: Context, (): ()) -> Result<Handled, crate::HandlerError> {
    Ok(Handled::done())
}

/// Proves: GLO-4
#[tokio::test]
async fn no_handler_and_two_of_one_kind_are_warned_about() {
    let fake = Fake::default();
    let told = bare(&fake).build().warnings().join(" ");
    assert!(told.contains("no handler"), "{told}");
    let twice = bare(&fake).handler(kind("quick"), quick).handler(kind("quick"), quick);
    let told = twice.build().warnings().join(" ");
    assert!(told.contains("quick has several handlers"), "{told}");
}

/// Proves: RT-1
#[tokio::test]
async fn an_error_of_ten_megabytes_is_cut() {
    let fake = Fake::with([job("large")]);
    let large = |_: Context, (): ()| async {
        Err(std::io::Error::other("password=hunter2-hunter2 ".repeat(420_000)).into())
    };
    let begun = Instant::now();
    worker(&fake).handler(kind("large"), large).build().run_until_idle().await.unwrap();
    let verdicts = fake.verdicts();
    let failure = verdicts.first().and_then(Verdict::failure).expect("a failure");
    let stack = failure.stack().unwrap_or_default();
    assert!(failure.message().len() <= 16 << 10 && stack.len() <= 32 << 10);
    assert!(!failure.message().contains("hunter2") && !stack.contains("hunter2"));
    assert!(begun.elapsed() < Duration::from_secs(20), "took {:?}", begun.elapsed());
}
