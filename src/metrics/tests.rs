//! That labels stay bounded whatever happens, and that every figure moves as it should.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leasehold_core::{
    Epoch, Failure, FailureClass, FailureCode, JobId, JobKind, Json, LostReason, MemoryStore,
    NewJob, Place, QueueStats, StoreExt, Timestamp,
};

use super::*;
use crate::worker::tests::fake::Fake;
use crate::worker::{Context, Handled, Worker};

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// The value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

fn end(queue: QueueName, class: FailureClass, place: Place) -> Ended {
    let ran = Some(Duration::from_millis(20));
    let (verdict, failure) = (VerdictKind::Retry, Some(class));
    Ended { queue, verdict, failure, place, ran, attempt: 2, max_attempts: 5 }
}

/// Proves: MET-2
#[test]
fn no_label_has_more_than_fifty_values_whatever_is_counted() {
    let listed: Vec<QueueName> = (0..80).map(|n| queue(&format!("listed-{n}"))).collect();
    let metrics = Metrics::new(&listed);
    let mut stats = Stats::new(Timestamp::MIN, Epoch::default(), "test");
    let names = (0..5_000).map(|n| queue(&format!("tenant-{n}")));
    for name in listed.iter().cloned().chain(names) {
        metrics.produced(&name, 1);
        for class in FailureClass::ALL {
            for place in [Place::Waiting, Place::DeadLetter, Place::Failed, Place::Succeeded] {
                metrics.ended(&end(name.clone(), class, place));
            }
        }
        let mut counted = QueueStats::new(name, false, None);
        counted.ready = 1;
        stats.queues.push(counted);
    }
    metrics.sample(&stats);
    for at in 0..1_000 {
        let error = Error::lost("settle", format!("job {at}"), LostReason::Reclaimed);
        metrics.write_refused("settle", &error);
    }
    let text = metrics.text();
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, labels)) = line.split_once('{') else { continue };
        for pair in labels.split_once('}').unwrap().0.split(',') {
            let (name, value) = pair.split_once('=').unwrap();
            values.entry(name.to_owned()).or_default().insert(value.to_owned());
        }
    }
    assert_eq!(values.remove("queue").map(|of| of.len()), Some(label::VALUES_MAX));
    assert_eq!(values.remove("reason").map(|of| of.len()), Some(FailureClass::ALL.len() + 1));
    assert!(values.values().all(|of| of.len() <= label::VALUES_MAX), "{values:?}");
    assert_eq!(value(&text, "jobs_produced_total{queue=\"other\"}"), Some(5_031.0));
    assert_eq!(value(&text, "queue_length{queue=\"other\"}"), Some(5_031.0));
    assert!(!text.contains("tenant-") && !text.contains("listed-49\""), "no name outside the list");
}

/// Proves: MET-1
#[test]
fn each_end_is_counted_where_it_belongs() {
    let mail = queue("mail");
    let metrics = Metrics::new([&mail]);
    metrics.ended(&end(mail.clone(), FailureClass::Network, Place::Waiting));
    metrics.ended(&end(mail.clone(), FailureClass::Bug, Place::DeadLetter));
    let done = Ended {
        verdict: VerdictKind::Succeed,
        failure: None,
        ..end(mail.clone(), FailureClass::Bug, Place::Succeeded)
    };
    metrics.ended(&done);
    let back = Ended { verdict: VerdictKind::Release, ran: None, place: Place::Waiting, ..done };
    metrics.ended(&back);
    let text = metrics.text();
    for (series, expected) in [
        ("jobs_completed_total{queue=\"mail\"}", 1.0),
        ("jobs_failed_total{queue=\"mail\",reason=\"network\"}", 1.0),
        ("jobs_failed_total{queue=\"mail\",reason=\"bug\"}", 1.0),
        ("jobs_failed_total{queue=\"mail\",reason=\"auth\"}", 0.0),
        ("jobs_retried_total{queue=\"mail\"}", 1.0),
        ("jobs_dead_letter_total{queue=\"mail\"}", 1.0),
        ("job_processing_duration_seconds_count{queue=\"mail\"}", 3.0),
        ("leasehold_budget_burn_ratio_sum{queue=\"mail\"}", 0.8),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
}

/// Proves: MET-1
#[test]
fn what_was_lost_refused_and_taken_back_is_counted_by_cause() {
    let metrics = Metrics::new([]);
    metrics.lease_lost(Leased::Job);
    metrics.write_refused("progress", &Error::lost("progress", "job", LostReason::TakenOver));
    let mut reclaimed = Reclaimed::default();
    reclaimed.jobs = [Place::Waiting, Place::Waiting, Place::DeadLetter, Place::Cancelled]
        .map(|place| (JobId::new(), place))
        .to_vec();
    reclaimed.events_dead = 2;
    metrics.reclaimed(&reclaimed);
    let text = metrics.text();
    for (series, expected) in [
        ("leasehold_leases_lost_total{leased=\"job\"}", 1.0),
        ("leasehold_stale_writes_refused_total{write=\"progress\",reason=\"taken_over\"}", 1.0),
        ("reaper_jobs_moved_total", 4.0),
        ("leasehold_reclaims_total{leased=\"job\",cause=\"lapsed\"}", 2.0),
        ("leasehold_reclaims_total{leased=\"job\",cause=\"budget_spent\"}", 1.0),
        ("leasehold_reclaims_total{leased=\"job\",cause=\"cancel_requested\"}", 1.0),
        ("leasehold_reclaims_total{leased=\"event\",cause=\"budget_spent\"}", 2.0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
}

/// Proves: MET-1
#[test]
fn a_sample_says_how_much_waits_and_since_when() {
    let mail = queue("mail");
    let metrics = Metrics::new([&mail]);
    let now = Timestamp::MIN.plus(Duration::from_secs(100));
    let mut stats = Stats::new(now, Epoch::default(), "test");
    let mut counted = QueueStats::new(mail, false, None);
    (counted.ready, counted.leased, counted.expired) = (3, 5, 2);
    counted.oldest_ready = Some(Timestamp::MIN.plus(Duration::from_secs(90)));
    stats.queues = vec![counted];
    stats.outbox.waiting = 4;
    stats.outbox.oldest_waiting = Some(Timestamp::MIN.plus(Duration::from_secs(40)));
    metrics.sample(&stats);
    let text = metrics.text();
    for (series, expected) in [
        ("queue_length{queue=\"mail\"}", 3.0),
        ("leasehold_oldest_ready_age_seconds{queue=\"mail\"}", 10.0),
        ("leasehold_queue_jobs{queue=\"mail\",state=\"running\"}", 3.0),
        ("leasehold_queue_jobs{queue=\"mail\",state=\"lapsed\"}", 2.0),
        ("leasehold_outbox_events{state=\"waiting\"}", 4.0),
        ("leasehold_outbox_lag_seconds", 60.0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
}

/// Proves: MET-1
#[tokio::test]
async fn a_worker_tells_its_observer_of_every_claim_and_end() {
    let store = Arc::new(MemoryStore::new());
    let metrics = Arc::new(Metrics::new([&QueueName::default_queue()]));
    for kind in ["good", "good", "bad"] {
        let job = NewJob::new(JobKind::new(kind).unwrap(), Json::parse("null").unwrap());
        let _new = store.enqueue_one(job).await.unwrap();
    }
    Worker::builder(store)
        .handler(JobKind::new("good").unwrap(), async |_: Context, ()| Ok(Handled::done()))
        .handler(JobKind::new("bad").unwrap(), async |_: Context, ()| {
            Err(Failure::new(FailureCode::PayloadInvalid, "a secret text").into())
        })
        .observer(metrics.clone())
        .build()
        .run_until_idle()
        .await
        .unwrap();
    let text = metrics.text();
    for (series, expected) in [
        ("jobs_consumed_total{queue=\"default\"}", 3.0),
        ("jobs_completed_total{queue=\"default\"}", 2.0),
        ("jobs_failed_total{queue=\"default\",reason=\"validation\"}", 1.0),
        ("jobs_dead_letter_total{queue=\"default\"}", 1.0),
        ("job_processing_duration_seconds_count{queue=\"default\"}", 3.0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
    assert!(!text.contains("secret"));
}

/// Figures that are taken every few seconds leave out what has ended, which may be millions of rows.
///
/// Proves: MET-1
#[tokio::test]
async fn samples_count_nothing_that_has_ended() {
    let store = Fake::default();
    let metrics = Arc::new(Metrics::new(&[]));
    let shutdown = CancellationToken::new();
    let watching = {
        let (metrics, store, until) = (metrics.clone(), store.clone(), shutdown.clone());
        tokio::spawn(async move {
            metrics.watch(Arc::new(store), Duration::from_millis(1), until).await;
        })
    };
    while value(&metrics.text(), "leasehold_store_up") != Some(1.0) {
        tokio::task::yield_now().await;
    }
    shutdown.cancel();
    watching.await.unwrap();
    assert!(store.script(|script| script.looks.iter().all(|scope| *scope == StatsScope::Live)));
}
