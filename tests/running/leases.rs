//! Leases under handlers that are slow, that block, that use the store themselves, or that lose them.

use std::sync::Arc;
use std::time::Duration;

use leasehold::{
    Actor, CancellationToken, Context, Control, Handled, JobFilter, Json, NewJob, Paging, State,
    Store, StoreExt, WorkerBuilder,
};
use tokio::sync::mpsc::unbounded_channel;

use crate::{Told, add, job, kind, stories, until, view, worker};

/// Longer than a lease.
const LONG: Duration = Duration::from_millis(1_600);

stories![
    a_slow_handler_keeps_its_lease,
    a_handler_that_blocks_its_thread_keeps_its_lease,
    handlers_that_use_the_store_themselves_keep_their_leases,
    jobs_that_wait_for_a_slot_are_not_held,
    a_handler_that_hangs_holds_its_own_job_only,
    a_lost_lease_is_told_and_later_writes_fail,
    a_requested_cancel_is_told_within_a_heartbeat,
    a_success_beats_a_cancel_that_came_after_its_claim,
];

async fn all_succeeded_once(store: &Arc<dyn Store>, jobs: usize) -> Told {
    let page = store.jobs(JobFilter::new(), Paging::first(100)).await?;
    assert_eq!(page.items.len(), jobs);
    for job in page.items {
        assert_eq!((job.state, job.executions), (State::Succeeded, 1), "job {}", job.id);
    }
    Ok(())
}

/// Proves: WQ-18
async fn a_slow_handler_keeps_its_lease(store: Arc<dyn Store>) -> Told {
    add(&store, job("slow", 0)).await?;
    let slow = async |context: Context, _: u32| {
        tokio::time::sleep(LONG).await;
        context.ensure_live(Duration::from_millis(100))?;
        Ok(Handled::done())
    };
    worker(&store).handler(kind("slow"), slow).build().run_until_idle().await?;
    all_succeeded_once(&store, 1).await
}

/// Proves: WQ-18
async fn a_handler_that_blocks_its_thread_keeps_its_lease(store: Arc<dyn Store>) -> Told {
    for n in 0..4 {
        add(&store, job("block", n)).await?;
    }
    let block = async |_: Context, _: u32| {
        std::thread::sleep(LONG);
        Ok(Handled::done())
    };
    worker(&store).slots(4).handler(kind("block"), block).build().run_until_idle().await?;
    all_succeeded_once(&store, 4).await
}

/// Proves: WQ-5
async fn handlers_that_use_the_store_themselves_keep_their_leases(store: Arc<dyn Store>) -> Told {
    for n in 0..4 {
        add(&store, job("parent", n)).await?;
    }
    let inner = store.clone();
    let built = worker(&store).slots(4).handler(kind("parent"), move |_: Context, n: u32| {
        let store = inner.clone();
        async move {
            for _ in 0..2 {
                add(&store, job("child", n)).await?;
                tokio::time::sleep(LONG / 2).await;
            }
            Ok(Handled::done())
        }
    });
    let built = built.handler(kind("child"), async |_: Context, _: u32| Ok(Handled::done()));
    built.build().run_until_idle().await?;
    all_succeeded_once(&store, 12).await
}

/// Proves: WQ-3, WQ-19
async fn jobs_that_wait_for_a_slot_are_not_held(store: Arc<dyn Store>) -> Told {
    let later = add(&store, job("half", 9).delay(Duration::from_secs(3_600))).await?;
    for n in 0..6 {
        add(&store, job("half", n)).await?;
    }
    let one = |store: &Arc<dyn Store>| -> WorkerBuilder {
        worker(store).slots(1).handler(kind("half"), async |_: Context, _: u32| {
            tokio::time::sleep(Duration::from_millis(500)).await;
            Ok(Handled::done())
        })
    };
    let both = (one(&store).build().run_until_idle(), one(&store).build().run_until_idle());
    let (first, second) = tokio::join!(both.0, both.1);
    first.and(second)?;
    let waiting = view(&store, later).await?;
    assert_eq!((waiting.state, waiting.executions), (State::Waiting, 0));
    let done = store.jobs(JobFilter::new().state(State::Succeeded), Paging::first(10)).await?;
    assert!(done.items.iter().all(|job| job.executions == 1));
    assert_eq!(done.items.len(), 6);
    Ok(())
}

/// Proves: WQ-3, WQ-5
async fn a_handler_that_hangs_holds_its_own_job_only(store: Arc<dyn Store>) -> Told {
    for n in 0..20 {
        add(&store, job("one_hangs", n)).await?;
    }
    let shutdown = CancellationToken::new();
    let run = || {
        let built = worker(&store).slots(1).grace(Duration::ZERO);
        let built = built.handler(kind("one_hangs"), async |_: Context, n: u32| match n {
            0 => std::future::pending().await,
            _ => {
                tokio::time::sleep(LONG / 16).await;
                Ok(Handled::done())
            }
        });
        tokio::spawn(built.build().run(shutdown.clone()))
    };
    let workers = [run(), run()];
    let begun = std::time::Instant::now();
    loop {
        let filter = JobFilter::new().state(State::Succeeded);
        let done = store.jobs(filter, Paging::first(20)).await?.items;
        assert!(done.iter().all(|job| job.executions == 1));
        if done.len() == 19 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{} of 19 are done", done.len());
        tokio::time::sleep(LONG / 16).await;
    }
    let leased = store.jobs(JobFilter::new().state(State::Leased), Paging::first(20)).await?.items;
    assert_eq!(leased.iter().map(|job| job.executions).collect::<Vec<_>>(), [1]);
    shutdown.cancel();
    for worker in workers {
        worker.await??;
    }
    Ok(())
}

/// Proves: WQ-5, WQ-15
async fn a_lost_lease_is_told_and_later_writes_fail(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("heed", 0)).await?;
    let (sender, mut heard) = unbounded_channel();
    let built = worker(&store).handler(kind("heed"), move |context: Context, _: u32| {
        let sender = sender.clone();
        // What outlives the handler is told as well, and can write no more.
        let beside = async move {
            if context.job().executions == 1 {
                sender.send(None)?;
                context.cancellation().cancelled().await;
                let late = context.checkpoint(Json::null()).await;
                sender.send(Some((late, context.ensure_live(Duration::ZERO))))?;
            }
            Ok(Handled::done())
        };
        async move { tokio::spawn(beside).await? }
    });
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(built.build().run(shutdown.clone()));
    heard.recv().await.ok_or("the handler never began")?;
    store.control(Control::BumpEpoch { actor: Actor::new("operator")? }).await?;
    let told = heard.recv().await.flatten().ok_or("the handler was never told")?;
    assert!(told.0.is_err_and(|error| error.is_fence_lost()), "the late write was taken");
    assert!(told.1.is_err_and(|error| error.is_fence_lost()));
    let job = until(&store, id, |job| job.state == State::Succeeded).await?;
    shutdown.cancel();
    running.await??;
    assert_eq!((job.executions, job.checkpoint), (2, None));
    Ok(())
}

/// Proves: QUE-2
async fn a_requested_cancel_is_told_within_a_heartbeat(store: Arc<dyn Store>) -> Told {
    let built = worker(&store).handler(kind("heed"), |context: Context, _: u32| async move {
        context.cancellation().cancelled().await;
        Err(std::io::Error::other("told to stop").into())
    });
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(built.build().run(shutdown.clone()));
    let mut took = Vec::new();
    for n in 0..5 {
        let id = add(&store, job("heed", n)).await?;
        until(&store, id, |job| job.state == State::Leased).await?;
        let begun = std::time::Instant::now();
        let (actor, reason) = (Actor::new("operator")?, None);
        store.control(Control::RequestCancel { job: id, actor, reason }).await?;
        until(&store, id, |job| job.state == State::Cancelled).await?;
        took.push(begun.elapsed());
    }
    // A heartbeat is a third of a second; told at the lease's end, each would take a second.
    assert!(took.iter().min() < Some(&Duration::from_millis(900)), "took {took:?}");
    shutdown.cancel();
    Ok(running.await??)
}

/// Proves: QUE-2
async fn a_success_beats_a_cancel_that_came_after_its_claim(store: Arc<dyn Store>) -> Told {
    let (early, waiting) = (add(&store, job("deaf", 0)).await?, add(&store, late()?).await?);
    let inner = store.clone();
    let built = worker(&store).handler(kind("deaf"), move |context: Context, _: u32| {
        let store = inner.clone();
        async move {
            let (actor, reason) = (Actor::new("operator")?, None);
            store.control(Control::RequestCancel { job: context.job().id, actor, reason }).await?;
            Ok(Handled::done())
        }
    });
    let (actor, reason) = (Actor::new("operator")?, Some("not wanted".to_owned()));
    store.control(Control::RequestCancel { job: waiting, actor, reason }).await?;
    built.build().run_until_idle().await?;
    assert_eq!(view(&store, early).await?.state, State::Succeeded);
    let called_off = view(&store, waiting).await?;
    assert_eq!((called_off.state, called_off.executions), (State::Cancelled, 0));
    Ok(())
}

fn late() -> leasehold::Result<NewJob> {
    Ok(NewJob::new(kind("deaf"), Json::parse("1")?).delay(Duration::from_secs(60)))
}
