//! Owns the log lines: one JSON object each on standard error, with ten keys and no others. A field
//! of another name is left out; an error's text joins the message. Payloads never come here.

use std::fmt;
use std::io::Write;

use leasehold::sanitize::sanitize;
use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::clock;

/// A line. That no other key can be written is what this type is for.
#[derive(Debug, Default, Serialize)]
struct Line {
    level: &'static str,
    ts: String,
    msg: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

impl Line {
    fn set(&mut self, name: &str, value: String) {
        let place = match name {
            "message" => return self.msg.insert_str(0, &value),
            // The reason belongs to the message: a line without it helps nobody.
            "error" | "stopped" => return self.msg.push_str(&format!(": {value}")),
            "trace_id" => &mut self.trace_id,
            "span_id" => &mut self.span_id,
            "job" | "job_id" => &mut self.job_id,
            "queue" => &mut self.queue,
            "worker" | "worker_id" => &mut self.worker_id,
            "request_id" => &mut self.request_id,
            "namespace" => &mut self.namespace,
            _ => return,
        };
        *place = Some(value);
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), sanitize(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), sanitize(&format!("{value:?}")));
    }
}

struct Lines(Level);

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, facts: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        // Only our own crates know what may be logged.
        *facts.level() <= self.0 && facts.target().starts_with("leasehold")
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line {
            ts: clock::wall().to_string(),
            level: level(event.metadata().level()),
            ..Line::default()
        };
        event.record(&mut line);
        if let Ok(mut text) = serde_json::to_vec(&line) {
            text.push(b'\n');
            // Where standard error is gone there is nobody to tell.
            let _ = std::io::stderr().lock().write_all(&text);
        }
    }
}

/// Sends this process's events to standard error, from `level` up.
pub(super) fn install(level: &str) {
    let level = level.parse().unwrap_or(Level::INFO);
    let lines = tracing_subscriber::registry().with(Lines(level));
    // A second call, in a test say, leaves the first in place.
    let _ = tracing::subscriber::set_global_default(lines);
}

fn level(level: &Level) -> &'static str {
    match *level {
        Level::TRACE => "trace",
        Level::DEBUG => "debug",
        Level::INFO => "info",
        Level::WARN => "warn",
        Level::ERROR => "error",
    }
}
