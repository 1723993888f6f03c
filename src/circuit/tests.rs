//! Workers before queues whose breakers open: what is claimed, and that no permit is lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use leasehold_core::{
    Failure, FailureCode, JobId, JobKind, Json, LeaseLength, MemoryStore, NewJob, State, Store,
    StoreExt,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::worker::tests::fake::{Fake, Renewing};
use crate::worker::{Context, Handled, HandlerError, Worker, WorkerBuilder};

const HOUR: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(60);

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn job(queue: &QueueName, kind: &str) -> NewJob {
    NewJob::new(JobKind::new(kind).unwrap(), Json::parse("null").unwrap())
        .queue(queue.clone())
        .max_attempts(1)
}

fn breakers(cooldown: Duration) -> Arc<CircuitBreakers> {
    Arc::new(CircuitBreakers::new().min_samples(4).cooldown(cooldown))
}

fn refused() -> HandlerError {
    Failure::new(FailureCode::NetworkTimeout, "no route").into()
}

async fn put(store: &MemoryStore, job: NewJob) -> JobId {
    store.enqueue_one(job).await.unwrap().job()
}

/// Opens the breaker of a queue by what a worker would do.
fn open(breakers: &Arc<CircuitBreakers>, queue: &QueueName) {
    let failure = Failure::new(FailureCode::NetworkTimeout, "no route");
    while let Some(pass) = breakers.pass(queue) {
        pass.learn(&Verdict::Fail { failure: failure.clone() });
    }
    assert_eq!(breakers.state(queue), Circuit::Open);
}

fn worker(store: Arc<dyn Store>, breakers: &Arc<CircuitBreakers>) -> WorkerBuilder {
    Worker::builder(store)
        .handler(JobKind::new("good").unwrap(), async |_: Context, ()| Ok(Handled::done()))
        .handler(JobKind::new("bad").unwrap(), async |_: Context, ()| Err(refused()))
        .handler(JobKind::new("snooze").unwrap(), async |_: Context, ()| Ok(Handled::snooze(HOUR)))
        .handler(JobKind::new("sleep").unwrap(), async |_: Context, ()| {
            tokio::time::sleep(HOUR).await;
            Ok(Handled::done())
        })
        .upkeep(None)
        .breakers(breakers.clone())
}

/// Proves: CB-1
#[tokio::test]
async fn an_open_queue_is_left_alone_and_holds_back_no_other() {
    let (store, breakers) = (Arc::new(MemoryStore::new()), breakers(HOUR));
    let (broken, fine) = (queue("broken"), queue("fine"));
    open(&breakers, &broken);
    let waits = put(&store, job(&broken, "good")).await;
    let runs = put(&store, job(&fine, "told")).await;
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let shutdown = CancellationToken::new();
    let worker = worker(store.clone(), &breakers).queue(broken).queue(fine);
    let worker = worker.handler(JobKind::new("told").unwrap(), move |_: Context, ()| {
        tell.lock().unwrap().take().unwrap().send(()).unwrap();
        async { Ok(Handled::done()) }
    });
    let running = tokio::spawn(worker.build().run(shutdown.clone()));
    tokio::time::timeout(PATIENCE, told).await.expect("the other queue is served").unwrap();
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(store.job(runs).await.unwrap().unwrap().state, State::Succeeded);
    let left = store.job(waits).await.unwrap().unwrap();
    assert_eq!((left.state, left.executions), (State::Waiting, 0), "never claimed");
}

/// Proves: CB-1
#[tokio::test]
async fn a_queue_that_recovers_is_probed_by_one_job_at_a_time_and_then_served() {
    let (store, breakers) = (Arc::new(MemoryStore::new()), breakers(Duration::ZERO));
    let shop = queue("shop");
    for _ in 0..40 {
        put(&store, job(&shop, "call")).await;
    }
    open(&breakers, &shop);
    let (broken, now, most) = (
        Arc::new(AtomicBool::new(true)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let seen = (broken.clone(), now.clone(), most.clone());
    let calls = Arc::new(AtomicUsize::new(0));
    let call = move |_: Context, (): ()| {
        let ((broken, now, most), calls) = (seen.clone(), calls.clone());
        async move {
            let at_once = now.fetch_add(1, Ordering::SeqCst) + 1;
            if broken.load(Ordering::SeqCst) {
                most.fetch_max(at_once, Ordering::SeqCst);
            }
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            if calls.fetch_add(1, Ordering::SeqCst) == 9 {
                broken.store(false, Ordering::SeqCst);
            }
            if broken.load(Ordering::SeqCst) { Err(refused()) } else { Ok(Handled::done()) }
        }
    };
    let worker = worker(store.clone(), &breakers)
        .handler(JobKind::new("call").unwrap(), call)
        .queue(shop.clone())
        .slots(8)
        .build();
    tokio::time::timeout(PATIENCE, worker.run_until_idle()).await.expect("it ends").unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 1, "one probe at a time");
    assert_eq!(breakers.state(&shop), Circuit::Closed);
    let stats = store.stats().await.unwrap();
    let counted = stats.queue(&shop).unwrap();
    assert_eq!((counted.succeeded, counted.dead_letter), (31, 9));
}

/// Proves: CB-1
#[tokio::test]
async fn a_drain_ends_though_the_breaker_of_an_empty_queue_stays_open() {
    let (store, breakers) = (Arc::new(MemoryStore::new()), breakers(Duration::ZERO));
    let (one, two) = (queue("one"), queue("two"));
    for at in [&one, &two] {
        open(&breakers, at);
    }
    put(&store, job(&two, "bad")).await;
    let worker = worker(store.clone(), &breakers).queue(one.clone()).queue(two.clone()).build();
    tokio::time::timeout(PATIENCE, worker.run_until_idle()).await.expect("it ends").unwrap();
    assert_eq!((breakers.state(&one), breakers.state(&two)), (Circuit::Open, Circuit::Open));
    assert_eq!(store.stats().await.unwrap().queue(&two).unwrap().dead_letter, 1, "it was tried");
}

/// Proves: CB-1
#[tokio::test]
async fn a_permit_comes_back_from_a_job_that_was_put_off() {
    let (store, breakers) = (Arc::new(MemoryStore::new()), breakers(Duration::ZERO));
    let shop = queue("shop");
    open(&breakers, &shop);
    put(&store, job(&shop, "snooze")).await;
    put(&store, job(&shop, "good")).await;
    let worker = worker(store.clone(), &breakers).queue(shop.clone()).build();
    tokio::time::timeout(PATIENCE, worker.run_until_idle()).await.expect("it ends").unwrap();
    assert_eq!(breakers.state(&shop), Circuit::Closed, "the second job had the permit");
}

/// Proves: CB-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_comes_back_when_the_lease_is_lost_and_when_the_worker_is_stopped() {
    let shop = QueueName::default_queue();
    for is_stopped in [false, true] {
        let breakers = breakers(Duration::ZERO);
        open(&breakers, &shop);
        let fake = Fake::with([job(&shop, "sleep")]);
        if !is_stopped {
            fake.script(|script| script.renewing = Renewing::Lost);
        }
        let builder = worker(Arc::new(fake), &breakers).lease(LeaseLength::MIN);
        let shutdown = CancellationToken::new();
        let running = builder.grace(Duration::ZERO).build().run(shutdown.clone());
        let running = tokio::spawn(running);
        let until = async |half: bool| {
            while (breakers.state(&shop) == Circuit::HalfOpen) != half {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, until(true)).await.expect("the job has the permit");
        if is_stopped {
            shutdown.cancel();
        }
        tokio::time::timeout(PATIENCE, until(false)).await.expect("it is given back");
        shutdown.cancel();
        running.await.unwrap().unwrap();
        assert!(breakers.probe(&shop).is_some(), "{is_stopped}");
    }
}

/// Proves: CB-1
#[test]
fn what_is_wrong_with_one_job_only_breaks_nothing() {
    let (breakers, shop) = (breakers(HOUR), queue("shop"));
    for code in [FailureCode::PayloadInvalid, FailureCode::VersionConflict] {
        for _ in 0..50 {
            let failure = Failure::new(code, "this one");
            breakers.pass(&shop).unwrap().learn(&Verdict::DeadLetter { failure });
        }
    }
    assert_eq!(breakers.state(&shop), Circuit::Closed);
}

/// Proves: CB-1, MET-2
#[test]
fn states_are_the_numbers_that_metrics_show() {
    let numbers = [Circuit::Closed, Circuit::HalfOpen, Circuit::Open].map(Circuit::number);
    assert_eq!(numbers, [0, 1, 2]);
    let (breakers, shop) = (breakers(Duration::ZERO), queue("shop"));
    open(&breakers, &shop);
    let pass = breakers.probe(&shop).unwrap();
    assert_eq!(breakers.state(&shop), Circuit::HalfOpen);
    assert!(breakers.probe(&shop).is_none(), "one permit");
    drop(pass);
    assert_eq!(breakers.states(), [(shop, Circuit::Open)]);
}
