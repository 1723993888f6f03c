//! What relays deliver, in which order, and what becomes of what they cannot deliver.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold::{
    CancellationToken, Context, Delivery, EventFilter, EventState, Failure, FailureCode, Found,
    Handled, Json, LeaseLength, NewEvent, OrderKey, Ordering, Paging, Query, Relay, RetryPolicy,
    Sink, Store, StoreExt, Topic, Undelivered,
};

use crate::{Told, add, job, kind, stories, worker};

stories![
    what_handlers_publish_is_delivered_in_order,
    a_failed_delivery_holds_back_its_key_and_no_other,
    a_delivery_without_hope_is_kept_and_releases_those_behind,
    a_slow_delivery_is_not_given_to_a_second_relay,
];

type Seen = Arc<Mutex<Vec<String>>>;

/// Notes every delivery; fails, panics or is slow as the payload says.
#[derive(Clone, Debug, Default)]
struct Notes(Seen);

impl Notes {
    fn seen(&self) -> Vec<String> {
        self.0.lock().expect("no panic under this lock").clone()
    }
}

#[async_trait]
impl Sink for Notes {
    async fn deliver(&self, event: &Delivery) -> Result<(), Undelivered> {
        let payload = event.payload.as_str().trim_matches('"').to_owned();
        match payload.as_str() {
            "once" if event.attempt == 1 => {
                return Err(Failure::new(FailureCode::UpstreamUnavailable, "later").into());
            }
            "never" => return Err(Failure::new(FailureCode::PayloadInvalid, "never").into()),
            "slow" => tokio::time::sleep(Duration::from_millis(1_700)).await,
            _ => {}
        }
        self.0.lock().expect("no panic under this lock").push(payload);
        Ok(())
    }
}

fn relay(store: &Arc<dyn Store>, notes: &Notes) -> Relay<Notes> {
    let at_once = RetryPolicy::new(Duration::ZERO, Duration::ZERO).expect("a policy");
    Relay::new(store.clone(), notes.clone()).retry(at_once).lease(LeaseLength::MIN)
}

fn event(key: &str, payload: &str) -> leasehold::Result<NewEvent> {
    let event = NewEvent::new(Topic::new("told")?, Json::of(payload)?);
    Ok(event.ordering(Ordering::Key(OrderKey::new(key)?)))
}

async fn dead(store: &Arc<dyn Store>) -> leasehold::Result<Vec<Found>> {
    let filter = EventFilter::new().state(EventState::DeadLetter);
    Ok(store.find(Query::Events(filter, Paging::first(10))).await?.items)
}

/// Proves: TX-3, TX-9
async fn what_handlers_publish_is_delivered_in_order(store: Arc<dyn Store>) -> Told {
    add(&store, job("tell", 0)).await?;
    let tell = async |context: Context, _: u32| {
        for n in ["a", "b"] {
            context.publish(NewEvent::new(Topic::new("told")?, Json::of(n)?));
        }
        context.checkpoint(Json::null()).await?;
        let last = NewEvent::new(Topic::new("told")?, Json::of("c")?);
        Ok(Handled::done().event(last))
    };
    worker(&store).handler(kind("tell"), tell).build().run_until_idle().await?;
    let notes = Notes::default();
    assert_eq!(relay(&store, &notes).run_until_idle().await?, 3);
    assert_eq!(notes.seen(), ["a", "b", "c"]);
    assert_eq!(relay(&store, &notes).run_until_idle().await?, 0);
    Ok(())
}

/// Proves: TX-6, TX-9
async fn a_failed_delivery_holds_back_its_key_and_no_other(store: Arc<dyn Store>) -> Told {
    let events = [event("x", "once")?, event("x", "behind")?, event("y", "other")?];
    store.publish(events.into()).await?;
    let notes = Notes::default();
    relay(&store, &notes).run_until_idle().await?;
    assert_eq!(notes.seen(), ["other", "once", "behind"]);
    Ok(())
}

/// Proves: TX-6, TX-9
async fn a_delivery_without_hope_is_kept_and_releases_those_behind(store: Arc<dyn Store>) -> Told {
    store.publish(vec![event("x", "never")?, event("x", "behind")?]).await?;
    let notes = Notes::default();
    relay(&store, &notes).run_until_idle().await?;
    assert_eq!(notes.seen(), ["behind"]);
    assert_eq!(dead(&store).await?.len(), 1);
    Ok(())
}

/// Proves: TX-4
async fn a_slow_delivery_is_not_given_to_a_second_relay(store: Arc<dyn Store>) -> Told {
    store.publish_one(event("x", "slow")?).await?;
    let (notes, stop) = (Notes::default(), CancellationToken::new());
    let relays = [relay(&store, &notes), relay(&store, &notes)];
    let ended = async {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        stop.cancel();
    };
    let (first, second, ()) =
        tokio::join!(relays[0].run(stop.clone()), relays[1].run(stop.clone()), ended);
    first.and(second)?;
    assert_eq!(notes.seen(), ["slow"]);
    Ok(())
}
