//! Owns the answer to "why does this job not run": every reason that the store knows, the decisive ones
//! first. Changes nothing.

use std::sync::Arc;

use leasehold::{
    Found, JobFilter, JobView, Paging, ParentCounts, Query, QueueView, Result, State, Stats,
    StatsScope, Store,
};
use serde_json::json;

use super::answer::Answer;

/// Tells the reasons.
pub(super) async fn tell(store: &Arc<dyn Store>, job: &JobView) -> Result<Answer> {
    let reasons = match job.state {
        State::Waiting => waiting(store, job).await?,
        State::Leased => vec![running(job, &store.look(StatsScope::Live).await?)],
        ended => vec![format!(
            "it is over: {} since {}",
            ended.as_str(),
            job.finished_at.map_or_else(|| job.updated_at.to_string(), |at| at.to_string())
        )],
    };
    Ok(Answer::facts([
        ("job", json!(job.id.to_string())),
        ("queue", json!(job.queue.as_str())),
        ("status", json!(job.status)),
        ("reasons", json!(reasons)),
    ]))
}

fn running(job: &JobView, stats: &Stats) -> String {
    let worker =
        job.worker.map_or_else(|| "a worker".to_owned(), |worker| format!("worker {worker}"));
    match job.lease_expires_at {
        Some(end) if end <= stats.now => {
            format!(
                "{worker} has held it until {end} and was not heard of since; it is taken back at the next claim or round of upkeep"
            )
        }
        Some(end) => format!("it runs: {worker} holds it until {end} unless renewed"),
        None => format!("it runs: {worker} holds it"),
    }
}

async fn waiting(store: &Arc<dyn Store>, job: &JobView) -> Result<Vec<String>> {
    let stats = store.look(StatsScope::Live).await?;
    let mut reasons = Vec::new();
    if job.blocked {
        reasons.push(blocked(store, job).await?);
    }
    if job.run_at > stats.now {
        let left = job.run_at.since(stats.now);
        let after = if job.failure.is_some() { ", after a failed attempt" } else { "" };
        reasons.push(format!(
            "it is not due before {}, in {} s{after}",
            job.run_at,
            left.as_secs()
        ));
    }
    reasons.extend(limits(store, job, &stats).await?);
    if !reasons.is_empty() {
        return Ok(reasons);
    }
    let ready = stats.queue(&job.queue).map_or(0, |queue| queue.ready);
    let lapsed: u64 = stats.queues.iter().map(|queue| queue.expired).sum();
    let mut all = vec![format!(
        "nothing keeps it: it is one of {ready} due jobs of queue {}, larger priorities first; is a worker for this queue and kind {} running?",
        job.queue, job.kind
    )];
    if lapsed > 0 {
        all.push(format!(
            "{lapsed} leases have lapsed and nobody took them back: no worker may be running at all"
        ));
    }
    Ok(all)
}

async fn blocked(store: &Arc<dyn Store>, job: &JobView) -> Result<String> {
    let found = store.find(Query::ParentCounts(job.id)).await?.items.pop();
    let counts = match found {
        Some(Found::ParentCounts(counts)) => counts,
        _ => ParentCounts::default(),
    };
    let parents = store.find(Query::Parents(job.id, Paging::first(1_000))).await?.items;
    let open = parents.into_iter().filter_map(|found| match found {
        Found::Wait(wait) if wait.open => {
            Some(format!("{} ({})", wait.parent, wait.parent_state.as_str()))
        }
        _ => None,
    });
    let first: Vec<String> = open.take(5).collect();
    if counts.open == 0 {
        return Ok("it is held back until somebody releases it".to_owned());
    }
    Ok(format!(
        "it waits for {} of {} jobs, among them {}",
        counts.open,
        counts.total,
        first.join(", ")
    ))
}

async fn limits(store: &Arc<dyn Store>, job: &JobView, stats: &Stats) -> Result<Vec<String>> {
    let mut reasons = Vec::new();
    let queue = stats.queue(&job.queue);
    if queue.is_some_and(|queue| queue.paused) {
        reasons
            .push(format!("queue {} is paused: leasehold queues resume {}", job.queue, job.queue));
    }
    if let Some((limit, leased)) = queue.and_then(|queue| Some((queue.limit?, queue.leased)))
        && leased >= u64::from(limit)
    {
        reasons.push(format!("queue {} has {leased} leases, and its limit is {limit}", job.queue));
    }
    let all: u64 = stats.queues.iter().map(|queue| queue.leased).sum();
    if let Some(limit) = stats.limit.filter(|limit| all >= u64::from(*limit)) {
        reasons.push(format!("the store has {all} leases, and its limit is {limit}"));
    }
    let Some(partition) = &job.partition else { return Ok(reasons) };
    let Some(settings) = settings(store, job).await? else { return Ok(reasons) };
    if let Some(limit) = settings.partition_limit {
        let filter = JobFilter::new()
            .queue(job.queue.clone())
            .partition(partition.clone())
            .state(State::Leased);
        let size = usize::try_from(limit).unwrap_or(1_000).clamp(1, 1_000);
        let leased = store.find(Query::Jobs(filter, Paging::first(size))).await?.items.len();
        if leased >= size {
            reasons.push(format!(
                "partition {partition} has {leased} leases, and its limit is {limit}"
            ));
        }
    }
    if settings.partition_rate.is_some() {
        reasons.push(format!(
            "partition {partition} has a rate of starts, which may be used up for now"
        ));
    }
    Ok(reasons)
}

async fn settings(store: &Arc<dyn Store>, job: &JobView) -> Result<Option<QueueView>> {
    let queues = store.find(Query::Queues).await?.items;
    Ok(queues.into_iter().find_map(|found| match found {
        Found::Queue(queue) if queue.name == job.queue => Some(queue),
        _ => None,
    }))
}
