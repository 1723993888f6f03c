//! What a person decides about a recipient who is refused, and what becomes of a row whose marks and
//! whose provider do not agree.

use std::sync::Arc;
use std::time::Duration;

use leasehold::notify::{Notifier, Row, RowStatus, Which};
use leasehold::{
    Actor, AuditFilter, Context, ErrorKind, FailureCode, JobId, Json, Lifecycle, ListDocuments,
    Namespace, Paging, PutDocument, RecordId, State, Store, StoreExt, Worker,
};

use crate::post::{Act, Post};
use crate::telling::{SUBJECT, add, alerts, job, kind, notifier, row, run, stands, to};
use crate::{Told, stories};

stories![
    a_refused_recipient_puts_the_job_to_rest_until_requeued,
    a_refused_recipient_can_be_waived,
    a_refused_recipient_can_be_replaced,
    a_decision_during_the_attempt_is_not_lost,
    only_what_wants_a_decision_is_decided,
    a_row_marked_without_a_trace_is_asked_for_before_any_send,
    a_row_marked_without_a_trace_waits_where_nobody_can_be_asked,
    what_was_recorded_and_never_sent_is_cleared_and_sent,
    what_is_confirmed_is_asked_for_once,
    an_unsent_row_whose_job_is_over_gets_a_job,
];

const REFUSED: [Act; 1] = [Act::Refuse(FailureCode::RequestRejected)];

fn actor() -> Actor {
    Actor::new("operator-7").expect("an actor")
}

fn which(recipient: &str) -> Which<'_> {
    Which { subject: SUBJECT, version: 1, recipient }
}

/// A job of the lifecycle `review`, at its last stage, that rests over one refused recipient of two.
async fn resting(
    store: &Arc<dyn Store>,
    notifier: &Arc<Notifier>,
    post: &Post,
) -> Result<JobId, libtest_mimic::Failed> {
    let id = store.enqueue_one(job()).await?.job();
    run(store, notifier, &to(&["ann", "bob"])).await?;
    let rests = stands(store, id).await?;
    assert_eq!((rests.state, rests.attempts), (State::Waiting, 0));
    assert_eq!((post.count("ann"), post.count("bob")), (1, 0));
    assert_eq!(row(notifier, "bob").await?.status, RowStatus::Failed);
    assert_eq!(alerts(store).await?, ["notification_failed"]);
    // Not claimed again by itself.
    run(store, notifier, &to(&["ann", "bob"])).await?;
    assert_eq!(stands(store, id).await?.claim_version, rests.claim_version);
    Ok(id)
}

async fn audited(store: &Arc<dyn Store>, action: &str) -> leasehold::Result<usize> {
    let filter = AuditFilter::new().action(action).actor(actor());
    Ok(store.records().audit(filter, Paging::first(10)).await?.items.len())
}

/// Proves: DEL-6, DEL-7
async fn a_refused_recipient_puts_the_job_to_rest_until_requeued(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up().act("bob", &REFUSED);
    let notifier = notifier(&store, &post);
    let id = resting(&store, &notifier, &post).await?;
    notifier.requeue(which("bob"), actor(), "their mailbox was full").await?;
    run(&store, &notifier, &to(&["ann", "bob"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!((post.count("ann"), post.count("bob")), (1, 1));
    assert_eq!(audited(&store, "notify.requeue").await?, 1);
    assert_eq!(audited(&store, "wake").await?, 1);
    Ok(())
}

/// Under the lifecycle `review` it is shown as `retryable_failed` meanwhile.
///
/// Proves: DEL-6, DEL-7
async fn a_refused_recipient_can_be_waived(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up().act("bob", &REFUSED);
    let telling = notifier(&store, &post);
    let id = store.enqueue_one(job().lifecycle(Lifecycle::review().name().clone())).await?.job();
    review(&store, &telling).await?;
    assert_eq!(stands(&store, id).await?.status, "retryable_failed");
    telling.waive(which("bob"), actor(), "they have left").await?;
    review(&store, &telling).await?;
    let job = stands(&store, id).await?;
    assert_eq!((job.state, job.status.as_str()), (State::Succeeded, "succeeded"));
    assert_eq!((post.count("bob"), row(&telling, "bob").await?.status), (0, RowStatus::Waived));
    assert_eq!(audited(&store, "notify.waive").await?, 1);
    let told: serde_json::Value = serde_json::from_str(job.result.expect("a result").as_str())?;
    assert_eq!((&told["sent"], &told["waived"]), (&1.into(), &1.into()));
    Ok(())
}

/// Goes through the stages of `review`, and tells at the last.
async fn review(store: &Arc<dyn Store>, notifier: &Arc<Notifier>) -> leasehold::Result<()> {
    let notifier = notifier.clone();
    let worker = Worker::builder(store.clone())
        .handler(kind(), move |context: Context, _: ()| {
            let notifier = notifier.clone();
            async move {
                let stages = ["fetch", "llm", "notify"];
                let at = stages.iter().position(|it| context.job().stage.as_str() == *it);
                for stage in stages.iter().skip(at.unwrap_or(0) + 1) {
                    context.advance(leasehold::StageName::new(stage)?).await?;
                }
                notifier.deliver(&context, &to(&["ann", "bob"])).await
            }
        })
        .upkeep(None)
        .build();
    worker.run_until_idle().await
}

/// Proves: DEL-1, DEL-7
async fn a_refused_recipient_can_be_replaced(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up().act("bob", &REFUSED);
    let notifier = notifier(&store, &post);
    let id = resting(&store, &notifier, &post).await?;
    notifier.replace(which("bob"), ("cyd", None), actor(), "cyd took over").await?;
    run(&store, &notifier, &to(&["ann", "bob"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!((post.count("ann"), post.count("bob"), post.count("cyd")), (1, 0, 1));
    assert_eq!(row(&notifier, "bob").await?.status, RowStatus::Replaced);
    assert_eq!(audited(&store, "notify.replace").await?, 1);
    Ok(())
}

/// The recipient is waived after its row was refused and before the job is put to rest.
///
/// Proves: DEL-7
async fn a_decision_during_the_attempt_is_not_lost(store: Arc<dyn Store>) -> Told {
    let deciding = notifier(&store, &Post::plain());
    let post = Post::that_looks_up().act("a refused", &REFUSED).before(move |message| {
        if message.recipient != "a refused" {
            tokio::task::block_in_place(|| {
                let waived = deciding.waive(which("a refused"), actor(), "at once");
                // Only once it has been refused.
                let waived = tokio::runtime::Handle::current().block_on(waived);
                if let Err(error) = waived {
                    assert_eq!(error.kind(), ErrorKind::IllegalTransition);
                }
            });
        }
    });
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    let what = to(&["a refused", "bob", "cyd", "dan", "eve", "fay"]);
    run(&store, &notifier, &what).await?;
    if row(&notifier, "a refused").await?.status == RowStatus::Failed {
        // Its turn came last, and nobody decided meanwhile.
        notifier.waive(which("a refused"), actor(), "later").await?;
        run(&store, &notifier, &what).await?;
    }
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!(post.gone().len(), 5);
    Ok(())
}

/// Proves: DEL-7
async fn only_what_wants_a_decision_is_decided(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up();
    let notifier = notifier(&store, &post);
    add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    let refused = notifier.waive(which("ann"), actor(), "why not").await;
    assert_eq!(refused.expect_err("sent").kind(), ErrorKind::IllegalTransition);
    let none = notifier.requeue(which("bob"), actor(), "who").await;
    assert_eq!(none.expect_err("unknown").kind(), ErrorKind::NotFound);
    assert_eq!(audited(&store, "notify.waive").await?, 0);
    Ok(())
}

/// Marks a planned row as notified without sending it, as a program that breaks the order would.
async fn mark_early(
    store: &Arc<dyn Store>,
    notifier: &Notifier,
    id: Option<&str>,
) -> leasehold::Result<()> {
    let list = ListDocuments::new(Namespace::new("notify.rows")?);
    for document in store.records().list(list).await?.items {
        let mut row: Row = serde_json::from_str(document.body.as_str()).expect("a row");
        row.status = RowStatus::Sent;
        row.notified_at = Some(document.updated_at);
        row.notification_id = id.map(str::to_owned);
        let key = document.id.key.as_str();
        let put = PutDocument::new(RecordId::new("notify.rows", key)?, Json::of(&row)?);
        store.records().put(put).await?;
    }
    assert!(!notifier.rows(SUBJECT, 1).await?.is_empty());
    Ok(())
}

/// Plans a row for each, and sends none.
async fn planned(store: &Arc<dyn Store>, names: &[&str]) -> leasehold::Result<()> {
    let away = names.iter().fold(Post::that_looks_up(), |post, name| {
        post.act(name, &[Act::Refuse(FailureCode::AuthDenied)])
    });
    add(store).await?;
    run(store, &notifier(store, &away), &to(names)).await
}

/// Proves: DEL-5
async fn a_row_marked_without_a_trace_is_asked_for_before_any_send(store: Arc<dyn Store>) -> Told {
    planned(&store, &["ann"]).await?;
    let post = Post::that_looks_up();
    let notifier = notifier(&store, &post);
    mark_early(&store, &notifier, None).await?;
    // Not at the provider: its marks go, somebody hears of it, and it is sent.
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!((post.count("ann"), post.asked()), (1, 1));
    assert!(alerts(&store).await?.contains(&"notification_never_sent".to_owned()));
    // At the provider: only the id is filled in.
    mark_early(&store, &notifier, None).await?;
    add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    let row = row(&notifier, "ann").await?;
    assert_eq!((post.sends(), row.status), (1, RowStatus::Sent));
    assert_eq!(row.notification_id, Some(format!("id-{}", &row.token[..8])));
    Ok(())
}

/// Proves: DEL-5
async fn a_row_marked_without_a_trace_waits_where_nobody_can_be_asked(
    store: Arc<dyn Store>,
) -> Told {
    planned(&store, &["ann"]).await?;
    let post = Post::plain();
    let notifier = notifier(&store, &post);
    mark_early(&store, &notifier, None).await?;
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::Waiting);
    assert_eq!((post.sends(), row(&notifier, "ann").await?.status), (0, RowStatus::Doubtful));
    assert!(alerts(&store).await?.contains(&"notification_doubtful".to_owned()));
    notifier.requeue(which("ann"), actor(), "nobody got it").await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!((post.sends(), stands(&store, id).await?.state), (1, State::Succeeded));
    Ok(())
}

fn reconciler(store: &Arc<dyn Store>, post: &Post) -> Arc<Notifier> {
    let notifier = Notifier::new(store.clone(), post.clone());
    Arc::new(notifier.reconcile_between(Duration::ZERO, Duration::from_secs(3600)))
}

/// Proves: DEL-5
async fn what_was_recorded_and_never_sent_is_cleared_and_sent(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up();
    let notifier = reconciler(&store, &post);
    let first = add(&store).await?;
    run(&store, &notifier, &to(&["ann", "bob"])).await?;
    assert_eq!(stands(&store, first).await?.state, State::Succeeded);
    post.forget();
    let done = notifier.reconcile().await?;
    assert_eq!((done.cleared, done.requeued, done.confirmed), (2, 2, 0));
    for name in ["ann", "bob"] {
        let row = row(&notifier, name).await?;
        assert_eq!(
            (row.status, row.notified_at, row.notification_id),
            (RowStatus::Pending, None, None)
        );
    }
    assert_eq!(alerts(&store).await?, ["notification_never_sent", "notification_never_sent"]);
    // Once more changes nothing: the jobs are there.
    assert_eq!(notifier.reconcile().await?.cleared, 0);
    run(&store, &notifier, &to(&["ann", "bob"])).await?;
    assert_eq!((post.count("ann"), post.count("bob")), (1, 1));
    let done = notifier.reconcile().await?;
    assert_eq!((done.confirmed, done.cleared), (2, 0));
    Ok(())
}

/// Proves: DEL-5
async fn what_is_confirmed_is_asked_for_once(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up();
    let notifier = reconciler(&store, &post);
    add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!(notifier.reconcile().await?.confirmed, 1);
    let asked = post.asked();
    assert_eq!(notifier.reconcile().await?, leasehold::notify::Reconciled::default());
    assert_eq!(post.asked(), asked);
    assert!(row(&notifier, "ann").await?.confirmed_at.is_some());
    Ok(())
}

/// A job that succeeded without sending all it planned, by a program's mistake.
///
/// Proves: DEL-5, DEL-6
async fn an_unsent_row_whose_job_is_over_gets_a_job(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up().act("ann", &[Act::Refuse(FailureCode::UpstreamError)]);
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    let optional = leasehold::notify::Notification::new(SUBJECT, 1).optional("ann", Json::of("x")?);
    run(&store, &notifier, &optional).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!(row(&notifier, "ann").await?.status, RowStatus::Sending);
    assert_eq!(notifier.reconcile().await?.requeued, 1);
    assert_eq!(notifier.reconcile().await?.requeued, 0);
    run(&store, &notifier, &optional).await?;
    assert_eq!(post.count("ann"), 1);
    Ok(())
}
