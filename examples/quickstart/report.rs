//! Owns the closing table: what happened, read from the store alone.

use std::error::Error;
use std::time::Duration;

use leasehold::{Found, JobFilter, JobId, Paging, Query, State, Stats, Store, StoreExt, Verb};

use crate::files;

/// What happened to the jobs.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) jobs: usize,
    pub(crate) succeeded: usize,
    pub(crate) retries: usize,
    pub(crate) reclaims: usize,
}

/// Adds up every job of this example.
pub(crate) async fn tally(store: &dyn Store) -> Result<Tally, Box<dyn Error>> {
    let mut tally = Tally::default();
    let mut paging = Paging::first(1_000);
    loop {
        let page = store.jobs(JobFilter::new().queue(files::queue()?), paging).await?;
        for job in page.items {
            tally.jobs += 1;
            tally.succeeded += usize::from(job.state == State::Succeeded);
            if job.claim_version.get() > 1 {
                tally.add_log(store, job.id).await?;
            }
        }
        match page.next {
            Some(next) => paging = Paging::first(1_000).after(next),
            None => return Ok(tally),
        }
    }
}

impl Tally {
    /// Adds what the transition log of one job says.
    async fn add_log(&mut self, store: &dyn Store, job: JobId) -> Result<(), Box<dyn Error>> {
        let log = store.find(Query::Transitions(job, Paging::first(1_000))).await?;
        for step in log.items {
            if let Found::Transition(step) = step {
                self.retries += usize::from(step.verb == Verb::Retry);
                self.reclaims += usize::from(step.verb == Verb::Reclaim);
            }
        }
        Ok(())
    }
}

/// Prints the table.
pub(crate) fn print(tally: &Tally, stats: &Stats, refused: usize, new: usize, took: Duration) {
    let rate = f64::from(u32::try_from(new).unwrap_or(u32::MAX)) / took.as_secs_f64();
    let rows = [
        ("engine", stats.engine.clone()),
        ("jobs", format!("{} ({new} in this run)", tally.jobs)),
        ("succeeded", tally.succeeded.to_string()),
        ("retries", tally.retries.to_string()),
        ("reclaims (taken over)", tally.reclaims.to_string()),
        ("refused stale writes", refused.to_string()),
        ("events delivered", stats.outbox.delivered.to_string()),
        ("seconds", format!("{:.1}", took.as_secs_f64())),
        ("jobs per second", format!("{rate:.0}")),
    ];
    println!();
    for (name, value) in rows {
        println!("{name:<24}{value}");
    }
}
