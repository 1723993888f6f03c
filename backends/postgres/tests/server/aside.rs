//! Owns what becomes of rows that cannot be read: they are put to rest, whatever is beside them goes on, and what
//! another claim holds is left alone.

use std::time::Duration;

use leasehold_core::lab::altered;
use leasehold_core::{
    Control, ErrorKind, EventClaimRequest, EventId, Found, Json, NewEvent, OrderKey, Ordering,
    PruneRequest, Query, QueueName, ReclaimRequest, Stats, Store, StoreExt, Timestamp, Topic,
    WorkerId,
};
use leasehold_postgres::PostgresStore;
use leasehold_postgres::tokio_postgres::Client;

use crate::crowd::within;
use crate::place::{Place, fill, job, request, take};

/// A session that speaks of the schema as the statements do.
struct Beside {
    session: Client,
    schema: String,
}

impl Beside {
    async fn of(place: &Place) -> Self {
        Self { session: place.session().await, schema: place.schema.clone() }
    }

    /// How many rows some SQL changes.
    async fn write(&self, text: &str) -> u64 {
        self.session.execute(&within(&self.schema, text), &[]).await.expect("SQL that runs")
    }

    async fn count(&self, rows: &str) -> i64 {
        let text = within(&self.schema, &format!("select count(*) from {rows}"));
        self.session.query_one(&text, &[]).await.expect("a count").get(0)
    }

    /// How many rows a statement of the store's changes, with these values.
    async fn send(&self, name: &str, values: [&str; 4]) -> u64 {
        let path = format!("{}/src/sql/{name}.sql", env!("CARGO_MANIFEST_DIR"));
        let mut text =
            altered::text(name, &std::fs::read_to_string(path).expect("a statement")).to_owned();
        for (at, value) in values.iter().enumerate() {
            text = text.replace(&format!("${}", at + 1), value);
        }
        self.write(&text).await
    }
}

async fn publish(store: &PostgresStore, number: usize, key: &str) -> EventId {
    let key = Ordering::Key(OrderKey::new(key).expect("a key"));
    let payload = Json::parse(number.to_string()).expect("JSON");
    let event = NewEvent::new(Topic::new("mail").expect("a topic"), payload).ordering(key);
    let id = event.id;
    store.publish(vec![event]).await.expect("published");
    id
}

async fn delivered(store: &PostgresStore, limit: usize) -> Vec<EventId> {
    let request = EventClaimRequest::new(WorkerId::new()).limit(limit);
    let claims = store.claim_events(request).await.expect("claimed");
    claims.iter().map(|claim| claim.fence.event()).collect()
}

/// One is met by a claim and one when its lease lapses: those beside them go on, and neither is met again.
///
/// Proves: GLO-1, WQ-3
pub(crate) async fn unreadable_jobs_rest_and_hold_up_no_other(place: Place) {
    let (store, clock) = place.manual().await;
    let beside = Beside::of(&place).await;
    let first = store.enqueue_one(job(1)).await.expect("enqueued").job().as_uuid();
    fill(&store, 2).await;
    let resting =
        "leasehold.jobs where state = 'waiting' and run_at > now() + interval '999 years'";
    let entered = "leasehold.audit where action = 'job.set_aside'";
    beside.write(&format!("update leasehold.jobs set kind = '' where id = '{first}'")).await;
    let claims = store.claim(request(9)).await.expect("claimed");
    assert_eq!((claims.len(), beside.count(resting).await, beside.count(entered).await), (2, 1, 1));
    let second = claims[0].job.id.as_uuid();
    beside.write(&format!("update leasehold.jobs set lifecycle = '' where id = '{second}'")).await;
    clock.advance(Duration::from_secs(86_400));
    let back = store.reclaim(ReclaimRequest::jobs()).await.expect("reclaimed");
    assert_eq!((back.jobs.len(), beside.count(resting).await), (1, 2));
    assert_eq!(store.claim(request(9)).await.expect("claimed").len(), 1);
    assert_eq!(beside.count(entered).await, 2, "neither is met twice");
}

/// The oldest of a key ends undelivered, and the one behind it goes.
///
/// Proves: GLO-1, TX-6, TX-9
pub(crate) async fn unreadable_events_end_and_hold_up_no_other(place: Place) {
    let (store, clock) = place.manual().await;
    let beside = Beside::of(&place).await;
    let ids = [publish(&store, 1, "a").await, publish(&store, 2, "a").await];
    let dead = "leasehold.events where state = 'dead_letter' and finished_at is not null \
                and failure is not null";
    let damage = |id: EventId| {
        let id = id.as_uuid();
        format!("update leasehold.events set payload = '{{\"broken' where id = '{id}'")
    };
    beside.write(&damage(ids[0])).await;
    assert_eq!(delivered(&store, 9).await, [ids[1]]);
    assert_eq!(beside.count(dead).await, 1);
    beside.write(&damage(ids[1])).await;
    clock.advance(Duration::from_secs(86_400));
    let back = store.reclaim(ReclaimRequest::events()).await.expect("reclaimed");
    assert_eq!((back.events_returned, beside.count(dead).await), (0, 2));
    let entered = "leasehold.audit where action = 'event.set_aside'";
    assert_eq!((delivered(&store, 9).await.len(), beside.count(entered).await), (0, 2));
}

/// Who met a row may have waited: what another has claimed meanwhile is no longer his to put to rest, unless
/// that lease has lapsed.
///
/// Proves: WQ-4
pub(crate) async fn live_leases_of_others_are_left_alone(place: Place) {
    let store = place.store().await;
    let beside = Beside::of(&place).await;
    fill(&store, 2).await;
    let other = "gen_random_uuid()";
    let (long_ago, at_last) = ("'epoch'::timestamptz", "'infinity'::timestamptz");
    let claims = take(&store, 2).await;
    let ids = [0, 1].map(|at: usize| format!("'{}'::uuid", claims[at].job.id.as_uuid()));
    let own = format!("'{}'::uuid", claims[0].fence.claim().as_uuid());
    let job = |at: usize, now, claim| beside.send("set_aside", [&ids[at], now, claim, at_last]);
    assert_eq!(job(0, long_ago, other).await, 0, "another holds it");
    assert_eq!(job(0, long_ago, &own).await, 1, "the one that met it");
    assert_eq!(job(1, at_last, other).await, 1, "its lease has lapsed");

    publish(&store, 1, "a").await;
    publish(&store, 2, "b").await;
    let asked = EventClaimRequest::new(WorkerId::new());
    let claims = store.claim_events(asked).await.expect("claimed");
    let ids = [0, 1].map(|at: usize| format!("'{}'::uuid", claims[at].fence.event().as_uuid()));
    let own = format!("'{}'::uuid", claims[0].fence.claim().as_uuid());
    let why = "'{}'";
    let event = |at: usize, now, claim| beside.send("set_aside_event", [&ids[at], now, claim, why]);
    assert_eq!(event(0, long_ago, other).await, 0, "another holds it");
    assert_eq!(event(0, long_ago, &own).await, 1, "the one that met it");
    assert_eq!(event(1, at_last, other).await, 1, "its lease has lapsed");
    assert_eq!(event(1, at_last, other).await, 0, "it has ended");
}

/// What cannot be read and cannot be put to rest either, for somebody's trigger keeps it: whoever meets it is told,
/// and nothing tells that it rests.
///
/// Proves: ERR-1, GLO-1
pub(crate) async fn what_cannot_be_put_to_rest_is_told(place: Place) {
    let store = place.store().await;
    let beside = Beside::of(&place).await;
    let job = store.enqueue_one(job(1)).await.expect("enqueued").job();
    publish(&store, 1, "a").await;
    let text = "update leasehold.jobs set kind = ''; \
                update leasehold.events set payload = '{\"broken'; \
                create function leasehold.keep() returns trigger language plpgsql \
                as 'begin return null; end'; \
                create trigger keeps before update on leasehold.jobs for each row \
                when (new.run_at > '9000-01-01') execute function leasehold.keep(); \
                create trigger keeps before update on leasehold.events for each row \
                when (new.state = 'dead_letter') execute function leasehold.keep()";
    beside.session.batch_execute(&within(&place.schema, text)).await.expect("damaged");
    let error = store.claim(request(1)).await.expect_err("damaged");
    assert_eq!((error.kind(), error.damaged_job()), (ErrorKind::Corrupt, Some(job)), "{error}");
    let asked = EventClaimRequest::new(WorkerId::new());
    let error = store.claim_events(asked).await.expect_err("damaged");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.damaged_event().is_some(), "{error}");
    assert_eq!(beside.count("leasehold.audit").await, 0);
}

/// One row of each sort under a name that is none, then times out of range: the others are counted, and the
/// warnings say what is not.
///
/// Proves: GLO-4, QUE-6
pub(crate) async fn figures_leave_out_what_cannot_be_read(place: Place) {
    const ROWS: &str = "rows of a queue whose name cannot be read are not counted";
    const TIMES: &str = "a time that cannot be read is left out of the figures";
    let store = place.store().await;
    let beside = Beside::of(&place).await;
    fill(&store, 7).await;
    let _ = publish(&store, 1, "a").await;
    let claims = take(&store, 2).await;
    store.succeed(claims[0].fence).await.expect("settled");
    let first =
        "(select id from leasehold.jobs where queue = 'default' and state = 'waiting' limit 1)";
    for damage in [
        "queue = '' where state = 'leased'".to_owned(),
        "queue = 'a' || chr(7) where state = 'succeeded'".to_owned(),
        format!("queue = repeat('q', 300) where id = {first}"),
        format!("queue = '', held = true where id = {first}"),
    ] {
        assert_eq!(beside.write(&format!("update leasehold.jobs set {damage}")).await, 1);
    }
    let seen = store.stats().await.expect("the others are counted");
    let figures = &seen.queues[0];
    assert_eq!((seen.queues.len(), figures.ready, figures.leased, figures.succeeded), (1, 3, 0, 0));
    assert!(figures.oldest_ready.is_some() && figures.blocked == 0);
    assert_eq!((warned(&seen, ROWS), warned(&seen, TIMES)), (1, 0));

    let due = async |time: &str| {
        let set = format!("update leasehold.jobs set run_at = {time} where state = 'waiting'");
        beside.write(&set).await;
        store.stats().await.expect("the others are counted")
    };
    for (time, ready) in [("'-infinity'", 3), ("'infinity'", 0)] {
        let seen = due(time).await;
        let figures = &seen.queues[0];
        assert_eq!((figures.ready, figures.later), (ready, 3 - ready));
        assert_eq!((figures.oldest_ready, figures.first_due), (None, None));
        assert_eq!(warned(&seen, TIMES), 1);
    }
    let seen = due("'9999-12-31 23:59:59.999999+00'").await;
    assert_eq!((seen.queues[0].first_due, warned(&seen, TIMES)), (Some(Timestamp::MAX), 0));
    beside.write("update leasehold.events set created_at = 'infinity'").await;
    let seen = store.stats().await.expect("the others are counted");
    assert_eq!((seen.outbox.waiting, seen.outbox.oldest_waiting), (1, None));
    assert_eq!(warned(&seen, TIMES), 1);
}

/// A queue whose row cannot be read takes neither the figures nor the settings of the others away, nor their upkeep.
///
/// Proves: GLO-1, QUE-6
pub(crate) async fn a_queue_that_cannot_be_read_hides_no_other(place: Place) {
    let (store, _) = place.manual().await;
    let beside = Beside::of(&place).await;
    for name in ["a", "b"] {
        let queue = QueueName::new(name).expect("a name");
        let _ = store.enqueue_one(job(1).queue(queue.clone())).await.expect("enqueued");
        store.control(Control::Pause(queue)).await.expect("paused");
    }
    assert_eq!(beside.write("update leasehold.queues set name = '' where name = 'a'").await, 1);
    let seen = store.stats().await.expect("the others are counted");
    let sound = seen.queue(&QueueName::new("b").expect("a name")).expect("b");
    assert!(sound.paused && sound.ready == 1, "{sound:?}");
    assert_eq!(warned(&seen, "a queue whose row"), 1);
    let found = store.find(Query::Queues).await.expect("a listing").items;
    assert!(matches!(found[..], [Found::Unreadable(_), Found::Queue(_)]), "{found:?}");
    store.prune(PruneRequest::new()).await.expect("pruned");
}

fn warned(stats: &Stats, of: &str) -> usize {
    stats.warnings.iter().filter(|warning| warning.starts_with(of)).count()
}
