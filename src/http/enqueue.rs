//! Owns the request for a job: key, size, content, then one enqueue whose answer is the same however
//! often it is asked. Runs nothing.

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use leasehold_core::{IdempotencyKey, Json, NewJob, StoreExt};
use serde_json::json;
use tracing::Instrument;

use super::problem::Problem;
use super::{Desk, answer};
use crate::trace::of_request;

const KEY: &str = "idempotency-key";

/// `POST /PATH`
pub(super) async fn enqueue(State(desk): State<Desk>, request: Request) -> Response {
    match enqueued(&desk, request).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn enqueued(desk: &Desk, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let caller = desk.caller(&parts.headers).await?;
    let key = key(&parts.headers)?;
    check_content(&parts.headers)?;
    let body = arrived(desk, body).await?;
    let payload = Json::parse_bytes(&body)?;
    if let Some(check) = &desk.offer.check {
        check(&payload).map_err(|why| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "payload-refused", why)
        })?;
    }
    let offer = &desk.offer;
    let job = NewJob::new(offer.kind.clone(), payload)
        .queue(offer.queue.clone())
        .lifecycle(offer.lifecycle.clone())
        .scope(caller.requester)
        .key(key)
        .key_ttl(desk.api.key_ttl);
    let traceparent = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
    let (traceparent, span) = of_request(traceparent, &offer.queue);
    let job = match traceparent {
        Some(trace) => job.traceparent(trace),
        None => job,
    };
    let enqueued = desk.api.asked(desk.api.store.enqueue_one(job));
    let job = enqueued.instrument(span).await?.job();
    let place = format!("/{}/status?job_id={job}", offer.path);
    let told = answer(StatusCode::ACCEPTED, &json!({ "job_id": job.to_string() }));
    Ok(([(header::LOCATION, place)], told).into_response())
}

fn key(headers: &HeaderMap) -> Result<IdempotencyKey, Problem> {
    let mut values = headers.get_all(KEY).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Problem::invalid("exactly one Idempotency-Key is needed"));
    };
    let text = std::str::from_utf8(value.as_bytes())
        .map_err(|_| Problem::invalid("the Idempotency-Key is no UTF-8 text"))?;
    Ok(IdempotencyKey::new(text)?)
}

pub(super) fn check_content(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = value.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json")
        && !headers.contains_key(header::CONTENT_ENCODING)
    {
        return Ok(());
    }
    let detail = "the body must be application/json, without a Content-Encoding";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", detail))
}

/// The body, if it is short enough and comes in time; one that says to be longer is not waited for.
pub(super) async fn arrived(desk: &Desk, body: Body) -> Result<Bytes, Problem> {
    let bytes_max = desk.api.body_bytes_max;
    let too_large = || {
        let detail = format!("the body is longer than {bytes_max} bytes, or was cut off");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    };
    if usize::try_from(body.size_hint().lower()).is_ok_and(|bytes| bytes > bytes_max) {
        return Err(too_large());
    }
    match tokio::time::timeout(desk.api.patience, to_bytes(body, bytes_max)).await {
        Ok(body) => body.map_err(|_| too_large()),
        Err(_) => {
            let detail = "the body did not arrive in time";
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", detail))
        }
    }
}
