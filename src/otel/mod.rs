//! Owns the way of spans to an OpenTelemetry collector: what the standard variables say, and where a span
//! stands once OpenTelemetry keeps it. Refuses to send texts of log lines: spans name queues, jobs, kinds and
//! outcomes, and nothing that a payload or an error says.
//!
//! ```
//! use leasehold::otel::Traces;
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! // OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 OTEL_SERVICE_NAME=invoices
//! let traces = Traces::from_env()?;
//! let subscriber = tracing_subscriber::registry().with(traces.as_ref().map(Traces::layer));
//! let _guard = tracing::subscriber::set_default(subscriber);
//!
//! // ... workers and relays run ...
//!
//! if let Some(traces) = traces {
//!     traces.end().await?; // what is still to be sent goes now
//! }
//! # Ok::<(), leasehold::Error>(())
//! # }).unwrap();
//! ```
//!
//! A service with a `tracing-opentelemetry` layer of its own, of version 0.34, needs none of this module: with
//! the feature on, the spans of jobs and deliveries stand in the traces that jobs and events carry.

mod client;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use self::client::Client;
use self::settings::Settings;
use crate::trace::Place;

/// How long the last spans may take to go.
const END_MAX: Duration = Duration::from_secs(5);

/// Sends spans to a collector, by OTLP over HTTP, in batches and from a thread of its own.
#[derive(Clone, Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    is_away: Arc<AtomicBool>,
}

impl Traces {
    /// Sends to where the standard variables say; `None` where they name no collector.
    ///
    /// | Variable | Effect |
    /// |---|---|
    /// | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT` | the collector; the second gets `/v1/traces` added |
    /// | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | who sends; `leasehold` unless set |
    /// | `OTEL_EXPORTER_OTLP_[TRACES_]HEADERS`, `_TIMEOUT` | further headers; milliseconds for one batch |
    /// | `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`, `OTEL_BSP_*` | what is kept, and how it is batched |
    /// | `OTEL_SDK_DISABLED=true`, `OTEL_TRACES_EXPORTER=none` | nothing is sent |
    ///
    /// # Errors
    /// `Invalid` for an endpoint that is no URL, or a protocol other than `http/protobuf`.
    pub fn from_env() -> Result<Option<Self>> {
        Self::from_env_or(None)
    }

    /// The same, with an endpoint that stands in for `OTEL_EXPORTER_OTLP_ENDPOINT` where that is not set.
    ///
    /// # Errors
    /// As [`Traces::from_env`].
    pub fn from_env_or(endpoint: Option<&str>) -> Result<Option<Self>> {
        let variable = |name: &str| {
            let set = std::env::var(name).ok().filter(|value| !value.is_empty());
            set.or_else(|| endpoint.filter(|_| name == settings::ENDPOINT).map(str::to_owned))
        };
        Settings::read(variable)?.map(Self::by).transpose()
    }

    /// Sends to a collector's endpoint for traces, under a service's name.
    ///
    /// # Errors
    /// `Invalid` for an endpoint that is no URL.
    pub fn to(endpoint: &str, service: &str) -> Result<Self> {
        Self::by(Settings::of(endpoint)?.named(service))
    }

    fn by(settings: Settings) -> Result<Self> {
        let client = Client::new(settings.timeout)?;
        let is_away = client.is_away();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(settings.endpoint)
            .build()
            .map_err(|error| {
                Error::invalid("export traces", error.to_string()).with_source(error)
            })?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource(settings.service))
            .build();
        Ok(Self { provider, is_away })
    }

    /// The layer of a `tracing` subscriber that sends its spans. Events, the texts of log lines, stay here.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("leasehold"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|facts| facts.is_span()))
    }

    /// Sends what is left, for 5 s at most, and ends.
    ///
    /// # Errors
    /// `Unavailable` when the collector did not take it.
    pub async fn end(self) -> Result<()> {
        let unsent = |why: String| Error::new(ErrorKind::Unavailable, "export traces", why);
        let provider = self.provider;
        let ended = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(END_MAX));
        let ended = ended.await.map_err(|stopped| unsent(stopped.to_string()))?;
        ended.map_err(|error| unsent(error.to_string()).with_source(error))?;
        if self.is_away.load(Ordering::Relaxed) {
            return Err(unsent("the collector did not take the last spans".to_owned()));
        }
        Ok(())
    }
}

/// Who sends: as the environment says, and with a name in any case.
fn resource(service: Option<String>) -> Resource {
    let service = service.or_else(|| {
        let found = Resource::builder().build();
        let name = found.get(&"service.name".into()).map(|name| name.as_str().into_owned());
        name.is_none_or(|name| name.starts_with("unknown_service")).then(|| "leasehold".to_owned())
    });
    let named = service.map(|name| KeyValue::new("service.name", name));
    Resource::builder().with_attributes(named).build()
}

/// The place of the span that is current here, as a W3C traceparent; `None` where no layer keeps it. What is
/// enqueued with it goes on in this trace.
pub fn traceparent() -> Option<String> {
    kept(&Span::current()).map(Place::traceparent)
}

/// Puts a span below its parent, and gives the place that it was given; `None` where no layer keeps it.
pub(crate) fn placed(span: &Span, parent: Option<Place>) -> Option<Place> {
    if let Some(parent) = parent {
        let (trace, flags) = (TraceId::from(parent.trace_id), TraceFlags::new(parent.flags));
        let parent = SpanContext::new(
            trace,
            SpanId::from(parent.span_id),
            flags,
            true,
            TraceState::default(),
        );
        // Without a layer there is nothing to place.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
    kept(span)
}

fn kept(span: &Span) -> Option<Place> {
    let context = span.context();
    let kept = context.span().span_context().clone();
    kept.is_valid().then(|| Place {
        trace_id: u128::from_be_bytes(kept.trace_id().to_bytes()),
        span_id: u64::from_be_bytes(kept.span_id().to_bytes()),
        flags: kept.trace_flags().to_u8(),
    })
}
