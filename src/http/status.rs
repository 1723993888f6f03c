//! Owns what a requester may know of a job: where it is, what came of it, why it failed. Another's job
//! looks as if there were none.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use leasehold_core::{
    Error, Failure, Found, JobId, JobView, Json, Query, Result, Scope, Store, StoreExt,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::problem::Problem;
use super::{Desk, answer};

/// `GET /PATH/status?job_id=ID`
pub(super) async fn status(
    State(desk): State<Desk>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    match looked_up(&desk, &headers, query.as_deref().unwrap_or_default()).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

/// A job as its requester sees it.
#[derive(Serialize)]
struct Told {
    job_id: String,
    status: String,
    stage: Option<String>,
    attempts: u32,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Wrong>,
}

/// Why a job failed, in terms that are the same for every kind.
#[derive(Serialize)]
struct Wrong {
    code: String,
    class: &'static str,
    message: String,
    retryable: bool,
}

async fn looked_up(desk: &Desk, headers: &HeaderMap, query: &str) -> Result<Response, Problem> {
    let caller = desk.caller(headers).await?;
    let id = job_id(query)?;
    let store = &desk.api.store;
    let found = desk.api.asked(store.job(id)).await?;
    match found.filter(|job| job.scope == caller.requester && job.kind == desk.offer.kind) {
        Some(job) => Ok(answer(StatusCode::OK, &told(job)?)),
        None if desk.api.asked(was_pruned(&**store, id, &caller.requester)).await? => {
            let detail = "the job is over, and no longer kept";
            Err(Problem::new(StatusCode::GONE, "job-gone", detail))
        }
        None => Err(Problem::not_found()),
    }
}

pub(super) fn job_id(query: &str) -> Result<JobId, Problem> {
    let mut ids = query.split('&').filter_map(|pair| pair.strip_prefix("job_id="));
    match (ids.next().map(str::parse), ids.next()) {
        (Some(Ok(id)), None) => Ok(id),
        _ => Err(Problem::invalid("exactly one job_id is needed, a UUID")),
    }
}

async fn was_pruned(store: &dyn Store, id: JobId, requester: &Scope) -> Result<bool> {
    let page = store.find(Query::Tombstone(id)).await?;
    Ok(page.items.iter().any(|found| match found {
        Found::Tombstone(tombstone) => tombstone.scope == *requester,
        _ => false,
    }))
}

fn told(job: JobView) -> Result<Told> {
    let is_over = job.finished_at.is_some();
    let raw = |json: Json| {
        RawValue::from_string(json.as_str().to_owned()).map_err(|error| {
            Error::invalid("tell status", "the result is no JSON").with_source(error)
        })
    };
    let failure = job.failure.as_ref().map(Failure::from_json).transpose()?;
    Ok(Told {
        job_id: job.id.to_string(),
        status: job.status,
        stage: job.lease_expires_at.is_some().then(|| job.stage.to_string()),
        attempts: job.executions,
        created_at: job.created_at.to_string(),
        updated_at: job.updated_at.to_string(),
        result: job.result.map(raw).transpose()?,
        // What went wrong before is nobody's business once it went well.
        error: failure.filter(|_| is_over && job.state != leasehold_core::State::Succeeded).map(
            |failure| Wrong {
                code: failure.code_id().to_owned(),
                class: failure.class().id(),
                message: failure.message().to_owned(),
                retryable: failure.is_retryable(),
            },
        ),
    })
}
