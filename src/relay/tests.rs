//! What a relay sends to its store and its sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    ErrorKind, EventVerdict, Failure, FailureCode, HintKind, Json, LeaseLength, NewEvent, Store,
    Topic,
};
use tokio_util::sync::CancellationToken;

use super::{ChannelSink, Delivery, JsonLinesSink, Relay, Sink, Undelivered};
use crate::worker::tests::fake::{Fake, Renewing};

fn event(payload: &str) -> NewEvent {
    NewEvent::new(Topic::new("told").unwrap(), Json::parse(payload).unwrap())
}

fn fake(events: impl IntoIterator<Item = NewEvent>) -> Fake {
    let fake = Fake::default();
    fake.script(|script| script.events.extend(events));
    fake
}

fn verdicts(fake: &Fake) -> Vec<EventVerdict> {
    fake.script(|script| script.delivered.iter().map(|d| d.verdict.clone()).collect())
}

/// Counts deliveries and how many run at once; sleeps, then answers as its payload says.
#[derive(Debug, Default)]
struct Slow {
    sleeps: Duration,
    now: AtomicUsize,
    most: Arc<AtomicUsize>,
    idempotent: bool,
}

#[async_trait]
impl Sink for Slow {
    async fn deliver(&self, event: &Delivery) -> Result<(), Undelivered> {
        let now = self.now.fetch_add(1, Memory::SeqCst) + 1;
        self.most.fetch_max(now, Memory::SeqCst);
        let is_slow = event.payload.as_str() == "\"slow\"";
        tokio::time::sleep(if is_slow { Duration::from_secs(60) } else { self.sleeps }).await;
        self.now.fetch_sub(1, Memory::SeqCst);
        match event.payload.as_str() {
            "\"fail\"" => Err(Failure::new(FailureCode::UpstreamUnavailable, "later").into()),
            "\"later\"" => Err(Undelivered::Later(Duration::from_secs(7))),
            "\"panic\"" => panic!("boom"),
            "\"taken\"" => Err(Failure::new(FailureCode::VersionConflict, "taken").into()),
            _ => Ok(()),
        }
    }

    fn is_idempotent(&self) -> bool {
        self.idempotent
    }
}

/// Proves: TX-5
#[tokio::test]
async fn a_batch_is_ten_and_larger_ones_need_a_word() {
    let relay = || Relay::new(Arc::new(Fake::default()), Slow::default());
    assert_eq!(relay().batch, 10);
    assert!(relay().batch(25).is_ok());
    for bad in [0, 26] {
        assert_eq!(relay().batch(bad).expect_err("refused").kind(), ErrorKind::Invalid);
    }
    assert!(relay().allow_large_batches().batch(26).is_ok());
    assert!(relay().allow_large_batches().batch(0).is_err());
}

/// Proves: TX-5
#[tokio::test]
async fn five_deliveries_run_at_once() {
    let fake = fake((0..12).map(|n| event(&n.to_string())));
    let most = Arc::new(AtomicUsize::new(0));
    let sink = Slow { sleeps: Duration::from_millis(20), most: most.clone(), ..Slow::default() };
    assert_eq!(Relay::new(Arc::new(fake.clone()), sink).run_until_idle().await.unwrap(), 12);
    assert_eq!(most.load(Memory::SeqCst), 5);
    assert!(fake.script(|script| script.event_claims.iter().all(|claim| claim.limit == 10)));
    assert_eq!(verdicts(&fake), vec![EventVerdict::Delivered; 12]);
}

/// Proves: TX-6
#[tokio::test]
async fn a_failed_or_panicking_sink_is_a_failed_attempt() {
    let fake = fake([event("\"fail\""), event("\"panic\"")]);
    let relay = Relay::new(Arc::new(fake.clone()), Slow::default()).at_once(1);
    relay.run_until_idle().await.unwrap();
    let codes = verdicts(&fake).into_iter().map(|verdict| match verdict {
        EventVerdict::Retry { failure, delay: Some(_) } => failure.code(),
        other => panic!("{other:?}"),
    });
    let wanted = [FailureCode::UpstreamUnavailable, FailureCode::Panic];
    assert_eq!(codes.collect::<Vec<_>>(), wanted);
}

/// Proves: RT-1
#[tokio::test]
async fn a_conflict_of_the_sink_is_tried_again_only_where_idempotent() {
    for (idempotent, sink, again) in
        [(false, false, false), (true, false, true), (false, true, true)]
    {
        let fake = fake([event("\"taken\"")]);
        let sink = Slow { idempotent: sink, ..Slow::default() };
        let relay = Relay::new(Arc::new(fake.clone()), sink);
        let relay = if idempotent { relay.idempotent() } else { relay };
        relay.run_until_idle().await.unwrap();
        let [verdict] = &verdicts(&fake)[..] else { panic!("{:?}", verdicts(&fake)) };
        match again {
            true => assert!(matches!(verdict, EventVerdict::Retry { delay: Some(_), .. })),
            false => assert!(matches!(verdict, EventVerdict::DeadLetter { .. })),
        }
    }
}

/// Proves: WH-7
#[tokio::test]
async fn an_event_that_has_to_wait_is_given_back_uncounted() {
    let fake = fake([event("\"later\""), event("1")]);
    Relay::new(Arc::new(fake.clone()), Slow::default()).run_until_idle().await.unwrap();
    let later = EventVerdict::Release { delay: Some(Duration::from_secs(7)) };
    assert!(verdicts(&fake).contains(&later), "{:?}", verdicts(&fake));
}

/// Proves: TX-5
#[tokio::test]
async fn slow_deliveries_hold_back_no_other_while_one_slot_is_free() {
    let fake = fake((0..4).map(|_| event("\"slow\"")));
    let (relay, stop) =
        (Relay::new(Arc::new(fake.clone()), Slow::default()), CancellationToken::new());
    let later = async {
        for n in 0..20 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            fake.script(|script| script.events.extend([event(&n.to_string())]));
            fake.hints().send(HintKind::Events);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let done = verdicts(&fake).len();
        stop.cancel();
        done
    };
    let relay = relay.grace(Duration::ZERO);
    let (ended, done) = tokio::join!(relay.run(stop.clone()), later);
    ended.unwrap();
    assert_eq!(done, 20, "all but the slow four");
}

/// An answer of nothing that was made up before a delivery ended knows nothing of what that freed.
///
/// Proves: TX-9
#[tokio::test]
async fn what_a_delivery_frees_is_asked_for_though_an_older_answer_is_empty() {
    let fake = fake([event("1")]);
    fake.script(|script| {
        script.events_late = Duration::from_millis(100);
        script.freed = vec![event("2")];
    });
    let sink = Slow { sleeps: Duration::from_millis(30), ..Slow::default() };
    let relay = Relay::new(Arc::new(fake.clone()), sink);
    assert_eq!(relay.run_until_idle().await.unwrap(), 2);
}

/// Proves: TX-4, GLO-2
#[tokio::test]
async fn a_claim_without_an_answer_is_sent_again() {
    let fake = fake([event("1")]);
    fake.script(|script| script.claims_unanswered = 1);
    Relay::new(Arc::new(fake.clone()), Slow::default()).run_until_idle().await.unwrap();
    let claims = fake.script(|script| script.event_claims.clone());
    assert_eq!(claims[0].claim, claims[1].claim);
    assert!(!claims[0].repeat && claims[1].repeat && !claims[2].repeat);
    assert_eq!(verdicts(&fake), [EventVerdict::Delivered]);
}

/// Proves: TX-4, WQ-11
#[tokio::test]
async fn a_relay_that_cannot_renew_any_more_ends() {
    let fake = fake([event("1")]);
    fake.script(|script| script.renewing = Renewing::Panics);
    let sink = Slow { sleeps: Duration::from_secs(60), ..Slow::default() };
    let relay = Relay::new(Arc::new(fake.clone()), sink).lease(LeaseLength::MIN);
    let stop = CancellationToken::new();
    let ended = tokio::time::timeout(Duration::from_secs(4), relay.run(stop.clone())).await;
    assert_eq!(ended.expect("it ends").unwrap_err().kind(), ErrorKind::Unavailable);
}

/// Proves: WQ-20
#[tokio::test]
async fn a_relay_whose_store_gives_no_answer_ends_five_seconds_after_its_grace() {
    let fake = Fake::default();
    fake.script(|script| script.silent = true);
    let stop = CancellationToken::new();
    let relay =
        Relay::new(Arc::new(fake.clone()), Slow::default()).grace(Duration::from_millis(100));
    let later = async {
        fake.refused().await;
        stop.cancel();
    };
    let both = async { tokio::join!(relay.run(stop.clone()), later) };
    let (ended, ()) = tokio::time::timeout(Duration::from_secs(6), both).await.expect("it ends");
    ended.unwrap();
}

/// Proves: TX-4
#[tokio::test]
async fn a_slow_delivery_is_renewed_and_a_lost_one_is_dropped() {
    for (renewing, settled) in [(Renewing::Renewed, 1), (Renewing::Lost, 0)] {
        let fake = fake([event("1")]);
        fake.script(|script| script.renewing = renewing);
        let sink = Slow { sleeps: Duration::from_millis(1_500), ..Slow::default() };
        let relay = Relay::new(Arc::new(fake.clone()), sink).lease(LeaseLength::MIN);
        relay.run_until_idle().await.unwrap();
        assert_eq!(verdicts(&fake).len(), settled, "{renewing:?}");
        assert!(fake.script(|script| script.renewals) >= 1);
    }
}

/// Proves: TX-4, WQ-18
#[tokio::test]
async fn what_waits_behind_a_slow_delivery_is_renewed_in_the_same_call() {
    let fake = fake((0..4).map(|n| event(&n.to_string())));
    let sink = Slow { sleeps: Duration::from_millis(700), ..Slow::default() };
    let relay = Relay::new(Arc::new(fake.clone()), sink).at_once(1).lease(LeaseLength::MIN);
    relay.run_until_idle().await.unwrap();
    assert_eq!(verdicts(&fake), vec![EventVerdict::Delivered; 4]);
    let batches = fake.script(|script| script.renewed.clone());
    assert_eq!(batches.first(), Some(&4), "{batches:?}");
    assert!(batches.len() <= 9, "one call for all, a third of a second apart: {batches:?}");
}

/// Proves: WQ-18
#[tokio::test]
async fn a_relay_that_renews_too_late_is_refused() {
    let relay = Relay::new(Arc::new(Fake::default()), Slow::default());
    assert_eq!(relay.renew_at(0.5).expect_err("refused").kind(), ErrorKind::Invalid);
}

/// Proves: TX-4
#[tokio::test]
async fn a_lost_reply_is_answered_by_the_same_settlement() {
    let fake = fake([event("1")]);
    fake.script(|script| script.settle_errors.push_back(ErrorKind::OutcomeUnknown));
    let (sink, mut received) = ChannelSink::new(4);
    Relay::new(Arc::new(fake.clone()), sink).run_until_idle().await.unwrap();
    let sent = fake.script(|script| script.delivered.clone());
    assert_eq!((sent.len(), &sent[0]), (2, &sent[1]));
    assert_eq!(received.recv().await.unwrap().payload.as_str(), "1");
}

/// Proves: TX-5
#[tokio::test]
async fn a_shutdown_ends_the_wait_for_events() {
    let shutdown = CancellationToken::new();
    let relay = Relay::new(Arc::new(Fake::default()), Slow::default());
    shutdown.cancel();
    let run = relay.run(shutdown.clone());
    tokio::time::timeout(Duration::from_millis(200), run).await.expect("it ends").unwrap();
}

/// Proves: WQ-20
#[tokio::test]
async fn a_shutdown_gives_a_hanging_delivery_back() {
    let fake = fake([event("1")]);
    let shutdown = CancellationToken::new();
    let sink = Slow { sleeps: Duration::from_secs(60), ..Slow::default() };
    let relay = Relay::new(Arc::new(fake.clone()), sink).grace(Duration::from_millis(100));
    let stop = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        shutdown.cancel();
    };
    let both = async { tokio::join!(relay.run(shutdown.clone()), stop) };
    let (ended, ()) = tokio::time::timeout(Duration::from_secs(2), both).await.expect("it ends");
    ended.unwrap();
    assert_eq!(verdicts(&fake), [EventVerdict::Release { delay: None }]);
}

/// Proves: PAR-3
#[tokio::test]
async fn a_line_holds_the_payload_as_it_was_published() {
    let name = format!("leasehold-lines-{}", leasehold_core::EventId::new());
    let path = std::env::temp_dir().join(name);
    let sink = JsonLinesSink::file(&path).await.unwrap();
    let fake = fake([event("{\"n\":\n 1.50}"), event("2")]);
    Relay::new(Arc::new(fake), sink).at_once(1).run_until_idle().await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with(",\"payload\":{\"n\":  1.50}}"), "{}", lines[0]);
    assert!(Json::parse(lines[0]).is_ok());
}
