//! Owns the flow of a relay: claim, deliver, renew meanwhile, settle.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use leasehold_core::retry::random_unit;
use leasehold_core::{
    ErrorKind, EventClaim, EventClaimRequest, EventFence, EventSettlement, EventVerdict, Failure,
    FailureCode, HintKind, Result, StoreExt,
};
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Delivery, Relay, Sink, Undelivered};
use crate::clock;
use crate::lane::{Held, Leases};
use crate::observe::{Alert, Leased, tell_refused};
use crate::trace::{Trace, tell_outcome};

type InHand = Leases<EventFence>;

const PAUSE: Duration = Duration::from_millis(50);
/// How long the releases at the end of a shutdown may take.
const RELEASE_MAX: Duration = Duration::from_secs(5);

/// What has been claimed, the proof beside when it was asked for.
type Claimed = Result<(Vec<EventClaim>, Instant)>;

/// Waits for what is there; for ever where nothing is.
async fn pending<F: Future + Unpin>(future: &mut Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

impl<S: Sink> Relay<S> {
    /// Delivers until `shutdown` is cancelled; what is in hand is finished or given back.
    ///
    /// # Errors
    /// `Unavailable` without a thread for renewals or when it ends; errors of the store are logged and
    /// tried again.
    pub async fn run(&self, shutdown: CancellationToken) -> Result<()> {
        let leases = Leases::start(self.store.clone(), self.renew_at)?;
        tokio::select! {
            ended = self.flow(&leases, &shutdown, false) => ended.map(|_| ()),
            error = leases.unrenewed() => Err(error),
            () = self.patience_over(&shutdown) => {
                tracing::error!("the store does not answer; what is in hand will lapse");
                Ok(())
            }
        }
    }

    /// Delivers until no event is due; gives how many were tried.
    ///
    /// # Errors
    /// As [`Relay::run`], and those of a claim.
    pub async fn run_until_idle(&self) -> Result<usize> {
        let leases = Leases::start(self.store.clone(), self.renew_at)?;
        let never = CancellationToken::new();
        tokio::select! {
            tried = self.flow(&leases, &never, true) => tried,
            error = leases.unrenewed() => Err(error),
        }
    }

    /// Keeps up to `at_once` deliveries going, and asks for more as soon as one could begin at once: a
    /// slow delivery holds back none but those behind it in its own key.
    async fn flow(
        &self,
        leases: &InHand,
        shutdown: &CancellationToken,
        until_idle: bool,
    ) -> Result<usize> {
        let mut hints = self.store.hints().listen(HintKind::Events);
        let (mut flights, mut claimed) = (FuturesUnordered::new(), VecDeque::new());
        let (mut tried, mut stopping) = (0, shutdown.is_cancelled());
        let mut asking: Option<BoxFuture<'_, Claimed>> = None;
        let mut rest: Option<Pin<Box<Sleep>>> = None;
        // Whether a delivery has ended since the claim under way was asked for: it may have freed an
        // event that the answer does not know of.
        let mut outdated = false;
        loop {
            while (stopping || flights.len() < self.at_once)
                && let Some((claim, lost)) = claimed.pop_front()
            {
                flights.push(self.relay_one(leases, claim, lost, shutdown));
            }
            let is_free = claimed.is_empty() && flights.len() < self.at_once;
            if is_free && asking.is_none() && rest.is_none() && !stopping {
                asking = Some(Box::pin(self.claim()));
                outdated = false;
            }
            if stopping && asking.is_none() && flights.is_empty() {
                return Ok(tried);
            }
            tokio::select! {
                answer = pending(&mut asking) => {
                    asking = None;
                    let (claims, sent) = match answer {
                        Ok(answer) => answer,
                        Err(error) if until_idle => return Err(error),
                        Err(error) => {
                            tracing::warn!(%error, "claim of events failed");
                            outdated = false; // or it would be asked again without a pause
                            (Vec::new(), clock::now())
                        }
                    };
                    let is_idle = claims.is_empty() && !outdated;
                    if is_idle && until_idle && flights.is_empty() {
                        return Ok(tried);
                    }
                    if is_idle {
                        let pause = self.poll.mul_f64(0.5 + random_unit());
                        rest = Some(Box::pin(tokio::time::sleep(pause)));
                    }
                    tried += claims.len();
                    claimed.extend(claims.into_iter().map(|claim| self.hold(leases, claim, sent)));
                }
                Some(()) = flights.next() => (rest, outdated) = (None, true),
                () = pending(&mut rest) => rest = None,
                () = hints.heard(), if rest.is_some() => rest = None,
                () = shutdown.cancelled(), if !stopping => stopping = true,
            }
        }
    }

    /// Begins to renew a claim, also while it waits behind slow deliveries.
    fn hold(
        &self,
        leases: &InHand,
        claim: EventClaim,
        sent: Instant,
    ) -> (EventClaim, CancellationToken) {
        let (ends, nobody) = (sent + claim.remaining, CancellationToken::new());
        let lease = Held::new(claim.fence, ends, self.lease.as_duration(), nobody);
        let lost = lease.lost();
        leases.add(lease);
        (claim, lost)
    }

    /// Claims a batch, and when that was asked; after a lost reply the very same request goes again, so
    /// that nothing stays leased to nobody.
    async fn claim(&self) -> Claimed {
        let mut request = EventClaimRequest::new(self.id).limit(self.batch).lease(self.lease);
        request.topics.clone_from(&self.topics);
        let patience = clock::now() + self.lease.as_duration();
        loop {
            let sent = clock::now();
            match self.store.claim_events(request.clone()).await {
                Ok(claims) => return Ok((claims, sent)),
                Err(error) if error.is_retryable() && request.repeat && sent < patience => {}
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown && !request.repeat => {
                    request = request.repeat();
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn relay_one(
        &self,
        leases: &InHand,
        claim: EventClaim,
        lost: CancellationToken,
        shutdown: &CancellationToken,
    ) {
        let fence = claim.fence;
        self.try_one(leases, claim, lost, shutdown).await;
        leases.remove(&fence);
    }

    async fn try_one(
        &self,
        leases: &InHand,
        claim: EventClaim,
        lost: CancellationToken,
        shutdown: &CancellationToken,
    ) {
        let (fence, attempt) = (claim.fence, claim.attempt);
        let release = EventVerdict::Release { delay: None };
        let Some(ends) = leases.ends(&fence) else { return };
        let left = ends.saturating_duration_since(clock::now());
        if shutdown.is_cancelled() || left < self.lease.as_duration() / 3 {
            return self.settle(leases, fence, release).await;
        }
        let (trace, span) = Trace::of_delivery(&claim);
        let delivery = Delivery::of(claim, trace);
        let work = async {
            let verdict = tokio::select! {
                answer = self.deliver(&delivery) => self.verdict(attempt, answer),
                () = lost.cancelled() => {
                    tell_outcome("lost", false);
                    return self.observer.lease_lost(Leased::Event);
                }
                () = self.grace_over(shutdown) => release,
            };
            tell_outcome(verdict.kind().as_str(), verdict.failure().is_none());
            self.settle(leases, fence, verdict).await;
        };
        work.instrument(span).await;
    }

    fn verdict(&self, attempt: u32, answer: Result<(), Undelivered>) -> EventVerdict {
        match answer {
            Ok(()) => EventVerdict::Delivered,
            Err(Undelivered::Failed(failure)) => self.failed(attempt, failure),
            Err(Undelivered::Later(wait)) => EventVerdict::Release { delay: Some(wait) },
        }
    }

    /// The store ends what is not retryable or has no budget; only the relay knows of idempotence.
    fn failed(&self, attempt: u32, failure: Failure) -> EventVerdict {
        let is_idempotent = self.idempotent || self.sink.is_idempotent();
        if failure.class().retries_need_idempotence() && !is_idempotent {
            return EventVerdict::DeadLetter { failure };
        }
        let delay = Some(self.retry.delay(attempt, &failure, random_unit()));
        EventVerdict::Retry { failure, delay }
    }

    async fn patience_over(&self, shutdown: &CancellationToken) {
        self.grace_over(shutdown).await;
        tokio::time::sleep(RELEASE_MAX).await;
    }

    async fn grace_over(&self, shutdown: &CancellationToken) {
        shutdown.cancelled().await;
        tokio::time::sleep(self.grace).await;
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<(), Undelivered> {
        let caught = std::panic::AssertUnwindSafe(self.sink.deliver(delivery));
        match futures_util::FutureExt::catch_unwind(caught).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::new(FailureCode::Panic, "the sink panicked").into()),
        }
    }

    /// Sends the same settlement again until it is stored, refused, or the lease is over.
    async fn settle(&self, leases: &InHand, fence: EventFence, verdict: EventVerdict) {
        leases.settling(&fence, true);
        let settlement = EventSettlement::new(fence, verdict);
        while let Err(error) = self.store.settle_event(settlement.clone()).await {
            let again = error.is_retryable() && leases.ends(&fence).is_some();
            let then = if again { "sent again" } else { "given up" };
            tracing::warn!(%error, "settlement of event {} {then}", fence.event());
            if !again {
                return tell_refused(&*self.observer, "delivery", &error);
            }
            tokio::time::sleep(PAUSE).await;
        }
        if settlement.verdict.failure().is_some_and(|failure| failure.raises_alert()) {
            self.observer.alerted(Alert::Delivery);
        }
        self.observer.delivery_ended(settlement.verdict.kind());
    }
}
