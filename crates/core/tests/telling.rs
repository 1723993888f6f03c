//! What is told to people and to waiting tasks: errors with their causes, charts, codes of newer versions, hints.

#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

use leasehold_core::{
    Error, ErrorKind, Failure, HintKind, Hints, JobId, Json, Lifecycle, Listener,
};

/// Proves: ERR-1
#[test]
fn an_error_tells_its_subject_the_job_in_its_way_and_its_cause() {
    let bare = Error::invalid("enqueue", "no good");
    assert!(bare.to_string().starts_with("enqueue: "), "{bare}");
    let (job, cause) = (JobId::new(), std::io::Error::other("the cable"));
    let whole = Error::conflict("enqueue", job, "taken").about("key order-7").with_source(cause);
    let told = whole.to_string();
    assert!(told.starts_with("enqueue key order-7: "), "{told}");
    assert!(told.contains(&format!("(job {job})")) && told.ends_with(": the cable"), "{told}");
    let (with, without) = (format!("{whole:?}"), format!("{bare:?}"));
    assert!(with.contains("source") && !without.contains("source"), "{with} {without}");
}

/// Proves: WQ-1
#[test]
fn a_chart_names_each_move_once() {
    let chart = Lifecycle::transcode().mermaid();
    assert!(chart.contains("    uploading --> succeeded: succeed\n"), "{chart}");
    let mut lines: Vec<&str> = chart.lines().skip(1).collect();
    let all = lines.len();
    lines.sort_unstable_by_key(|line| line.split(':').next());
    lines.dedup_by_key(|line| line.split(':').next());
    assert_eq!(lines.len(), all, "{chart}");
}

/// Proves: RT-1
#[test]
fn a_code_that_is_none_is_not_kept() {
    let long = "A".repeat(65);
    for (code, kept) in
        [("E42_B", "E42_B"), ("", "UNLISTED"), ("e42", "UNLISTED"), (&*long, "UNLISTED")]
    {
        let stored = Json::parse(format!("{{\"code\":\"{code}\"}}")).expect("JSON");
        assert_eq!(Failure::from_json(&stored).expect("readable").code_id(), kept, "{code}");
    }
}

#[test]
fn a_byte_order_mark_has_a_name_at_the_beginning_only() {
    for (text, rule) in [("\u{feff}1", "no-bom"), ("1\u{feff}", "syntax")] {
        let error = Json::parse(text).expect_err(rule);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(rule), "{error}");
    }
}

/// Whether a hint is there, or comes while others run.
async fn hears(listener: &mut Listener) -> bool {
    tokio::select! {
        biased;
        () = listener.heard() => true,
        () = tokio::task::yield_now() => false,
    }
}

#[tokio::test]
async fn a_listener_hears_of_its_own_kind_and_outlives_its_store() {
    let hints = Hints::new();
    let mut jobs = hints.listen(HintKind::Jobs);
    assert!(!hears(&mut jobs).await);
    let later = async { hints.send(HintKind::Jobs) };
    tokio::join!(jobs.heard(), later);
    hints.send(HintKind::Events);
    assert!(!hears(&mut jobs).await, "another kind");
    drop(hints);
    assert!(!hears(&mut jobs).await, "nobody is left to tell");
}
