//! Owns the quick claim: from one queue without limits, log and partitions, where nothing has to be taken back first.

use leasehold_core::row::{JobRow, RequestRow};
use leasehold_core::rules::{Work, claim_order};
use leasehold_core::{Claim, ClaimRequest, Epoch, Json, Result, Timestamp};
use tokio_postgres::Row;

use super::alone;
use crate::bind::Params;
use crate::error::named;
use crate::pool::Lane;
use crate::row::Columns;
use crate::statement::sql;
use crate::store::PostgresStore;

/// What the statement tells in each row.
struct Told {
    now: Timestamp,
    epoch: Epoch,
    done: bool,
    taken: Option<(JobRow, RequestRow, Option<Json>)>,
}

fn told(row: &Row) -> Result<Told> {
    let mut columns = Columns::of(row);
    let (now, epoch) = (columns.time()?, Epoch::new(columns.raw()?)?);
    let (done, has) = (columns.raw()?, columns.raw::<bool>()?);
    let taken = if has {
        let job = columns.job()?;
        let (id, request) = (job.id, columns.request(job.id)?);
        Some((job, request, columns.checkpoint(id)?))
    } else {
        None
    };
    Ok(Told { now, epoch, done, taken })
}

impl PostgresStore {
    /// Claims the quick way; `None` where that is no way for this request.
    pub(crate) async fn take(&self, request: &ClaimRequest) -> Result<Option<Vec<Claim>>> {
        let [queue] = &*request.queues else { return Ok(None) };
        if request.repeat || request.check().is_err() {
            return Ok(None);
        }
        let Some((lifecycles, plain)) = self.quick() else { return Ok(None) };
        let shared = self.shared();
        let values = Params::new()
            .one(queue.as_str())
            .one(shared.manual_now())
            .one(request.limit)
            .one(request.claim)
            .one(request.worker)
            .one(request.lease.map(|lease| lease.as_millis()))
            .one(shared.limits.lease_default.as_millis())
            .many(plain.claimed.iter().map(String::as_str));
        let Some(client) = self.quick_client(Lane::Shared).await? else { return Ok(None) };
        let found = alone(&client, shared).alone(sql!("claim_alone"), values, told).await;
        drop(client);
        let found = match found {
            Err(error) if error.is_transaction_restart() => return Ok(None),
            found => found.map_err(|error| named(error, "claim"))?,
        };
        let Some(&Told { now, epoch, done: true, .. }) = found.first() else { return Ok(None) };
        let mut taken: Vec<_> = found.into_iter().filter_map(|told| told.taken).collect();
        taken.sort_by_key(|(row, ..)| claim_order(row));
        let work = Work::new(now, epoch, shared.limits.clone(), lifecycles, shared.ids.clone());
        let claim =
            |(row, request, checkpoint): (JobRow, _, _)| work.claim_of(&row, request, checkpoint);
        taken.into_iter().map(claim).collect::<Result<_>>().map(Some)
    }
}
