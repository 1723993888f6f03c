//! Owns what the standard variables say about where spans go. Refuses what it cannot do, rather than sending
//! nothing without a word.

use std::time::Duration;

use hyper::Uri;
use leasehold_core::{Error, Result};

/// The variable that names the collector.
pub(super) const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// How long one batch may take, unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where spans go.
#[derive(Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) endpoint: String,
    pub(super) timeout: Duration,
    /// The service's name where the environment is not to be asked.
    pub(super) service: Option<String>,
}

impl Settings {
    /// What the variables say; an empty one is as good as none.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let of_traces = |rest: &str| {
            let own = set(&format!("OTEL_EXPORTER_OTLP_TRACES_{rest}"));
            own.or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{rest}")))
        };
        let is_off = set("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").as_deref() == Some("none");
        let endpoint = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| {
            let base = set(ENDPOINT)?;
            Some(format!("{}/v1/traces", base.trim_end_matches('/')))
        });
        let Some(endpoint) = endpoint.filter(|_| !is_off) else { return Ok(None) };
        match of_traces("PROTOCOL").as_deref() {
            None | Some("http/protobuf") => {}
            Some(other) => {
                let why = format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is {other:?}; http/protobuf is what can be sent"
                );
                return Err(Error::invalid("export traces", why));
            }
        }
        let mut settings = Self::of(&endpoint)?;
        if let Some(text) = of_traces("TIMEOUT") {
            let ms = text.trim().parse().ok().filter(|ms| *ms > 0).ok_or_else(|| {
                let why = format!("OTEL_EXPORTER_OTLP_TIMEOUT is {text:?}, no milliseconds");
                Error::invalid("export traces", why)
            })?;
            settings.timeout = Duration::from_millis(ms);
        }
        Ok(Some(settings))
    }

    /// Sends to an endpoint. Its text may hold a password, and stays out of the error.
    pub(super) fn of(endpoint: &str) -> Result<Self> {
        let url = endpoint.parse::<Uri>().ok().filter(|url| {
            matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some()
        });
        if url.is_none_or(|url| url.authority().is_some_and(|it| it.as_str().contains('@'))) {
            let why = "the endpoint is no http:// or https:// URL without a user";
            return Err(Error::invalid("export traces", why));
        }
        Ok(Self { endpoint: endpoint.to_owned(), timeout: TIMEOUT, service: None })
    }

    pub(super) fn named(mut self, service: &str) -> Self {
        self.service = Some(service.to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Option<Settings>> {
        Settings::read(|name| {
            let found = set.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    /// Proves: TRC-1
    #[test]
    fn the_standard_variables_say_where_spans_go() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://other/here");
        let at = |set: &[(&str, &str)]| read(set).unwrap().map(|found| found.endpoint);
        assert_eq!(at(&[]), None);
        assert_eq!(at(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
        assert_eq!(at(&[base]).unwrap(), "http://collector:4318/v1/traces");
        assert_eq!(at(&[base, own]).unwrap(), "https://other/here");
        assert_eq!(at(&[base, ("OTEL_SDK_DISABLED", "TRUE")]), None);
        assert_eq!(at(&[base, ("OTEL_TRACES_EXPORTER", "none")]), None);
        let timed = read(&[base, ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")]).unwrap().unwrap();
        assert_eq!(timed.timeout, Duration::from_millis(1500));
    }

    /// Proves: TRC-1
    #[test]
    fn what_cannot_be_sent_is_refused() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        for (set, named) in [
            (vec![base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "http/protobuf"),
            (vec![base, ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon")], "milliseconds"),
            (vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")], "no http://"),
            (
                vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:mark-77@collector")],
                "without a user",
            ),
        ] {
            let error = read(&set).unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains("mark-77"), "{error}");
        }
    }
}
