//! What a retry finds again: the stage that failed, the checkpoints before it, or the beginning.

use std::sync::{Arc, Mutex};

use leasehold::{
    Context, EventFilter, Failure, FailureClass, FailureCode, Found, Handled, HandlerError, JobId,
    Json, LifecycleName, Paging, Query, StageName, State, Store, Topic,
};

use crate::{Told, add, failure, job, kind, stories, view, worker};

stories![
    a_review_goes_on_at_the_stage_that_failed,
    a_transcode_begins_again_at_claimed,
    a_failure_that_turns_out_lasting_is_tried_no_more,
    a_conflict_is_tried_again_only_where_declared_idempotent,
    a_bug_calls_a_person_with_the_settlement,
];

type Walked = Arc<Mutex<Vec<(String, u32, Option<Json>)>>>;

fn note(walked: &Walked, context: &Context) {
    let job = context.job();
    let seen = (job.stage.to_string(), job.attempt, job.checkpoint.clone());
    walked.lock().expect("no panic under this lock").push(seen);
}

fn seen(walked: &Walked) -> Vec<(String, u32, Option<Json>)> {
    walked.lock().expect("no panic under this lock").clone()
}

fn later() -> Failure {
    Failure::new(FailureCode::UpstreamUnavailable, "later")
}

async fn alerts(store: &Arc<dyn Store>) -> Result<Vec<String>, libtest_mimic::Failed> {
    let filter = EventFilter::new().topic(Topic::new("leasehold.alerts")?);
    let found = store.find(Query::Events(filter, Paging::first(10))).await?.items;
    let text = found.into_iter().filter_map(|found| match found {
        Found::Event(event) => Some(event.payload.as_str().to_owned()),
        _ => None,
    });
    Ok(text.collect())
}

/// Proves: RT-7, RT-4, QUE-5
async fn a_review_goes_on_at_the_stage_that_failed(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("review", 0).lifecycle(LifecycleName::new("review")?)).await?;
    let walked = Walked::default();
    let noting = walked.clone();
    let built = worker(&store).handler(kind("review"), move |context: Context, _: u32| {
        note(&noting, &context);
        async move {
            let at = context.job().stage.to_string();
            if at == "fetch" {
                context.checkpoint(Json::parse("\"fetched\"")?).await?;
                context.advance(StageName::new("llm")?).await?;
            }
            match (context.job().executions, at.as_str()) {
                (1 | 2, _) => return Err(later().into()), // both at llm
                (3, _) => {
                    context.checkpoint(Json::parse("\"judged\"")?).await?;
                    context.advance(StageName::new("notify")?).await?;
                    return Err(later().into());
                }
                _ => {}
            }
            Ok(Handled::done())
        }
    });
    built.build().run_until_idle().await?;
    let step = |stage: &str, attempt, left: Option<&str>| {
        let left = left.map(|text| Json::of(text).expect("a text"));
        (stage.to_owned(), attempt, left)
    };
    let wanted = [
        step("fetch", 1, None),
        step("llm", 2, Some("fetched")),
        step("llm", 3, Some("fetched")),
        step("notify", 2, Some("judged")),
    ];
    assert_eq!(seen(&walked), wanted);
    assert_eq!(view(&store, id).await?.state, State::Succeeded);
    Ok(())
}

/// Proves: RT-7, TX-7
async fn a_transcode_begins_again_at_claimed(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("film", 0).lifecycle(LifecycleName::new("transcode")?)).await?;
    let walked = Walked::default();
    let noting = walked.clone();
    let built = worker(&store).handler(kind("film"), move |context: Context, _: u32| {
        note(&noting, &context);
        async move {
            for stage in ["fetching", "processing", "uploading"] {
                context.advance(StageName::new(stage)?).await?;
                if (context.job().attempt, stage) == (1, "processing") {
                    return Err(later().into());
                }
            }
            Ok(Handled::done())
        }
    });
    built.build().run_until_idle().await?;
    let stages: Vec<_> = seen(&walked).into_iter().map(|(stage, n, _)| (stage, n)).collect();
    assert_eq!(stages, [("claimed".to_owned(), 1), ("claimed".to_owned(), 2)]);
    assert_eq!(view(&store, id).await?.state, State::Succeeded);
    let filter = EventFilter::new().topic(Topic::new("transcode")?);
    let events = store.find(Query::Events(filter, Paging::first(50))).await?.items.len();
    // Claimed, fetching, processing, queued again; claimed, fetching, processing, uploading, succeeded.
    assert_eq!(events, 9, "one event for each transition");
    Ok(())
}

/// Proves: RT-5
async fn a_failure_that_turns_out_lasting_is_tried_no_more(store: Arc<dyn Store>) -> Told {
    let id = add(&store, job("fetch", 0).max_attempts(9)).await?;
    let fetch = async |context: Context, _: u32| -> Result<Handled, HandlerError> {
        Err(match context.job().attempt {
            1 => later(),
            _ => later().reclassify(FailureClass::Policy),
        }
        .into())
    };
    worker(&store).handler(kind("fetch"), fetch).build().run_until_idle().await?;
    let job = view(&store, id).await?;
    assert_eq!((job.state, job.attempts), (State::DeadLetter, 2));
    Ok(())
}

/// Proves: RT-1
async fn a_conflict_is_tried_again_only_where_declared_idempotent(store: Arc<dyn Store>) -> Told {
    let taken = async |context: Context, _: u32| -> Result<Handled, HandlerError> {
        match context.job().attempt {
            1 => Err(Failure::new(FailureCode::VersionConflict, "taken").into()),
            _ => Ok(Handled::done()),
        }
    };
    let (plain, twice) = (add(&store, job("plain", 0)).await?, add(&store, job("twice", 0)).await?);
    let built = worker(&store).handler(kind("plain"), taken);
    built.handler(kind("twice"), taken).idempotent().build().run_until_idle().await?;
    assert_eq!(view(&store, plain).await?.state, State::DeadLetter);
    let again = view(&store, twice).await?;
    assert_eq!((again.state, again.attempts), (State::Succeeded, 2));
    Ok(())
}

/// Proves: RT-1
async fn a_bug_calls_a_person_with_the_settlement(store: Arc<dyn Store>) -> Told {
    let well = add(&store, job("denied", 0)).await?;
    let id: JobId = add(&store, job("broken", 0)).await?;
    let end = |code| {
        move |_: Context, _: u32| async move {
            Err::<Handled, HandlerError>(Failure::new(code, "no").into())
        }
    };
    let built = worker(&store).handler(kind("broken"), end(FailureCode::InvariantBroken));
    built.handler(kind("denied"), end(FailureCode::AuthDenied)).build().run_until_idle().await?;
    let found = alerts(&store).await?;
    assert!(failure(&view(&store, well).await?).contains("AUTH_DENIED"));
    let [alert] = &found[..] else { return Err(format!("{found:?}").into()) };
    assert!(alert.contains(&id.to_string()) && alert.contains("INVARIANT_BROKEN"), "{alert}");
    Ok(())
}
