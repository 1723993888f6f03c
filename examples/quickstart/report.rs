//! Owns the closing table: what happened, read from the store alone.

use std::error::Error;
use std::time::Duration;

use leasehold::{JobFilter, Paging, State, Stats, Store, StoreExt};

/// What happened to the jobs.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) jobs: usize,
    pub(crate) succeeded: usize,
    pub(crate) retries: u32,
    pub(crate) reclaims: usize,
}

/// Adds up every job of the store.
pub(crate) async fn tally(store: &dyn Store) -> Result<Tally, Box<dyn Error>> {
    let mut tally = Tally::default();
    let mut paging = Paging::first(1_000);
    loop {
        let page = store.jobs(JobFilter::new(), paging).await?;
        for job in page.items {
            let lost = job.failure.as_ref().is_some_and(|it| it.as_str().contains("WORKER_LOST"));
            tally.jobs += 1;
            tally.succeeded += usize::from(job.state == State::Succeeded);
            tally.reclaims += usize::from(lost);
            tally.retries += job.attempts.saturating_sub(1 + u32::from(lost));
        }
        match page.next {
            Some(next) => paging = Paging::first(1_000).after(next),
            None => return Ok(tally),
        }
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
        ("jobs per second", format!("{rate:.0}")),
    ];
    println!();
    for (name, value) in rows {
        println!("{name:<24}{value}");
    }
}
