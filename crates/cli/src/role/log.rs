//! Owns the log lines: one JSON object each on standard error, with ten keys and no others. That no other
//! is written is the type of a line; the command's own lines are checked when they are compiled, and a field of
//! another name that comes from elsewhere is refused, which the log says once. An error's text joins the
//! message. Payloads never come here.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use leasehold::sanitize::sanitize;
use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::traces::Traces;
use crate::clock;

/// Writes a line of the command's own log. A key that is none of the ten is not compiled; `error` joins the
/// message.
///
/// ```
/// leasehold_cli::log_line!(warn, queue = "mail", error = "gone", "not counted");
/// ```
///
/// ```compile_fail
/// leasehold_cli::log_line!(warn, payload = "mail", "not counted");
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! log_line {
    (@key error) => {};
    (@key trace_id) => {};
    (@key span_id) => {};
    (@key job_id) => {};
    (@key queue) => {};
    (@key worker_id) => {};
    (@key request_id) => {};
    (@key namespace) => {};
    (@key $other:ident) => {
        compile_error!(concat!("the log key ", stringify!($other), " is none of the ten"))
    };
    ($level:ident, $($key:ident = $value:expr,)* $text:literal) => {{
        $($crate::log_line!(@key $key);)*
        ::tracing::$level!($($key = %$value,)* $text)
    }};
}

/// The keys of a line, and no others.
pub const KEYS: [&str; 10] = [
    "level",
    "ts",
    "msg",
    "trace_id",
    "span_id",
    "job_id",
    "queue",
    "worker_id",
    "request_id",
    "namespace",
];

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
    /// Names of fields that have no place here.
    #[serde(skip)]
    refused: Vec<&'static str>,
}

impl Line {
    fn of(level: &Level) -> Self {
        Self { ts: clock::wall().to_string(), level: name_of(level), ..Self::default() }
    }

    fn set(&mut self, name: &'static str, value: String) {
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
            other => return self.refused.push(other),
        };
        *place = Some(value);
    }

    /// Takes what a span around it says where it says nothing itself.
    fn within(&mut self, span: &Self) {
        let places = [
            (&mut self.trace_id, &span.trace_id),
            (&mut self.span_id, &span.span_id),
            (&mut self.job_id, &span.job_id),
            (&mut self.queue, &span.queue),
        ];
        for (mine, around) in places {
            if mine.is_none() {
                mine.clone_from(around);
            }
        }
    }

    fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
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

/// The lines from a level up, and where they go.
struct Lines<W> {
    level: Level,
    write: W,
    /// What was refused, and told of, already.
    refused: Mutex<BTreeSet<&'static str>>,
}

impl<W: Fn(&[u8])> Lines<W> {
    fn new(level: Level, write: W) -> Self {
        Self { level, write, refused: Mutex::default() }
    }

    fn tell_of_refused(&self, names: &[&'static str], target: &str) {
        let mut told = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            if told.insert(name) {
                let mut line = Line::of(&Level::WARN);
                line.msg =
                    format!("the log key {name} of {target} is refused: it is none of the ten");
                (self.write)(&line.text());
            }
        }
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: Fn(&[u8]) + 'static,
{
    fn enabled(&self, facts: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        // Only our own crates know what may be logged.
        let is_wanted = facts.is_span() || *facts.level() <= self.level;
        is_wanted && facts.target().starts_with("leasehold")
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, spans: Context<'_, S>) {
        let mut line = Line::default();
        attributes.record(&mut line);
        if let Some(span) = spans.span(id) {
            span.extensions_mut().insert(line);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, spans: Context<'_, S>) {
        let Some(span) = spans.span(id) else { return };
        if let Some(line) = span.extensions_mut().get_mut::<Line>() {
            values.record(line);
        }
    }

    fn on_event(&self, event: &Event<'_>, spans: Context<'_, S>) {
        let mut line = Line::of(event.metadata().level());
        event.record(&mut line);
        for span in spans.event_scope(event).into_iter().flatten() {
            if let Some(around) = span.extensions().get::<Line>() {
                line.within(around);
            }
        }
        (self.write)(&line.text());
        self.tell_of_refused(&line.refused, event.metadata().target());
    }
}

/// Sends this process's events to standard error, from `level` up, and its spans to a collector where
/// there is one.
pub(super) fn install(level: &str, traces: &Traces) {
    let level = level.parse().unwrap_or(Level::INFO);
    // Where standard error is gone there is nobody to tell.
    let write = |line: &[u8]| drop(std::io::stderr().lock().write_all(line));
    let lines = tracing_subscriber::registry().with(Lines::new(level, write)).with(traces.layer());
    // A second call, in a test say, leaves the first in place.
    let _ = tracing::subscriber::set_global_default(lines);
}

fn name_of(level: &Level) -> &'static str {
    match *level {
        Level::TRACE => "trace",
        Level::DEBUG => "debug",
        Level::INFO => "info",
        Level::WARN => "warn",
        Level::ERROR => "error",
    }
}
