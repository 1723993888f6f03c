//! Owns how long secrets are kept: as long as the job that they are bound to. Needs no key.

use std::time::Duration;

use leasehold_core::{
    DeleteDocument, Document, ErrorKind, Expected, JobId, ListDocuments, Namespace, Query, Result,
    Store, StoreExt, Timestamp,
};

use super::SECRETS;

const PAGE: usize = 100;
/// How long it waits between two pages, so that claims come first.
const PAGE_PAUSE: Duration = Duration::from_millis(10);

/// Removes the secrets of jobs that are pruned; how many went.
///
/// A pruned job is known by its tombstone, which is kept for 7 days unless set. With `unknown_for`, secrets
/// also go that were not written for so long and whose job the store does not know at all: of a job that was
/// pruned before the tombstone's time, or that was never enqueued. What is bound to something else than the
/// id of a job stays, and so does what is bound to a job whose row cannot be read, which the log tells.
///
/// [`Maintenance`](crate::Maintenance), and so every worker, does this by itself, without `unknown_for`.
///
/// # Errors
/// Those of the store; what is gone stays gone.
pub async fn prune(store: &dyn Store, unknown_for: Option<Duration>) -> Result<u64> {
    let (mut gone, mut after) = (0, None);
    let mut last: Option<(JobId, bool)> = None;
    loop {
        let mut list = ListDocuments::new(Namespace::new(SECRETS)?).limit(PAGE);
        list.after = after;
        let page = store.records().list(list).await?;
        for document in page.items {
            let Some(job) = job_of(&document) else { continue };
            let is_over = match last {
                Some((known, is_over)) if known == job && unknown_for.is_none() => is_over,
                _ => match is_over(store, job, unwritten(&document, page.now), unknown_for).await {
                    Err(error) if error.kind() == ErrorKind::Corrupt => {
                        let key = document.id.key.as_str();
                        tracing::warn!(%error, namespace = SECRETS, "the secret {key} is kept");
                        false
                    }
                    is_over => is_over?,
                },
            };
            last = Some((job, is_over));
            if is_over {
                gone += u64::from(remove(store, document).await?);
            }
        }
        match page.next {
            None => return Ok(gone),
            next => after = next,
        }
        tokio::time::sleep(PAGE_PAUSE).await;
    }
}

/// The job in a secret's key, where it is one.
fn job_of(document: &Document) -> Option<JobId> {
    document.id.key.as_str().split_once('/')?.0.parse().ok()
}

fn unwritten(document: &Document, now: Timestamp) -> Duration {
    now.since(document.updated_at)
}

async fn is_over(
    store: &dyn Store,
    job: JobId,
    unwritten: Duration,
    unknown_for: Option<Duration>,
) -> Result<bool> {
    if store.job(job).await?.is_some() {
        return Ok(false);
    }
    if unknown_for.is_some_and(|age| unwritten > age) {
        return Ok(true);
    }
    Ok(!store.find(Query::Tombstone(job)).await?.items.is_empty())
}

/// Removes a secret as it was read; `false` when somebody wrote it meanwhile.
async fn remove(store: &dyn Store, document: Document) -> Result<bool> {
    let delete = DeleteDocument::new(document.id).expected(Expected::Version(document.version));
    match store.records().delete(delete).await {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        done => done,
    }
}
