//! Owns the requester's own way to give a job credentials: an authenticated call, which raises their
//! version by one. They go sealed into the vault, and nothing of them is told.

use axum::extract::{RawQuery, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use leasehold_core::{Json, StoreExt};
use serde_json::json;

use super::problem::Problem;
use super::{Desk, answer, enqueue, status};
use crate::credentials::Credentials;
use crate::vault::{Places, VaultError};

/// What the route needs.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) desk: Desk,
    pub(super) credentials: Credentials,
}

/// `PUT /PATH/credentials?job_id=ID`
pub(super) async fn write(
    State(counter): State<Counter>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    match written(&counter, query.as_deref().unwrap_or_default(), request).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn written(counter: &Counter, query: &str, request: Request) -> Result<Response, Problem> {
    let Counter { desk, credentials } = counter;
    let (parts, body) = request.into_parts();
    let caller = desk.caller(&parts.headers).await?;
    let id = status::job_id(query)?;
    enqueue::check_content(&parts.headers)?;
    let body = enqueue::arrived(desk, body).await?;
    let secret = Json::parse_bytes(&body)?;
    let job = desk.api.asked(desk.api.store.job(id)).await?;
    let is_theirs = |job: &leasehold_core::JobView| {
        job.scope == caller.requester && job.kind == desk.offer.kind
    };
    let job = job.filter(is_theirs).ok_or_else(Problem::not_found)?;
    if job.finished_at.is_some() {
        let detail = "the job is over, and needs no credentials";
        return Err(Problem::new(StatusCode::CONFLICT, "job-over", detail));
    }
    let requester = caller.requester.as_str();
    let written = credentials.write(id, requester, secret.as_str().as_bytes(), Places::new());
    let version = desk.api.asked(async { written.await.map_err(stored) }).await?;
    Ok(answer(StatusCode::OK, &json!({ "credential_version": version })))
}

/// The vault's own errors are the service's to mend.
fn stored(error: VaultError) -> leasehold_core::Error {
    match error {
        VaultError::Store(error) => error,
        other => {
            let kind = leasehold_core::ErrorKind::Unavailable;
            leasehold_core::Error::new(kind, "write credentials", other.to_string())
        }
    }
}
