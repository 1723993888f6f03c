//! A batch that is fanned out and gathered: three pages are fetched, and when all of them are over
//! one job makes a report, whatever became of each.
//!
//! ```sh
//! cargo run --example fan_in [URL]
//! ```
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;

use leasehold::{
    Context, Failure, FailureCode, Found, Handled, JobKind, Json, NewJob, OnFailure, ParentCounts,
    Query, Store, StoreExt, Worker,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| ":memory:".to_owned());
    let store = leasehold::connect(&url).await?;
    let (fetch, report) = (JobKind::new("fetch")?, JobKind::new("report")?);

    let mut pages = Vec::new();
    for page in ["one", "two", "three"] {
        pages.push(NewJob::new(fetch.clone(), Json::of(&page)?));
    }
    let callback = NewJob::new(report.clone(), Json::null());
    let gathered = callback.id;
    // One call, one transaction: all four jobs are there, or none.
    for answer in store.enqueue(NewJob::batch(pages, callback, OnFailure::Run)).await? {
        println!("enqueued {}", answer?.job());
    }

    let worker = Worker::builder(store.clone())
        .handler(fetch, |_: Context, page: String| async move {
            if page == "two" {
                return Err(Failure::new(FailureCode::SchemaInvalid, "no such page").into());
            }
            println!("fetched page {page}");
            Ok(Handled::done())
        })
        .handler(report, |_: Context, (): ()| async move {
            println!("the report is written");
            Ok(Handled::done())
        })
        .build();
    worker.run_until_idle().await?;

    let counts = parent_counts(&*store, gathered).await?;
    println!("{} of {} ended, {} well", counts.ended(), counts.total, counts.succeeded);
    let report = store.job(gathered).await?.ok_or("the report is gone")?;
    println!("the report is {}", report.status);
    Ok(())
}

/// How far a batch is, by its callback.
async fn parent_counts(
    store: &dyn Store,
    job: leasehold::JobId,
) -> leasehold::Result<ParentCounts> {
    let found = store.find(Query::ParentCounts(job)).await?.items.pop();
    Ok(match found {
        Some(Found::ParentCounts(counts)) => counts,
        _ => ParentCounts::default(),
    })
}
