//! Owns how long rows are kept: as long as their job, and as long as the provider is asked for them. Needs no
//! provider.

use std::time::Duration;

use leasehold_core::{Result, Store, StoreExt};

use super::Notifier;
use super::row::Row;
use super::rows::{self, Held};

/// How long [`Maintenance`](crate::Maintenance) keeps a row after the last thing that happened to it: 30 days.
pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How long it waits between two pages, so that claims come first.
const PAGE_PAUSE: Duration = Duration::from_millis(10);

impl Notifier {
    /// Removes rows that are sent, waived or replaced and whose job is pruned; how many went.
    ///
    /// None goes before it is too old for [`Notifier::reconcile`], 7 days unless set. What is not sent and
    /// what wants a decision stays. A version told again once its rows are gone would be sent again: a job
    /// with a key or a subject is not made anew.
    ///
    /// # Errors
    /// Those of the store; what is gone stays gone.
    pub async fn prune(&self) -> Result<u64> {
        prune(&*self.store, self.within).await
    }
}

/// Removes rows as [`Notifier::prune`] does, to which nothing has happened for so long; how many went.
///
/// [`Maintenance`](crate::Maintenance), and so every worker, does this by itself, after [`KEPT`].
///
/// # Errors
/// Those of the store; what is gone stays gone.
pub async fn prune(store: &dyn Store, untouched_for: Duration) -> Result<u64> {
    let (mut gone, mut after) = (0, None);
    loop {
        let (page, next) = rows::page(store.records(), after).await?;
        for held in page {
            if has_served(store, &held, untouched_for).await? {
                gone += u64::from(rows::remove(store.records(), &held).await?);
            }
        }
        match next {
            None => return Ok(gone),
            next => after = next,
        }
        tokio::time::sleep(PAGE_PAUSE).await;
    }
}

async fn has_served(store: &dyn Store, held: &Held, untouched_for: Duration) -> Result<bool> {
    let is_old = held.at().since(last_touch(&held.row)) > untouched_for;
    if !held.row.status.is_settled() || held.row.is_without_trace() || !is_old {
        return Ok(false);
    }
    Ok(store.job(held.row.job).await?.is_none())
}

/// When anything last happened to a row.
fn last_touch(row: &Row) -> leasehold_core::Timestamp {
    row.log.last().map_or(row.planned_at, |note| note.at)
}
