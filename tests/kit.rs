//! The kit for users' handlers tries itself: it finds the bug of a careless handler at the very steps where
//! it is, and nothing in the careful one.
#![allow(clippy::expect_used, reason = "a failed expectation is how a test fails")]

#[path = "../examples/hurt_handler/shop.rs"]
mod shop;

use leasehold_conformance::evidence::Evidence;
use leasehold_conformance::faults::harm::Harm;
use leasehold_conformance::faults::survive::survive;
use shop::{Form, Shop};

/// Proves: GLO-2, WQ-5, WQ-11, TX-1
#[tokio::test]
async fn a_careful_handler_survives_every_harm_at_every_step() {
    let evidence = Evidence::of("a handler hurt at each durable step", "memory");
    let report = survive(&Shop::new(Form::Careful)).await.expect("a report");
    let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
    // Introduced, two claims and ends, and the claim that finds nothing: in five ways.
    assert!(report.trials >= 30, "only {} trials", report.trials);
    evidence.count("trials", report.trials).count("findings", 0).tell();
}

#[tokio::test]
async fn a_careless_handlers_bug_is_found_where_it_is() {
    let report = survive(&Shop::new(Form::Careless)).await.expect("a report");
    let mut harms: Vec<Harm> = report.findings.iter().map(|finding| finding.harm).collect();
    harms.dedup();
    assert!(
        harms.contains(&Harm::KilledBefore) && harms.contains(&Harm::PausedBefore),
        "{harms:?}"
    );
    let names: Vec<&str> = report.findings.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"mail") && names.contains(&"settle"), "{names:?}");
    assert!(!names.contains(&"control"), "before the mail nothing can be wrong: {names:?}");
}
