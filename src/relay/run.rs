//! Owns the loop of a relay: claim, deliver, renew meanwhile, settle.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use leasehold_core::retry::random_unit;
use leasehold_core::{
    ErrorKind, EventClaim, EventClaimRequest, EventFence, EventSettlement, EventVerdict, Failure,
    FailureCode, HintKind, Result, StoreExt,
};
use tokio_util::sync::CancellationToken;

use super::{Delivery, Relay, Sink};
use crate::clock;
use crate::lane::{Held, Leases};

type InHand = Leases<EventFence>;

const PAUSE: Duration = Duration::from_millis(50);
/// How long the releases at the end of a shutdown may take.
const RELEASE_MAX: Duration = Duration::from_secs(5);

impl<S: Sink> Relay<S> {
    /// Delivers until `shutdown` is cancelled; the batch in hand is finished or given back.
    ///
    /// # Errors
    /// `Unavailable` without a thread for renewals or when it ends; errors of the store are logged and
    /// tried again.
    pub async fn run(&self, shutdown: CancellationToken) -> Result<()> {
        let leases = Leases::start(self.store.clone(), self.renew_at)?;
        let mut hints = self.store.hints().listen(HintKind::Events);
        while !shutdown.is_cancelled() {
            let tried = tokio::select! {
                tried = self.relay_once(&leases, &shutdown) => tried,
                error = leases.unrenewed() => return Err(error),
                () = self.patience_over(&shutdown) => {
                    tracing::error!("the store does not answer; what is in hand will lapse");
                    return Ok(());
                }
            };
            match tried {
                Ok(0) => {}
                Ok(_) => continue,
                Err(error) => tracing::warn!(%error, "claim of events failed"),
            }
            let wait = Duration::from_secs(1).mul_f64(0.5 + random_unit());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = hints.heard() => {}
                () = shutdown.cancelled() => {}
            }
        }
        Ok(())
    }

    /// Delivers until no event is due; gives how many were tried.
    ///
    /// # Errors
    /// As [`Relay::run`], and those of a claim.
    pub async fn run_until_idle(&self) -> Result<usize> {
        let leases = Leases::start(self.store.clone(), self.renew_at)?;
        let (never, mut total) = (CancellationToken::new(), 0);
        loop {
            let tried = tokio::select! {
                tried = self.relay_once(&leases, &never) => tried?,
                error = leases.unrenewed() => return Err(error),
            };
            match tried {
                0 => return Ok(total),
                tried => total += tried,
            }
        }
    }

    /// Claims one batch and tries each of its events; gives how many they were.
    pub(super) async fn relay_once(
        &self,
        leases: &InHand,
        shutdown: &CancellationToken,
    ) -> Result<usize> {
        let (claims, sent) = self.claim().await?;
        let tried = claims.len();
        // The whole batch is renewed, also what still waits behind slow deliveries.
        let begin = |claim: EventClaim| {
            let (fence, ends) = (claim.fence, sent + claim.remaining);
            let nobody = CancellationToken::new();
            let lease = Held::new(fence, ends, self.lease.as_duration(), nobody);
            let lost = lease.lost();
            leases.add(lease);
            (claim, lost)
        };
        let claims: Vec<_> = claims.into_iter().map(begin).collect();
        let relay = |(claim, lost): (EventClaim, CancellationToken)| async move {
            let fence = claim.fence;
            self.relay_one(leases, claim, lost, shutdown).await;
            leases.remove(&fence);
        };
        stream::iter(claims).for_each_concurrent(self.at_once, relay).await;
        Ok(tried)
    }

    /// Claims a batch, and when that was asked; after a lost reply the very same request goes again, so
    /// that nothing stays leased to nobody.
    async fn claim(&self) -> Result<(Vec<EventClaim>, Instant)> {
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
        let (fence, attempt) = (claim.fence, claim.attempt);
        let release = EventVerdict::Release { delay: None };
        let Some(ends) = leases.ends(&fence) else { return };
        let left = ends.saturating_duration_since(clock::now());
        if shutdown.is_cancelled() || left < self.lease.as_duration() / 3 {
            return self.settle(leases, fence, release).await;
        }
        let delivery = Delivery::of(claim);
        let answer = tokio::select! {
            answer = self.deliver(&delivery) => answer,
            () = lost.cancelled() => return,
            () = self.grace_over(shutdown) => return self.settle(leases, fence, release).await,
        };
        let verdict = match answer {
            Ok(()) => EventVerdict::Delivered,
            Err(failure) => self.failed(attempt, failure),
        };
        self.settle(leases, fence, verdict).await;
    }

    /// The store ends what is not retryable or has no budget; only the relay knows of idempotence.
    fn failed(&self, attempt: u32, failure: Failure) -> EventVerdict {
        if failure.class().retries_need_idempotence() && !self.idempotent {
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

    async fn deliver(&self, delivery: &Delivery) -> Result<(), Failure> {
        let caught = std::panic::AssertUnwindSafe(self.sink.deliver(delivery));
        match futures_util::FutureExt::catch_unwind(caught).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::new(FailureCode::Panic, "the sink panicked")),
        }
    }

    /// Sends the same settlement again until it is stored, refused, or the lease is over.
    async fn settle(&self, leases: &InHand, fence: EventFence, verdict: EventVerdict) {
        leases.settling(&fence, true);
        let settlement = EventSettlement::new(fence, verdict);
        while let Err(error) = self.store.settle_event(settlement.clone()).await {
            let again = error.is_retryable() && leases.ends(&fence).is_some();
            tracing::warn!(event = %fence.event(), %error, again, "delivery not settled");
            if !again {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
