use proptest::prelude::*;

use super::*;
use crate::{ErrorKind, Json};

/// Proves: RT-1
#[test]
fn nine_classes_with_stable_names_split_into_retryable_and_not() {
    let ids = FailureClass::ALL.map(FailureClass::id);
    let wanted = [
        "network",
        "rate_limit",
        "upstream",
        "conflict",
        "validation",
        "auth",
        "not_found",
        "policy",
        "bug",
    ];
    assert_eq!(ids, wanted);
    for (index, class) in FailureClass::ALL.into_iter().enumerate() {
        assert_eq!(FailureClass::parse(class.id()), Some(class));
        assert_eq!(class.is_retryable(), index < 4);
        assert_eq!(class.raises_alert(), class == FailureClass::Bug);
        assert_eq!(class.retries_need_idempotence(), class == FailureClass::Conflict);
        assert_eq!(class.to_string(), class.id());
    }
    assert_eq!(FailureClass::parse("Network"), None);
    assert_eq!(FailureClass::parse(""), None);
}

/// Proves: RT-1
#[test]
fn codes_have_one_stable_id_each() {
    let mut ids: Vec<_> = FailureCode::ALL.iter().map(|code| code.id()).collect();
    for code in FailureCode::ALL {
        assert_eq!(FailureCode::parse(code.id()), Some(*code));
        let fits = |c: char| c.is_ascii_uppercase() || c == '_';
        assert!(code.id().chars().all(fits), "{code}");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), FailureCode::ALL.len());
    assert_eq!(FailureCode::parse("panic"), None);
    let every_class = FailureClass::ALL
        .iter()
        .all(|class| FailureCode::ALL.iter().any(|code| code.class() == *class));
    assert!(every_class);
}

/// Proves: RT-1
#[test]
fn codes_of_the_contract_belong_to_their_classes() {
    for (id, class) in [
        ("NETWORK_TIMEOUT", "network"),
        ("CONNECTION_RESET", "network"),
        ("DNS_FAILED", "network"),
        ("WORKER_LOST", "network"),
        ("DEADLINE_EXCEEDED", "network"),
        ("RATE_LIMITED", "rate_limit"),
        ("UPSTREAM_ERROR", "upstream"),
        ("VERSION_CONFLICT", "conflict"),
        ("SCHEMA_INVALID", "validation"),
        ("PAYLOAD_INVALID", "validation"),
        ("RESULT_INVALID", "validation"),
        ("AUTH_DENIED", "auth"),
        ("NOT_FOUND", "not_found"),
        ("POLICY_REJECTED", "policy"),
        ("CANCELLED", "policy"),
        ("PANIC", "bug"),
        ("INVARIANT_BROKEN", "bug"),
        ("CONFIG_INVALID", "bug"),
        ("UNKNOWN_KIND", "bug"),
    ] {
        assert_eq!(FailureCode::parse(id).map(|code| code.class().id()), Some(class), "{id}");
    }
}

/// Proves: RT-3
#[test]
fn each_status_has_its_class() {
    let retryable = [408, 423, 425, 429, 500, 501, 502, 503, 504, 505, 507, 511, 599];
    for status in 0..=700 {
        let failure = Failure::from_http_status(status);
        let wanted = retryable.contains(&status) || (500..600).contains(&status);
        assert_eq!(failure.is_retryable(), wanted, "{status}");
        assert_eq!(failure.context()["upstream_status"], status.to_string());
        assert!(!failure.raises_alert(), "{status}");
    }
    for (status, id) in [
        (401, "AUTH_DENIED"),
        (403, "AUTH_DENIED"),
        (404, "NOT_FOUND"),
        (409, "REQUEST_REJECTED"),
        (410, "NOT_FOUND"),
        (422, "PAYLOAD_INVALID"),
        (429, "RATE_LIMITED"),
        (500, "UPSTREAM_ERROR"),
        (503, "UPSTREAM_UNAVAILABLE"),
        (302, "UNEXPECTED_RESPONSE"),
    ] {
        assert_eq!(Failure::from_http_status(status).code_id(), id, "{status}");
    }
}

/// Proves: RT-2
#[test]
fn retry_after_takes_seconds_and_dates() {
    let secs = |header| retry_after(header, 784_111_777).map(|wait| wait.as_secs());
    assert_eq!(secs("0"), Some(0));
    assert_eq!(secs(" 120 "), Some(120));
    assert_eq!(secs("99999999999999999999999"), Some(u64::MAX));
    assert_eq!(secs("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
    assert_eq!(secs("Sunday, 06-Nov-94 08:50:37 GMT"), Some(60));
    assert_eq!(secs("Sun Nov  6 08:50:37 1994"), Some(60));
    assert_eq!(secs("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
    assert_eq!(secs("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
    for bad in ["", " ", "-1", "+1", "1.5", "1 2", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "١"] {
        assert_eq!(secs(bad), None, "{bad}");
    }
}

/// Proves: DL-1, DL-2
#[test]
fn every_text_passes_the_sanitizer() {
    let failure =
        Failure::new(FailureCode::AuthDenied, "denied\0: hunter2hunter2 of joe@example.org")
            .with_stack("at login(password=\"hunter2hunter2\")\r\n")
            .with_context("request_id", "hunter2hunter2")
            .with_context("attempt", 3)
            .with_context("prompt", "You are a helpful")
            .with_context("password", "hunter2hunter2");
    assert_eq!(failure.message(), "denied\\u0000: [redacted:repeated] of [redacted:email]");
    assert_eq!(failure.stack(), Some("at login(password=\"[redacted:secret]\")\\u000d\n"));
    assert_eq!(failure.context()["request_id"], "[redacted:repeated]");
    assert_eq!(failure.context()["attempt"], "3");
    assert_eq!((failure.context().len(), failure.context_dropped()), (2, 2));
    for shown in
        [format!("{failure:?}"), failure.to_string(), failure.to_json().as_str().to_owned()]
    {
        assert!(!shown.contains("hunter2") && !shown.contains("helpful"), "{shown}");
    }
}

/// Proves: DL-1
#[test]
fn texts_are_bounded() {
    let failure = Failure::new(FailureCode::Panic, "é ".repeat(1_000_000))
        .with_stack("\0 ".repeat(1_000_000));
    assert!(failure.message().len() <= 16 * 1024 && failure.message().ends_with(" [cut]"));
    assert!(failure.stack().is_some_and(|stack| stack.len() <= 32 * 1024));
    let whole = Failure::new(FailureCode::Panic, "x".repeat(16 * 1024));
    assert_eq!(whole.message().len(), 16 * 1024);
    assert!(whole.message().ends_with('x'));
}

/// Proves: RT-5
#[test]
fn reclassifying_changes_the_verdict_and_keeps_the_code() {
    let failure = Failure::new(FailureCode::NetworkTimeout, "x");
    assert!(failure.is_retryable());
    let failure = failure.reclassify(FailureClass::Bug);
    assert!(!failure.is_retryable() && failure.raises_alert());
    assert_eq!(failure.code(), FailureCode::NetworkTimeout);
    let back = Failure::from_json(&failure.to_json()).expect("stored form");
    assert_eq!(back.class(), FailureClass::Bug);
}

/// Proves: DL-1
#[test]
fn the_stored_form_is_fixed() {
    let failure = Failure::new(FailureCode::RateLimited, "slow \"down\"\n")
        .with_context("stage", "llm")
        .with_context("attempt", 2)
        .with_context("nonsense", 2)
        .with_retry_after(Duration::from_micros(1_500_001));
    assert_eq!(
        failure.to_json().as_str(),
        "{\"code\":\"RATE_LIMITED\",\"class\":\"rate_limit\",\"message\":\"slow \\\"down\\\"\\n\",\
         \"context\":{\"attempt\":\"2\",\"stage\":\"llm\"},\"context_dropped\":1,\"retry_after_ms\":1501}"
    );
    assert_eq!(Failure::from_json(&failure.to_json()).expect("stored form"), failure);
}

/// Proves: RT-1
#[test]
fn what_a_newer_version_wrote_is_borne() {
    let text = r#"{"code":"QUANTUM_DECAY","class":"upstream","message":"m","shine":[1]}"#;
    let failure = Failure::from_json(&Json::parse(text).expect("valid")).expect("readable");
    assert_eq!((failure.code(), failure.code_id()), (FailureCode::Unlisted, "QUANTUM_DECAY"));
    assert_eq!(failure.class(), FailureClass::Upstream);
    let again = Failure::from_json(&failure.to_json()).expect("readable");
    assert_eq!((&again, again.code_id()), (&failure, "QUANTUM_DECAY"));
    let odd = Json::parse(r#"{"code":"PANIC","class":"new","stack":null}"#).expect("valid");
    assert_eq!(Failure::from_json(&odd).expect("readable").class(), FailureClass::Bug);
    let odd = Json::parse(r#"{"code":"no code at all"}"#).expect("valid");
    assert_eq!(Failure::from_json(&odd).expect("readable").code_id(), "UNLISTED");
    for text in ["null", "[]", "{}", r#"{"code":1}"#] {
        let error = Failure::from_json(&Json::parse(text).expect("valid")).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

proptest! {
    /// Proves: DL-1, DL-2
    #[test]
    fn stored_failures_come_back(
        code in prop::sample::select(FailureCode::ALL),
        class in prop::sample::select(&FailureClass::ALL[..]),
        texts in prop::array::uniform3("(?s).{0,60}"),
        wait in prop::option::of(any::<u64>()),
    ) {
        let [message, stack, value] = texts;
        let mut failure = Failure::new(code, message)
            .with_stack(stack)
            .with_context("upstream_code", value)
            .reclassify(class);
        if let Some(nanos) = wait {
            failure = failure.with_retry_after(Duration::from_nanos(nanos));
        }
        let json = failure.to_json();
        prop_assert_eq!(&Failure::from_json(&json).expect("stored form"), &failure);
        prop_assert!(json.len() < 4096);
    }
}
