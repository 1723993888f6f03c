//! Owns the quick ways of enqueue, claim and settle: what is most common goes as one statement that is a
//! transaction by itself. Each takes for granted what its statement then checks under the transaction's own
//! snapshot and locks; where that does not hold nothing is written, and the verb goes the long way.
//!
//! What the contract decides is not decided here again: new rows come from the rules, and which lifecycles' jobs are
//! claimed and ended without a further write is found by asking the rules about a row of each. What the
//! statements repeat of the rules (the fence, what a claim sets, the time of an id) the conformance
//! scenarios hold together: they run both ways, since behind a pooler there is only the long one.

mod end;
mod put;
mod take;

use std::sync::Arc;

use deadpool_postgres::Client;
use leasehold_core::rules::{Ids, Lifecycles, Work};
use leasehold_core::{
    ClaimRequest, Epoch, Fence, JobKind, Json, LeaseLength, Limits, NewJob, QueueName, Result,
    Settlement, State, Timestamp, Verdict, VerdictKind, WorkerId,
};

use crate::ends;
use crate::load::Shared;
use crate::pool::Lane;
use crate::statement::Db;
use crate::store::PostgresStore;

/// How a job ends that succeeds.
const SUCCESS: (State, VerdictKind) = (State::Succeeded, VerdictKind::Succeed);

/// The lifecycles whose jobs are claimed, and succeed, at the first stage and without a log, by a change of their own
/// row alone.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    claimed: Vec<String>,
    ended: Vec<String>,
}

impl Plain {
    /// Asks the rules about a job of each lifecycle.
    pub(crate) fn of(lifecycles: &Arc<Lifecycles>) -> Self {
        let mut plain = Self::default();
        for lifecycle in lifecycles.iter() {
            let name = format!("{} {}", lifecycle.name(), lifecycle.revision());
            let job = model().map(|job| job.lifecycle(lifecycle.name().clone()));
            let tried = job.and_then(|job| tried(lifecycles, job, lifecycle.revision()));
            let (claimed, ended) = tried.unwrap_or_default();
            if claimed {
                plain.claimed.push(name.clone());
            }
            if ended {
                plain.ended.push(name);
            }
        }
        plain
    }
}

/// A job that asks for nothing special.
fn model() -> Result<NewJob> {
    Ok(NewJob::new(JobKind::new("model")?, Json::parse("null")?))
}

/// Whether a job of a lifecycle's revision is claimed, and then succeeds, without a further write.
fn tried(lifecycles: &Arc<Lifecycles>, job: NewJob, revision: u32) -> Result<(bool, bool)> {
    let now = Timestamp::saturating(job.id.unix_ms().unwrap_or(0) * 1_000);
    let begin = || {
        let (limits, ids) = (Limits::default(), Ids::random());
        Work::new(now, Epoch::default(), limits, Arc::clone(lifecycles), ids)
    };
    let mut work = begin();
    work.enqueue(std::slice::from_ref(&job), &leasehold_core::Hints::new())?;
    let Some((mut row, _)) = work.into_changes().jobs_new.pop() else { return Ok((false, false)) };
    (row.revision, row.log) = (revision, false);
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::default_queue()]);
    let mut work = begin();
    work.claim_row(&mut row, &request, LeaseLength::DEFAULT);
    let mut rows = [row];
    work.claimed(&mut rows)?;
    let claimed = work.into_changes().is_empty();
    let fence =
        Fence::from_parts(job.id, rows[0].version, request.claim, request.worker, Epoch::default());
    let before = ends::before(&rows);
    let mut work = begin();
    work.load_jobs(rows);
    work.settle(&Settlement::new(fence, Verdict::Succeed { result: None }))?;
    let mut changes = work.into_changes();
    let ended = changes.jobs.pop().and_then(|row| ends::alike(&row, before.get(&row.id), now));
    Ok((claimed, ended == Some(SUCCESS) && changes.is_empty()))
}

impl PostgresStore {
    /// What the quick ways go by; `None` where there are none: a pooler may stand between, or nothing is
    /// known of the lifecycles yet.
    fn quick(&self) -> Option<(Arc<Lifecycles>, Arc<Plain>)> {
        if self.behind_pooler() { None } else { self.shared().known_lifecycles() }
    }

    /// A connection for a quick way; `None` when it is known to be dead.
    async fn quick_client(&self, lane: Lane) -> Result<Option<Client>> {
        let client = self.connection(lane).await?;
        Ok((!client.is_closed()).then_some(client))
    }
}

/// Statements that are transactions by themselves.
fn alone<'a>(client: &'a Client, shared: &'a Shared) -> Db<'a> {
    Db::own(client, &shared.schema, true)
}
