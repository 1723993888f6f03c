//! Owns the metrics of a process: counts what its workers, relays and upkeep tell, and what the store
//! counts of itself, in the text form that Prometheus reads. Serves nothing by itself: [`Metrics::text`] is
//! what a program's `/metrics` answers with.

mod family;
mod label;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{
    ClaimedJob, Error, QueueName, Reclaimed, State, Stats, StatsScope, Store, VerdictKind,
};
use prometheus_client::encoding::prometheus_text;
use tokio_util::sync::CancellationToken;

use crate::circuit::{Circuit, CircuitBreakers};
use crate::clock;
use crate::maintenance::skew;
use crate::observe::{Alert, Ended, Leased, Observer};

use family::Families;
use label::Queues;

/// The `Content-Type` of [`Metrics::text`].
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Counts for Prometheus; give it to workers, relays and upkeep as their observer.
///
/// No label has more than 50 values. Queues are named only if they were listed, the first 49 of them;
/// what happens in any other is counted under `other`.
///
/// ```
/// use std::sync::Arc;
///
/// use leasehold::memory::MemoryStore;
/// use leasehold::metrics::Metrics;
/// use leasehold::{Context, Handled, JobKind, QueueName, Worker};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let queue = QueueName::new("mail")?;
/// let metrics = Arc::new(Metrics::new([&queue]));
/// let worker = Worker::builder(Arc::new(MemoryStore::new()))
///     .queue(queue)
///     .handler(JobKind::new("send")?, |_: Context, ()| async { Ok(Handled::done()) })
///     .observer(metrics.clone())
///     .build();
/// worker.run_until_idle().await?;
/// assert!(metrics.text().contains("jobs_completed_total{queue=\"mail\"} 0"));
/// # Ok::<(), leasehold::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Metrics {
    queues: Queues,
    families: Families,
    breakers: Option<Arc<CircuitBreakers>>,
}

impl Metrics {
    /// Begins at zero, with a series for each listed queue.
    pub fn new<'a>(queues: impl IntoIterator<Item = &'a QueueName>) -> Self {
        let queues = Queues::new(queues);
        let families = Families::new(&queues);
        Self { queues, families, breakers: None }
    }

    /// Shows the breakers of the queues too.
    #[must_use]
    pub fn breakers(mut self, breakers: Arc<CircuitBreakers>) -> Self {
        self.families.show(&self.queues, &breakers);
        self.breakers = Some(breakers);
        self
    }

    /// The text form, version 0.0.4; see [`CONTENT_TYPE`].
    pub fn text(&self) -> String {
        if let Some(breakers) = &self.breakers {
            self.families.show(&self.queues, breakers);
        }
        self.families.text()
    }

    /// Counts jobs that were enqueued; repeats of known ones are not among them.
    pub fn produced(&self, queue: &QueueName, jobs: u64) {
        self.families.produced.get_or_create(&self.queue(queue)).inc_by(jobs);
    }

    /// Takes over what the store counts of itself.
    pub fn sample(&self, stats: &Stats) {
        self.families.sample(&self.queues, stats);
    }

    /// Samples the store at intervals until `shutdown`; `leasehold_store_up` says whether the last
    /// look succeeded, and the other gauges keep what they had while it does not.
    pub async fn watch(&self, store: Arc<dyn Store>, every: Duration, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            let before = clock::wall();
            let looked = tokio::select! {
                looked = tokio::time::timeout(every.max(Duration::from_secs(5)), store.look(StatsScope::Live)) => looked,
                () = shutdown.cancelled() => return,
            };
            match looked {
                Ok(Ok(stats)) => {
                    self.sample(&stats);
                    if let (Ok(before), Ok(after)) = (before, clock::wall()) {
                        let off = skew(before, stats.now, after);
                        self.families.skew.set(off.as_secs_f64());
                    }
                    self.families.up.set(1);
                }
                _ => {
                    self.families.up.set(0);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = shutdown.cancelled() => {}
            }
        }
    }

    fn queue(&self, queue: &QueueName) -> family::Labels<1> {
        [("queue", self.queues.label(queue))]
    }
}

impl Observer for Metrics {
    fn claimed(&self, job: &ClaimedJob) {
        self.families.consumed.get_or_create(&self.queue(&job.queue)).inc();
    }

    fn ended(&self, end: &Ended) {
        let (all, queue) = (&self.families, self.queue(&end.queue));
        if let Some(ran) = end.ran {
            all.ran.get_or_create(&queue).observe(ran.as_secs_f64());
        }
        if let Some(class) = end.failure {
            let [queue] = queue.clone();
            all.failed.get_or_create(&[queue, ("reason", class.id().to_owned())]).inc();
            let burnt = f64::from(end.attempt) / f64::from(end.max_attempts.max(1));
            all.burnt.get_or_create(&self.queue(&end.queue)).observe(burnt);
        }
        if end.failure.is_some_and(|class| class.raises_alert()) {
            self.alerted(Alert::Job);
        }
        let landed = match (end.place.state(), end.failure) {
            (State::Succeeded, _) => &all.completed,
            (State::Waiting, Some(_)) => &all.retried,
            (State::DeadLetter, _) => &all.dead,
            _ => return,
        };
        landed.get_or_create(&queue).inc();
    }

    fn delivery_ended(&self, verdict: VerdictKind) {
        let verdict = [("verdict", verdict.as_str().to_owned())];
        self.families.deliveries.get_or_create(&verdict).inc();
    }

    fn lease_lost(&self, leased: Leased) {
        self.families.lost.get_or_create(&[("leased", family::leased(leased).to_owned())]).inc();
    }

    fn write_refused(&self, write: &'static str, error: &Error) {
        let reason = label::lost(error.lost_reason()).to_owned();
        let labels = [("write", write.to_owned()), ("reason", reason)];
        self.families.refused.get_or_create(&labels).inc();
    }

    fn alerted(&self, alert: Alert) {
        self.families.alerts.get_or_create(&[("alert", alert.id().to_owned())]).inc();
    }

    fn endpoint_changed(&self, was: Option<Circuit>, is: Option<Circuit>) {
        let labels = |state| [("state", label::circuit(state).to_owned())];
        if let Some(was) = was {
            self.families.endpoints.get_or_create(&labels(was)).dec();
        }
        if let Some(is) = is {
            self.families.endpoints.get_or_create(&labels(is)).inc();
        }
    }

    fn reclaimed(&self, reclaimed: &Reclaimed) {
        let all = &self.families;
        let count = |leased, cause: &str, rows: usize| {
            let labels =
                [("leased", family::leased(leased).to_owned()), ("cause", cause.to_owned())];
            all.reclaims.get_or_create(&labels).inc_by(u64::try_from(rows).unwrap_or(u64::MAX));
        };
        for (_, place) in &reclaimed.jobs {
            count(Leased::Job, label::cause(place.state()), 1);
        }
        all.moved.inc_by(u64::try_from(reclaimed.jobs.len()).unwrap_or(u64::MAX));
        count(Leased::Event, "lapsed", reclaimed.events_returned);
        count(Leased::Event, "budget_spent", reclaimed.events_dead);
    }
}
