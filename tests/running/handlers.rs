//! What a handler's end becomes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold::{
    CancellationToken, Context, Handled, JobFilter, Json, Lifecycle, LifecycleName, Paging,
    StageName, State, Store, StoreExt, Verb,
};

use crate::{Told, add, failure, job, kind, stories, until, view, worker};

stories![
    a_result_is_stored_as_it_was_given,
    a_failure_is_tried_again_until_it_succeeds,
    a_panic_is_kept_as_a_dead_letter_and_costs_no_other_job,
    a_payload_that_does_not_read_is_given_up_at_once,
    a_result_that_cannot_be_stored_ends_the_job,
    an_unknown_kind_is_given_back_uncounted,
    a_drain_runs_follow_on_jobs_too,
    a_checkpoint_is_found_by_the_next_attempt,
    a_lifecycle_of_ones_own_is_registered_and_walked,
    a_wake_up_cuts_the_poll_short,
    upkeep_runs_unless_it_is_switched_off,
    upkeep_needs_no_worker,
];

/// Proves: WQ-10
async fn a_result_is_stored_as_it_was_given(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("double", 21)).await?;
    let double = async |_: Context, n: u32| Ok(Handled::done_with(&(n * 2)));
    worker(&store).handler(kind("double"), double).build().run_until_idle().await?;
    let job = view(&store, id).await?;
    assert_eq!((job.state, job.executions), (State::Succeeded, 1));
    assert_eq!(job.result.as_ref().map(Json::as_str), Some("42"));
    Ok(())
}

/// Proves: WQ-10, RT-1
async fn a_failure_is_tried_again_until_it_succeeds(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("shaky", 0)).await?;
    let shaky = async |context: Context, _: u32| match context.job().attempt {
        3 => Ok(Handled::done()),
        _ => Err(std::io::Error::other("not yet").into()),
    };
    worker(&store).handler(kind("shaky"), shaky).build().run_until_idle().await?;
    let job = view(&store, id).await?;
    assert_eq!((job.state, job.attempts, job.executions), (State::Succeeded, 3, 3));
    assert!(failure(&job).contains("not yet"), "{}", failure(&job));
    Ok(())
}

/// Proves: RT-1
async fn a_panic_is_kept_as_a_dead_letter_and_costs_no_other_job(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("panic", 0)).await?;
    let other = add(&store, job("well", 0)).await?;
    let built =
        worker(&store).handler(kind("panic"), |_: Context, _: u32| async { panic!("boom") });
    let built = built.handler(kind("well"), async |_: Context, _: u32| Ok(Handled::done()));
    built.slots(1).build().run_until_idle().await?;
    assert_eq!(view(&store, other).await?.state, State::Succeeded);
    let job = view(&store, id).await?;
    assert_eq!((job.state, job.executions), (State::DeadLetter, 1));
    assert!(failure(&job).contains("boom"), "{}", failure(&job));
    Ok(())
}

/// Proves: RT-1
async fn a_payload_that_does_not_read_is_given_up_at_once(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("name", 7)).await?;
    let name = async |_: Context, _: String| Ok(Handled::done());
    worker(&store).handler(kind("name"), name).build().run_until_idle().await?;
    let job = view(&store, id).await?;
    assert_eq!((job.state, job.executions), (State::DeadLetter, 1));
    assert!(failure(&job).contains("SCHEMA_INVALID"), "{}", failure(&job));
    Ok(())
}

/// Proves: PAR-3
async fn a_result_that_cannot_be_stored_ends_the_job(store: Arc<dyn Store>) -> Told {
    let odd = add(&store, job("bad", 0)).await?;
    let large = add(&store, job("bad", 1)).await?;
    let bad = async |_: Context, n: u32| match n {
        0 => Ok(Handled::done_with(&BTreeMap::from([((1, 2), 3)]))),
        _ => Ok(Handled::done_with(&"x".repeat(2 << 20))),
    };
    worker(&store).handler(kind("bad"), bad).build().run_until_idle().await?;
    for id in [odd, large] {
        let job = view(&store, id).await?;
        assert_eq!((job.state, job.executions), (State::DeadLetter, 1));
        assert!(failure(&job).contains("RESULT_INVALID"), "{}", failure(&job));
    }
    Ok(())
}

/// Proves: QUE-7, WQ-19
async fn an_unknown_kind_is_given_back_uncounted(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("strange", 0)).await?;
    worker(&store).build().run_until_idle().await?;
    let job = view(&store, id).await?;
    assert_eq!((job.state, job.attempts), (State::Waiting, 0));
    assert!(job.run_at > job.created_at, "it is put back for a while");
    Ok(())
}

/// Proves: TX-1
async fn a_drain_runs_follow_on_jobs_too(store: Arc<dyn Store>) -> Told {
    add(&store, job("count", 5)).await?;
    let count = async |_: Context, n: u32| match n {
        0 => Ok(Handled::done()),
        n => Ok(Handled::done().job(job("count", n - 1))),
    };
    worker(&store).handler(kind("count"), count).build().run_until_idle().await?;
    let done = JobFilter::new().state(State::Succeeded);
    assert_eq!(store.jobs(done, Paging::first(10)).await?.items.len(), 6);
    Ok(())
}

/// Proves: QUE-5
async fn a_checkpoint_is_found_by_the_next_attempt(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("long", 0)).await?;
    let long = async |context: Context, _: u32| match &context.job().checkpoint {
        Some(found) => Ok(Handled::done_with(found.as_str())),
        None => {
            context.checkpoint(Json::parse("{\"page\": 7}")?).await?;
            Err(std::io::Error::other("cut off").into())
        }
    };
    worker(&store).handler(kind("long"), long).build().run_until_idle().await?;
    let result = view(&store, id).await?.result.ok_or("no result")?;
    assert_eq!(result.read::<String>()?, "{\"page\": 7}");
    Ok(())
}

/// Proves: WQ-1
async fn a_lifecycle_of_ones_own_is_registered_and_walked(store: Arc<dyn Store>) -> Told {
    let name = LifecycleName::new("parcel")?;
    let stages =
        ["packed", "sent"].map(StageName::new).into_iter().collect::<Result<Vec<_>, _>>()?;
    let parcel = Lifecycle::builder(name.clone(), stages.clone());
    let sent = leasehold::Place::Leased(1);
    let parcel = parcel.edge(sent, Verb::Succeed, leasehold::Place::Succeeded);
    let parcel = parcel.from_leased(Verb::Exhaust, State::Failed).build()?;
    let next = stages.get(1).ok_or("two stages")?.clone();
    let built =
        worker(&store).lifecycle(parcel).handler(kind("post"), move |context: Context, _: u32| {
            let next = next.clone();
            async move {
                context.advance(next).await?;
                Ok(Handled::done())
            }
        });
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(built.build().run(shutdown.clone()));
    // The lifecycle is known once the worker has started.
    let id = loop {
        match add(&store, job("post", 0).lifecycle(name.clone())).await {
            Ok(id) => break id,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let job = until(&store, id, |job| job.state == State::Succeeded).await?;
    shutdown.cancel();
    running.await??;
    assert_eq!(job.stage.as_str(), "sent");
    Ok(())
}

/// Proves: WQ-3
async fn a_wake_up_cuts_the_poll_short(store: Arc<dyn Store>) -> Told {
    let built =
        worker(&store).handler(kind("quick"), async |_: Context, _: u32| Ok(Handled::done()));
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(built.build().run(shutdown.clone()));
    let mut waits = Vec::new();
    for pause in [400, 350, 300, 450, 380] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let begun = Instant::now();
        let id = add(&store, job("quick", 0)).await?;
        until(&store, id, |job| job.state == State::Succeeded).await?;
        waits.push(begun.elapsed());
    }
    shutdown.cancel();
    running.await??;
    waits.sort();
    assert!(
        waits.get(2) < Some(&Duration::from_millis(250)),
        "an empty poll waits 0.5 s: {waits:?}"
    );
    Ok(())
}

/// Proves: WQ-7
async fn upkeep_runs_unless_it_is_switched_off(store: Arc<dyn Store>) -> Told {
    let here = leasehold::QueueName::new("here")?;
    let other = leasehold::QueueName::default_queue();
    let id = add(&store, job("lost", 0)).await?;
    let request = leasehold::ClaimRequest::new(leasehold::WorkerId::new(), [other]);
    assert_eq!(store.claim(request.lease(leasehold::LeaseLength::MIN)).await?.len(), 1);
    for (upkeep, state) in
        [(None, State::Leased), (Some(Duration::from_millis(100)), State::Waiting)]
    {
        let built = worker(&store).queue(here.clone()).upkeep(upkeep).build();
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(built.run(shutdown.clone()));
        if upkeep.is_some() {
            until(&store, id, |job| job.state == state).await?;
        } else {
            // That nothing comes can only be waited for: the lease of 1 s ends meanwhile.
            tokio::time::sleep(Duration::from_millis(1_300)).await;
        }
        shutdown.cancel();
        running.await??;
        assert_eq!(view(&store, id).await?.state, state, "upkeep {upkeep:?}");
    }
    Ok(())
}

/// Proves: WQ-7, TX-4
async fn upkeep_needs_no_worker(store: Arc<dyn Store>) -> Told {
    let lost = add(&store, job("lost", 0)).await?;
    let (me, queue) = (leasehold::WorkerId::new(), leasehold::QueueName::default_queue());
    let request = leasehold::ClaimRequest::new(me, [queue]).lease(leasehold::LeaseLength::MIN);
    assert_eq!(store.claim(request).await?.len(), 1);
    let told = leasehold::NewEvent::new(leasehold::Topic::new("told")?, Json::null());
    store.publish_one(told).await?;
    let request = leasehold::EventClaimRequest::new(me).lease(leasehold::LeaseLength::MIN);
    assert_eq!(store.claim_events(request).await?.len(), 1);
    let upkeep = leasehold::Maintenance::new(store.clone());
    let early = upkeep.run_once().await?;
    assert_eq!((early.jobs, early.events), (0, 0));
    let mut done = (0, 0);
    let begun = std::time::Instant::now();
    while done != (1, 1) && begun.elapsed() < Duration::from_secs(60) {
        let more = upkeep.run_once().await?;
        done = (done.0 + more.jobs, done.1 + more.events);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(done, (1, 1), "each once, when its lease is over");
    assert_eq!(view(&store, lost).await?.state, State::Waiting);
    Ok(())
}
