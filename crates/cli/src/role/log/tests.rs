//! That a line has its ten keys and no others, and that what is logged within a job names the job and its trace.

use std::collections::BTreeMap;
use std::sync::Arc;

use leasehold::memory::MemoryStore;
use leasehold::{
    CancellationToken, Context as JobContext, EventFilter, Found, Handled, HandlerError, JobKind,
    Json, NewEvent, NewJob, Paging, Query, QueueName, Store, StoreExt, Topic, Worker,
};

use super::*;

/// Everything that was logged meanwhile, a document a line.
fn logged(run: impl FnOnce()) -> Vec<serde_json::Value> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let into = kept.clone();
    let write = move |line: &[u8]| into.lock().unwrap().extend_from_slice(line);
    let lines = tracing_subscriber::registry().with(Lines::new(Level::INFO, write));
    tracing::subscriber::with_default(lines, run);
    let kept = kept.lock().unwrap();
    kept.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Proves: LOG-1
#[test]
fn a_key_that_is_none_of_the_ten_is_refused_and_that_is_said_once() {
    let lines = logged(|| {
        for _ in 0..2 {
            tracing::info!(
                queue = "q",
                job = "j",
                payload = "mark-5521",
                email = "mark-5521",
                "done"
            );
        }
        tracing::debug!("below the level");
        tracing::error!(target: "elsewhere", "of another crate");
    });
    let text = serde_json::to_string(&lines).unwrap();
    assert!(!text.contains("mark-5521") && !text.contains("elsewhere"), "{text}");
    assert_eq!(lines.len(), 4, "{text}");
    for name in ["payload", "email"] {
        assert_eq!(text.matches(&format!("the log key {name} of")).count(), 1, "{text}");
    }
    assert_eq!(lines[0]["job_id"], "j");
    for line in &lines {
        let keys = line.as_object().unwrap().keys();
        assert!(keys.clone().all(|key| KEYS.contains(&key.as_str())), "{line}");
    }
}

/// Proves: LOG-1
#[test]
fn a_line_has_no_other_keys_whatever_is_set() {
    let mut line = Line::of(&Level::WARN);
    for name in KEYS {
        line.set(name, "x".to_owned());
    }
    let line: serde_json::Value = serde_json::from_slice(&line.text()).unwrap();
    let mut keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
    let mut all = KEYS;
    keys.sort_unstable();
    all.sort_unstable();
    assert_eq!(keys, all);
}

/// Proves: LOG-1
#[test]
fn the_command_writes_its_lines_by_the_form_that_is_checked_when_compiled() {
    let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut looked = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let is_own = path.ends_with("log.rs") || path.ends_with("log/tests.rs");
            for level in ["error", "warn", "info", "debug", "trace"] {
                let found = text.contains(&format!("tracing::{level}!("));
                assert!(is_own || !found, "{}: log_line! in place of {level}", path.display());
            }
            looked += 1;
        }
    }
    assert!(looked > 50, "{looked}");
}

/// The fields of every span that ends, by their names.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, spans: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        spans.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &tracing::span::Record<'_>, spans: Context<'_, S>) {
        let span = spans.span(id).unwrap();
        values.record(span.extensions_mut().get_mut::<Fields>().unwrap());
    }

    fn on_close(&self, id: Id, spans: Context<'_, S>) {
        let span = spans.span(&id).unwrap();
        let fields = span.extensions_mut().remove::<Fields>().unwrap();
        if span.metadata().target() == "leasehold::job" {
            self.0.lock().unwrap().push(fields.0);
        }
    }
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Each job has a span with queue, job and outcome in the trace that it carries; a line that its handler logs
/// names both, and the event that it publishes goes along in the trace.
///
/// Proves: TRC-1, LOG-1
#[tokio::test]
async fn a_job_has_a_span_in_the_trace_that_it_carries() {
    let (kept, spans) = (Arc::new(Mutex::new(Vec::new())), Spans::default());
    let into = kept.clone();
    let lines =
        Lines::new(Level::INFO, move |line: &[u8]| into.lock().unwrap().extend_from_slice(line));
    let both = tracing_subscriber::registry().with(lines).with(spans.clone());
    let _guard = tracing::subscriber::set_default(both);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let kind = JobKind::new("k").unwrap();
    let new = || NewJob::new(kind.clone(), Json::parse("1").unwrap()).max_attempts(1);
    let carried = new().traceparent(format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let first = store.enqueue_one(carried).await.unwrap().job();
    let _second = store.enqueue_one(new()).await.unwrap();
    let (done, topic) = (CancellationToken::new(), Topic::new("t").unwrap());
    let end = done.clone();
    let handler = move |context: JobContext, _: serde_json::Value| {
        let (end, topic) = (end.clone(), topic.clone());
        async move {
            tracing::info!(target: "leasehold_test", "within");
            if context.job().id == first {
                context.publish(NewEvent::new(topic, Json::parse("1").unwrap()));
                return Ok::<_, HandlerError>(Handled::done());
            }
            end.cancel();
            Err(std::io::Error::other("no").into())
        }
    };
    let worker = Worker::builder(store.clone()).queue(QueueName::default_queue()).slots(1);
    worker.handler(kind.clone(), handler).build().run(done).await.unwrap();
    let spans = spans.0.lock().unwrap().clone();
    assert_eq!(spans.len(), 2, "{spans:?}");
    for span in &spans {
        for name in ["queue", "job_id", "outcome", "trace_id", "span_id"] {
            assert!(span.get(name).is_some_and(|value| !value.is_empty()), "{name}: {span:?}");
        }
    }
    let of_first = spans.iter().find(|span| span["job_id"] == first.to_string()).unwrap();
    assert_eq!((of_first["trace_id"].as_str(), of_first["outcome"].as_str()), (TRACE, "succeed"));
    assert!(spans.iter().any(|span| span["trace_id"] != TRACE), "{spans:?}");
    let text = String::from_utf8(kept.lock().unwrap().clone()).unwrap();
    let within = text.lines().find(|line| line.contains("within") && line.contains(TRACE));
    let line: serde_json::Value = serde_json::from_str(within.unwrap()).unwrap();
    assert_eq!(line["job_id"], first.to_string());
    assert_eq!(line["span_id"], of_first["span_id"].as_str());
    assert!(!text.contains("is refused"), "{text}");
    let events = store.find(Query::Events(EventFilter::new(), Paging::first(1))).await.unwrap();
    assert!(matches!(events.items.first(), Some(Found::Event(_))));
    let request = leasehold::EventClaimRequest::new(leasehold::WorkerId::new());
    let claim = store.claim_events(request).await.unwrap().pop().unwrap();
    let sent = claim.traceparent.unwrap();
    assert!(sent.contains(TRACE) && sent.contains(of_first["span_id"].as_str()), "{sent}");
}
