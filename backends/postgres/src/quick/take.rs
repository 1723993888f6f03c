//! Owns the quick claim: from one queue without limits, log and partitions, where nothing has to be taken back first.

use leasehold_core::rules::{Taken, Work};
use leasehold_core::{Claim, ClaimRequest, Epoch, QueueName, Result, Timestamp};
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
    taken: Option<Taken>,
}

fn told(row: &Row, request: &ClaimRequest, queue: &QueueName) -> Result<Told> {
    let mut columns = Columns::of(row);
    let (now, epoch) = (columns.time()?, Epoch::new(columns.raw()?)?);
    let (done, has) = (columns.raw()?, columns.raw::<bool>()?);
    let taken = has.then(|| columns.taken(request, queue)).transpose()?;
    Ok(Told { now, epoch, done, taken })
}

impl PostgresStore {
    /// Claims the quick way; `None` where that is no way for this request.
    pub(crate) async fn take(&self, request: &ClaimRequest) -> Result<Option<Vec<Claim>>> {
        let [queue] = &*request.queues else { return Ok(None) };
        let shared = self.shared();
        if request.repeat || request.check().is_err() || shared.needed_long(queue) {
            return Ok(None);
        }
        let Some((lifecycles, plain)) = self.quick() else { return Ok(None) };
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
        let read = |row: &Row| told(row, request, queue);
        let found = alone(&client, shared).alone(sql!("claim_alone"), values, read).await;
        drop(client);
        let found = match found {
            Err(error) if error.is_transaction_restart() => return Ok(None),
            found => found.map_err(|error| named(error, "claim"))?,
        };
        let Some(&Told { now, epoch, done: true, .. }) = found.first() else { return Ok(None) };
        let mut taken: Vec<_> = found.into_iter().filter_map(|told| told.taken).collect();
        taken.sort_by_key(Taken::order);
        let work = Work::new(now, epoch, shared.limits.clone(), lifecycles, shared.ids.clone());
        taken.into_iter().map(|it| work.claim_taken(it)).collect::<Result<_>>().map(Some)
    }
}
