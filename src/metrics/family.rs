//! Owns the names of all metrics, what each means, and the registry that writes them out.

use std::sync::atomic::AtomicU64;

use leasehold_core::{FailureClass, QueueStats, Stats};
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use super::label::{self, Queues};
use crate::circuit::{Circuit, CircuitBreakers};
use crate::observe::{Alert, Leased};

pub(super) type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Level = Gauge<f64, AtomicU64>;
type Levels<const N: usize> = Family<Labels<N>, Level>;
type Histograms = Family<Labels<1>, Histogram, fn() -> Histogram>;

/// Seconds that a handler may take: from a row read to an hour.
const SECONDS: [f64; 16] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
];
/// Parts of a budget.
const PARTS: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];

/// Every metric there is.
#[derive(Debug)]
pub(super) struct Families {
    registry: Registry,
    pub(super) produced: Counters<1>,
    pub(super) consumed: Counters<1>,
    pub(super) completed: Counters<1>,
    pub(super) failed: Counters<2>,
    pub(super) retried: Counters<1>,
    pub(super) dead: Counters<1>,
    pub(super) ran: Histograms,
    pub(super) burnt: Histograms,
    pub(super) moved: Counter,
    pub(super) reclaims: Counters<2>,
    pub(super) lost: Counters<1>,
    pub(super) refused: Counters<2>,
    pub(super) deliveries: Counters<1>,
    pub(super) alerts: Counters<1>,
    pub(super) endpoints: Family<Labels<1>, Gauge>,
    length: Levels<1>,
    oldest: Levels<1>,
    jobs: Levels<2>,
    outbox: Levels<1>,
    lag: Level,
    circuit: Levels<1>,
    pub(super) skew: Level,
    pub(super) up: Gauge,
}

/// Names metrics and registers them.
struct Register(Registry);

impl Register {
    fn add<M: Metric + Clone>(&mut self, metric: M, name: &str, about: &str) -> M {
        self.0.register(name, about, metric.clone());
        metric
    }

    fn counters<const N: usize>(&mut self, name: &str, about: &str) -> Counters<N> {
        self.add(Counters::default(), name, about)
    }

    fn levels<const N: usize>(&mut self, name: &str, about: &str) -> Levels<N> {
        self.add(Levels::default(), name, about)
    }
}

pub(super) fn leased(leased: Leased) -> &'static str {
    match leased {
        Leased::Job => "job",
        Leased::Event => "event",
    }
}

impl Families {
    pub(super) fn new(queues: &Queues) -> Self {
        let mut all = Register(Registry::default());
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let parts: fn() -> Histogram = || Histogram::new(PARTS);
        let families = Self {
            produced: all.counters("jobs_produced", "Jobs enqueued by this process"),
            consumed: all.counters("jobs_consumed", "Jobs claimed by this process"),
            completed: all.counters("jobs_completed", "Jobs that ended well"),
            failed: all.counters("jobs_failed", "Attempts that failed, by class of failure"),
            retried: all.counters("jobs_retried", "Failed attempts that are followed by another"),
            dead: all.counters("jobs_dead_letter", "Jobs given up by their worker"),
            ran: all.add(
                Family::new_with_constructor(seconds),
                "job_processing_duration_seconds",
                "How long handlers ran",
            ),
            burnt: all.add(
                Family::new_with_constructor(parts),
                "leasehold_budget_burn_ratio",
                "Which part of its attempts a job had used when one failed",
            ),
            moved: all.add(
                Counter::default(),
                "reaper_jobs_moved",
                "Jobs whose lapsed lease was taken back",
            ),
            reclaims: all.counters("leasehold_reclaims", "Leases taken back, by where that led"),
            lost: all
                .counters("leasehold_leases_lost", "Leases lost while work went on under them"),
            refused: all.counters(
                "leasehold_stale_writes_refused",
                "Writes refused because their claim no longer owned the row",
            ),
            deliveries: all.counters("leasehold_deliveries", "Deliveries of the outbox that ended"),
            alerts: all.counters("leasehold_alerts", "What a person must hear of, by what it is"),
            endpoints: all.add(
                Family::default(),
                "leasehold_webhook_endpoints",
                "Endpoints that this process sends to, by the state of their breaker",
            ),
            length: all.levels("queue_length", "Jobs that wait and are due"),
            oldest: all.levels(
                "leasehold_oldest_ready_age_seconds",
                "For how long the oldest waiting job has been due",
            ),
            jobs: all.levels("leasehold_queue_jobs", "Jobs that have not ended, by state"),
            outbox: all.levels("leasehold_outbox_events", "Events of the outbox, by state"),
            lag: all.add(
                Level::default(),
                "leasehold_outbox_lag_seconds",
                "Age of the oldest event that is not delivered",
            ),
            circuit: all
                .levels("circuit_breaker_state", "0 closed, 1 half-open, 2 open, in this process"),
            skew: all.add(
                Level::default(),
                "leasehold_clock_skew_seconds",
                "How far the clock of the store and that of this machine lie apart",
            ),
            up: all.add(
                Gauge::default(),
                "leasehold_store_up",
                "Whether the last look at the store succeeded",
            ),
            registry: all.0,
        };
        families.begin(queues);
        families
    }

    /// Makes the series that are known beforehand, so that a first failure is a rise from zero.
    fn begin(&self, queues: &Queues) {
        for queue in queues.all().map(str::to_owned) {
            let queue = [("queue", queue)];
            for counters in
                [&self.produced, &self.consumed, &self.completed, &self.retried, &self.dead]
            {
                drop(counters.get_or_create(&queue));
            }
            drop(self.ran.get_or_create(&queue));
            drop(self.burnt.get_or_create(&queue));
            for class in FailureClass::ALL {
                let [queue] = queue.clone();
                drop(self.failed.get_or_create(&[queue, ("reason", class.id().to_owned())]));
            }
        }
        for alert in Alert::ALL {
            drop(self.alerts.get_or_create(&[("alert", alert.id().to_owned())]));
        }
        for state in [Circuit::Closed, Circuit::HalfOpen, Circuit::Open] {
            let state = label::circuit(state).to_owned();
            drop(self.endpoints.get_or_create(&[("state", state)]));
        }
        for leased in ["job", "event"] {
            drop(self.lost.get_or_create(&[("leased", leased.to_owned())]));
            for cause in ["lapsed", "budget_spent"] {
                let labels = [("leased", leased.to_owned()), ("cause", cause.to_owned())];
                drop(self.reclaims.get_or_create(&labels));
            }
        }
    }

    /// Sets the gauges; the queues without a name of their own are added up.
    pub(super) fn sample(&self, queues: &Queues, stats: &Stats) {
        for label in queues.all() {
            let these: Vec<&QueueStats> =
                stats.queues.iter().filter(|queue| queues.label(&queue.name) == label).collect();
            let sum = |part: fn(&QueueStats) -> u64| number(these.iter().copied().map(part).sum());
            let age =
                |queue: &&QueueStats| Some(stats.now.since(queue.oldest_ready?).as_secs_f64());
            let oldest = these.iter().filter_map(age).fold(0.0, f64::max);
            let queue = [("queue", label.to_owned())];
            self.length.get_or_create(&queue).set(sum(|queue| queue.ready));
            self.oldest.get_or_create(&queue).set(oldest);
            let running = |queue: &QueueStats| queue.leased.saturating_sub(queue.expired);
            for (state, jobs) in [
                ("ready", sum(|queue| queue.ready)),
                ("later", sum(|queue| queue.later)),
                ("blocked", sum(|queue| queue.blocked)),
                ("running", sum(running)),
                ("lapsed", sum(|queue| queue.expired)),
            ] {
                let [queue] = queue.clone();
                self.jobs.get_or_create(&[queue, ("state", state.to_owned())]).set(jobs);
            }
        }
        let outbox = &stats.outbox;
        for (state, events) in [
            ("waiting", outbox.waiting),
            ("leased", outbox.leased),
            ("dead_letter", outbox.dead_letter),
        ] {
            self.outbox.get_or_create(&[("state", state.to_owned())]).set(number(events));
        }
        let lag = outbox.oldest_waiting.map_or(0.0, |at| stats.now.since(at).as_secs_f64());
        self.lag.set(lag);
    }

    /// Sets the states of the breakers; of the queues without a name of their own the worst one.
    pub(super) fn show(&self, queues: &Queues, breakers: &CircuitBreakers) {
        let states = breakers.states();
        for label in queues.all() {
            let these = states.iter().filter(|(queue, _)| queues.label(queue) == label);
            let worst = these.map(|(_, state)| state.number()).max().unwrap_or_default();
            self.circuit.get_or_create(&[("queue", label.to_owned())]).set(f64::from(worst));
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

/// Counts are exact up to 2^53.
fn number(count: u64) -> f64 {
    count as f64
}
