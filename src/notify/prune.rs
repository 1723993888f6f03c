//! Owns how long rows are kept: as long as their job, and as long as the provider is asked for them.

use leasehold_core::{Result, StoreExt};

use super::Notifier;
use super::row::Row;
use super::rows::{self, Held};

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
        let (mut gone, mut after) = (0, None);
        loop {
            let (page, next) = rows::page(self.store.records(), "", after).await?;
            for held in page {
                if self.has_served(&held).await? {
                    gone += u64::from(rows::remove(self.store.records(), &held).await?);
                }
            }
            match next {
                None => return Ok(gone),
                next => after = next,
            }
        }
    }

    async fn has_served(&self, held: &Held) -> Result<bool> {
        let is_old = held.at().since(last_touch(&held.row)) > self.within;
        if !held.row.status.is_settled() || held.row.is_without_trace() || !is_old {
            return Ok(false);
        }
        Ok(self.store.job(held.row.job).await?.is_none())
    }
}

/// When anything last happened to a row.
fn last_touch(row: &Row) -> leasehold_core::Timestamp {
    row.log.last().map_or(row.planned_at, |note| note.at)
}
