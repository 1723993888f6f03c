//! The way of a trace: from who asked for a job over its execution to the webhook that tells of it, as
//! OpenTelemetry keeps it, and as a collector gets it.

use std::collections::BTreeMap;
use std::sync::Arc;

use leasehold::memory::MemoryStore;
use leasehold::otel::{Traces, traceparent};
use leasehold::{
    Context, Failure, FailureCode, Handled, HandlerError, JobKind, Json, NewEvent, NewJob,
    QueueName, Store, StoreExt, Topic, Worker,
};
use opentelemetry::trace::{SpanKind, Status, TracerProvider};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use prost::Message;
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;

use crate::sending::{local, point, relay};
use crate::server::{Act, Server};
use crate::{Told, pure};

pure![
    a_trace_goes_from_who_asks_over_the_job_to_the_webhook,
    a_collector_gets_the_spans_and_no_text,
    a_collector_that_is_away_stops_nothing,
];

/// Nothing that a span may hold.
const MARK: &str = "mark-in-a-text-4471";

/// One runtime on one thread, so that a subscriber of this thread hears all of it.
fn here(story: impl Future<Output = Told>) -> Told {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(story)
}

/// A job that publishes an event, asked for within a span; one that fails; and all that come of them.
async fn play(store: Arc<dyn Store>) -> Result<(), Box<dyn std::error::Error>> {
    let (kind, topic) = (JobKind::new("draw")?, Topic::new("told")?);
    let job = || NewJob::new(kind.clone(), Json::of(&MARK).unwrap_or_else(|_| Json::null()));
    let asked = async {
        let here = traceparent();
        let first = job().subject("first", 1);
        store.enqueue_one(here.into_iter().fold(first, NewJob::traceparent)).await
    };
    let _ = asked.instrument(tracing::info_span!(target: "leasehold_test", "asking")).await?;
    let _ = store.enqueue_one(job().max_attempts(1)).await?;
    let handler = move |context: Context, _: String| {
        let topic = topic.clone();
        async move {
            tracing::info!(target: "leasehold_test", text = MARK, "within {MARK}");
            let within = tracing::info_span!(target: "leasehold_test", "drawing");
            within.in_scope(|| ());
            if context.job().subject.is_none() {
                return Err(HandlerError::from(Failure::new(FailureCode::SchemaInvalid, MARK)));
            }
            context.publish(NewEvent::new(topic, Json::null()));
            Ok(Handled::done())
        }
    };
    Worker::builder(store.clone()).handler(kind, handler).build().run_until_idle().await?;
    relay(&store, local(&store))?.run_until_idle().await?;
    Ok(())
}

fn only<'s>(spans: &'s [SpanData], name: &str, job: Option<&str>) -> &'s SpanData {
    let is_it = |span: &&SpanData| {
        let outcome = span.attributes.iter().find(|it| it.key.as_str() == "outcome");
        let is_job = job.is_none_or(|job| outcome.is_some_and(|it| it.value.as_str() == job));
        span.name == name && is_job
    };
    let found: Vec<&SpanData> = spans.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{name} {job:?}");
    found[0]
}

/// Proves: TRC-1
fn a_trace_goes_from_who_asks_over_the_job_to_the_webhook() -> Told {
    let kept = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(kept.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    let mut sent = String::new();
    here(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let server = Server::always(Act::status(204)).await;
        point(&store, "told", server.url()).await?;
        play(store).await?;
        sent = server.seen()[0].header("traceparent").to_owned();
        Ok(())
    })?;
    let spans = kept.get_finished_spans()?;
    let (asking, delivery) = (only(&spans, "asking", None), only(&spans, "delivery", None));
    let (done, failed) = (only(&spans, "job", Some("succeed")), only(&spans, "job", Some("retry")));
    let trace = asking.span_context.trace_id();
    for (span, parent) in [(done, asking), (delivery, done)] {
        assert_eq!(span.span_context.trace_id(), trace);
        assert_eq!(span.parent_span_id, parent.span_context.span_id(), "{}", span.name);
        assert!(span.parent_span_is_remote);
    }
    let of_delivery = delivery.span_context.span_id();
    assert_eq!(sent, format!("00-{trace}-{of_delivery}-01"), "the receiver goes on from here");
    let own: Vec<_> = spans.iter().filter(|span| span.name == "drawing").collect();
    let parents: Vec<_> = own.iter().map(|span| span.parent_span_id).collect();
    assert!(
        parents.contains(&done.span_context.span_id()),
        "what a handler does is within its job"
    );
    assert_ne!(failed.span_context.trace_id(), trace, "a job of no trace begins one");
    assert_eq!((&done.status, &failed.status), (&Status::Unset, &Status::error("")));
    assert_eq!(delivery.span_kind, SpanKind::Producer);
    for span in [done, failed] {
        let keys: Vec<&str> = span.attributes.iter().map(|it| it.key.as_str()).collect();
        for name in ["queue", "job_id", "kind", "attempt", "outcome", "trace_id", "span_id"] {
            assert!(keys.contains(&name), "{name}: {keys:?}");
        }
        let told =
            span.attributes.iter().find(|it| it.key.as_str() == "span_id").map(|it| &it.value);
        let own = span.span_context.span_id().to_string();
        assert_eq!(
            told.map(|it| it.as_str().into_owned()),
            Some(own),
            "the log names the same span"
        );
    }
    Ok(())
}

/// Proves: TRC-1, LOG-1
fn a_collector_gets_the_spans_and_no_text() -> Told {
    let mut seen = Vec::new();
    here(async {
        let collector = Server::always(Act::status(200)).await;
        let traces = Traces::to(&format!("http://{}/v1/traces", collector.address), "draughtsman")?;
        let subscriber = tracing_subscriber::registry().with(traces.layer());
        let guard = tracing::subscriber::set_default(subscriber);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let server = Server::always(Act::status(204)).await;
        point(&store, "told", server.url()).await?;
        play(store).await?;
        drop(guard);
        traces.end().await?;
        seen = collector.seen();
        Ok(())
    })?;
    assert!(!seen.is_empty());
    let mut spans = BTreeMap::new();
    for request in &seen {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
        assert_eq!(request.header("content-type"), "application/x-protobuf");
        assert!(!request.body.windows(MARK.len()).any(|part| part == MARK.as_bytes()));
        for resource in ExportTraceServiceRequest::decode(&*request.body)?.resource_spans {
            let facts = resource.resource.ok_or("no resource")?.attributes;
            let service = facts.into_iter().find(|it| it.key == "service.name");
            let name = service.and_then(|it| it.value).and_then(|it| it.value);
            assert_eq!(name, Some(Value::StringValue("draughtsman".to_owned())));
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                assert!(span.events.is_empty(), "{span:?}");
                spans.insert((span.name.clone(), span.span_id.clone()), span);
            }
        }
    }
    let names: Vec<&str> = spans.keys().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["asking", "delivery", "drawing", "drawing", "job", "job"]);
    let delivery = spans.values().find(|span| span.name == "delivery").ok_or("none")?;
    let job = spans.values().find(|span| span.span_id == delivery.parent_span_id).ok_or("none")?;
    assert_eq!((job.name.as_str(), &job.trace_id), ("job", &delivery.trace_id));
    let queue = job.attributes.iter().find(|it| it.key == "queue").and_then(|it| it.value.clone());
    let queue = queue.and_then(|it| it.value);
    assert_eq!(queue, Some(Value::StringValue(QueueName::default_queue().to_string())));
    Ok(())
}

/// Proves: TRC-1
fn a_collector_that_is_away_stops_nothing() -> Told {
    here(async {
        let gone = Server::always(Act::Close).await;
        let traces = Traces::to(&format!("http://{}/v1/traces", gone.address), "draughtsman")?;
        let subscriber = tracing_subscriber::registry().with(traces.layer());
        let guard = tracing::subscriber::set_default(subscriber);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let server = Server::always(Act::status(204)).await;
        point(&store, "told", server.url()).await?;
        play(store.clone()).await?;
        drop(guard);
        assert_eq!(server.seen().len(), 1, "delivered all the same");
        let error =
            traces.end().await.err().ok_or("the last spans went nowhere, and nobody said so")?;
        assert_eq!(error.kind(), leasehold::ErrorKind::Unavailable);
        Ok(())
    })
}
