//! Owns the API's own description, made from what it offers, so that it cannot say anything else.

use serde_json::{Map, Value, json};

use super::{Api, Offer};

/// The OpenAPI 3.1 document.
pub(super) fn document(api: &Api) -> Value {
    let mut paths = Map::new();
    for offer in api.offers.values() {
        paths.insert(format!("/{}", offer.path), json!({ "post": enqueue(offer) }));
        paths.insert(format!("/{}/status", offer.path), json!({ "get": status(offer) }));
        #[cfg(feature = "credentials")]
        if api.credentials.is_some() {
            let path = format!("/{}/credentials", offer.path);
            paths.insert(path, json!({ "put": credentials(offer) }));
        }
    }
    let health =
        |what: &str, answers: Value| json!({ "get": { "summary": what, "responses": answers } });
    let fine = json!({ "description": "It is." });
    paths.insert(
        "/health/live".to_owned(),
        health("Whether the process answers", json!({ "200": fine })),
    );
    let ready = json!({ "200": fine, "503": problem("The store does not answer") });
    paths.insert("/health/ready".to_owned(), health("Whether the store answers", ready));
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Jobs", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } } },
    })
}

fn problem(what: &str) -> Value {
    let text = json!({ "type": "string" });
    let schema = json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": { "type": text, "title": text, "status": { "type": "integer" }, "detail": text },
    });
    json!({ "description": what, "content": { "application/problem+json": { "schema": schema } } })
}

/// What both routes may answer.
fn refusals() -> Map<String, Value> {
    let list = [
        ("400", "The request is not as it must be"),
        ("401", "No valid API key"),
        ("403", "The API key does not allow this"),
        ("429", "Too many requests; see Retry-After"),
        ("503", "The store does not answer; see Retry-After"),
    ];
    list.into_iter().map(|(status, what)| (status.to_owned(), problem(what))).collect()
}

fn enqueue(offer: &Offer) -> Value {
    let payload = offer.schema.clone().unwrap_or_else(|| json!({}));
    let mut responses = refusals();
    let more = [
        ("408", "The body did not arrive in time"),
        ("409", "The Idempotency-Key belongs to another request"),
        ("413", "The body is too long"),
        ("415", "The body is not application/json"),
        ("422", "The payload is refused"),
    ];
    responses.extend(more.map(|(status, what)| (status.to_owned(), problem(what))));
    let id = json!({
        "type": "object",
        "required": ["job_id"],
        "properties": { "job_id": { "type": "string", "format": "uuid" } },
    });
    let accepted = json!({
        "description": "The job is enqueued; the same answer to every repeat of the request",
        "headers": { "Location": { "description": "Its status", "schema": { "type": "string" } } },
        "content": { "application/json": { "schema": id } },
    });
    responses.insert("202".to_owned(), accepted);
    json!({
        "summary": format!("Enqueues a job of the kind {}", offer.kind),
        "security": [{ "key": [] }],
        "parameters": [{
            "name": "Idempotency-Key", "in": "header", "required": true,
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        }],
        "requestBody": { "required": true, "content": { "application/json": { "schema": payload } } },
        "responses": responses,
    })
}

fn status(offer: &Offer) -> Value {
    let mut responses = refusals();
    let more = [("404", "There is no such job"), ("410", "The job is over and no longer kept")];
    responses.extend(more.map(|(status, what)| (status.to_owned(), problem(what))));
    let text = json!({ "type": "string" });
    let told = json!({
        "type": "object",
        "required": ["job_id", "status", "stage", "attempts", "created_at", "updated_at"],
        "properties": {
            "job_id": { "type": "string", "format": "uuid" },
            "status": text,
            "stage": { "type": ["string", "null"] },
            "attempts": { "type": "integer" },
            "created_at": { "type": "string", "format": "date-time" },
            "updated_at": { "type": "string", "format": "date-time" },
            "result": {},
            "error": {
                "type": "object",
                "required": ["code", "class", "message", "retryable"],
                "properties": {
                    "code": text, "class": text, "message": text, "retryable": { "type": "boolean" },
                },
            },
        },
    });
    let found = json!({
        "description": "Where the job is",
        "content": { "application/json": { "schema": told } },
    });
    responses.insert("200".to_owned(), found);
    json!({
        "summary": format!("Tells where a job of the kind {} is", offer.kind),
        "security": [{ "key": [] }],
        "parameters": [{
            "name": "job_id", "in": "query", "required": true,
            "schema": { "type": "string", "format": "uuid" },
        }],
        "responses": responses,
    })
}

#[cfg(feature = "credentials")]
fn credentials(offer: &Offer) -> Value {
    let mut responses = refusals();
    let more = [
        ("404", "There is no such job"),
        ("408", "The body did not arrive in time"),
        ("409", "The job is over"),
        ("413", "The body is too long"),
        ("415", "The body is not application/json"),
    ];
    responses.extend(more.map(|(status, what)| (status.to_owned(), problem(what))));
    let told = json!({
        "type": "object",
        "required": ["credential_version"],
        "properties": { "credential_version": { "type": "integer" } },
    });
    let written = json!({
        "description": "They are kept, sealed; the version has risen by one",
        "content": { "application/json": { "schema": told } },
    });
    responses.insert("200".to_owned(), written);
    json!({
        "summary": format!("Writes the storage credentials of a job of the kind {}", offer.kind),
        "security": [{ "key": [] }],
        "parameters": [{
            "name": "job_id", "in": "query", "required": true,
            "schema": { "type": "string", "format": "uuid" },
        }],
        "requestBody": { "required": true, "content": { "application/json": { "schema": {} } } },
        "responses": responses,
    })
}
