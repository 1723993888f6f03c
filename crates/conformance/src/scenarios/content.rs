//! Owns what is promised of the texts that a store keeps: documents come back byte for byte, error
//! texts are made fit to be kept, and no secret enters a dead letter.

use leasehold_core::lab::TABLES;
use leasehold_core::{
    EventVerdict, Failure, FailureCode, Json, Lifecycle, LifecycleName, NewEvent, NewJob, Progress,
    Result, Settlement, State, StoreExt, Verdict,
};

use super::group;
use crate::lab::{Lab, event, events_with, job, job_of};

group!("content": documents_are_kept_byte_for_byte, error_texts_are_made_fit_to_be_kept,
    longest_error_text_is_cut_and_settles, no_secret_enters_a_dead_letter,
    no_secret_enters_a_dead_letter_of_the_outbox, follow_ons_are_kept_byte_for_byte);

/// Documents on which a store that parses, sorts, rounds or trims would be found out.
fn documents() -> Vec<Json> {
    let deep = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    let texts = [
        r#"{"nul":"\u0000","bell":"\u0007"}"#.to_owned(),
        "{ \"b\" : 1.50,\t\"a\":1e400 ,\n\"\":-0.0 }".to_owned(),
        r#""\ud83d\ude00 \/ \" \\""#.to_owned(),
        "\"\u{1f600} \u{fffd} \u{85} \u{2028} e\u{301} \u{e9}\"".to_owned(),
        format!("[{}]", "9".repeat(400)),
        r#"{"__proto__":{"é":null},"é":[]}"#.to_owned(),
        "  null  ".to_owned(),
        "\"'; drop table leasehold_jobs; -- $1 ?1 %s {}\"".to_owned(),
        deep,
    ];
    texts.into_iter().map(|text| Json::parse(text).expect("a document")).collect()
}

/// Payload, checkpoint, result and an event's payload come back as they were given.
///
/// Proves: IDM-5, PAR-3
async fn documents_are_kept_byte_for_byte(lab: &Lab) -> Result<()> {
    for document in documents() {
        let new = NewJob::new(job(1).kind, document.clone());
        let id = lab.add(new).await?;
        let claim = lab.take_one().await?;
        assert_eq!(claim.job.payload, document);
        let step = Progress::new(claim.fence, 1).checkpoint(document.clone());
        lab.progress_one(step).await?;
        let verdict = Verdict::Succeed { result: Some(document.clone()) };
        let own = NewEvent::new(event(1).topic, document.clone());
        lab.settle_one(Settlement::new(claim.fence, verdict).event(own)).await?;
        let row = lab.row(id).await?;
        assert_eq!((&row.payload, row.result.as_ref()), (&document, Some(&document)));
        assert_eq!(row.checkpoint.as_ref(), Some(&document));
        let delivery = lab.take_event().await?;
        assert_eq!(delivery.payload, document);
        lab.end_event(delivery.fence, EventVerdict::Delivered).await?;
    }
    Ok(())
}

/// A follow-on job keeps its payload's bytes too.
///
/// Proves: PAR-3
async fn follow_ons_are_kept_byte_for_byte(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let mut settlement = Settlement::new(claim.fence, Verdict::Succeed { result: None });
    for document in documents() {
        settlement = settlement.job(NewJob::new(job(1).kind, document));
    }
    lab.settle_one(settlement).await?;
    let claims = lab.take(99).await?;
    let found: Vec<_> = claims.into_iter().map(|claim| claim.job.payload).collect();
    assert_eq!(found.len(), documents().len());
    assert!(documents().iter().all(|document| found.contains(document)), "{found:?}");
    Ok(())
}

/// A raw NUL, a control character or broken UTF-8 in an error text never stops a settlement.
///
/// Proves: PAR-3
async fn error_texts_are_made_fit_to_be_kept(lab: &Lab) -> Result<()> {
    let output = leasehold_core::json::escape_bytes(b"exit 3: \xff\xfe\0 tail", 99);
    for text in [output.as_str(), "nul \0, bell \u{7}, escape \u{1b}[31m", "\u{fffe}", ""] {
        let claim = lab.claimed().await?;
        let failure = Failure::new(FailureCode::SchemaInvalid, text).with_stack(text);
        lab.end(claim.fence, Verdict::DeadLetter { failure: failure.clone() }).await?;
        let stored = lab.row(claim.job.id).await?.failure.expect("a failure");
        assert!(!stored.as_str().contains('\0'), "{stored:?}");
        assert_eq!(Failure::from_json(&stored)?.message(), failure.message());
    }
    Ok(())
}

/// An error text of ten megabytes is cut, and the job ends by its verdict.
///
/// Proves: PAR-3
async fn longest_error_text_is_cut_and_settles(lab: &Lab) -> Result<()> {
    let claim = lab.claimed().await?;
    let text = "out of cheese. ".repeat(700_000);
    let failure = Failure::new(FailureCode::SchemaInvalid, &text).with_stack(&text);
    let settled = lab.end(claim.fence, Verdict::DeadLetter { failure }).await?;
    assert_eq!(settled.place.state(), State::DeadLetter);
    let stored = lab.row(claim.job.id).await?.failure.expect("a failure");
    assert!(stored.as_str().len() < 64 * 1024, "{} bytes", stored.as_str().len());
    assert!(stored.as_str().contains("out of cheese"));
    Ok(())
}

const SECRET: &str = "AKIAIOSFODNN7EXAMPLQ";

/// A failure that tells a secret in each of its parts.
fn telling(code: FailureCode) -> Failure {
    Failure::new(code, format!("denied for {SECRET}, ask joe@example.org"))
        .with_stack(format!("at login(password=\"{SECRET}\")"))
        .with_context("request_id", SECRET)
        .with_context("prompt", "the whole prompt with its data")
}

/// Whichever verdict leads there, a dead letter holds no secret and nothing off the list.
///
/// Proves: DL-1, DL-2
async fn no_secret_enters_a_dead_letter(lab: &Lab) -> Result<()> {
    let lasting = || telling(FailureCode::AuthDenied);
    let passing = || telling(FailureCode::UpstreamUnavailable);
    let ways: [(LifecycleName, u16, Verdict); 4] = [
        (LifecycleName::standard(), 5, Verdict::DeadLetter { failure: lasting() }),
        (LifecycleName::standard(), 5, Verdict::Retry { failure: lasting(), delay: None }),
        (LifecycleName::standard(), 1, Verdict::Retry { failure: passing(), delay: None }),
        (Lifecycle::work_queue().name().clone(), 5, Verdict::Fail { failure: lasting() }),
    ];
    for (number, (lifecycle, attempts, verdict)) in (1..).zip(ways) {
        let standard = lifecycle == LifecycleName::standard();
        let new = if standard { job(1) } else { job_of(&Lifecycle::work_queue()) };
        lab.add(new.max_attempts(attempts)).await?;
        let claim = lab.take_one().await?;
        lab.end(claim.fence, verdict).await?;
        assert_eq!(lab.letters().await?.len(), number, "{lifecycle:?}");
    }
    for letter in lab.letters().await? {
        assert!(letter.failure.as_str().contains("[redacted:"), "{:?}", letter.failure);
    }
    assert_nothing_told(lab).await
}

/// A dead letter of the outbox holds no secret either.
///
/// Proves: DL-2, TX-6
async fn no_secret_enters_a_dead_letter_of_the_outbox(lab: &Lab) -> Result<()> {
    lab.publish(vec![event(1)]).await?;
    let delivery = lab.take_event().await?;
    let failure = telling(FailureCode::AuthDenied);
    lab.end_event(delivery.fence, EventVerdict::DeadLetter { failure }).await?;
    let [dead] = &lab.events(events_with(|_| ())).await?[..] else { panic!("one event") };
    let kept = dead.failure.as_ref().expect("a failure");
    assert!(kept.as_str().contains("[redacted:"), "{kept:?}");
    assert_nothing_told(lab).await
}

/// Fails where any table holds what `telling` gave away.
async fn assert_nothing_told(lab: &Lab) -> Result<()> {
    let dump = lab.dump().await?;
    for row in TABLES.iter().flat_map(|table| dump.rows(table)) {
        for told in [SECRET, "joe@example.org", "whole prompt"] {
            assert!(!row.contains(told), "{told} is kept: {row}");
        }
    }
    Ok(())
}
