//! Owns the comparison of what is marked with what the provider knows, and the care for what nobody is
//! left to send. Run it now and then; any number may run at once.

use std::collections::HashMap;

use leasehold_core::{Actor, JobId, JobView, NewJob, Result, State, StoreExt};

use super::Notifier;
use super::provider::Looked;
use super::row::{self, Outcome, Row, RowStatus};
use super::rows::{self, Held};
use crate::observe::Alert;

/// How long the key of a job that sends anew is kept.
const KEY_KEPT: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);

/// What a reconciliation found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciled {
    /// Rows that were marked as sent, and are.
    pub confirmed: u64,
    /// Rows that were marked as sent and never were: their marks are gone, and they are sent.
    pub cleared: u64,
    /// Rows that were sent and not marked; now they are.
    pub recovered: u64,
    /// Unsent rows whose job was woken, or got a new one.
    pub requeued: u64,
    /// Unsent rows without a job, of which nobody knows how to make one.
    pub orphaned: u64,
    /// Rows that the provider could not tell of now.
    pub unanswered: u64,
}

/// One pass over the rows: what it did, and which job it gave to a version's rows.
#[derive(Debug, Default)]
struct Pass {
    done: Reconciled,
    jobs: HashMap<String, JobId>,
}

impl Notifier {
    /// Asks the provider for every sent message of the set age that it has not confirmed yet, and finds
    /// what is not sent and has no job any more.
    ///
    /// # Errors
    /// Those of the store; what was done stays done.
    pub async fn reconcile(&self) -> Result<Reconciled> {
        let (mut pass, mut after) = (Pass::default(), None);
        loop {
            let (page, next) = rows::page(self.store.records(), after).await?;
            for held in page {
                match held.row.status {
                    RowStatus::Sent => self.confirm(held, &mut pass).await?,
                    RowStatus::Pending | RowStatus::Sending => self.revive(held, &mut pass).await?,
                    _ => {}
                }
            }
            match next {
                None => return Ok(pass.done),
                next => after = next,
            }
        }
    }

    async fn confirm(&self, mut held: Held, pass: &mut Pass) -> Result<()> {
        let at = held.at();
        let age = held.row.notified_at.map(|sent| at.since(sent)).unwrap_or_default();
        let is_of_age = age >= self.settle && age <= self.within;
        if held.row.confirmed_at.is_some() || !(is_of_age || held.row.is_without_trace()) {
            return Ok(());
        }
        match self.ask(&held.row).await {
            Ok(Looked::Found(id)) => {
                held.row.mark(id, at, Outcome::Found);
                pass.done.confirmed +=
                    u64::from(rows::write(self.store.records(), &mut held).await?);
                Ok(())
            }
            Ok(Looked::Absent) => {
                self.raise(Alert::NotificationNeverSent, &held.row).await?;
                held.row.clear(at);
                if !rows::write(self.store.records(), &mut held).await? {
                    return Ok(()); // somebody else looks after it
                }
                pass.done.cleared += 1;
                self.revive(held, pass).await
            }
            Ok(Looked::NotOffered) => Ok(()),
            Err(failure) => {
                tracing::warn!(error = %failure, "notification not confirmed");
                pass.done.unanswered += 1;
                Ok(())
            }
        }
    }

    /// Sees that a job is there to send the row. A job that failed is its operator's to replay.
    async fn revive(&self, held: Held, pass: &mut Pass) -> Result<()> {
        let job = self.store.job(held.row.job).await?;
        match job.as_ref().map(|job| job.state) {
            // It may rest, or be about to: it had no reason to send this row.
            Some(State::Waiting | State::Leased) if held.row.was_cleared() => {
                let actor = Actor::new("notifier")?;
                pass.done.requeued += u64::from(self.wake(&held.row, actor).await?);
                Ok(())
            }
            Some(State::Succeeded) | None => self.send_anew(held, job, pass).await,
            Some(_) => Ok(()),
        }
    }

    async fn send_anew(&self, mut held: Held, job: Option<JobView>, pass: &mut Pass) -> Result<()> {
        if held.row.send_started_at.is_some()
            && let Ok(Looked::Found(id)) = self.ask(&held.row).await
        {
            let at = held.at();
            held.row.mark(id, at, Outcome::Found);
            pass.done.recovered += u64::from(rows::write(self.store.records(), &mut held).await?);
            return Ok(());
        }
        let version = row::prefix(&held.row.subject, held.row.version);
        if let Some(job) = pass.jobs.get(&version) {
            held.row.job = *job;
            pass.done.requeued += u64::from(rows::write(self.store.records(), &mut held).await?);
            return Ok(());
        }
        let Some(job) = self.job_for(&held.row, job) else {
            self.raise(Alert::NotificationOrphaned, &held.row).await?;
            pass.done.orphaned += 1;
            return Ok(());
        };
        // Whoever does the same from here on, after a crash too, is given the same job.
        let job = match job.key {
            Some(_) => job,
            None => job.key(held.name()?).key_ttl(KEY_KEPT),
        };
        held.row.job = self.store.enqueue_one(job).await?.job();
        pass.jobs.insert(version, held.row.job);
        pass.done.requeued += u64::from(rows::write(self.store.records(), &mut held).await?);
        Ok(())
    }

    fn job_for(&self, row: &Row, job: Option<JobView>) -> Option<NewJob> {
        if let Some(requeue) = &self.requeue {
            return Some(requeue(row));
        }
        let job = job?;
        let mut anew = NewJob::new(job.kind, job.payload);
        anew = anew.queue(job.queue).lifecycle(job.lifecycle).scope(job.scope);
        anew.partition = job.partition;
        Some(anew)
    }
}
