//! Owns the trace of a job (W3C Trace Context): taken over from whoever enqueued it, or begun where it runs,
//! with a span of its own. Refuses to know where spans are sent; `tracing` subscribers do.

use leasehold_core::{ClaimedJob, EventClaim, NewEvent, NewJob, Ordering};
use tracing::Span;
use tracing::field::{Empty, display};

/// A span's place in its trace: numbers, so that a job nobody traces costs no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
    pub(crate) flags: u8,
}

impl Place {
    /// Its text.
    pub(crate) fn traceparent(self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

/// One execution's place in its trace, or one delivery's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    place: Place,
    /// The span that enqueued the job, or that published the event, where there is one.
    parent: Option<Place>,
}

impl Trace {
    /// Begins a span in the trace that a job carries; one that carries none, or none that can be read,
    /// begins a trace.
    pub(crate) fn of(traceparent: Option<&str>) -> Self {
        let span_id = rand::random_range(1..=u64::MAX);
        let parent = traceparent.and_then(parts);
        let (trace_id, flags) = parent.map_or_else(
            || (rand::random_range(1..=u128::MAX), 1),
            |parent| (parent.trace_id, parent.flags),
        );
        Self { place: Place { trace_id, span_id, flags }, parent }
    }

    /// What goes along with whatever is sent, enqueued or published from here.
    pub(crate) fn traceparent(self) -> String {
        self.place.traceparent()
    }

    /// Puts an event that is of no trace into this one.
    pub(crate) fn carried_by(self, event: NewEvent) -> NewEvent {
        if event.traceparent.is_some() { event } else { event.traceparent(self.traceparent()) }
    }

    /// The same of a job.
    pub(crate) fn carried_on(self, job: NewJob) -> NewJob {
        if job.traceparent.is_some() { job } else { job.traceparent(self.traceparent()) }
    }

    /// Begins the execution of a job; its span's outcome is recorded when it is known.
    pub(crate) fn of_job(job: &ClaimedJob) -> (Self, Span) {
        let span = tracing::info_span!(
            target: "leasehold::job",
            parent: None,
            "job",
            otel.kind = "consumer",
            queue = %job.queue,
            job_id = %job.id,
            kind = %job.kind,
            attempt = job.attempt,
            trace_id = Empty,
            span_id = Empty,
            parent_span_id = Empty,
            outcome = Empty,
            otel.status_code = Empty,
        );
        (Self::of(job.traceparent.as_deref()).put(&span), span)
    }

    /// Begins a delivery, likewise.
    pub(crate) fn of_delivery(event: &EventClaim) -> (Self, Span) {
        let span = tracing::info_span!(
            target: "leasehold::delivery",
            parent: None,
            "delivery",
            otel.kind = "producer",
            topic = %event.topic,
            event_id = %event.fence.event(),
            job_id = Empty,
            attempt = event.attempt,
            trace_id = Empty,
            span_id = Empty,
            parent_span_id = Empty,
            outcome = Empty,
            otel.status_code = Empty,
        );
        if let Ordering::Job(job) = event.ordering {
            span.record("job_id", display(job));
        }
        (Self::of(event.traceparent.as_deref()).put(&span), span)
    }

    /// Writes the place into its span. Where spans are exported their keeper has given it one.
    fn put(self, span: &Span) -> Self {
        #[cfg(feature = "otel")]
        let place = crate::otel::placed(span, self.parent).unwrap_or(self.place);
        #[cfg(not(feature = "otel"))]
        let place = self.place;
        span.record("trace_id", display(format_args!("{:032x}", place.trace_id)));
        span.record("span_id", display(format_args!("{:016x}", place.span_id)));
        if let Some(parent) = self.parent {
            span.record("parent_span_id", display(format_args!("{:016x}", parent.span_id)));
        }
        Self { place, ..self }
    }
}

/// Tells the span that is current how its work ended.
pub(crate) fn tell_outcome(outcome: &'static str, is_well: bool) {
    let span = Span::current();
    span.record("outcome", outcome);
    if !is_well {
        span.record("otel.status_code", "ERROR");
    }
}

/// The most bytes that are kept of what a later version of the recommendation may add.
const BYTES_MAX: usize = 255;

/// What a request's job goes on in, and the span of taking it: the caller's own place, or the span's where
/// spans are exported. What is no traceparent is passed over, as the recommendation has it.
#[cfg(feature = "http")]
pub(crate) fn of_request(
    traceparent: Option<&str>,
    queue: &leasehold_core::QueueName,
) -> (Option<String>, Span) {
    let caller = traceparent.and_then(|text| Some((text, parts(text)?)));
    let span = tracing::info_span!(
        target: "leasehold::http",
        parent: None,
        "enqueue",
        otel.kind = "server",
        %queue,
    );
    #[cfg(feature = "otel")]
    if let Some(place) = crate::otel::placed(&span, caller.map(|(_, place)| place)) {
        return (Some(place.traceparent()), span);
    }
    (caller.map(|(text, _)| text.to_owned()), span)
}

/// The place that a traceparent names.
fn parts(text: &str) -> Option<Place> {
    let mut parts = text.split('-');
    let (version, trace, parent, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |text: &str, digits: usize| {
        text.len() == digits
            && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let is_whole = version != "00" || parts.next().is_none();
    let fits = text.len() <= BYTES_MAX
        && hex(version, 2)
        && version != "ff"
        && hex(trace, 32)
        && hex(parent, 16);
    if !fits || !hex(flags, 2) || !is_whole {
        return None;
    }
    let (trace_id, span_id) =
        (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(parent, 16).ok()?);
    let flags = u8::from_str_radix(flags, 16).ok()?;
    (trace_id != 0 && span_id != 0).then_some(Place { trace_id, span_id, flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    /// Proves: TRC-1
    #[test]
    fn a_trace_goes_on_with_a_span_of_its_own() {
        let carried = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let (one, two) = (Trace::of(Some(&carried)), Trace::of(Some(&carried)));
        let parent = one.parent.unwrap();
        assert_eq!((parent.traceparent(), parent.trace_id), (carried, one.place.trace_id));
        assert_ne!(one.place.span_id, two.place.span_id);
        assert_eq!(Trace::of(Some(&one.traceparent())).parent, Some(one.place));
    }

    /// Proves: TRC-1
    #[test]
    fn what_is_no_traceparent_begins_a_trace() {
        for text in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        ] {
            let begun = Trace::of(Some(text));
            assert_eq!(begun.parent, None, "{text}");
            assert!(parts(&begun.traceparent()).is_some(), "{text}");
        }
        assert_ne!(Trace::of(None).place.trace_id, Trace::of(None).place.trace_id);
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";
        assert!(Trace::of(Some(later)).parent.is_some(), "a later version may have more");
    }
}
