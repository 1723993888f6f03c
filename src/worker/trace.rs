//! Owns the trace of a job in hand (W3C Trace Context): taken over from whoever enqueued it, or begun
//! here, with a span of its own. Refuses to know where spans are sent; `tracing` subscribers do.

use leasehold_core::{ClaimedJob, NewEvent};
use tracing::Span;
use tracing::field::Empty;

/// One execution's place in its trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trace {
    trace_id: String,
    span_id: String,
    /// The span that enqueued the job, where there is one.
    parent: Option<String>,
    flags: String,
}

impl Trace {
    /// Begins a span in the trace that a job carries; one that carries none, or none that can be read,
    /// begins a trace.
    pub(super) fn of(traceparent: Option<&str>) -> Self {
        let span_id = format!("{:016x}", rand::random_range(1..=u64::MAX));
        match traceparent.and_then(parts) {
            Some([trace, parent, flags]) => {
                let [trace_id, parent, flags] = [trace, parent, flags].map(str::to_owned);
                Self { trace_id, span_id, parent: Some(parent), flags }
            }
            None => {
                let trace_id = format!("{:032x}", rand::random_range(1..=u128::MAX));
                Self { trace_id, span_id, parent: None, flags: "01".to_owned() }
            }
        }
    }

    /// What goes along with whatever is sent, enqueued or published from here.
    pub(super) fn traceparent(&self) -> String {
        format!("00-{}-{}-{}", self.trace_id, self.span_id, self.flags)
    }

    /// Puts an event that is of no trace into this one.
    pub(super) fn carried_by(&self, event: NewEvent) -> NewEvent {
        if event.traceparent.is_some() { event } else { event.traceparent(self.traceparent()) }
    }

    /// The span of the execution; its outcome is recorded when it is known.
    pub(super) fn span(&self, job: &ClaimedJob) -> Span {
        tracing::info_span!(
            target: "leasehold::job",
            "job",
            queue = %job.queue,
            job_id = %job.id,
            kind = %job.kind,
            attempt = job.attempt,
            trace_id = %self.trace_id,
            span_id = %self.span_id,
            parent_span_id = self.parent.as_deref(),
            outcome = Empty,
        )
    }
}

/// Trace, parent and flags of a traceparent.
fn parts(text: &str) -> Option<[&str; 3]> {
    let mut parts = text.split('-');
    let (version, trace, parent, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |text: &str, digits: usize| {
        text.len() == digits
            && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let some = |text: &str| text.bytes().any(|b| b != b'0');
    let fits = hex(version, 2) && version != "ff" && hex(trace, 32) && hex(parent, 16);
    let is_whole = version != "00" || parts.next().is_none();
    (fits && hex(flags, 2) && some(trace) && some(parent) && is_whole)
        .then_some([trace, parent, flags])
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
            (one.trace_id.as_str(), one.parent.as_deref()),
            (TRACE, Some("00f067aa0ba902b7"))
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
