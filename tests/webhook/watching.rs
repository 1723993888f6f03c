//! What a person can see of endpoints and notifications: alerts as events and as metrics, and breakers.

use std::sync::Arc;
use std::time::Duration;

use leasehold::metrics::Metrics;
use leasehold::notify::Notifier;
use leasehold::observe::{Alert, Observer};
use leasehold::{EventFilter, EventState, FailureCode, Found, Paging, Query, Store, Topic};

use crate::post::{Act as Says, Post};
use crate::sending::{event, local, point, publish, relay, view};
use crate::server::{Act, Server};
use crate::telling::{add, alerts, run, to};
use crate::{Told, stories};

stories![
    alerts_of_notifications_are_events_and_metrics,
    a_disabled_endpoint_is_an_alert,
    an_event_without_an_endpoint_is_an_alert,
    a_breaker_is_seen_while_it_is_open,
];

/// The value of a series; 0 where it is not there.
fn value(metrics: &Metrics, series: &str) -> u32 {
    let text = metrics.text();
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("no series {series} in {text}"))
}

fn counted(metrics: &Metrics, alert: Alert) -> u32 {
    value(metrics, &format!("leasehold_alerts_total{{alert=\"{}\"}}", alert.id()))
}

/// Endpoints by the state of their breaker: closed, half open, open.
fn endpoints(metrics: &Metrics) -> [u32; 3] {
    ["closed", "half_open", "open"]
        .map(|state| value(metrics, &format!("leasehold_webhook_endpoints{{state=\"{state}\"}}")))
}

/// Proves: DEL-5, DEL-7, MET-1
async fn alerts_of_notifications_are_events_and_metrics(store: Arc<dyn Store>) -> Told {
    let metrics = Arc::new(Metrics::new([]));
    let post = Post::that_looks_up().act("bob", &[Says::Refuse(FailureCode::RequestRejected)]);
    let notifier = Notifier::new(store.clone(), post.clone()).observer(metrics.clone());
    let notifier = notifier.reconcile_between(Duration::ZERO, Duration::from_secs(3600));
    let notifier = Arc::new(notifier);
    add(&store).await?;
    run(&store, &notifier, &to(&["ann", "bob"])).await?;
    assert_eq!(counted(&metrics, Alert::NotificationFailed), 1);
    assert_eq!(counted(&metrics, Alert::NotificationNeverSent), 0);
    post.forget();
    notifier.reconcile().await?;
    assert_eq!(counted(&metrics, Alert::NotificationNeverSent), 1);
    assert_eq!(alerts(&store).await?, ["notification_failed", "notification_never_sent"]);
    Ok(())
}

/// Proves: WH-7, MET-1
async fn a_disabled_endpoint_is_an_alert(store: Arc<dyn Store>) -> Told {
    let server = Server::always(Act::status(410)).await;
    point(&store, "told", server.url()).await?;
    publish(&store, event("told", "1")?).await?;
    let metrics = Arc::new(Metrics::new([]));
    let sink = local(&store).observer(metrics.clone());
    relay(&store, sink)?.topics([Topic::new("told")?]).run_until_idle().await?;
    assert_eq!(alerts(&store).await?, ["endpoint_disabled"]);
    assert_eq!(counted(&metrics, Alert::EndpointDisabled), 1);
    let page = store.find(Query::Events(EventFilter::new(), Paging::first(9))).await?;
    let named = page.items.iter().any(|found| match found {
        Found::Event(event) => event.payload.as_str().contains("\"endpoint\":\"told\""),
        _ => false,
    });
    assert!(named, "it says which");
    Ok(())
}

/// Proves: RT-1, MET-1
async fn an_event_without_an_endpoint_is_an_alert(store: Arc<dyn Store>) -> Told {
    let id = publish(&store, event("nowhere", "1")?).await?;
    let metrics = Arc::new(Metrics::new([]));
    let relay = relay(&store, local(&store))?.topics([Topic::new("nowhere")?]);
    relay.observer(metrics.clone()).run_until_idle().await?;
    let found = view(&store, id).await?;
    assert_eq!(found.state, EventState::DeadLetter);
    assert!(found.failure.is_some_and(|failure| failure.as_str().contains("CONFIG_INVALID")));
    let page = store.find(Query::Events(EventFilter::new(), Paging::first(9))).await?;
    let alerts = page.items.iter().filter(|found| match found {
        Found::Event(event) => event.topic.as_str() == "leasehold.alerts",
        _ => false,
    });
    assert_eq!(alerts.count(), 1);
    assert_eq!((counted(&metrics, Alert::Delivery), counted(&metrics, Alert::Job)), (1, 0));
    Ok(())
}

/// Proves: CB-1, MET-1, MET-2
async fn a_breaker_is_seen_while_it_is_open(store: Arc<dyn Store>) -> Told {
    let (bad, good) =
        (Server::always(Act::status(500)).await, Server::always(Act::status(200)).await);
    point(&store, "bad", bad.url()).await?;
    point(&store, "good", good.url()).await?;
    for n in 0..8 {
        publish(&store, event("bad", &n.to_string())?.max_attempts(1)).await?;
    }
    publish(&store, event("good", "1")?).await?;
    let metrics = Arc::new(Metrics::new([]));
    assert_eq!(endpoints(&metrics), [0, 0, 0]);
    let observer: Arc<dyn Observer> = metrics.clone();
    let sink = local(&store).cooldown(Duration::from_secs(600)).observer(observer);
    let relay = relay(&store, sink)?.at_once(1);
    relay.run_until_idle().await?;
    assert_eq!((bad.seen().len(), endpoints(&metrics)), (5, [1, 0, 1]));
    assert!(!metrics.text().contains("good") && !metrics.text().contains("127.0.0.1"));
    drop(relay);
    assert_eq!(endpoints(&metrics), [0, 0, 0], "nobody sends to them any more");
    Ok(())
}
