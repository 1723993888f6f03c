//! Owns the quick enqueue: new jobs that are alike but for id and payload and that the rules call new as
//! far as nobody else has their ids, which the statement looks after.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::rules::{Changes, Lifecycles, Work};
use leasehold_core::{Enqueued, Epoch, HintKind, NewJob, Result, RunAt, Timestamp};
use tokio_postgres::Row;

use super::alone;
use crate::bind::Params;
use crate::error::{is_lost_race, named};
use crate::load::Shared;
use crate::pool::Lane;
use crate::row::Columns;
use crate::statement::sql;
use crate::store::PostgresStore;
use crate::{marks, new_jobs};

type Answers = Vec<Result<Enqueued>>;

/// Whether a job can be one of those.
fn fits(job: &NewJob) -> bool {
    job.key.is_none()
        && !job.rerun
        && job.after.is_empty()
        && job.partition.is_none()
        && job.subject.is_none()
        && job.traceparent.is_none()
        && job.run_at == RunAt::Now
}

/// The latest and earliest times of some ids, in milliseconds.
fn times(jobs: &[NewJob]) -> Option<(i64, i64)> {
    let all = || jobs.iter().filter_map(|job| job.id.unix_ms());
    Some((all().max()?, all().min()?))
}

fn millis(ms: i64) -> Timestamp {
    Timestamp::saturating(ms.saturating_mul(1_000))
}

/// What the rules make of some jobs if the clock stands where the latest of their ids was made and nothing
/// is there under any of them.
fn decide(
    shared: &Shared,
    lifecycles: &Arc<Lifecycles>,
    jobs: &[NewJob],
) -> Option<(Answers, Changes)> {
    let now = millis(times(jobs).map_or(0, |(latest, _)| latest));
    let (limits, ids) = (shared.limits.clone(), shared.ids.clone());
    let mut work = Work::new(now, Epoch::default(), limits, Arc::clone(lifecycles), ids);
    work.check_new_jobs(jobs).ok()?;
    let answers = work.enqueue(jobs, &shared.hints).ok()?;
    let mut changes = work.into_changes();
    changes.jobs_new.sort_unstable_by_key(|(row, _)| row.id);
    let all_new = answers.iter().all(|it| it.as_ref().is_ok_and(Enqueued::is_new));
    all_new.then_some((answers, changes))
}

/// What inserts new jobs, where they are alike and all there is to write.
fn statement(shared: &Shared, jobs: &[NewJob], changes: &mut Changes) -> Option<Params> {
    let like = new_jobs::all_alike(&changes.jobs_new)?.clone();
    let rows = std::mem::take(&mut changes.jobs_new);
    changes.queues.retain(|queue| *queue != like.queue);
    if !changes.is_empty() {
        return None;
    }
    let span = shared.limits.id_skew_max.map(|skew| {
        let (latest, earliest) = times(jobs).unwrap_or_default();
        let skew = i64::try_from(skew.as_millis()).unwrap_or(i64::MAX);
        let until = millis(earliest.saturating_add(skew)).plus(Duration::from_millis(1));
        (millis(latest.saturating_sub(skew).max(0)), until)
    });
    let requests = || rows.iter().map(|(_, request)| request);
    let values = Params::new()
        .one(marks::lock_name(&shared.schema))
        .many(requests().map(|row| row.job))
        .many(requests().map(|row| &row.payload))
        .many(requests().map(|row| &row.hash))
        .one(like.queue.as_str())
        .one(like.kind.as_str())
        .one(like.lifecycle.as_str())
        .one(like.revision)
        .one(like.priority)
        .one(like.log)
        .one(like.attempts_max)
        .one(span.map(|(from, _)| from))
        .one(span.map(|(_, until)| until))
        .one(shared.manual_now());
    Some(values)
}

impl PostgresStore {
    /// Enqueues the quick way; `None` where that is no way for these jobs.
    pub(crate) async fn put(&self, jobs: &[NewJob]) -> Result<Option<Answers>> {
        if jobs.is_empty() || !jobs.iter().all(fits) {
            return Ok(None);
        }
        let Some((lifecycles, _)) = self.quick() else { return Ok(None) };
        let shared = self.shared();
        let Some((answers, mut changes)) = decide(shared, &lifecycles, jobs) else {
            return Ok(None);
        };
        let Some(values) = statement(shared, jobs, &mut changes) else { return Ok(None) };
        let Some(client) = self.quick_client(Lane::Shared).await? else { return Ok(None) };
        let db = alone(&client, shared);
        let read = |row: &Row| Columns::of(row).raw::<bool>();
        match db.alone(sql!("put_jobs"), values, read).await {
            Ok(done) if done.first() == Some(&true) => {
                shared.hints.send(HintKind::Jobs);
                Ok(Some(answers))
            }
            Ok(_) => Ok(None),
            // Another transaction took an id meanwhile.
            Err(error) if is_lost_race(&error) || error.is_transaction_restart() => Ok(None),
            Err(error) => Err(named(error, "enqueue")),
        }
    }
}
