//! Owns how an error leaves: RFC 9457 problem details, with nothing of the inside but what the caller
//! can act on.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use leasehold_core::{Error, ErrorKind};
use serde_json::json;

/// One error answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    /// The stable name, the last part of its type.
    pub(super) name: &'static str,
    pub(super) detail: String,
    /// After how many seconds another try may help.
    pub(super) retry_after: Option<u64>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, name: &'static str, detail: impl Into<String>) -> Self {
        Self { status, name, detail: detail.into(), retry_after: None }
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid-request", detail)
    }

    pub(super) fn unauthorized() -> Self {
        let detail = "a valid API key is needed, as `Authorization: Bearer …`";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    pub(super) fn forbidden() -> Self {
        let detail = "the API key does not allow this";
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown-job", "there is no such job")
    }

    pub(super) fn too_many(seconds: u64) -> Self {
        let detail = "too many requests with this API key";
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", detail);
        Self { retry_after: Some(seconds.max(1)), ..problem }
    }
}

/// What the store said; its words stay inside but for what is wrong with the request.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Conflict => {
                let detail = "the Idempotency-Key belongs to another request";
                Self::new(StatusCode::CONFLICT, "idempotency-conflict", detail)
            }
            ErrorKind::Invalid => Self::invalid(error.message()),
            _ => {
                tracing::warn!(%error, "request not answered");
                let detail = "the request may be sent again, with the same Idempotency-Key";
                let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
                Self { retry_after: Some(1), ..problem }
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("urn:leasehold:problem:{}", self.name),
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response = super::answer(self.status, &body);
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
