//! Owns the loop of a relay: claim, deliver, renew meanwhile, settle.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use leasehold_core::retry::random_unit;
use leasehold_core::{
    EventClaim, EventClaimRequest, EventFence, EventSettlement, EventVerdict, Failure, FailureCode,
    HintKind, RenewRequest, Renewal, StoreExt,
};
use tokio_util::sync::CancellationToken;

use super::{Delivery, Relay, Sink};
use crate::clock;

const PAUSE: Duration = Duration::from_millis(50);

impl<S: Sink> Relay<S> {
    /// Delivers until `shutdown` is cancelled; the batch in hand is finished or given back.
    pub async fn run(&self, shutdown: &CancellationToken) {
        let mut hints = self.store.hints().listen(HintKind::Events);
        while !shutdown.is_cancelled() {
            if self.relay_once(shutdown).await > 0 {
                continue;
            }
            let wait = Duration::from_secs(1).mul_f64(0.5 + random_unit());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = hints.heard() => {}
                () = shutdown.cancelled() => {}
            }
        }
    }

    /// Delivers until no event is due; gives how many were tried.
    pub async fn run_until_idle(&self) -> usize {
        let (never, mut total) = (CancellationToken::new(), 0);
        loop {
            match self.relay_once(&never).await {
                0 => return total,
                tried => total += tried,
            }
        }
    }

    async fn relay_once(&self, shutdown: &CancellationToken) -> usize {
        let mut request = EventClaimRequest::new(self.id).limit(self.batch).lease(self.lease);
        request.topics.clone_from(&self.topics);
        let sent = clock::now();
        let claims = match self.store.claim_events(request).await {
            Ok(claims) => claims,
            Err(error) => {
                tracing::warn!(%error, "claim of events failed");
                return 0;
            }
        };
        let tried = claims.len();
        stream::iter(claims)
            .for_each_concurrent(self.at_once, |claim| self.relay_one(claim, sent, shutdown))
            .await;
        tried
    }

    async fn relay_one(&self, claim: EventClaim, sent: Instant, shutdown: &CancellationToken) {
        let (fence, attempt) = (claim.fence, claim.attempt);
        let mut ends = sent + claim.remaining;
        let left = ends.saturating_duration_since(clock::now());
        if shutdown.is_cancelled() || left < self.lease.as_duration() / 3 {
            return self.settle(fence, EventVerdict::Release { delay: None }, ends).await;
        }
        let delivery = Delivery::of(claim);
        let answer = tokio::select! {
            answer = self.deliver(&delivery) => answer,
            () = self.keep(fence, &mut ends) => {
                tracing::warn!(event = %fence.event(), "lease of a delivery lost");
                return;
            }
            () = self.grace_over(shutdown) => {
                return self.settle(fence, EventVerdict::Release { delay: None }, ends).await;
            }
        };
        let verdict = match answer {
            Ok(()) => EventVerdict::Delivered,
            Err(failure) => {
                let delay = Some(self.retry.delay(attempt, &failure, random_unit()));
                EventVerdict::Retry { failure, delay }
            }
        };
        self.settle(fence, verdict, ends).await;
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

    /// Renews at a third of the lease; returns once the lease is lost.
    async fn keep(&self, fence: EventFence, ends: &mut Instant) {
        loop {
            let now = clock::now();
            if *ends <= now {
                return;
            }
            let spare = self.lease.as_duration() * 2 / 3;
            let wait = ends.duration_since(now).saturating_sub(spare).max(PAUSE);
            tokio::time::sleep(wait).await;
            let asked = clock::now();
            let request = self.store.renew_events(RenewRequest::new([fence]));
            let patience = ends.saturating_duration_since(asked);
            if let Ok(Ok(answers)) = tokio::time::timeout(patience, request).await {
                match answers.first() {
                    Some(Renewal::Renewed { remaining, .. }) => *ends = asked + *remaining,
                    Some(Renewal::Lost(_)) => return,
                    _ => {}
                }
            }
        }
    }

    /// Sends the same settlement again until it is stored, refused, or the lease is over.
    async fn settle(&self, fence: EventFence, verdict: EventVerdict, ends: Instant) {
        let settlement = EventSettlement::new(fence, verdict);
        while let Err(error) = self.store.settle_event(settlement.clone()).await {
            let again = error.is_retryable() && clock::now() < ends;
            tracing::warn!(event = %fence.event(), %error, again, "delivery not settled");
            if !again {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
