//! How long rows of notifications are kept.

use std::sync::Arc;
use std::time::Duration;

use leasehold::notify::{Notifier, Row, RowStatus};
use leasehold::{
    FailureCode, Json, ListDocuments, Maintenance, Namespace, PruneRequest, PutDocument, Store,
    Timestamp,
};
use libtest_mimic::Failed;

use crate::post::{Act, Post};
use crate::telling::{SUBJECT, about, add, run};
use crate::{Told, stories};

stories![
    rows_go_with_their_job,
    rows_that_are_asked_about_stay,
    upkeep_removes_old_rows_of_pruned_jobs,
];

/// Removes every job that has ended.
pub(crate) async fn prune_jobs(store: &Arc<dyn Store>) -> leasehold::Result<()> {
    let pruned = store.prune(PruneRequest::new().older_than(Duration::ZERO)).await?;
    assert!(pruned.jobs > 0);
    Ok(())
}

fn notifier(store: &Arc<dyn Store>, post: &Post, within: Duration) -> Arc<Notifier> {
    let notifier = Notifier::new(store.clone(), post.clone());
    Arc::new(notifier.reconcile_between(Duration::ZERO, within))
}

/// Tells of two versions; of the second one person cannot be told.
async fn after_two_versions(store: &Arc<dyn Store>) -> Result<Arc<Notifier>, Failed> {
    let post = Post::that_looks_up().act("bob", &[Act::Refuse(FailureCode::RequestRejected)]);
    let notifier = notifier(store, &post, Duration::ZERO);
    add(store).await?;
    run(store, &notifier, &about(1, &["ann"])).await?;
    add(store).await?;
    run(store, &notifier, &about(2, &["ann", "bob"])).await?;
    Ok(notifier)
}

/// Proves: DEL-1, DEL-5, DEL-7
async fn rows_go_with_their_job(store: Arc<dyn Store>) -> Told {
    let notifier = after_two_versions(&store).await?;
    assert_eq!(notifier.prune().await?, 0, "their jobs are there");
    prune_jobs(&store).await?;
    assert_eq!(notifier.prune().await?, 1);
    assert!(notifier.rows(SUBJECT, 1).await?.is_empty());
    let left = notifier.rows(SUBJECT, 2).await?;
    assert_eq!(left.len(), 2, "its job rests");
    assert!(left.iter().any(|row| row.status == RowStatus::Failed));
    assert_eq!(notifier.prune().await?, 0);
    Ok(())
}

/// Proves: DEL-5
async fn rows_that_are_asked_about_stay(store: Arc<dyn Store>) -> Told {
    let post = Post::that_looks_up();
    let notifier = notifier(&store, &post, Duration::from_secs(3600));
    add(&store).await?;
    run(&store, &notifier, &about(1, &["ann"])).await?;
    prune_jobs(&store).await?;
    assert_eq!(notifier.prune().await?, 0);
    // What the provider has never heard of is sent again, by nobody's job: somebody hears of it.
    post.forget();
    let done = notifier.reconcile().await?;
    assert_eq!((done.cleared, done.orphaned), (1, 1));
    assert_eq!(notifier.prune().await?, 0, "what is not sent stays");
    Ok(())
}

/// Makes every row years older than it is.
pub(crate) async fn grow_old(store: &Arc<dyn Store>) -> Told {
    let rows = store.records().list(ListDocuments::new(Namespace::new("notify.rows")?)).await?;
    assert!(!rows.items.is_empty());
    for document in rows.items {
        let mut row: Row = document.body.read()?;
        row.planned_at = Timestamp::saturating(0);
        for note in &mut row.log {
            note.at = Timestamp::saturating(0);
        }
        store.records().put(PutDocument::new(document.id, Json::of(&row)?)).await?;
    }
    Ok(())
}

/// Without a notifier: rows outlive their job for thirty days.
///
/// Proves: DEL-1, QUE-4
async fn upkeep_removes_old_rows_of_pruned_jobs(store: Arc<dyn Store>) -> Told {
    let notifier = after_two_versions(&store).await?;
    let upkeep = Maintenance::new(store.clone());
    grow_old(&store).await?;
    upkeep.run_once().await?;
    assert_eq!(notifier.rows(SUBJECT, 1).await?.len(), 1, "its job is there");
    prune_jobs(&store).await?;
    add(&store).await?;
    run(&store, &notifier, &about(3, &["ann"])).await?;
    prune_jobs(&store).await?;
    upkeep.run_once().await?;
    for (version, left) in [(1, 0), (2, 2), (3, 1)] {
        assert_eq!(notifier.rows(SUBJECT, version).await?.len(), left, "version {version}");
    }
    Ok(())
}
