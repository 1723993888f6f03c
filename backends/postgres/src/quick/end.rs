//! Owns the quick settlement: successes that leave nothing but their own rows. Claims of a few fences' groups
//! are one transaction, all of whose statements go out at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use leasehold_core::fence::ClaimVersion;
use leasehold_core::{
    ClaimId, Epoch, Error, JobId, Place, Result, Settled, Settlement, Verdict, WorkerId,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Plain, SUCCESS, alone};
use crate::bind::Params;
use crate::error::named;
use crate::own::Own;
use crate::pool::Lane;
use crate::row::Columns;
use crate::statement::sql;
use crate::store::PostgresStore;

type Answers = Vec<Result<Settled>>;
/// What the jobs of one claim call have in common, but for how often each was claimed before.
type Group = (ClaimId, ClaimVersion, WorkerId, Epoch);
type Groups = BTreeMap<Group, Vec<JobId>>;

/// The most groups of one transaction.
const GROUPS_MAX: usize = 8;

/// Whether a settlement leaves nothing but its job's row.
fn fits(it: &Settlement) -> bool {
    matches!(it.verdict, Verdict::Succeed { result: None })
        && it.checkpoint.is_none()
        && it.events.is_empty()
        && it.jobs.is_empty()
}

/// The jobs to be ended, by what their fences share; `None` for too many groups or a job that comes twice.
fn grouped(settlements: &[Settlement]) -> Option<Groups> {
    let mut groups = Groups::new();
    let mut seen = BTreeSet::new();
    for it in settlements {
        if !seen.insert(it.fence.job()) {
            return None;
        }
        if fits(it) {
            let fence = &it.fence;
            let group = (fence.claim(), fence.version(), fence.worker(), fence.epoch());
            groups.entry(group).or_default().push(fence.job());
        }
    }
    groups.values_mut().for_each(|jobs| jobs.sort_unstable());
    (1..=GROUPS_MAX).contains(&groups.len()).then_some(groups)
}

impl PostgresStore {
    /// Settles, as far as that is a way the quick one.
    pub(crate) async fn end(&self, settlements: &[Settlement]) -> Result<Answers> {
        let quick = self.quick().filter(|_| settlements.len() <= self.shared().limits.batch_max);
        let (Some((_, plain)), Some(groups)) = (quick, grouped(settlements)) else {
            return self.items(settlements).await;
        };
        let ended = self.end_groups(&plain, groups).await?;
        let left: Vec<Settlement> =
            settlements.iter().filter(|it| !ended.contains(&it.fence.job())).cloned().collect();
        let mut others = self.rest(&left, ended.is_empty()).await?.into_iter();
        let none =
            || Error::new(leasehold_core::ErrorKind::Corrupt, "settle", "an answer is missing");
        let answer = |it: &Settlement| match ended.contains(&it.fence.job()) {
            true => Ok(Settled::from_parts(Place::of(SUCCESS.0, 0), false)),
            false => others.next().unwrap_or_else(|| Err(none())),
        };
        Ok(settlements.iter().map(answer).collect())
    }

    /// Settles the others the long way. What is stored by now is stored: then an error is each one's own.
    async fn rest(&self, left: &[Settlement], is_all: bool) -> Result<Answers> {
        if left.is_empty() {
            return Ok(Vec::new());
        }
        match self.items(left).await {
            Err(error) if !is_all => {
                let (kind, why) = (error.kind(), error.message().to_owned());
                let error = Arc::new(error);
                let own = |_| {
                    Err(Error::new(kind, "settle", why.clone()).with_source(Arc::clone(&error)))
                };
                Ok(left.iter().map(own).collect())
            }
            answers => answers,
        }
    }

    /// Ends what can be ended so; which jobs that were.
    async fn end_groups(&self, plain: &Plain, groups: Groups) -> Result<BTreeSet<JobId>> {
        let shared = self.shared();
        let Some(client) = self.quick_client(Lane::Holders).await? else {
            return Ok(BTreeSet::new());
        };
        let db = alone(&client, shared);
        let is_alone = groups.len() == 1;
        let mut values = groups.into_iter().map(|((claim, version, worker, epoch), jobs)| {
            Params::new()
                .many(jobs)
                .one(claim)
                .one(version)
                .one(worker)
                .one(i64::from(epoch.get()))
                .one(shared.manual_now())
                .many(plain.ended.iter().map(String::as_str))
                .one(SUCCESS.0.as_str())
                .one(SUCCESS.1.as_str())
                .one(is_alone)
        });
        let read = |row: &Row| Columns::of(row).raw::<Vec<Uuid>>();
        let first = values.next().unwrap_or_default();
        let rest: Vec<Params> = values.collect();
        let ended = if is_alone {
            db.alone(sql!("end_alone"), first, read).await
        } else {
            db.prepare(sql!("end_alone"), &first).await.map_err(|e| named(e, "settle"))?;
            let own = Own::on(&client, false);
            let all = std::iter::once(first).chain(rest);
            let writes = try_join_all(all.map(|values| db.rows(sql!("end_alone"), values, read)));
            own.at_once(writes).await.map(|ended| ended.concat())
        };
        match ended {
            Ok(ended) => Ok(ended.into_iter().flatten().map(JobId::from_uuid).collect()),
            Err(error) if error.is_transaction_restart() => Ok(BTreeSet::new()),
            Err(error) => Err(named(error, "settle")),
        }
    }
}
