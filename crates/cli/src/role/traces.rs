//! Owns whether this process's spans go to a collector: as the standard variables say, or else the
//! configuration, in a build with the feature `otel`. Refuses to pass over variables that this build can do nothing about.

use leasehold::Result;
use tracing::Subscriber;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::config::Config;

/// Where spans go, if anywhere.
#[derive(Debug, Default)]
pub(super) struct Traces {
    #[cfg(feature = "otel")]
    sent: Option<leasehold::otel::Traces>,
}

impl Traces {
    /// What the environment and the configuration say.
    ///
    /// # Errors
    /// `Invalid` for variables that cannot be followed.
    #[cfg(feature = "otel")]
    pub(super) fn of(config: &Config) -> Result<Self> {
        let is_on = config.flag("observability.tracing.enabled");
        let endpoint = Some(config.text("observability.tracing.endpoint")).filter(|_| is_on);
        Ok(Self { sent: leasehold::otel::Traces::from_env_or(endpoint)? })
    }

    /// Nothing: this build sends no spans.
    ///
    /// # Errors
    /// None.
    #[cfg(not(feature = "otel"))]
    pub(super) fn of(_: &Config) -> Result<Self> {
        Ok(Self::default())
    }

    /// What to say of variables that have no effect here.
    pub(super) fn note(&self) -> Option<&'static str> {
        let endpoints = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
        let is_asked = endpoints.iter().any(|name| std::env::var_os(name).is_some());
        (is_asked && !cfg!(feature = "otel")).then_some(
            "the environment names a collector of traces, and this build sends none: it lacks the feature otel",
        )
    }

    #[cfg(feature = "otel")]
    pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        self.sent.as_ref().map(leasehold::otel::Traces::layer)
    }

    #[cfg(not(feature = "otel"))]
    pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        None::<tracing_subscriber::layer::Identity>
    }

    /// Sends what is left. A collector that is away ends nothing else.
    pub(super) async fn end(self) {
        #[cfg(feature = "otel")]
        if let Some(Err(error)) = match self.sent {
            Some(sent) => Some(sent.end().await),
            None => None,
        } {
            crate::log_line!(warn, error = error, "the last traces are not exported");
        }
    }
}
