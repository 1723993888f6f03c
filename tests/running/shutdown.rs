//! What a shutdown leaves behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold::{
    CancellationToken, Context, Handled, JobFilter, Paging, State, Store, StoreExt, WorkerBuilder,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{Told, add, job, kind, stories, until, view, worker};

stories![
    a_shutdown_waits_then_gives_the_rest_back_uncounted,
    ten_rollouts_leave_the_budget_whole,
    a_shutdown_of_an_idle_worker_is_prompt,
];

/// A worker whose odd jobs never end and whose even ones take 200 ms; says what begins.
fn half_stuck(store: &Arc<dyn Store>) -> (WorkerBuilder, UnboundedReceiver<u32>) {
    let (sender, begun) = unbounded_channel();
    let built = worker(store).handler(kind("half"), move |_: Context, n: u32| {
        let sender = sender.clone();
        async move {
            sender.send(n)?;
            match n % 2 {
                0 => tokio::time::sleep(Duration::from_millis(200)).await,
                _ => std::future::pending().await,
            }
            Ok(Handled::done())
        }
    });
    (built, begun)
}

/// Proves: WQ-20, WQ-19
async fn a_shutdown_waits_then_gives_the_rest_back_uncounted(store: Arc<dyn Store>) -> Told {
    for n in 0..10 {
        add(&store, job("half", n)).await?;
    }
    let (built, mut begun) = half_stuck(&store);
    let shutdown = CancellationToken::new();
    let worker = built.slots(8).grace(Duration::from_secs(4)).build();
    let running = tokio::spawn(worker.run(shutdown.clone()));
    for _ in 0..8 {
        begun.recv().await.ok_or("a job never began")?;
    }
    shutdown.cancel();
    running.await??;

    let jobs = store.jobs(JobFilter::new(), Paging::first(20)).await?.items;
    let count = |state| jobs.iter().filter(|job| job.state == state).count();
    assert_eq!(count(State::Leased), 0);
    assert!(count(State::Succeeded) >= 4 && count(State::Waiting) >= 4, "{jobs:?}");
    for job in jobs.iter().filter(|job| job.state == State::Waiting) {
        assert_eq!(job.attempts, 0, "job {} was charged", job.id);
        let version = job.claim_version.get();
        assert!(version == 0 || version == 2, "the claim raises it, and so does the release");
    }
    Ok(())
}

/// Proves: WQ-20, WQ-19
async fn ten_rollouts_leave_the_budget_whole(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("half", 1).max_attempts(2)).await?;
    for _ in 0..10 {
        let (built, mut begun) = half_stuck(&store);
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(built.grace(Duration::ZERO).build().run(shutdown.clone()));
        begun.recv().await.ok_or("the job never began")?;
        shutdown.cancel();
        running.await??;
        let job = view(&store, id).await?;
        assert_eq!((job.state, job.attempts), (State::Waiting, 0));
    }
    let version = view(&store, id).await?.claim_version.get();
    assert!(version >= 20 && version % 2 == 0, "each claim was released: {version}");
    let end = async |_: Context, _: u32| Ok(Handled::done());
    worker(&store).handler(kind("half"), end).build().run_until_idle().await?;
    let job = view(&store, id).await?;
    assert_eq!((job.state, job.attempts, job.executions), (State::Succeeded, 1, 1));
    Ok(())
}

/// Proves: WQ-20
async fn a_shutdown_of_an_idle_worker_is_prompt(store: Arc<dyn Store>) -> Told {
    let mut took = Vec::new();
    for n in 0..5 {
        let shutdown = CancellationToken::new();
        let built =
            worker(&store).handler(kind("quick"), async |_: Context, _: u32| Ok(Handled::done()));
        let running = tokio::spawn(built.build().run(shutdown.clone()));
        let last = add(&store, job("quick", n)).await?;
        until(&store, last, |job| job.state == State::Succeeded).await?;
        let since = Instant::now();
        shutdown.cancel();
        running.await??;
        took.push(since.elapsed());
    }
    // A worker that waited for the end of its poll would be late each time; a busy machine is now and then.
    assert!(took.iter().min() < Some(&Duration::from_millis(400)), "took {took:?}");
    Ok(())
}
