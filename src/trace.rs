//! Owns the trace of a job (W3C Trace Context): taken over from whoever enqueued it, or begun where it runs,
//! with a span of its own. Refuses to know where spans are sent; `tracing` subscribers do.

use leasehold_core::{ClaimedJob, NewEvent, NewJob};
use tracing::Span;
use tracing::field::Empty;

/// One execution's place in its trace: numbers, so that a job nobody traces costs no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    trace_id: u128,
    span_id: u64,
    /// The span that enqueued the job, where there is one.
    parent: Option<u64>,
    flags: u8,
}

impl Trace {
    /// Begins a span in the trace that a job carries; one that carries none, or none that can be read,
    /// begins a trace.
    pub(crate) fn of(traceparent: Option<&str>) -> Self {
        let span_id = rand::random_range(1..=u64::MAX);
        match traceparent.and_then(parts) {
            Some((trace_id, parent, flags)) => {
                Self { trace_id, span_id, parent: Some(parent), flags }
            }
            None => Self {
                trace_id: rand::random_range(1..=u128::MAX),
                span_id,
                parent: None,
                flags: 1,
            },
        }
    }

    /// What goes along with whatever is sent, enqueued or published from here.
    pub(crate) fn traceparent(self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }

    /// Puts an event that is of no trace into this one.
    pub(crate) fn carried_by(self, event: NewEvent) -> NewEvent {
        if event.traceparent.is_some() { event } else { event.traceparent(self.traceparent()) }
    }

    /// The same of a job.
    pub(crate) fn carried_on(self, job: NewJob) -> NewJob {
        if job.traceparent.is_some() { job } else { job.traceparent(self.traceparent()) }
    }

    /// The span of the execution; its outcome is recorded when it is known.
    pub(crate) fn span(self, job: &ClaimedJob) -> Span {
        tracing::info_span!(
            target: "leasehold::job",
            "job",
            queue = %job.queue,
            job_id = %job.id,
            kind = %job.kind,
            attempt = job.attempt,
            trace_id = %format_args!("{:032x}", self.trace_id),
            span_id = %format_args!("{:016x}", self.span_id),
            parent_span_id = self.parent.map(|parent| display(format!("{parent:016x}"))),
            outcome = Empty,
        )
    }
}

/// The most bytes that are kept of what a later version of the recommendation may add.
const BYTES_MAX: usize = 255;

/// Whether a text names a place in a trace.
#[cfg(feature = "http")]
pub(crate) fn is_traceparent(text: &str) -> bool {
    parts(text).is_some()
}

/// Trace, parent and flags of a traceparent.
fn parts(text: &str) -> Option<(u128, u64, u8)> {
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
    let (trace, parent) =
        (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(parent, 16).ok()?);
    (trace != 0 && parent != 0).then_some((trace, parent, u8::from_str_radix(flags, 16).ok()?))
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
        assert_eq!(
            (format!("{:032x}", one.trace_id), one.parent),
            (TRACE.to_owned(), Some(0x00f0_67aa_0ba9_02b7))
        );
        assert_ne!(one.span_id, two.span_id);
        assert_eq!(Trace::of(Some(&one.traceparent())).parent, Some(one.span_id));
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
        assert_ne!(Trace::of(None).trace_id, Trace::of(None).trace_id);
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";
        assert!(Trace::of(Some(later)).parent.is_some(), "a later version may have more");
    }
}
