//! Each recipient of a version is told once: what is stored when, what is asked for before it is sent
//! again, and how the job ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::notify::{Notification, Notifier, Outcome, Row, RowStatus};
use leasehold::{
    Context, EventFilter, FailureCode, Found, JobId, JobKind, JobView, Json, Lifecycle, NewJob,
    Paging, Query, QueueName, RetryPolicy, State, Store, StoreExt, Worker,
};

use crate::post::{Act, Post};
use crate::{Told, stories};

stories![
    everybody_is_told_once_and_then_the_job_succeeds,
    what_was_taken_unheard_is_found_and_not_sent_again,
    without_a_lookup_the_same_token_is_sent_again,
    a_passing_failure_sends_only_what_is_unsent,
    a_refusal_counts_once_it_is_known_that_nothing_went_out,
    a_failure_of_the_access_ends_the_job_and_fails_no_row,
    an_optional_recipient_holds_no_job_back,
    the_payload_of_the_first_plan_is_sent,
    a_higher_version_has_rows_of_its_own,
    a_slow_provider_is_not_waited_for,
    two_jobs_at_once_tell_everybody_once,
];

pub(crate) const SUBJECT: &str = "change 7";

pub(crate) fn to(names: &[&str]) -> Notification {
    about(1, names)
}

pub(crate) fn about(version: i64, names: &[&str]) -> Notification {
    let payload = Json::of("merged").expect("JSON");
    let begun = Notification::new(SUBJECT, version);
    names.iter().fold(begun, |it, name| it.recipient(*name, payload.clone()))
}

pub(crate) fn kind() -> JobKind {
    JobKind::new("tell").expect("a kind")
}

pub(crate) fn job() -> NewJob {
    NewJob::new(kind(), Json::null())
}

pub(crate) async fn add(store: &Arc<dyn Store>) -> leasehold::Result<JobId> {
    Ok(store.enqueue_one(job()).await?.job())
}

/// Runs what is due until nothing is, each failed attempt at once again.
pub(crate) async fn run(
    store: &Arc<dyn Store>,
    notifier: &Arc<Notifier>,
    what: &Notification,
) -> leasehold::Result<()> {
    let (notifier, what) = (notifier.clone(), what.clone());
    let worker = Worker::builder(store.clone())
        .queue(QueueName::default_queue())
        .handler(kind(), move |context: Context, _: ()| {
            let (notifier, what) = (notifier.clone(), what.clone());
            async move { notifier.deliver(&context, &what).await }
        })
        .retry(RetryPolicy::new(Duration::ZERO, Duration::ZERO)?)
        .upkeep(None)
        .build();
    worker.run_until_idle().await
}

pub(crate) fn notifier(store: &Arc<dyn Store>, post: &Post) -> Arc<Notifier> {
    Arc::new(Notifier::new(store.clone(), post.clone()))
}

pub(crate) async fn stands(store: &Arc<dyn Store>, job: JobId) -> leasehold::Result<JobView> {
    let gone = || leasehold::Error::invalid("test", "the job is gone");
    store.job(job).await?.ok_or_else(gone)
}

pub(crate) async fn row(notifier: &Notifier, recipient: &str) -> leasehold::Result<Row> {
    let rows = notifier.rows(SUBJECT, 1).await?;
    let none = || leasehold::Error::invalid("test", format!("no row of {recipient}"));
    rows.into_iter().find(|row| row.recipient == recipient).ok_or_else(none)
}

/// The alerts so far, by their names.
pub(crate) async fn alerts(store: &Arc<dyn Store>) -> leasehold::Result<Vec<String>> {
    let page = store.find(Query::Events(EventFilter::new(), Paging::first(1_000))).await?;
    let name = |found: Found| match found {
        Found::Event(event) if event.topic.as_str() == "leasehold.alerts" => {
            let told: serde_json::Value = serde_json::from_str(event.payload.as_str()).ok()?;
            Some(told.get("alert")?.as_str()?.to_owned())
        }
        _ => None,
    };
    Ok(page.items.into_iter().filter_map(name).collect())
}

/// Every row is there before the first message goes, and each is marked in one write.
///
/// Proves: DEL-1, DEL-2, DEL-3, DEL-6, DEL-8
async fn everybody_is_told_once_and_then_the_job_succeeds(store: Arc<dyn Store>) -> Told {
    let seen: Arc<Mutex<Vec<Vec<Row>>>> = Arc::default();
    let (keeping, looking) = (seen.clone(), notifier(&store, &Post::plain()));
    let post = Post::that_looks_up().before(move |_| {
        let rows = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(looking.rows(SUBJECT, 1))
        });
        keeping.lock().expect("no panic under this lock").push(rows.expect("rows"));
    });
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann", "bob", "cyd"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!((post.gone().len(), post.sends(), post.asked()), (3, 3, 0));
    let seen = seen.lock().expect("no panic under this lock").clone();
    for (sent, rows) in seen.iter().enumerate() {
        assert_eq!(rows.len(), 3, "all rows are there before the first send");
        let count = |status| rows.iter().filter(|row| row.status == status).count();
        let stood = (count(RowStatus::Sent), count(RowStatus::Sending), count(RowStatus::Pending));
        assert_eq!(stood, (sent, 1, 2 - sent));
        for row in rows {
            let marked = row.status == RowStatus::Sent;
            assert_eq!(row.notification_id.is_some(), marked);
            assert_eq!(row.notified_at.is_some(), marked);
            assert_eq!(row.send_started_at.is_some(), row.status != RowStatus::Pending);
        }
    }
    for row in notifier.rows(SUBJECT, 1).await? {
        assert_eq!(row.notification_id, Some(format!("id-{}", &row.token[..8])));
        assert!(row.notified_at >= row.send_started_at && row.send_started_at.is_some());
        let log: Vec<_> = row.log.iter().map(|note| (note.attempt, note.outcome)).collect();
        assert_eq!(log, [(1, Outcome::Sent)]);
    }
    // The same again, by another job: nobody is told twice.
    let again = add(&store).await?;
    run(&store, &notifier, &to(&["ann", "bob", "cyd"])).await?;
    assert_eq!(stands(&store, again).await?.state, State::Succeeded);
    assert_eq!(post.sends(), 3);
    Ok(())
}

/// Proves: DEL-3, DEL-4
async fn what_was_taken_unheard_is_found_and_not_sent_again(store: Arc<dyn Store>) -> Told {
    // Unheard, and the first questions too: the next attempt asks before it sends.
    let post = Post::that_looks_up().act("ann", &[Act::TakeUnheard]).silent(2);
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann", "bob"])).await?;
    let job = stands(&store, id).await?;
    assert_eq!((job.state, job.attempts), (State::Succeeded, 3));
    assert_eq!((post.count("ann"), post.count("bob"), post.sends()), (1, 1, 2));
    let row = row(&notifier, "ann").await?;
    assert_eq!(row.notification_id, Some(format!("id-{}", &row.token[..8])));
    let last = row.log.last().expect("a note");
    assert_eq!(last.outcome, Outcome::Found);
    let failed = row.log.iter().find(|note| note.outcome == Outcome::Failed).expect("a note");
    assert_eq!(failed.class.as_deref(), Some("network"));
    Ok(())
}

/// Proves: DEL-2, DEL-3, DEL-4
async fn without_a_lookup_the_same_token_is_sent_again(store: Arc<dyn Store>) -> Told {
    let acts = [Act::TakeUnheard, Act::TakeUnheard];
    let post = Post::that_knows_tokens().act("ann", &acts);
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!((post.sends(), post.count("ann")), (3, 1), "three tries, one message");
    assert_eq!(row(&notifier, "ann").await?.attempts, 3);
    Ok(())
}

/// Proves: DEL-6, DEL-7, DEL-8
async fn a_passing_failure_sends_only_what_is_unsent(store: Arc<dyn Store>) -> Told {
    let passing = [Act::Refuse(FailureCode::UpstreamError), Act::Refuse(FailureCode::RateLimited)];
    let post = Post::that_looks_up().act("bob", &passing);
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann", "bob", "cyd"])).await?;
    let job = stands(&store, id).await?;
    assert_eq!((job.state, job.attempts), (State::Succeeded, 3));
    for name in ["ann", "bob", "cyd"] {
        assert_eq!(post.count(name), 1, "{name}");
    }
    let log: Vec<_> = row(&notifier, "bob").await?.log.iter().map(|it| it.outcome).collect();
    assert_eq!(log, [Outcome::Failed, Outcome::Failed, Outcome::Sent]);
    assert!(alerts(&store).await?.is_empty());
    Ok(())
}

/// A provider may refuse a repeat of what it has taken; the message is not failed for it.
///
/// Proves: DEL-4
async fn a_refusal_counts_once_it_is_known_that_nothing_went_out(store: Arc<dyn Store>) -> Told {
    let acts = [Act::TakeUnheard, Act::Refuse(FailureCode::RequestRejected)];
    // It tells of the message only after the second send.
    let post = Post::that_looks_up().act("ann", &acts).blind(2);
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!((post.count("ann"), row(&notifier, "ann").await?.status), (1, RowStatus::Sent));
    assert_eq!((post.sends(), alerts(&store).await?.len()), (2, 0));
    Ok(())
}

/// Proves: DEL-7
async fn a_failure_of_the_access_ends_the_job_and_fails_no_row(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up().act("ann", &[Act::Refuse(FailureCode::AuthDenied)]);
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::DeadLetter);
    assert_eq!(row(&notifier, "ann").await?.status, RowStatus::Sending);
    // Another job for the same goes on where it was.
    let again = add(&store).await?;
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!(stands(&store, again).await?.state, State::Succeeded);
    assert_eq!(post.count("ann"), 1);
    Ok(())
}

/// Proves: DEL-6
async fn an_optional_recipient_holds_no_job_back(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up()
        .act("log", &[Act::Refuse(FailureCode::RequestRejected)])
        .act("feed", &[Act::Refuse(FailureCode::UpstreamError)]);
    let notifier = notifier(&store, &post);
    let id = add(&store).await?;
    let json = || Json::of("merged");
    let what = to(&["ann"]).optional("log", json()?).optional("feed", json()?);
    run(&store, &notifier, &what).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    assert_eq!((post.count("ann"), post.count("log"), post.count("feed")), (1, 0, 0));
    Ok(())
}

/// Proves: DEL-1, DEL-2
async fn the_payload_of_the_first_plan_is_sent(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up().act("ann", &[Act::Refuse(FailureCode::AuthDenied)]);
    let notifier = notifier(&store, &post);
    for text in ["first", "second"] {
        add(&store).await?;
        let what = Notification::new(SUBJECT, 1).recipient("ann", Json::of(text)?);
        run(&store, &notifier, &what).await?;
    }
    let told: Vec<String> = post.gone().into_iter().map(|gone| gone.payload).collect();
    assert_eq!(told, ["\"first\""]);
    assert_eq!(notifier.rows(SUBJECT, 1).await?.len(), 1);
    Ok(())
}

/// The lifecycle `review` calls it by its public names.
///
/// Proves: IDM-4, DEL-1
async fn a_higher_version_has_rows_of_its_own(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up();
    let notifier = notifier(&store, &post);
    let ask = |version| job().subject(SUBJECT, version).rerun();
    let first = store.enqueue_one(ask(1)).await?;
    run(&store, &notifier, &about(1, &["ann"])).await?;
    let same = store.enqueue_one(ask(1)).await?;
    assert_eq!((same.is_new(), same.job()), (false, first.job()));
    run(&store, &notifier, &about(1, &["ann"])).await?;
    assert_eq!(post.sends(), 1, "a version that has succeeded is not told again");
    assert!(store.enqueue_one(ask(2)).await?.is_new());
    run(&store, &notifier, &about(2, &["ann"])).await?;
    let tokens: Vec<String> = post.gone().into_iter().map(|gone| gone.token).collect();
    assert_eq!(tokens.len(), 2);
    assert_ne!(tokens[0], tokens[1]);
    assert!(store.enqueue_one(ask(1)).await.is_err(), "a lower version is a conflict");
    Ok(())
}

/// Proves: DEL-7
async fn a_slow_provider_is_not_waited_for(store: Arc<dyn Store>) -> Told {
    #[derive(Debug)]
    struct Slow;
    #[leasehold::async_trait]
    impl leasehold::notify::Provider for Slow {
        async fn send(
            &self,
            _: &leasehold::notify::Message<'_>,
        ) -> Result<String, leasehold::Failure> {
            std::future::pending().await
        }
    }
    let notifier = Notifier::new(store.clone(), Slow).timeout(Duration::from_millis(20));
    let notifier = Arc::new(notifier);
    let review = job().lifecycle(Lifecycle::standard().name().clone()).max_attempts(2);
    let id = store.enqueue_one(review).await?.job();
    run(&store, &notifier, &to(&["ann"])).await?;
    assert_eq!(stands(&store, id).await?.state, State::DeadLetter);
    let row = row(&notifier, "ann").await?;
    assert_eq!((row.status, row.attempts), (RowStatus::Sending, 2));
    Ok(())
}

/// Two jobs of one version, as a caller may enqueue by mistake, and a provider that tells of a message
/// only once it is out.
///
/// Proves: DEL-1, DEL-4
async fn two_jobs_at_once_tell_everybody_once(store: Arc<dyn Store>) -> Told {
    // Not a wait for anything: the longer a send takes, the more often the other job comes between.
    let post = Post::that_looks_up().before(|_| std::thread::sleep(Duration::from_millis(20)));
    let notifier = notifier(&store, &post);
    for _ in 0..4 {
        add(&store).await?;
    }
    run(&store, &notifier, &to(&["ann", "bob", "cyd"])).await?;
    for name in ["ann", "bob", "cyd"] {
        assert_eq!(post.count(name), 1, "{name}");
    }
    Ok(())
}
