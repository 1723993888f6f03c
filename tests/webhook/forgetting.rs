//! How long endpoints are kept that jobs name by their URL.

use std::sync::Arc;
use std::time::Duration;

use leasehold::event::Ordering;
use leasehold::webhook::{ByJob, EndpointStatus, Endpoints};
use leasehold::{
    Actor, AuditFilter, Document, JobKind, Json, ListDocuments, Namespace, NewJob, Paging, Store,
    StoreExt,
};

use crate::sending::{event, local, publish, relay};
use crate::server::{Act, Server};
use crate::{Told, stories};

stories![urls_of_jobs_are_forgotten_after_their_last_use];

/// How long a URL's endpoint is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Enqueues a job that tells of itself to a URL, and delivers what is there.
async fn tell(store: &Arc<dyn Store>, url: &str) -> Told {
    let payload = Json::of(&serde_json::json!({ "told": url }))?;
    let job = store.enqueue_one(NewJob::new(JobKind::new("k")?, payload)).await?.job();
    let event = event("told", "1")?.ordering(Ordering::Job(job));
    publish(store, event).await?;
    let sink = local(store).route(ByJob::new(store.clone(), "told"));
    relay(store, sink)?.run_until_idle().await?;
    Ok(())
}

async fn endpoints(store: &Arc<dyn Store>) -> leasehold::Result<Vec<Document>> {
    Ok(store.records().list(ListDocuments::new(Namespace::new("webhook.endpoints")?)).await?.items)
}

/// Proves: WH-6, QUE-4
async fn urls_of_jobs_are_forgotten_after_their_last_use(store: Arc<dyn Store>) -> Told {
    let (fine, gone) =
        (Server::always(Act::status(204)).await, Server::always(Act::status(410)).await);
    for url in [fine.url(), fine.url(), gone.url()] {
        tell(&store, &url).await?;
    }
    let kept = endpoints(&store).await?;
    assert_eq!(kept.len(), 2, "one for each URL");
    for document in &kept {
        let end = document.expires_at.ok_or("it is kept without end")?;
        assert_eq!(end.since(document.updated_at), KEPT, "{:?}", document.body);
    }
    let audit = store.records().audit(AuditFilter::new(), Paging::first(9)).await?.items;
    let acts: Vec<_> = audit.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(acts, ["webhook.disable"], "what jobs do of themselves is no act of anybody");
    // What somebody has decided stays, until somebody takes it back.
    let (all, person) = (Endpoints::of(store.clone()), Actor::new("ann")?);
    let name = kept.iter().find(|document| document.body.as_str().contains("active"));
    let name = name.ok_or("none is active")?.id.key.as_str();
    let ends = async || {
        let found = endpoints(&store).await?.into_iter().find(|it| it.id.key.as_str() == name);
        Ok::<_, libtest_mimic::Failed>(found.ok_or("it is gone")?.expires_at.is_some())
    };
    all.pause(name, person.clone(), "moving house").await?;
    assert!(!ends().await?);
    tell(&store, &fine.url()).await?;
    assert_eq!(fine.seen().len(), 2, "it is paused");
    all.disable(name, person.clone(), "they asked us to").await?;
    assert!(!ends().await?);
    all.resume(name, person).await?;
    assert!(ends().await?);
    assert_eq!(all.get(name).await?.ok_or("it is gone")?.status, EndpointStatus::Active);
    Ok(())
}
