//! What the sink sends, what it makes of the answers, and what is recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use leasehold::webhook::{
    Attempt, EndpointStatus, Endpoints, Route, Scheme, Signer, SinkBuilder, Targets, Verifier,
    WebhookSink, attempts,
};
use leasehold::{
    Actor, AuditFilter, CancellationToken, Delivery, EventFilter, EventId, EventState, EventView,
    Failure, FailureCode, Found, Json, LeaseLength, NewEvent, Paging, Query, Relay, RetryPolicy,
    Store, StoreExt, Topic, async_trait,
};

use crate::server::{Act, Server};
use crate::signing::keys;
use crate::{Told, stories};

stories![
    a_retry_sends_the_stored_bytes_signed_anew,
    the_status_decides_what_becomes_of_an_event,
    retry_after_puts_the_next_attempt_off,
    an_endpoint_that_is_gone_is_disabled,
    a_paused_endpoint_keeps_its_events,
    redirects_are_recorded_and_not_followed,
    what_was_answered_is_kept_short_and_without_secrets,
    what_has_no_target_is_not_delivered_anywhere,
];

pub(crate) fn signer() -> Signer {
    Signer::new(Scheme::euterpe(), keys(&[0]))
}

/// The servers on this machine.
pub(crate) fn here() -> Targets {
    Targets::public().allow_http().allow("127.0.0.1".parse().expect("an address"))
}

/// A sink for servers on this machine.
pub(crate) fn local(store: &Arc<dyn Store>) -> SinkBuilder {
    WebhookSink::builder(store.clone(), signer()).way_out(here())
}

pub(crate) fn relay(
    store: &Arc<dyn Store>,
    sink: SinkBuilder,
) -> leasehold::Result<Relay<WebhookSink>> {
    let at_once = RetryPolicy::new(Duration::ZERO, Duration::ZERO)?;
    Ok(Relay::new(store.clone(), sink.build()?).retry(at_once).lease(LeaseLength::MIN))
}

pub(crate) async fn point(
    store: &Arc<dyn Store>,
    name: &str,
    url: String,
) -> leasehold::Result<()> {
    Endpoints::of(store.clone()).set(name, url, Actor::new("test")?).await
}

pub(crate) fn event(topic: &str, payload: &str) -> leasehold::Result<NewEvent> {
    Ok(NewEvent::new(Topic::new(topic)?, Json::parse(payload)?).max_attempts(3))
}

pub(crate) async fn publish(store: &Arc<dyn Store>, event: NewEvent) -> leasehold::Result<EventId> {
    Ok(store.publish_one(event).await?.event)
}

pub(crate) async fn view(store: &Arc<dyn Store>, id: EventId) -> leasehold::Result<EventView> {
    let page = store.find(Query::Events(EventFilter::new(), Paging::first(1_000))).await?;
    let found = page.items.into_iter().find_map(|found| match found {
        Found::Event(event) if event.id == id => Some(*event),
        _ => None,
    });
    found.ok_or_else(|| leasehold::Error::invalid("test", "the event is gone"))
}

async fn attempts_of(store: &Arc<dyn Store>, id: EventId) -> leasehold::Result<Vec<Attempt>> {
    attempts(store.records(), id).await
}

/// Proves: WH-5, WH-7, PAR-3
async fn a_retry_sends_the_stored_bytes_signed_anew(store: Arc<dyn Store>) -> Told {
    let count = AtomicU32::new(0);
    let server = Server::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Act::status(503),
        1 => Act::Close,
        _ => Act::status(204),
    });
    let server = server.await;
    point(&store, "told", server.url()).await?;
    let payload = "{ \"b\":1.50,\r\n\t\"a\": \"\\u00e9é\\u0000\" }";
    let id = publish(&store, event("told", payload)?).await?;
    relay(&store, local(&store))?.run_until_idle().await?;
    let seen = server.seen();
    assert_eq!((seen.len(), view(&store, id).await?.state), (3, EventState::Delivered));
    let verifier = Verifier::new(Scheme::euterpe(), keys(&[0]));
    let mut nonces = std::collections::HashSet::new();
    for request in &seen {
        assert_eq!(request.body, payload.as_bytes());
        assert_eq!(request.header("x-euterpe-event-id"), id.to_string());
        assert_eq!(request.header("content-type"), "application/json");
        assert_eq!(verifier.verify(&request.headers, &request.body)?.event_id(), id.to_string());
        assert!(nonces.insert(request.header("x-euterpe-nonce").to_owned()));
    }
    let kept = attempts_of(&store, id).await?;
    let told: Vec<_> =
        kept.iter().map(|it| (it.attempt, it.status, it.failure.as_deref())).collect();
    let wanted = [
        (1, Some(503), Some("UPSTREAM_UNAVAILABLE")),
        (2, None, Some("CONNECTION_RESET")),
        (3, Some(204), None),
    ];
    assert_eq!(told, wanted);
    assert!(kept.iter().all(|attempt| attempt.ended_at.is_some() && attempt.endpoint == "told"));
    Ok(())
}

/// Proves: WH-7, RT-3
async fn the_status_decides_what_becomes_of_an_event(store: Arc<dyn Store>) -> Told {
    let server = Server::start(|seen| Act::status(seen.path[1..].parse().expect("a status")));
    let server = server.await;
    let delivered = [200, 201, 202, 204, 299];
    let retried = [408, 423, 425, 429, 500, 501, 502, 503, 504, 507, 599];
    let refused = [301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 418, 422, 451];
    let mut events = Vec::new();
    for status in delivered.into_iter().chain(retried).chain(refused) {
        let name = status.to_string();
        point(&store, &name, format!("http://{}/{status}", server.address)).await?;
        events.push((status, publish(&store, event(&name, "1")?).await?));
    }
    // Rate limits and locks wait longer; here nothing does.
    relay(&store, local(&store))?.at_once(20).run_until_idle().await?;
    for (status, id) in events {
        let (state, tries) = match status {
            status if delivered.contains(&status) => (EventState::Delivered, 1),
            status if retried.contains(&status) => (EventState::DeadLetter, 3),
            _ => (EventState::DeadLetter, 1),
        };
        let found = view(&store, id).await?;
        assert_eq!((found.state, found.attempts), (state, tries), "status {status}");
        assert_eq!(attempts_of(&store, id).await?.len(), tries as usize, "status {status}");
    }
    Ok(())
}

/// Proves: RT-2, RT-6
async fn retry_after_puts_the_next_attempt_off(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::Answer(429, "retry-after: 120\r\n", String::new())).await;
    point(&store, "told", server.url()).await?;
    let id = publish(&store, event("told", "1")?).await?;
    relay(&store, local(&store))?.run_until_idle().await?;
    let found = view(&store, id).await?;
    assert_eq!((found.state, found.attempts, server.seen().len()), (EventState::Waiting, 1, 1));
    let wait = found.run_at.since(found.created_at);
    assert!((118..=130).contains(&wait.as_secs()), "{wait:?}");
    Ok(())
}

/// Proves: WH-7
async fn an_endpoint_that_is_gone_is_disabled(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::status(410)).await;
    point(&store, "told", server.url()).await?;
    let endpoints = Endpoints::of(store.clone());
    for n in 0..3 {
        let id = publish(&store, event("told", &n.to_string())?).await?;
        relay(&store, local(&store))?.run_until_idle().await?;
        let found = view(&store, id).await?;
        assert_eq!((found.state, found.attempts), (EventState::DeadLetter, 1));
        let endpoint = endpoints.get("told").await?.expect("the endpoint");
        assert_eq!(endpoint.status, EndpointStatus::Disabled);
    }
    assert_eq!(server.seen().len(), 1, "it is asked no more");
    let filter = AuditFilter::new().action("webhook.disable");
    let entries = store.records().audit(filter, Paging::first(9)).await?.items;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].target, "endpoint told");
    endpoints.resume("told", Actor::new("test")?).await?;
    publish(&store, event("told", "9")?).await?;
    relay(&store, local(&store))?.run_until_idle().await?;
    assert_eq!(server.seen().len(), 2, "an operator may have it asked again");
    Ok(())
}

/// Proves: WH-7
async fn a_paused_endpoint_keeps_its_events(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::status(200)).await;
    point(&store, "told", server.url()).await?;
    let endpoints = Endpoints::of(store.clone());
    endpoints.pause("told", Actor::new("test")?, "moving house").await?;
    let mut ids = Vec::new();
    for n in 0..50 {
        ids.push(publish(&store, event("told", &n.to_string())?).await?);
    }
    let sink = || local(&store).look_again(Duration::from_millis(400));
    let stop = CancellationToken::new();
    let relay = relay(&store, sink())?;
    let story = async {
        let _ends_the_relay = stop.clone().drop_guard();
        // Each has been in the relay's hand and given back.
        let back = |found: &EventView| {
            let kept = ![EventState::Delivered, EventState::DeadLetter].contains(&found.state);
            assert!(kept, "{found:?}");
            found.claim_version.get() > 0
        };
        until_each(&store, &ids, back).await?;
        assert!(server.seen().is_empty(), "nothing is sent");
        endpoints.resume("told", Actor::new("test")?).await?;
        until(&store, &ids, EventState::Delivered).await?;
        Ok::<_, libtest_mimic::Failed>(())
    };
    let (ended, story) = tokio::join!(relay.run(stop.clone()), story);
    story.and(ended.map_err(Into::into))?;
    for id in &ids {
        assert_eq!(view(&store, *id).await?.attempts, 1, "looking cost no attempt");
    }
    assert_eq!(server.seen().len(), 50);
    Ok(())
}

/// Waits until events are in a state; a minute at most.
pub(crate) async fn until(store: &Arc<dyn Store>, ids: &[EventId], state: EventState) -> Told {
    until_each(store, ids, |found| found.state == state).await
}

/// Waits until each event is as wished; a minute at most.
pub(crate) async fn until_each(
    store: &Arc<dyn Store>,
    ids: &[EventId],
    wished: impl Fn(&EventView) -> bool,
) -> Told {
    let begun = Instant::now();
    for id in ids {
        while !wished(&view(store, *id).await?) {
            if begun.elapsed() > Duration::from_secs(60) {
                return Err(format!("after a minute: {:?}", view(store, *id).await?).into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

/// Proves: WH-4
async fn redirects_are_recorded_and_not_followed(store: Arc<dyn Store>) -> Told {
    let inner = Server::always(Act::status(200)).await;
    let (here, host) = (inner.url(), inner.address);
    let places = [
        (301, here.clone()),
        (302, here.clone()),
        (303, here.clone()),
        (307, format!("//{host}/hook")),
        (308, here.replace("http:", "HTTP:")),
        (300, "http://169.254.169.254/latest/meta-data".to_owned()),
        (305, "file:///etc/hostname".to_owned()),
    ];
    for (status, place) in places {
        let place: &'static str = format!("location: {place}\r\n").leak();
        let server = Server::always(Act::Answer(status, place, String::new())).await;
        let name = status.to_string();
        point(&store, &name, server.url()).await?;
        let id = publish(&store, event(&name, "1")?).await?;
        relay(&store, local(&store))?.run_until_idle().await?;
        assert_eq!(view(&store, id).await?.state, EventState::DeadLetter);
        assert_eq!(attempts_of(&store, id).await?[0].status, Some(status));
    }
    assert!(inner.seen().is_empty(), "nobody went there");
    Ok(())
}

/// Proves: WH-4, DL-2
async fn what_was_answered_is_kept_short_and_without_secrets(store: Arc<dyn Store>) -> Told {
    let body = format!("no: password=hunter2-hunter2 \u{1}\u{0} {}", "x".repeat(100_000));
    let server = Server::always(Act::Answer(400, "", body)).await;
    point(&store, "told", server.url()).await?;
    let id = publish(&store, event("told", "1")?).await?;
    relay(&store, local(&store))?.run_until_idle().await?;
    let kept = attempts_of(&store, id).await?;
    assert_eq!(kept.len(), 1);
    assert!(kept[0].said.starts_with("no: password=[redacted:secret]"), "{}", kept[0].said);
    assert!(kept[0].said.len() <= 1_100, "{}", kept[0].said.len());
    assert_eq!(view(&store, id).await?.state, EventState::DeadLetter);
    Ok(())
}

/// Sends what has a `to` there, and the rest nowhere.
#[derive(Debug)]
struct ByMember;

#[async_trait]
impl Route for ByMember {
    async fn route(&self, event: &Delivery) -> Result<Option<String>, Failure> {
        let payload: serde_json::Value = serde_json::from_str(event.payload.as_str())
            .map_err(|error| Failure::new(FailureCode::PayloadInvalid, error.to_string()))?;
        Ok(payload["to"].as_str().map(str::to_owned))
    }
}

/// Proves: WH-6
async fn what_has_no_target_is_not_delivered_anywhere(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::status(200)).await;
    point(&store, "there", server.url()).await?;
    let with = publish(&store, event("told", "{\"to\":\"there\"}")?).await?;
    let without = publish(&store, event("told", "{}")?).await?;
    relay(&store, local(&store).route(ByMember))?.run_until_idle().await?;
    for (id, requests) in [(with, 1), (without, 0)] {
        assert_eq!(view(&store, id).await?.state, EventState::Delivered);
        assert_eq!(attempts_of(&store, id).await?.len(), requests);
    }
    assert_eq!(server.seen().len(), 1);
    Ok(())
}
