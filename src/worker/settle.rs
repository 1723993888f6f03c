//! Owns the settle lane: settlements that come while one batch is in flight go together in the
//! next. A lost reply is answered by sending the same settlement again; one that the store refuses
//! for what it carries becomes a failure, so that no job stays leased over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_core::{
    ClaimedJob, Error, ErrorKind, Failure, FailureCode, Fence, Json, QueueName, Result, Settled,
    Settlement, State, Store, StoreExt, Verdict,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::lane::Leases;
use crate::observe::{Ended, Observer, tell_refused};

/// The most settlements of one call, and the most bytes of documents where it has more than one.
const BATCH: usize = 1_000;
const BYTES_MAX: usize = 4 << 20;
/// How long to wait before the same settlements are sent again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long one call may take before its reply counts as lost.
const CALL_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Item {
    settlement: Settlement,
    /// Whether it stands in for one that was refused.
    stand_in: bool,
    /// The lease, which is renewed until the end is stored.
    held: InHand,
    _counted: Counted,
}

/// A lease that is renewed no longer than this lives, and what is told of its end.
#[derive(Debug)]
pub(super) struct InHand {
    leases: Arc<Leases<Fence>>,
    fence: Fence,
    queue: QueueName,
    attempt: u32,
    max_attempts: u32,
    /// How long the handler ran, once it has.
    pub(super) ran: Option<Duration>,
}

impl InHand {
    pub(super) fn new(leases: Arc<Leases<Fence>>, fence: Fence, job: &ClaimedJob) -> Self {
        let (attempt, max_attempts) = (job.attempt, job.max_attempts);
        Self { leases, fence, queue: job.queue.clone(), attempt, max_attempts, ran: None }
    }

    fn ended(&self, verdict: &Verdict, settled: Settled) -> Ended {
        Ended {
            queue: self.queue.clone(),
            verdict: verdict.kind(),
            failure: verdict.failure().map(Failure::class),
            place: settled.place,
            ran: self.ran,
            attempt: self.attempt,
            max_attempts: self.max_attempts,
        }
    }

    /// Tells of an end that is stored: the observer, and the log where an attempt has failed.
    pub(super) fn tell(&self, observer: &dyn Observer, verdict: &Verdict, settled: Settled) {
        let ended = self.ended(verdict, settled);
        if let Some(failure) = verdict.failure() {
            let (job, queue, said) = (self.fence.job(), &self.queue, said(&ended, failure));
            match ended.place.state() {
                State::Waiting => tracing::info!(%job, %queue, "{said}"),
                _ => tracing::warn!(%job, %queue, "{said}"),
            }
        }
        observer.ended(&ended);
    }
}

/// What became of a failed attempt. The failure's message is not for the log: `leasehold dead show` has it.
fn said(ended: &Ended, failure: &Failure) -> String {
    let (code, class) = (failure.code_id(), failure.class().id());
    let became = match ended.place.state() {
        State::Waiting => "the job waits for another",
        State::DeadLetter => "the job is a dead letter",
        State::Cancelled => "the job is cancelled",
        _ => "the job has failed",
    };
    format!(
        "attempt {} of {} failed, {code} ({class}): {became}",
        ended.attempt, ended.max_attempts
    )
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.leases.remove(&self.fence);
    }
}

/// How many settlements are on their way.
#[derive(Debug, Default)]
struct Count {
    now: AtomicUsize,
    fewer: Notify,
}

#[derive(Debug)]
struct Counted(Arc<Count>);

impl Counted {
    fn new(count: &Arc<Count>) -> Self {
        count.now.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        self.0.fewer.notify_waiters();
    }
}

/// Hands settlements to the lane; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Settler {
    inbox: mpsc::Sender<Item>,
    leases: Arc<Leases<Fence>>,
    on_their_way: Arc<Count>,
    /// Is cancelled once nobody settles any more.
    ended: CancellationToken,
}

impl Settler {
    pub(super) fn start(
        store: Arc<dyn Store>,
        leases: Arc<Leases<Fence>>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let (inbox, receiver) = mpsc::channel(BATCH);
        let batch = Vec::with_capacity(BATCH);
        let lane = Lane { store, leases: leases.clone(), batch, observer };
        let ended = CancellationToken::new();
        let ends = ended.clone().drop_guard();
        tokio::spawn(async move {
            let _however_it_ends = ends;
            lane.settle_all(receiver).await;
        });
        Self { inbox, leases, on_their_way: Arc::default(), ended }
    }

    /// Waits for the end of the lane, which comes only by a panic in it.
    pub(super) async fn ended(&self) -> Error {
        self.ended.cancelled().await;
        Error::new(ErrorKind::Unavailable, "settle", "the settle lane has ended")
    }

    /// Hands a settlement over; its lease is kept until it is stored or can no longer be.
    pub(super) async fn settle(&self, settlement: Settlement, held: InHand) {
        self.leases.settling(&settlement.fence, true);
        let counted = Counted::new(&self.on_their_way);
        let item = Item { settlement, stand_in: false, held, _counted: counted };
        let _the_lane_has_ended = self.inbox.send(item).await;
    }

    /// How many settlements are on their way.
    pub(super) fn on_their_way(&self) -> usize {
        self.on_their_way.now.load(Ordering::SeqCst)
    }

    /// Waits until fewer settlements than some number are on their way.
    pub(super) async fn fewer_than(&self, number: usize) {
        loop {
            let fewer = self.on_their_way.fewer.notified();
            tokio::pin!(fewer);
            fewer.as_mut().enable();
            if self.on_their_way() < number {
                return;
            }
            fewer.await;
        }
    }
}

#[derive(Debug)]
struct Lane {
    store: Arc<dyn Store>,
    leases: Arc<Leases<Fence>>,
    batch: Vec<Item>,
    observer: Arc<dyn Observer>,
}

impl Lane {
    async fn settle_all(mut self, mut inbox: mpsc::Receiver<Item>) {
        let mut pause = false;
        loop {
            if self.batch.is_empty() {
                if inbox.recv_many(&mut self.batch, BATCH).await == 0 {
                    return;
                }
                // Jobs that are about to end do so first, and go into the same call.
                tokio::task::yield_now().await;
                self.take_more(&mut inbox);
            } else {
                if pause {
                    tokio::time::sleep(PAUSE).await;
                }
                self.batch.retain(|item| self.leases.ends(&item.settlement.fence).is_some());
                self.take_more(&mut inbox);
            }
            pause = self.send_batch().await;
        }
    }

    fn take_more(&mut self, inbox: &mut mpsc::Receiver<Item>) {
        while self.batch.len() < BATCH {
            let Ok(item) = inbox.try_recv() else { break };
            self.batch.push(item);
        }
    }

    /// Sends what is in hand, as far as it fits one call; what has to be sent again stays in hand, and
    /// then it is so told.
    async fn send_batch(&mut self) -> bool {
        let these = fitting(&self.batch);
        let all: Vec<_> =
            self.batch.iter().take(these).map(|item| item.settlement.clone()).collect();
        let left = self.batch.len() - these;
        match tokio::time::timeout(CALL_MAX, self.store.settle(all)).await {
            Ok(Ok(answers)) => {
                let sent: Vec<Item> = self.batch.drain(..these).collect();
                for (item, answer) in sent.into_iter().zip(answers) {
                    self.learn(item, answer);
                }
            }
            Ok(Err(error)) if error.is_retryable() => {
                tracing::warn!(%error, "settlements are sent again");
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "settlements are sent one by one");
                let sent: Vec<Item> = self.batch.drain(..these).collect();
                for item in sent {
                    let answer = self.store.settle_one(item.settlement.clone()).await;
                    self.learn(item, answer);
                }
            }
            Err(_) => tracing::warn!("settle took too long; the settlements are sent again"),
        }
        self.batch.len() > left
    }

    fn learn(&mut self, item: Item, answer: Result<Settled>) {
        let fence = item.settlement.fence;
        match answer {
            Err(error) if error.is_retryable() => self.batch.push(item),
            Err(error) if !error.is_fence_lost() && !item.stand_in => {
                tracing::error!(job = %fence.job(), %error, "settlement refused, the job fails");
                let settlement = Settlement::new(fence, stand_in(&error));
                self.batch.push(Item { settlement, stand_in: true, ..item });
            }
            Err(error) => {
                tracing::error!(job = %fence.job(), %error, "settlement refused");
                tell_refused(&*self.observer, "settle", &error);
            }
            Ok(settled) => {
                item.held.tell(&*self.observer, &item.settlement.verdict, settled);
            }
        }
    }
}

/// How many settlements from the first on fit one call.
fn fitting(batch: &[Item]) -> usize {
    let mut bytes = 0;
    let fits = |item: &&Item| {
        bytes += weight(&item.settlement);
        bytes <= BYTES_MAX
    };
    batch.iter().take(BATCH).take_while(fits).count().max(1).min(batch.len())
}

/// The bytes of a settlement's documents.
fn weight(settlement: &Settlement) -> usize {
    let result = match &settlement.verdict {
        Verdict::Succeed { result } => result.as_ref(),
        _ => None,
    };
    let own = result.into_iter().chain(&settlement.checkpoint);
    let events = settlement.events.iter().map(|event| &event.payload);
    let jobs = settlement.jobs.iter().map(|job| &job.payload);
    own.chain(events).chain(jobs).map(Json::len).sum()
}

/// The verdict in place of one that the store refused.
pub(super) fn stand_in(error: &Error) -> Verdict {
    let code = match error.kind() {
        ErrorKind::Invalid => FailureCode::ResultInvalid,
        ErrorKind::Conflict => FailureCode::VersionConflict,
        _ => FailureCode::InvariantBroken,
    };
    let failure = Failure::new(code, error.to_string());
    Verdict::Retry { failure, delay: Some(Duration::from_secs(1)) }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{Place, VerdictKind};

    use super::*;

    /// What an operator looks for in the log, and nothing that a handler has written.
    ///
    /// Proves: LOG-1
    #[test]
    fn a_failed_attempt_is_told_with_what_became_of_the_job() {
        let failure = Failure::new(FailureCode::HandlerFailed, "password of ada");
        let end = |place| Ended {
            queue: QueueName::default_queue(),
            verdict: VerdictKind::Retry,
            failure: Some(failure.class()),
            place,
            ran: None,
            attempt: 2,
            max_attempts: 5,
        };
        for (place, became) in [
            (Place::Waiting, "the job waits for another"),
            (Place::DeadLetter, "the job is a dead letter"),
            (Place::Failed, "the job has failed"),
        ] {
            let said = said(&end(place), &failure);
            let wanted =
                format!("attempt 2 of 5 failed, HANDLER_FAILED ({})", failure.class().id());
            assert_eq!(said, format!("{wanted}: {became}"));
        }
    }
}
